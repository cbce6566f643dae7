"""TensorFlow, from its wheels.

CUDA comes with `tensorflow[and-cuda]` from 2.14 on. Before that the Linux wheel for x86_64 uses the CUDA of the system: the
one of `tensorflow` from 2.1 on, the one of `tensorflow-gpu` up to 2.0; which CUDA that is, no metadata says.
Source: TensorFlow release notes 2.1.0, "The tensorflow pip package now includes GPU support by default"; METADATA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.curate.derive import Deriver, Sitting, build_entry, by_version, component_file, for_platform, joined, needs
from provisioner.curate.measure_targets import measure_tensorflow
from provisioner.curate.wheel_facts import as_range, cuda_of_runtime, glibc, macos, newest_minor, pythons, released, required
from provisioner.matrix.schema import ReleaseEntry, SourceEntry
from provisioner.platforms import PLATFORM_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

    from provisioner.curate.shelf import Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile
    from provisioner.platforms import PlatformName

PROJECT = "tensorflow"
GPU_PROJECT = "tensorflow-gpu"
SOURCE = "tensorflow-wheels"
GPU_SOURCE = "tensorflow-gpu-wheels"
NOTES_SOURCE = "tensorflow-2.1-release-notes"
NOTES = SourceEntry(
    title="TensorFlow RELEASE.md, Release 2.1.0",
    where="Major Features: the tensorflow package includes GPU support by default, for Linux and Windows",
    url="https://github.com/tensorflow/tensorflow/blob/master/RELEASE.md",
    read="2026-11-21",
)
EXTRA = "and-cuda"
OLDEST = (1, 0)
ONE_PACKAGE = (2, 1)
"""From this release on `tensorflow` holds what `tensorflow-gpu` held."""

GPU_PLATFORM: PlatformName = "linux/amd64"


def derive(sitting: Sitting) -> ComponentFile:
    """Every release from 1.0 on: its CPU builds, and how it gets CUDA on Linux."""
    shelf = sitting.shelf
    wheels = [wheel for wheel in shelf.wheels(PROJECT) if wheel.version.release >= OLDEST]
    of_gpu = by_version(shelf.wheels(GPU_PROJECT))
    groups = by_version(wheels)
    with_gpu = [
        found
        for version, each in groups.items()
        if version.release >= ONE_PACKAGE and (found := for_platform(each, GPU_PLATFORM))
    ]
    shelf.read_ahead(sitting.representative(found) for found in with_gpu)
    newest = newest_minor(wheels)
    releases = []
    for version, found in groups.items():
        builds = [*_with_cuda(sitting, found, of_gpu.get(version, []), newest=newest)]
        builds += joined(_plain(sitting, found, newest=newest))
        if builds:
            releases.append(ReleaseEntry(version=found[0].text, released=released(found), builds=tuple(builds)))
    where = "tags of the wheels; METADATA of the wheel under `artefact`"
    sources = {
        NOTES_SOURCE: NOTES,
        SOURCE: sitting.source("tensorflow wheels on the package index", where, PROJECT),
        GPU_SOURCE: sitting.source("tensorflow-gpu wheels on the package index", "tags of the wheels", GPU_PROJECT),
    }
    return component_file(sources, releases)


def _plain(sitting: Sitting, wheels: Sequence[Wheel], *, newest: tuple[int, ...]) -> Iterator[BuildEntry]:
    for platform in PLATFORM_NAMES:
        found = for_platform(wheels, platform)
        if found:
            yield _build(sitting, found, platform, newest=newest, name="cpu", accelerator="cpu")


def _with_cuda(
    sitting: Sitting, wheels: Sequence[Wheel], of_gpu: Sequence[Wheel], *, newest: tuple[int, ...]
) -> Iterator[BuildEntry]:
    found = for_platform(wheels, GPU_PLATFORM)
    if found and found[0].version.release < ONE_PACKAGE:
        apart = for_platform(of_gpu, GPU_PLATFORM)
        if apart:
            build = _build(sitting, apart, GPU_PLATFORM, newest=newest, name="system-cuda", accelerator="cuda")
            yield build.model_copy(update={"install": GPU_PROJECT, "source": (GPU_SOURCE,)})
        return
    if not found:
        return
    wheel = sitting.representative(found)
    python = next(iter(pythons([wheel], newest=newest)))
    pins = required(sitting.shelf.requires(wheel), platform=GPU_PLATFORM, python=python, extras=(EXTRA,))
    cuda = cuda_needs(pins)
    build = _build(sitting, found, GPU_PLATFORM, newest=newest, name=EXTRA if cuda else "system-cuda", accelerator="cuda")
    if cuda:
        yield build.model_copy(update={"install": f"{PROJECT}[{EXTRA}]", "requires": {**cuda, **build.requires}})
    else:
        yield build.model_copy(update={"source": (SOURCE, NOTES_SOURCE)})


def cuda_needs(pins: Mapping[str, Requirement]) -> dict[str, str | tuple[str, ...]]:
    """CUDA, cuDNN, NCCL and NVSHMEM as requirements on NVIDIA's wheels stand for them; empty when there are none."""
    found = {}
    for name, requirement in pins.items():
        stem, _, major = name.removeprefix("nvidia-").partition("-cu1")
        if stem in {"cudnn", "nccl", "nvshmem"} and major:
            found[stem] = as_range(requirement.specifier)
            found.setdefault("major", f"1{major}")
        elif stem == "cuda-runtime":
            found["cuda"] = cuda_of_runtime(requirement.specifier, f"1{major}")
    if "cuda" not in found and "major" not in found:
        return {}
    cuda = found.get("cuda") or f"=={found['major']}.*"
    return needs(cuda=cuda, cudnn=found.get("cudnn", ""), nccl=found.get("nccl", ""), nvshmem=found.get("nvshmem", ""))


def _build(
    sitting: Sitting, wheels: Sequence[Wheel], platform: PlatformName, *, newest: tuple[int, ...], **fields: object
) -> BuildEntry:
    requires = needs(
        python=pythons(wheels, newest=newest),
        glibc=glibc(wheels) if platform.startswith("linux") else "",
        macos=macos(wheels, platform) if platform.startswith("macos") else "",
    )
    wheel = sitting.representative(wheels)
    return build_entry(
        str(fields.pop("name")), wheel, platforms=(platform,), index="pypi", requires=requires, source=(SOURCE,), **fields
    )


TENSORFLOW = Deriver(
    component="tensorflow",
    about="TensorFlow: builds of the package index, CPU builds and how CUDA comes along on Linux.",
    edit="what a release was built with belongs in tensorflow_rules.yaml.",
    derive=derive,
    measure=measure_tensorflow,
)
