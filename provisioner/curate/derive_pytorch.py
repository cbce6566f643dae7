"""The derivers of the matrix files of PyTorch's default builds (those on the package index) and of Triton, from wheels.

The pins of CUDA, cuDNN and NCCL have had three shapes: none (up to 1.12.1, CUDA is inside the wheel and torch/version.py
names it), exact pins of nvidia-*-cuNN (1.13 to 2.10), and the cuda-toolkit metapackage (from 2.11 on).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
from provisioner.curate.readings import TORCH_ABI, TORCH_TARGETS
from provisioner.curate.wheel_facts import (
    as_range,
    cuda_of_runtime,
    glibc,
    is_ordinary,
    minors,
    newest_minor,
    pythons,
    required,
)
from provisioner.matrix.need import need_of
from provisioner.platforms import LINUX_PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

    from provisioner.curate.wheel_index import Wheel, WheelIndex
    from provisioner.matrix.model import Build, Release
    from provisioner.matrix.need import Needs, NeedText

PROJECT = "torch"
SOURCE = "torch-wheels"
VERSION_FILE = "torch/version.py"
OLDEST = (1, 0)

TRITON_PROJECT = "triton"
TRITON_SOURCE = "triton-wheels"
OLDEST_TRITON = (2, 0)
"""The oldest release of Triton derived; before 2.0 it was another program, which PyTorch never required."""

_CUDA = re.compile(r"^cuda(?:: \w+(?:\[\w+\])?)? = ['\"]([\d.]+)['\"]", re.MULTILINE)
_LIBRARY = re.compile(r"nvidia-(cudnn|nccl|cusparselt|nvshmem)-cu\d+")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu(\d+))?")


def _releases(session: Session) -> Iterator[Release]:
    """Yield every release from 1.0 on, with its default builds for Linux."""
    index = session.index
    wheels = [wheel for wheel in index.wheels(PROJECT) if wheel.version.release >= OLDEST]
    newest = newest_minor(wheels)
    groups = [dict(by_platform(found, LINUX_PLATFORMS)) for found in by_version(wheels).values()]
    chosen = [session.representative(found) for each in groups for found in each.values()]
    index.read_ahead(chosen)
    index.read_ahead([wheel for wheel in chosen if not _is_pinned(index, wheel)], members=(VERSION_FILE,))
    for each in groups:
        if each:
            builds = [one for platform, found in each.items() for one in _builds(session, found, platform, newest=newest)]
            yield release([wheel for found in each.values() for wheel in found], builds)


def _builds(session: Session, wheels: Sequence[Wheel], platform: str, *, newest: tuple[int, ...]) -> Iterator[Build]:
    """Yield the builds of one release on one platform: several if its requirements differ between Pythons."""
    wheel = session.representative(wheels)
    requirements = session.index.requires(wheel)
    groups: dict[Needs, list[str]] = {}
    for python in pythons(wheels, newest=newest):
        found = _pinned(session.index, required(requirements, platform=platform, python=python))
        groups.setdefault(found, []).append(python)
    for pinned, versions in groups.items():
        inside = needs(cuda=_cuda_inside(session, wheel)) if need_of(pinned, "cuda") is None else ()
        found = (*inside, *pinned)
        level = re.search(r"(\d+)\.(\d+)", str(need_of(found, "cuda") or ""))
        tagged = [one for one in wheels if is_ordinary(one) and set(minors(one)) & set(versions)] or wheels
        yield session.build(
            f"cu{level[1]}{level[2]}" if level else "cpu",
            wheels,
            platforms=(platform,),
            default=True,
            index="pypi",
            accelerator="cuda" if level else "cpu",
            requires=(*found, *needs(python=tuple(versions), glibc=glibc(tagged))),
            source=(SOURCE,),
        )


def _pinned(index: WheelIndex, pins: Mapping[str, Requirement]) -> Needs:
    """Return the needs of CUDA, cuDNN, NCCL and others that requirements on NVIDIA's wheels and Triton express."""
    cuda = ""
    libraries: dict[str, NeedText] = {}
    for name, requirement in pins.items():
        if name == "cuda-toolkit":
            cuda = as_range(requirement.specifier)
        elif (runtime := _RUNTIME.fullmatch(name)) and not cuda:
            cuda = cuda_of_runtime(requirement.specifier, runtime[1] or "")
        elif library := _LIBRARY.fullmatch(name):
            libraries[library[1]] = _pin(index, name, requirement)
    triton = pins.get("triton")
    return needs(
        cuda=cuda,
        cudnn=libraries.get("cudnn", ""),
        nccl=libraries.get("nccl", ""),
        cusparselt=libraries.get("cusparselt", ""),
        nvshmem=libraries.get("nvshmem", ""),
        triton=as_range(triton.specifier) if triton is not None else "",
    )


def _pin(index: WheelIndex, project: str, requirement: Requirement) -> NeedText:
    """Return the range of a requirement on `project`, or its exact version in a tuple if the project has post-releases of it.

    A range with `==` would allow these post-releases in the matrix.
    """
    text = as_range(requirement.specifier)
    wanted = [wheel.version for wheel in index.wheels(project) if requirement.specifier.contains(wheel.version)]
    is_exact = text.startswith("==") and not text.endswith("*") and "," not in text
    has_post = any(
        wheel.version.is_postrelease and wheel.version.release in {one.release for one in wanted}
        for wheel in index.wheels(project)
    )
    return (text.removeprefix("=="),) if is_exact and has_post and wanted else text


def _is_pinned(index: WheelIndex, wheel: Wheel) -> bool:
    """Return whether the requirements of a wheel pin its CUDA release."""
    platform = next(platform for platform in LINUX_PLATFORMS if for_platform([wheel], platform))
    python = next(iter(minors(wheel)))
    pinned = _pinned(index, required(index.requires(wheel), platform=platform, python=python))
    return need_of(pinned, "cuda") is not None


def _cuda_inside(session: Session, wheel: Wheel) -> str:
    """Return the CUDA minor release in torch/version.py as a range (`==12.6.*`); "" for a build without CUDA."""
    text = session.index.member(wheel, VERSION_FILE) or ""
    match = _CUDA.search(text)
    return f"=={'.'.join(match[1].split('.')[:2])}.*" if match else ""


def _triton_releases(session: Session) -> Iterator[Release]:
    """Yield every release of Triton from 2.0 on, with its Pythons, platforms and glibc."""
    wheels = [wheel for wheel in session.index.wheels(TRITON_PROJECT) if wheel.version.release >= OLDEST_TRITON]
    newest = newest_minor(wheels)
    for found in by_version(wheels).values():
        yield release(
            found,
            joined(
                session.build(
                    "wheel",
                    some,
                    platforms=(platform,),
                    requires=needs_of_files(some, platform, pythons(some, newest=newest)),
                    source=(TRITON_SOURCE,),
                )
                for platform, some in by_platform(found, LINUX_PLATFORMS)
            ),
        )


PYTORCH = Deriver(
    component="pytorch",
    about="PyTorch for Linux: the default builds of each release, those of the package index.",
    edit="other variants and rules belong in pytorch_variants.yaml and its neighbours.",
    sources={
        SOURCE: Source(
            title="torch wheels on the package index",
            where="tags of all wheels of a release; METADATA, or where that pins no CUDA torch/version.py, of the wheel under "
            "`artefact`",
            project=PROJECT,
        )
    },
    releases=_releases,
    projects=(PROJECT,),
    readings=(TORCH_TARGETS, TORCH_ABI),
)

TRITON = Deriver(
    component="triton",
    about="Triton, as PyTorch pins it.",
    edit="facts that no wheel holds belong in a file beside this one.",
    sources={
        TRITON_SOURCE: Source(
            title="triton wheels on the package index", where="tags and Requires-Python of the wheels", project=TRITON_PROJECT
        )
    },
    releases=_triton_releases,
)
