"""The libraries of the CUDA toolkit: which release of each belongs to which toolkit, from the cuda-toolkit metapackage.

The metapackage (11.8 and newer) pins every library of a toolkit. A wheel it never names belongs to the series its number
says, where the library is numbered like the toolkit (NVRTC 12.1.66 is of CUDA 12.1), else to the major its name says.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from provisioner.curate.derive import Deriver, Sitting, build_entry, by_version, component_file, for_platform, joined, needs
from provisioner.curate.wheel_facts import floor, glibc, released
from provisioner.matrix.schema import ReleaseEntry
from provisioner.platforms import LINUX_PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from packaging.version import Version

    from provisioner.curate.shelf import Shelf, Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile

METAPACKAGE = "cuda-toolkit"

LIBRARIES = {
    "cublas": ("cublas", "NVIDIA cuBLAS", False),
    "cufft": ("cufft", "NVIDIA cuFFT", False),
    "curand": ("curand", "NVIDIA cuRAND", False),
    "cusolver": ("cusolver", "NVIDIA cuSOLVER", False),
    "cusparse": ("cusparse", "NVIDIA cuSPARSE", False),
    "cufile": ("cufile", "NVIDIA cuFile (GPUDirect Storage)", False),
    "nvjitlink": ("nvjitlink", "NVIDIA nvJitLink", True),
    "nvrtc": ("cuda-nvrtc", "NVIDIA NVRTC", True),
    "cupti": ("cuda-cupti", "NVIDIA CUPTI", True),
    "nvtx": ("nvtx", "NVIDIA NVTX", True),
}
"""Component -> the middle of its wheels' names, its title, and whether it is numbered like the toolkit."""

ENDINGS = {"": "13", "-cu12": "12", "-cu11": "11"}
"""How wheel names end -> their CUDA major. From CUDA 13 on the names have no ending; a release there says its own major."""


def _derive(component: str) -> Callable[[Sitting], ComponentFile]:
    stem, _, is_numbered = LIBRARIES[component]

    def derive(sitting: Sitting) -> ComponentFile:
        toolkits = _toolkits(sitting.shelf)
        releases: dict[Version, ReleaseEntry] = {}
        for ending, major in ENDINGS.items():
            project = f"nvidia-{stem}{ending}"
            for version, wheels in by_version(sitting.shelf.wheels(project)).items():
                level = _level(version) if is_numbered else f"{version.release[0] if not ending else major}.*"
                cuda = toolkits.get((project, version), f"=={level}")
                builds = _builds(sitting, component, wheels, cuda=cuda)
                if builds:
                    releases[version] = ReleaseEntry(version=wheels[0].text, released=released(wheels), builds=builds)
        where = "versions and platform tags of the wheels; pins of the toolkits' libraries in the METADATA of cuda-toolkit"
        source = sitting.source(f"nvidia-{stem} and cuda-toolkit wheels on the package index", where, METAPACKAGE)
        return component_file({f"{component}-wheels": source}, [releases[one] for one in sorted(releases, reverse=True)])

    return derive


def _level(version: Version) -> str:
    return f"{version.release[0]}.{version.release[1]}.*"


def _builds(sitting: Sitting, component: str, wheels: list[Wheel], *, cuda: str | tuple[str, ...]) -> tuple[BuildEntry, ...]:
    builds = []
    for platform in LINUX_PLATFORMS:
        found = for_platform(wheels, platform)
        if found:
            wheel = sitting.representative(found)
            requires = needs(cuda=cuda, glibc=glibc([wheel]))
            builds.append(
                build_entry("wheel", wheel, platforms=(platform,), requires=requires, source=(f"{component}-wheels",))
            )
    return joined(builds)


def _toolkits(shelf: Shelf) -> dict[tuple[str, Version], tuple[str, ...]]:
    """(project, release) -> the toolkits it belongs to, oldest first."""
    from packaging.utils import canonicalize_name
    from packaging.version import Version

    metapackages = shelf.wheels(METAPACKAGE)
    shelf.read_ahead(metapackages)
    found: dict[tuple[str, Version], list[str]] = defaultdict(list)
    for wheel in metapackages:
        toolkit = ".".join(str(part) for part in wheel.version.release[:3])
        for requirement in shelf.requires(wheel):
            # `==13.1.1.3.*` or, from 13.0 on for nvJitLink, `>=13.0.88,<14`: the toolkit's own release is where it starts
            text = floor(requirement.specifier)
            if text:
                key = (canonicalize_name(requirement.name), Version(text))
                if toolkit not in found[key]:
                    found[key].append(toolkit)
    return {key: tuple(toolkits) for key, toolkits in found.items()}


TOOLKIT = tuple(
    Deriver(
        component=component,
        about=f"{title}: the releases that have wheels, and the CUDA toolkits each belongs to.",
        edit="facts that no wheel holds belong in a file beside this one.",
        derive=_derive(component),
    )
    for component, (_, title, _) in LIBRARIES.items()
)
