"""Compiled targets of TensorFlow, JAX, NCCL and cuDNN, read inside wheels that nobody has measured yet.

TensorFlow records what it was compiled for, a few kilobytes. JAX's plugins and NVIDIA's libraries tell by the fat binaries of
one library each, of which about a megabyte (JAX) or the first ten (NCCL, cuDNN) are read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.curate.measured import Reading, fat_targets, target_fields, with_readings
from provisioner.measure.texts import tensorflow_build

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provisioner.curate.derive import Sitting
    from provisioner.curate.shelf import Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile

    Find = Callable[[Sitting, Wheel], list[str]]

RECORD_FILE = "tensorflow/python/platform/build_info.py"

CUDNN_LIBRARY = re.compile(r"nvidia/cudnn/lib/libcudnn_ops(_infer)?\.so\.\d+")
"""The smallest library of cuDNN with kernels of its own in every release; the engines are for fewer GPUs each."""


def measure_tensorflow(sitting: Sitting, derived: ComponentFile) -> ComponentFile:
    """Add the targets of CUDA builds from 2.3 on; before that no wheel records them."""
    where = f"cuda_compute_capabilities in {RECORD_FILE}; compute_XY there stands for machine code and PTX of XY"
    reading = Reading(
        source="tensorflow-build-targets",
        title="tensorflow wheels, the one named under `artefact`",
        where=where,
        project="tensorflow",
        fields=_fields("build-info", _recorded),
    )
    return with_readings(sitting, derived, projects=("tensorflow",), readings=(reading,))


def measure_jax(sitting: Sitting, derived: ComponentFile) -> ComponentFile:
    """Add the targets of the CUDA builds."""
    reading = Reading(
        source="jax-fat-binaries",
        title="jax-cuda plugin wheels, the one named under `artefact`",
        where="fat-binary records of _linalg.so, kernels of JAX's own; what XLA compiles at run time has no targets before",
        project="jax-cuda13-plugin",
        fields=_fields("fat-binaries", _of_library(re.compile(r"jax_cuda\d+_plugin/_linalg\.so"))),
    )
    return with_readings(sitting, derived, projects=("jax-cuda13-plugin", "jax-cuda12-plugin"), readings=(reading,))


def measure_nvidia(component: str, projects: tuple[str, ...]) -> Callable[[Sitting, ComponentFile], ComponentFile]:
    """What adds the targets of `nccl` or `cudnn`, whose wheels are those of `projects`."""
    title, where, library = _NVIDIA[component]

    def measure(sitting: Sitting, derived: ComponentFile) -> ComponentFile:
        reading = Reading(
            source=f"{component}-fat-binaries",
            title=title,
            where=where,
            project=projects[0],
            fields=_fields("fat-binaries", _of_library(library)),
        )
        return with_readings(sitting, derived, projects=projects, readings=(reading,))

    return measure


_NVIDIA = {
    "nccl": (
        "nvidia-nccl wheels, the one named under `artefact`",
        "fat-binary records of libnccl.so.2, read until 8 MiB of it brought no new target",
        re.compile(r"nvidia/nccl/lib/libnccl\.so\.2"),
    ),
    "cudnn": (
        "nvidia-cudnn wheels, the one named under `artefact`",
        "fat-binary records of libcudnn_ops (libcudnn_ops_infer of cuDNN 8), read until 8 MiB of it brought no new target",
        CUDNN_LIBRARY,
    ),
}


def _fields(what: str, find: Find) -> Callable[[Sitting, Wheel, BuildEntry], Mapping[str, object]]:
    def fields(sitting: Sitting, wheel: Wheel, build: BuildEntry) -> Mapping[str, object]:
        if build.sass is not None or build.accelerator == "cpu":
            return {}
        return target_fields(sitting.shelf.remembered(wheel, what, lambda: find(sitting, wheel)))

    return fields


def _recorded(sitting: Sitting, wheel: Wheel) -> list[str]:
    _, targets = tensorflow_build(sitting.shelf.member(wheel, RECORD_FILE) or "")
    return list(targets)


def _of_library(path: re.Pattern[str]) -> Find:
    return lambda sitting, wheel: sitting.shelf.streamed(wheel, path, fat_targets)
