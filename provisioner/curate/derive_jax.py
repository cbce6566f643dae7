"""The deriver of JAX's matrix file, from the wheels of jax, jaxlib and the CUDA plugins that the extras of jax require.

An extra whose plugin has no wheel (cuda13 of 0.7.0) gives no build, nor do the extras of old releases that require a jaxlib
from Google's own server (cuda11_pip, cuda12_pip), which no package index has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.curate.derive import (
    Deriver,
    Session,
    Source,
    by_platform,
    by_version,
    for_platform,
    joined,
    needs_of_files,
    release,
)
from provisioner.curate.derive_tensorflow import cuda_needs
from provisioner.curate.readings import JAX_TARGETS
from provisioner.curate.wheel_facts import newest_minor, pythons, required, welcome
from provisioner.platforms import LINUX_PLATFORMS, PLATFORM_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from packaging.requirements import Requirement

    from provisioner.curate.wheel_index import Wheel
    from provisioner.matrix.model import Build, Release
    from provisioner.matrix.need import Needs

PROJECT = "jax"
LIBRARY = "jaxlib"
SOURCE = "jax-wheels"
PLUGINS = {"cuda13": "jax-cuda13-plugin", "cuda12": "jax-cuda12-plugin"}
"""Extra of jax -> the CUDA plugin that it requires."""

OLDEST = (0, 4)
"""The oldest release derived; 0.1.19 to 0.1.23 have wheels too, but the index lacks the jaxlib that they require."""


def _releases(session: Session) -> Iterator[Release]:
    """Yield every release from 0.4 on that has a wheel, with builds of the jaxlib and plugins that its metadata requires."""
    index = session.index
    wheels = [wheel for wheel in index.wheels(PROJECT) if wheel.version.release >= OLDEST]
    index.read_ahead(wheels)
    index.read_ahead(
        session.representative(found)
        for plugin in PLUGINS.values()
        for each in by_version(index.wheels(plugin)).values()
        for _, found in by_platform(each, LINUX_PLATFORMS)
    )
    for found in by_version(wheels).values():
        wheel = found[0]
        cuda = [build for extra in PLUGINS for build in _of_extra(session, wheel, extra)]
        yield release(found, (*cuda, *joined(_plain(session, wheel))))


def _plain(session: Session, wheel: Wheel) -> Iterator[Build]:
    for platform in PLATFORM_NAMES:
        for extra in ("", "cpu"):
            wanted = _required(session, wheel, platform, extra)
            library = _newest(session, LIBRARY, wanted.get(LIBRARY), platform)
            if library:
                yield _build(session, wheel, [library], platform=platform, extra=extra)
                break


def _of_extra(session: Session, wheel: Wheel, extra: str) -> Iterator[Build]:
    name = PLUGINS[extra]
    for platform in LINUX_PLATFORMS:
        wanted = _required(session, wheel, platform, extra)
        plugin = _newest(session, name, wanted.get(name), platform)
        library = _newest(session, LIBRARY, wanted.get(LIBRARY), platform)
        if plugin and library:
            beside = required(
                session.index.requires(session.representative(plugin)),
                platform=platform,
                python=_some_python(session, plugin),
                extras=("", *wanted[name].extras),
            )
            cuda = cuda_needs({**wanted, **beside})
            yield _build(session, wheel, [library, plugin], platform=platform, extra=extra, cuda=cuda)


def _required(session: Session, wheel: Wheel, platform: str, extra: str) -> dict[str, Requirement]:
    library = for_platform(session.index.wheels(LIBRARY), platform)
    python = _some_python(session, [one for one in library if one.version <= wheel.version] or library)
    return required(session.index.requires(wheel), platform=platform, python=python, extras=("", extra))


def _some_python(session: Session, wheels: Sequence[Wheel]) -> str:
    """Return a Python to evaluate markers with: the first that the newest of `wheels` supports; `3.11` if there is none."""
    latest = max((wheel.version for wheel in wheels), default=None)
    newest = newest_minor(session.index.wheels(LIBRARY))
    served = pythons([wheel for wheel in wheels if wheel.version == latest], newest=newest) if wheels else ()
    return served[0] if isinstance(served, tuple) and served else "3.11"


def _newest(session: Session, project: str, requirement: Requirement | None, platform: str) -> list[Wheel]:
    """Return the wheels for `platform` of the newest release of `project` that a requirement allows and that has such wheels.

    Empty if there is no such release or no requirement.
    """
    if requirement is None:
        return []
    for version, wheels in by_version(session.index.wheels(project)).items():
        found = for_platform(wheels, platform)
        if found and requirement.specifier.contains(version):
            return found
    return []


def _build(
    session: Session,
    wheel: Wheel,
    parts: Sequence[Sequence[Wheel]],
    *,
    platform: str,
    extra: str,
    cuda: Needs | None = None,
) -> Build:
    """Return a build for the Pythons for which all `parts` (jaxlib, plugin) have wheels and that jax's Requires-Python allows.

    `wheel` is that of jax itself. `cuda` are the build's needs of CUDA and its libraries, None for a CPU build. `extra` is the
    extra of jax that installs the build, and the name of a CUDA build.
    """
    newest = newest_minor(session.index.wheels(LIBRARY))
    served = [set(pythons(part, newest=newest)) for part in parts]
    everywhere = tuple(
        minor
        for minor in pythons(parts[0], newest=newest)
        if all(minor in each for each in served) and welcome(minor, wheel.file)
    )
    files = [one for part in parts for one in part]
    return session.build(
        "cpu" if cuda is None else extra,
        parts[-1],
        platforms=(platform,),
        index="pypi",
        accelerator="cuda" if cuda else "cpu",
        requires=(*(cuda or ()), *needs_of_files(files, platform, everywhere)),
        install=f"{PROJECT}[{extra}]" if extra else "",
        source=(SOURCE,),
    )


JAX = Deriver(
    component="jax",
    about="JAX: its CPU builds, and those that its extras cuda12 and cuda13 make of it.",
    edit="needs that no metadata states belong in jax_rules.yaml.",
    sources={
        SOURCE: Source(
            title="jax, jaxlib and jax-cuda plugin wheels",
            where="METADATA of jax and of the plugins its extras name; tags of the jaxlib and plugin wheels these allow",
            project=PROJECT,
        )
    },
    releases=_releases,
    projects=tuple(PLUGINS.values()),
    readings=(JAX_TARGETS,),
)
