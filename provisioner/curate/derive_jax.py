"""JAX, from the wheels of jax, of jaxlib, and of the CUDA plugins its extras name.

An extra that names a plugin without a wheel (cuda13 of 0.7.0) is no build. The extras of old releases that name a jaxlib of
Google's own server (cuda11_pip, cuda12_pip) are none either: no package index has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.curate.derive import Deriver, Sitting, build_entry, by_version, component_file, for_platform, joined, needs
from provisioner.curate.derive_tensorflow import cuda_needs
from provisioner.curate.measure_targets import measure_jax
from provisioner.curate.wheel_facts import glibc, macos, newest_minor, pythons, released, required, welcome
from provisioner.matrix.schema import ReleaseEntry
from provisioner.platforms import LINUX_PLATFORMS, PLATFORM_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from packaging.requirements import Requirement

    from provisioner.curate.shelf import Wheel
    from provisioner.matrix.schema import BuildEntry, ComponentFile
    from provisioner.platforms import PlatformName

PROJECT = "jax"
LIBRARY = "jaxlib"
SOURCE = "jax-wheels"
EXTRAS = ("cuda13", "cuda12")
OLDEST = (0, 4)
"""0.1.19 to 0.1.23 have wheels too, but the index has none of the jaxlib they ask for."""


def derive(sitting: Sitting) -> ComponentFile:
    """Every release from 0.4 on that has a wheel, with the jaxlib and the plugins its metadata names."""
    shelf = sitting.shelf
    wheels = [wheel for wheel in shelf.wheels(PROJECT) if wheel.version.release >= OLDEST]
    shelf.read_ahead(wheels)
    shelf.read_ahead(
        sitting.representative(found)
        for extra in EXTRAS
        for each in by_version(shelf.wheels(_plugin(extra))).values()
        for platform in LINUX_PLATFORMS
        if (found := for_platform(each, platform))
    )
    releases = []
    for found in by_version(wheels).values():
        builds = (*(_with_cuda(sitting, found[0])), *joined(_plain(sitting, found[0])))
        if builds:
            releases.append(ReleaseEntry(version=found[0].text, released=released(found), builds=builds))
    where = "METADATA of jax and of the plugins its extras name; tags of the jaxlib and plugin wheels these allow"
    return component_file({SOURCE: sitting.source("jax, jaxlib and jax-cuda plugin wheels", where, PROJECT)}, releases)


def _plain(sitting: Sitting, wheel: Wheel) -> Iterator[BuildEntry]:
    for platform in PLATFORM_NAMES:
        for extra in ("", "cpu"):
            wanted = _required(sitting, wheel, platform, extra)
            library = _newest(sitting, LIBRARY, wanted.get(LIBRARY), platform)
            if library:
                yield _build(sitting, wheel, [library], platform=platform, name="cpu", extra=extra)
                break


def _with_cuda(sitting: Sitting, wheel: Wheel) -> Iterator[BuildEntry]:
    for extra in EXTRAS:
        yield from _of_extra(sitting, wheel, extra)


def _of_extra(sitting: Sitting, wheel: Wheel, extra: str) -> Iterator[BuildEntry]:
    for platform in LINUX_PLATFORMS:
        wanted = _required(sitting, wheel, platform, extra)
        plugin = _newest(sitting, _plugin(extra), wanted.get(_plugin(extra)), platform)
        library = _newest(sitting, LIBRARY, wanted.get(LIBRARY), platform)
        if not plugin or not library:
            continue
        one = sitting.representative(plugin)
        beside = required(
            sitting.shelf.requires(one),
            platform=platform,
            python=_some_python(sitting, plugin),
            extras=("", *wanted[_plugin(extra)].extras),
        )
        found = cuda_needs({**wanted, **beside})
        yield _build(sitting, wheel, [library, plugin], platform=platform, name=extra, extra=extra, found=found)


def _required(sitting: Sitting, wheel: Wheel, platform: PlatformName, extra: str) -> dict[str, Requirement]:
    library = for_platform(sitting.shelf.wheels(LIBRARY), platform)
    python = _some_python(sitting, [one for one in library if one.version <= wheel.version] or library)
    requirements = sitting.shelf.requires(wheel)
    return required(requirements, platform=platform, python=python, extras=("", extra))


def _some_python(sitting: Sitting, wheels: Sequence[Wheel]) -> str:
    """A Python that the newest of these wheels is for; markers of these projects hardly ask which."""
    latest = max((wheel.version for wheel in wheels), default=None)
    newest = newest_minor(sitting.shelf.wheels(LIBRARY))
    served = pythons([wheel for wheel in wheels if wheel.version == latest], newest=newest) if wheels else ()
    return served[0] if isinstance(served, tuple) and served else "3.11"


def _newest(sitting: Sitting, project: str, requirement: Requirement | None, platform: PlatformName) -> list[Wheel]:
    """The wheels of the newest release of a project that a requirement allows and that has some for the platform."""
    if requirement is None:
        return []
    for version, wheels in by_version(sitting.shelf.wheels(project)).items():
        found = for_platform(wheels, platform)
        if found and requirement.specifier.contains(version):
            return found
    return []


def _build(
    sitting: Sitting, wheel: Wheel, parts: Sequence[Sequence[Wheel]], *, platform: PlatformName, **fields: object
) -> BuildEntry:
    newest = newest_minor(sitting.shelf.wheels(LIBRARY))
    served = [set(pythons(part, newest=newest)) for part in parts]
    everywhere = tuple(
        minor
        for minor in pythons(parts[0], newest=newest)
        if all(minor in each for each in served) and welcome(minor, wheel.file)
    )
    files = [one for part in parts for one in part]
    requires = needs(
        python=everywhere,
        glibc=glibc(files) if platform.startswith("linux") else "",
        macos=macos(files, platform) if platform.startswith("macos") else "",
    )
    extra = str(fields["extra"])
    found = fields.get("found")
    return build_entry(
        str(fields["name"]),
        sitting.representative(parts[-1]),
        platforms=(platform,),
        index="pypi",
        accelerator="cuda" if found else "cpu",
        requires={**found, **requires} if isinstance(found, dict) else requires,
        install=f"{PROJECT}[{extra}]" if extra else "",
        source=(SOURCE,),
    )


def _plugin(extra: str) -> str:
    return f"jax-{extra}-plugin"


JAX = Deriver(
    component="jax",
    about="JAX: its CPU builds, and those that its extras cuda12 and cuda13 make of it.",
    edit="needs that no metadata states belong in jax_rules.yaml.",
    derive=derive,
    measure=measure_jax,
)
