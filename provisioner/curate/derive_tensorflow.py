"""The deriver of TensorFlow's matrix file, from its wheels.

From 2.14 on, `tensorflow[and-cuda]` installs CUDA. Before that, the Linux wheel for x86_64 (of `tensorflow` from 2.1 on, of
`tensorflow-gpu` up to 2.0) uses the CUDA of the system, whose version no metadata declares.
Source: TensorFlow release notes 2.1.0, "The tensorflow pip package now includes GPU support by default"; METADATA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.curate.derive import (
    Deriver,
    Session,
    Source,
    by_platform,
    by_version,
    for_platform,
    joined,
    needs,
    needs_of_files,
    release,
)
from provisioner.curate.readings import TENSORFLOW_KERNELS, TENSORFLOW_TARGETS
from provisioner.curate.wheel_facts import as_range, cuda_of_runtime, newest_minor, pythons, required
from provisioner.matrix.model import Citation
from provisioner.platforms import PLATFORM_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

    from provisioner.curate.wheel_index import Wheel
    from provisioner.matrix.model import Build, Release
    from provisioner.matrix.need import Needs

PROJECT = "tensorflow"
GPU_PROJECT = "tensorflow-gpu"
SOURCE = "tensorflow-wheels"
GPU_SOURCE = "tensorflow-gpu-wheels"
NOTES_SOURCE = "tensorflow-2.1-release-notes"
NOTES = Citation(
    title="TensorFlow RELEASE.md, Release 2.1.0",
    where="Major Features: the tensorflow package includes GPU support by default, for Linux and Windows",
    url="https://github.com/tensorflow/tensorflow/blob/master/RELEASE.md",
    read="2026-11-21",
)
EXTRA = "and-cuda"
OLDEST = (1, 0)
ONE_PACKAGE = (2, 1)
"""The release from which on `tensorflow` has the GPU support that was in `tensorflow-gpu`."""

GPU_PLATFORM = "linux/amd64"


def _releases(session: Session) -> Iterator[Release]:
    """Yield every release from 1.0 on: its CPU builds, and how it gets CUDA on Linux."""
    index = session.index
    wheels = [wheel for wheel in index.wheels(PROJECT) if wheel.version.release >= OLDEST]
    of_gpu = by_version(index.wheels(GPU_PROJECT))
    groups = by_version(wheels)
    with_gpu = (for_platform(each, GPU_PLATFORM) for version, each in groups.items() if version.release >= ONE_PACKAGE)
    index.read_ahead(session.representative(found) for found in with_gpu if found)
    newest = newest_minor(wheels)
    for version, found in groups.items():
        cuda = _with_cuda(session, found, of_gpu.get(version, []), newest=newest)
        plain = joined(
            _build(session, some, platform, newest=newest, name="cpu", accelerator="cpu")
            for platform, some in by_platform(found, PLATFORM_NAMES)
        )
        yield release(found, (*cuda, *plain))


def _with_cuda(
    session: Session, wheels: Sequence[Wheel], of_gpu: Sequence[Wheel], *, newest: tuple[int, ...]
) -> Iterator[Build]:
    found = for_platform(wheels, GPU_PLATFORM)
    if found and found[0].version.release < ONE_PACKAGE:
        apart = for_platform(of_gpu, GPU_PLATFORM)
        if apart:
            build = _build(session, apart, GPU_PLATFORM, newest=newest, name="system-cuda", accelerator="cuda")
            yield replace(build, install=GPU_PROJECT, source=(GPU_SOURCE,))
        return
    if not found:
        return
    wheel = session.representative(found)
    python = next(iter(pythons([wheel], newest=newest)))
    pins = required(session.index.requires(wheel), platform=GPU_PLATFORM, python=python, extras=(EXTRA,))
    cuda = cuda_needs(pins)
    build = _build(session, found, GPU_PLATFORM, newest=newest, name=EXTRA if cuda else "system-cuda", accelerator="cuda")
    if cuda:
        yield replace(build, install=f"{PROJECT}[{EXTRA}]", requires=(*cuda, *build.requires))
    else:
        yield replace(build, source=(SOURCE, NOTES_SOURCE))


def cuda_needs(pins: Mapping[str, Requirement]) -> Needs:
    """Return the needs of CUDA, cuDNN, NCCL and NVSHMEM that requirements on NVIDIA's wheels express; empty without CUDA."""
    found = {}
    for name, requirement in pins.items():
        stem, _, major = name.removeprefix("nvidia-").partition("-cu1")
        if stem in {"cudnn", "nccl", "nvshmem"} and major:
            found[stem] = as_range(requirement.specifier)
            found.setdefault("major", f"1{major}")
        elif stem == "cuda-runtime":
            found["cuda"] = cuda_of_runtime(requirement.specifier, f"1{major}")
    if "cuda" not in found and "major" not in found:
        return ()
    cuda = found.get("cuda") or f"=={found['major']}.*"
    return needs(cuda=cuda, cudnn=found.get("cudnn", ""), nccl=found.get("nccl", ""), nvshmem=found.get("nvshmem", ""))


def _build(
    session: Session, wheels: Sequence[Wheel], platform: str, *, newest: tuple[int, ...], name: str, accelerator: str
) -> Build:
    return session.build(
        name,
        wheels,
        platforms=(platform,),
        index="pypi",
        accelerator=accelerator,
        requires=needs_of_files(wheels, platform, pythons(wheels, newest=newest)),
        source=(SOURCE,),
    )


TENSORFLOW = Deriver(
    component="tensorflow",
    about="TensorFlow: builds of the package index, CPU builds and how CUDA comes along on Linux.",
    edit="what a release was built with belongs in tensorflow_rules.yaml.",
    sources={
        NOTES_SOURCE: NOTES,
        SOURCE: Source(
            title="tensorflow wheels on the package index",
            where="tags of the wheels; METADATA of the wheel under `artefact`",
            project=PROJECT,
        ),
        GPU_SOURCE: Source(title="tensorflow-gpu wheels on the package index", where="tags of the wheels", project=GPU_PROJECT),
    },
    releases=_releases,
    projects=(PROJECT, GPU_PROJECT),
    readings=(TENSORFLOW_TARGETS, TENSORFLOW_KERNELS),
)
