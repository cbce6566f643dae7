"""The releases and builds of a component that may be chosen, most wanted first."""

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
"""Components whose builds people name: `2.7.1+cu126`, `10.13.6+17G65`; of others the release is enough."""

ACCELERATOR_OF = {"cuda": "cuda", "rocm": "rocm"}
"""Runtimes that only stacks of one accelerator have. Elsewhere they have no candidates: a stack for AMD that asks for CUDA is
impossible, not a stack for NVIDIA. CPU stacks may still hold a CUDA that nothing uses, such as their base image's."""


DRIVER_OF = {"driver": "cuda", "driver_module": "cuda", "amdgpu": "rocm"}
"""Of two vendors' drivers the other one's is no choice: what asks for it on the wrong GPU asks for what is not there."""


def candidates_of(component: Component, request: Request, key: Key | None = None) -> tuple[ReleaseCandidate, ...]:
    """List what may be chosen for a component in the order the request prefers."""
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
            # Another accelerator is another request: it is neither chosen nor held against this one.
            if build.accelerator not in {"", accelerator}:
                continue
            if build.is_compiled and not (may_compile or _is_named(component, build, request)):
                continue
            version = Version.parse(f"{release.version}+{build.name}")
            label = str(version) if component.name in LABELLED_BUILDS else str(release.version)
            found.append(ReleaseCandidate(key, version, label, release, build))
    found = _of_own_platform(component, found, request.platform)
    if not component.is_named:
        is_oldest = request.spec.policy.strategy == "oldest" and not component.is_virtual
        found.sort(key=preference, reverse=True)
        if is_oldest:
            found.sort(key=lambda candidate: candidate.version)
    return arranged(found, request, component.name)


def _of_own_platform(component: Component, found: list[ReleaseCandidate], platform: str) -> list[ReleaseCandidate]:
    """Leave out the builds of other platforms whose label is that of a build for this one.

    A requirement names a label, and `2.15.0+cpu` is one wheel on Linux and another one, of another index, on macOS. Labels that
    only other platforms have stay: that they are for another platform is then what there is to say.
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
    """Whether a release was out by a day; one that nobody dates may have been, unless its series began later."""
    if release.released:
        return is_by(release.released, until)
    numbers = release.version.release
    dated = [one for one in component.releases if one.released and one.version.release] if numbers else []
    same = [one for one in dated if one.version.release[0] == numbers[0]]
    if any(one.version > release.version and is_by(one.released, until) for one in same):
        return True
    # Of a series, repairs of old releases go on: only where it began says something of what came later.
    starts: dict[int, str] = {}
    for one in dated:
        if one.version < release.version:
            start = starts.setdefault(one.version.release[0], one.released)
            starts[one.version.release[0]] = min(start, one.released)
    return all(is_by(start, until) for start in starts.values())


def _may_compile(component: Component, request: Request) -> bool:
    """Builds nobody publishes are for those who compile the framework, and for platforms that have nothing else."""
    if request.spec.build is not None and request.spec.build.kind == "pytorch":
        return True
    accelerator = request.accelerator
    return not any(
        not build.is_compiled and build.accelerator == accelerator and _serves(release, build, request.platform)
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
    """Newest release first; of its builds the index default first (one index, what everybody tests), then newer CUDA, ROCm."""
    release, build = candidate.release, candidate.build
    number = _NUMBER.search(build.name) if build is not None else None
    return release.version, build is not None and build.is_default, Version.parse(number[0] if number else "0")
