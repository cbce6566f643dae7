"""NVIDIA's libraries that have their own numbers and one wheel for each CUDA major: cuDNN, NCCL, cuSPARSELt, NVSHMEM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.curate.derive import (
    Deriver,
    Sitting,
    build_entry,
    by_version,
    component_file,
    for_platform,
    needs,
)
from provisioner.curate.measure_targets import measure_nvidia
from provisioner.curate.wheel_facts import glibc, released
from provisioner.matrix.schema import ReleaseEntry
from provisioner.platforms import LINUX_PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.curate.shelf import Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile

MAJORS = ("13", "12", "11")


def _per_major(component: str) -> Callable[[Sitting], ComponentFile]:
    """A deriver of `nvidia-<component>-cu<major>`, each a build that needs that CUDA major."""

    def derive(sitting: Sitting) -> ComponentFile:
        tables = {major: by_version(sitting.shelf.wheels(_project(component, major))) for major in MAJORS}
        versions = sorted({version for table in tables.values() for version in table}, reverse=True)
        releases = [_release(sitting, component, {major: tables[major].get(one, []) for major in MAJORS}) for one in versions]
        where = "versions, platform tags and upload days of the wheels, whose names say the CUDA major"
        title = f"nvidia-{component}-cu11, -cu12 and -cu13 wheels on the package index"
        source = sitting.source(title, where, _project(component, "12"))
        return component_file({_key(component): source}, [one for one in releases if one is not None])

    return derive


def _release(sitting: Sitting, component: str, wheels: dict[str, list[Wheel]]) -> ReleaseEntry | None:
    builds: list[BuildEntry] = []
    for major, all_of in wheels.items():
        for platform in LINUX_PLATFORMS:
            found = for_platform(all_of, platform)
            if found:
                wheel = sitting.representative(found)
                requires = needs(cuda=f"=={major}.*", glibc=glibc([wheel]))
                # Wheels of one release are not alike on all platforms: that of NCCL 2.26.2 for arm64 was built with a newer
                # CUDA, and cuDNN for arm64 has code for Thor. So each platform has a row.
                builds.append(
                    build_entry(f"cu{major}", wheel, platforms=(platform,), requires=requires, source=(_key(component),))
                )
    if not builds:
        return None
    everything = [wheel for all_of in wheels.values() for wheel in all_of]
    return ReleaseEntry(version=everything[0].text, released=released(everything), builds=tuple(builds))


def _project(component: str, major: str) -> str:
    return f"nvidia-{component}-cu{major}"


def _projects(component: str) -> tuple[str, ...]:
    return tuple(_project(component, major) for major in MAJORS)


def _key(component: str) -> str:
    return f"{component}-wheels"


NVIDIA = (
    Deriver(
        component="cudnn",
        about="cuDNN: one build for each CUDA major, which serves the whole major when linked dynamically.",
        edit="what no wheel says belongs in cudnn_support.yaml and cudnn_legacy.yaml.",
        derive=_per_major("cudnn"),
        measure=measure_nvidia("cudnn", _projects("cudnn")),
    ),
    Deriver(
        component="nccl",
        about="NCCL: one build for each CUDA major. `sass` is what it holds kernels for; a single GPU never calls it.",
        edit="releases that no wheel holds belong in nccl_legacy.yaml.",
        derive=_per_major("nccl"),
        measure=measure_nvidia("nccl", _projects("nccl")),
    ),
    Deriver(
        component="cusparselt",
        about="cuSPARSELt: one build for each CUDA major.",
        edit="facts that no wheel holds belong in a file beside this one.",
        derive=_per_major("cusparselt"),
    ),
    Deriver(
        component="nvshmem",
        about="NVSHMEM: one build for each CUDA major.",
        edit="facts that no wheel holds belong in a file beside this one.",
        derive=_per_major("nvshmem"),
    ),
)
