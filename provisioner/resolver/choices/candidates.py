"""The candidates of a component: its releases and builds that may be chosen, most wanted first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.rules.policy import arranged, is_by, offered
from provisioner.versions import Version

if TYPE_CHECKING:
    from provisioner.matrix.model import Build, Component, Release
    from provisioner.request import Request

_NUMBER = re.compile(r"\d+(?:\.\d+)*")
"""The runtime in the name of a build: `cu126`, `rocm6.2.4`."""

LABELLED_BUILDS = frozenset({"pytorch", "macos"})
"""Components whose candidates are labelled with their builds: `2.7.1+cu126`, `10.13.6+17G65`."""

ACCELERATOR_OF = {"cuda": "cuda", "rocm": "rocm"}
"""Runtimes that only stacks of one accelerator have. Other stacks have no candidates of them: a stack for AMD that requires
CUDA is impossible, not a stack for NVIDIA. CPU stacks may still have an unused CUDA, such as their base image's."""


DRIVER_OF = {"driver": "cuda", "driver_module": "cuda", "amdgpu": "rocm"}
"""Drivers of one accelerator's GPUs; stacks of another accelerator have no candidates of them."""


def candidates_of(component: Component, request: Request, key: Key | None = None) -> tuple[ReleaseCandidate, ...]:
    """Return the candidates of a component in the request's order of preference."""
    key = key or Key(component.name)
    accelerator = request.accelerator
    if _is_foreign(component, accelerator):
        return ()
    until = request.spec.policy.exclude_newer
    may_compile = _may_compile(component, request)
    found = []
    for release in offered(component, request, key.scope):
        if until is not None and not _is_out(component, release, until):
            continue
        if not release.builds:
            found.append(ReleaseCandidate(key, release.version, str(release.version), release))
        for build in release.builds:
            # Builds of another accelerator are never chosen: the request would be another one.
            if build.accelerator not in {"", accelerator}:
                continue
            if build.compiled and not (may_compile or _is_named(component, build, request)):
                continue
            version = Version.parse(f"{release.version}+{build.name}")
            label = str(version) if component.name in LABELLED_BUILDS else str(release.version)
            found.append(ReleaseCandidate(key, version, label, release, build))
    found = _of_own_platform(component, found, request.platform)
    if not component.named:
        is_oldest = request.spec.policy.strategy == "oldest" and not component.virtual
        found.sort(key=preference, reverse=True)
        if is_oldest:
            found.sort(key=lambda candidate: candidate.version)
    return arranged(found, request, component.name)


def _of_own_platform(component: Component, found: list[ReleaseCandidate], platform: str) -> list[ReleaseCandidate]:
    """Return the candidates without builds for other platforms whose label a build for this platform has.

    A requirement names a label, and `2.15.0+cpu` is one wheel on Linux and another one, of another index, on macOS. Labels that
    only other platforms have are kept, so that a conflict can name their platform.
    """
    if component.name not in LABELLED_BUILDS:
        return found
    own = {one.label for one in found if _is_for(one, platform)}
    return [one for one in found if one.label not in own or _is_for(one, platform)]


def _is_for(candidate: ReleaseCandidate, platform: str) -> bool:
    return candidate.build is None or _serves(candidate.release, candidate.build, platform)


def _is_foreign(component: Component, accelerator: str) -> bool:
    """Whether a runtime or a driver is of another accelerator than the request's."""
    owner = ACCELERATOR_OF.get(component.name, accelerator)
    if owner != accelerator and not (component.name == "cuda" and accelerator == "cpu"):
        return True
    return accelerator in DRIVER_OF.values() and DRIVER_OF.get(component.name, accelerator) != accelerator


def _is_out(component: Component, release: Release, until: str) -> bool:
    """Whether a release was out by a day; without a date True, unless its series is known to have begun later."""
    if release.released:
        return is_by(release.released, until)
    numbers = release.version.release
    dated = [one for one in component.releases if one.released and one.version.release] if numbers else []
    same = [one for one in dated if one.version.release[0] == numbers[0]]
    if any(one.version > release.version and is_by(one.released, until) for one in same):
        return True
    # Old series get fixes for years, so only the date of a series' first release bounds those of later series.
    starts: dict[int, str] = {}
    for one in dated:
        if one.version < release.version:
            start = starts.setdefault(one.version.release[0], one.released)
            starts[one.version.release[0]] = min(start, one.released)
    return all(is_by(start, until) for start in starts.values())


def _may_compile(component: Component, request: Request) -> bool:
    """Whether builds without published files are candidates: the spec compiles PyTorch, or the platform has no others."""
    if request.spec.build is not None and request.spec.build.kind == "pytorch":
        return True
    accelerator = request.accelerator
    return not any(
        not build.compiled and build.accelerator == accelerator and _serves(release, build, request.platform)
        for release in component.releases
        for build in release.builds
    )


def _serves(release: Release, build: Build, platform: str) -> bool:
    platforms = build.platforms or release.platforms
    return not platforms or platform in platforms


def _is_named(component: Component, build: Build, request: Request) -> bool:
    requires = request.spec.requires
    named = f"+{build.name}" in requires.get(component.name, "")
    return named or (component.name == "pytorch" and requires.get("pytorch_build") == build.name)


def preference(candidate: ReleaseCandidate) -> tuple[Version, bool, Version]:
    """Rank a candidate, highest first: newest release, then its default build (the most tested), then the newest runtime."""
    release, build = candidate.release, candidate.build
    number = _NUMBER.search(build.name) if build is not None else None
    return release.version, build is not None and build.default, Version.parse(number[0] if number else "0")
