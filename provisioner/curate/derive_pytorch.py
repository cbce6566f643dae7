"""PyTorch's default builds, those of the package index, from the wheels themselves.

The pins of CUDA, cuDNN and NCCL have had three shapes: none (up to 1.12.1, CUDA is inside the wheel and torch/version.py
names it), exact pins of nvidia-*-cuNN (1.13 to 2.10), and the cuda-toolkit metapackage (from 2.11 on).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.curate.derive import Deriver, Sitting, build_entry, by_version, component_file, for_platform, needs
from provisioner.curate.measure_pytorch import measure
from provisioner.curate.wheel_facts import (
    as_range,
    cuda_of_runtime,
    glibc,
    is_ordinary,
    minors,
    newest_minor,
    pythons,
    released,
    required,
)
from provisioner.matrix.schema import ReleaseEntry
from provisioner.platforms import LINUX_PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.requirements import Requirement

    from provisioner.curate.shelf import Shelf, Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile
    from provisioner.platforms import PlatformName

PROJECT = "torch"
SOURCE = "torch-wheels"
VERSION_FILE = "torch/version.py"
OLDEST = (1, 0)

_CUDA = re.compile(r"^cuda(?:: \w+(?:\[\w+\])?)? = ['\"]([\d.]+)['\"]", re.MULTILINE)
_LIBRARY = re.compile(r"nvidia-(cudnn|nccl|cusparselt|nvshmem)-cu\d+")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu(\d+))?")


def derive(sitting: Sitting) -> ComponentFile:
    """Every release from 1.0 on, with its default builds for Linux."""
    shelf = sitting.shelf
    wheels = [wheel for wheel in shelf.wheels(PROJECT) if wheel.version.release >= OLDEST]
    newest = newest_minor(wheels)
    groups = {
        version: {platform: for_platform(found, platform) for platform in LINUX_PLATFORMS}
        for version, found in by_version(wheels).items()
    }
    chosen = [sitting.representative(found) for each in groups.values() for found in each.values() if found]
    shelf.read_ahead(chosen)
    shelf.read_ahead([wheel for wheel in chosen if not _is_pinned(shelf, wheel)], members=(VERSION_FILE,))
    releases = []
    for each in groups.values():
        builds = [one for platform, found in each.items() if found for one in _builds(sitting, found, platform, newest=newest)]
        if builds:
            found = [wheel for wheels_of in each.values() for wheel in wheels_of]
            releases.append(ReleaseEntry(version=found[0].text, released=released(found), builds=tuple(builds)))
    where = (
        "tags of all wheels of a release; METADATA, or where that pins no CUDA torch/version.py, of the wheel under `artefact`"
    )
    return component_file({SOURCE: sitting.source("torch wheels on the package index", where, PROJECT)}, releases)


def _builds(
    sitting: Sitting, wheels: Sequence[Wheel], platform: PlatformName, *, newest: tuple[int, ...]
) -> Iterator[BuildEntry]:
    """The builds of one release on one platform: one, or several where what it needs depends on the Python."""
    wheel = sitting.representative(wheels)
    requirements = sitting.shelf.requires(wheel)
    served = pythons(wheels, newest=newest)
    groups: dict[str, tuple[dict[str, str | tuple[str, ...]], list[str]]] = {}
    for python in served:
        found = _needs(sitting.shelf, required(requirements, platform=platform, python=python))
        groups.setdefault(repr(found), (found, []))[1].append(python)
    for found, versions in groups.values():
        if "cuda" not in found and (inside := _cuda_inside(sitting, wheel)):
            found = {"cuda": inside, **found}  # noqa: PLW2901 - the first need, as everywhere
        level = re.search(r"(\d+)\.(\d+)", str(found.get("cuda", "")))
        tagged = [one for one in wheels if is_ordinary(one) and set(minors(one)) & set(versions)] or wheels
        yield build_entry(
            f"cu{level[1]}{level[2]}" if level else "cpu",
            wheel,
            platforms=(platform,),
            default=True,
            index="pypi",
            accelerator="cuda" if level else "cpu",
            requires={**found, **needs(python=tuple(versions), glibc=glibc(tagged))},
            source=(SOURCE,),
        )


def _needs(shelf: Shelf, pins: Mapping[str, Requirement]) -> dict[str, str | tuple[str, ...]]:
    """The components that pins stand for, in the order of the matrix's file."""
    cuda = ""
    libraries: dict[str, str | tuple[str, ...]] = {}
    for name, requirement in pins.items():
        if name == "cuda-toolkit":
            cuda = as_range(requirement.specifier)
        elif (runtime := _RUNTIME.fullmatch(name)) and not cuda:
            cuda = cuda_of_runtime(requirement.specifier, runtime[1] or "")
        elif library := _LIBRARY.fullmatch(name):
            libraries[library[1]] = _pin(shelf, name, requirement)
    triton = pins.get("triton")
    return needs(
        cuda=cuda,
        cudnn=libraries.get("cudnn", ""),
        nccl=libraries.get("nccl", ""),
        cusparselt=libraries.get("cusparselt", ""),
        nvshmem=libraries.get("nvshmem", ""),
        triton=as_range(triton.specifier) if triton is not None else "",
    )


def _pin(shelf: Shelf, project: str, requirement: Requirement) -> str | tuple[str, ...]:
    """A range, or the one exact version where the project has a post-release that `==` of the matrix would let in."""
    text = as_range(requirement.specifier)
    wanted = [wheel.version for wheel in shelf.wheels(project) if requirement.specifier.contains(wheel.version)]
    is_exact = text.startswith("==") and not text.endswith("*") and "," not in text
    has_post = any(
        wheel.version.is_postrelease and wheel.version.release in {one.release for one in wanted}
        for wheel in shelf.wheels(project)
    )
    return (text.removeprefix("=="),) if is_exact and has_post and wanted else text


def _is_pinned(shelf: Shelf, wheel: Wheel) -> bool:
    """Whether a wheel's requirements name its CUDA."""
    platform = next(platform for platform in LINUX_PLATFORMS if for_platform([wheel], platform))
    python = next(iter(minors(wheel)))
    return "cuda" in _needs(shelf, required(shelf.requires(wheel), platform=platform, python=python))


def _cuda_inside(sitting: Sitting, wheel: Wheel) -> str:
    """The CUDA torch/version.py names, as its minor release; "" for a build without."""
    text = sitting.shelf.member(wheel, VERSION_FILE) or ""
    match = _CUDA.search(text)
    return f"=={'.'.join(match[1].split('.')[:2])}.*" if match else ""


PYTORCH = Deriver(
    component="pytorch",
    about="PyTorch for Linux: the default builds of each release, those of the package index.",
    edit="other variants and rules belong in pytorch_variants.yaml and its neighbours.",
    derive=derive,
    measure=measure,
)
