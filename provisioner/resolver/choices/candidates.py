"""List the candidates of a component: the releases and builds that may be chosen, most preferred first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.components import FRAMEWORKS
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.rules.policy import arranged, is_by, offered
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.matrix.model import Build, Component, Matrix, Release
    from provisioner.request import Request
    from provisioner.resolver.rules.silence import Silence

_NUMBER = re.compile(r"\d+(?:\.\d+)*")
"""The number of the runtime in the name of a build: `126` in `cu126`, `6.2.4` in `rocm6.2.4`."""

LABELLED_BUILDS = frozenset({"pytorch", "macos"})
"""Components whose candidates are labelled with their builds: `2.7.1+cu126`, `10.13.6+17G65`."""

ACCELERATOR_OF = {"cuda": "cuda", "rocm": "rocm"}
"""The accelerator that a runtime belongs to. In a stack for another accelerator the runtime has no candidates, so a stack for
AMD that requires CUDA is impossible instead of becoming one for NVIDIA. A CPU stack may still have an unused CUDA, such as that
of its base image."""


DRIVER_OF = {"driver": "cuda", "driver_module": "cuda", "amdgpu": "rocm"}
"""The accelerator whose GPUs a driver serves. In a stack for another accelerator's GPUs the driver has no candidates."""


def candidates_of(
    component: Component, request: Request, key: Key | None = None, *, silence: Silence, is_on_jetson: bool = True
) -> tuple[ReleaseCandidate, ...]:
    """Return the candidates of a component, most preferred first.

    `key` is the key of the candidates, by default the one that all hosts share. Candidates about which `silence` finds that the
    matrix lacks a row that it should have come after all others. A runtime or driver of another accelerator than the request's
    has no candidates. Left out are releases after the policy's `exclude-newer`, builds for another accelerator, builds to be
    compiled unless the request allows them, and unless `is_on_jetson`, builds for Jetsons that the spec does not name.
    """
    key = key or Key(component.name)
    accelerator = request.accelerator
    if _is_foreign(component, accelerator):
        return ()
    until = request.spec.policy.exclude_newer
    may_compile = _may_compile(component, request)
    wanted = {"", "cpu" if computes_on_cpu(component, request) else accelerator}
    found = []
    for release in offered(component, request, key.scope):
        if until is not None and not _is_out(component, release, until):
            continue
        if not release.builds:
            found.append(ReleaseCandidate(key, release.version, str(release.version), release))
        for build in release.builds:
            # A build for another accelerator is never chosen: it would not be what the request is for.
            if build.accelerator not in wanted:
                continue
            is_left_out = (build.compiled and not may_compile) or (_is_for_jetsons(build) and not is_on_jetson)
            if is_left_out and not _is_named(component, build, request):
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
    found.sort(key=lambda candidate: bool(silence.about(component.name, candidate.release, candidate.build)))
    return arranged(found, request, component.name)


def computes_on_cpu(component: Component, request: Request) -> bool:
    """Return whether a framework without builds for a Mac's GPU (MPS) computes on the CPU in a stack for that GPU.

    False if the spec names the accelerator itself: then only builds for that accelerator are candidates.
    """
    if request.accelerator != "mps" or request.spec.accelerator is not None or component.name not in FRAMEWORKS:
        return False
    builds = (build for release in component.releases for build in release.builds)
    return not any(build.accelerator == "mps" for build in builds)


def accelerator_of(matrix: Matrix, request: Request, names: Iterable[str]) -> str:
    """Return the accelerator that a stack computes on: the request's, or `cpu` if all its frameworks compute on the CPU.

    `names` are the components of the stack.
    """
    frameworks = [name for name in names if name in FRAMEWORKS]
    is_on_cpu = bool(frameworks) and all(computes_on_cpu(matrix.components[name], request) for name in frameworks)
    return "cpu" if is_on_cpu else request.accelerator


def _of_own_platform(component: Component, found: list[ReleaseCandidate], platform: str) -> list[ReleaseCandidate]:
    """Return the candidates without builds for other platforms that have the label of a build for `platform`.

    A requirement names a label, and `2.15.0+cpu` is one wheel on Linux and another one, of another index, on macOS. A label
    that only builds for other platforms have stays, so that a conflict can name their platform.
    """
    if component.name not in LABELLED_BUILDS:
        return found
    own = {one.label for one in found if _is_for(one, platform)}
    return [one for one in found if one.label not in own or _is_for(one, platform)]


def _is_for(candidate: ReleaseCandidate, platform: str) -> bool:
    return candidate.build is None or _serves(candidate.release, candidate.build, platform)


def _is_foreign(component: Component, accelerator: str) -> bool:
    """Return whether a component is a runtime or driver of another accelerator than the request's."""
    owner = ACCELERATOR_OF.get(component.name, accelerator)
    if owner != accelerator and not (component.name == "cuda" and accelerator == "cpu"):
        return True
    return accelerator in DRIVER_OF.values() and DRIVER_OF.get(component.name, accelerator) != accelerator


def _is_out(component: Component, release: Release, until: str) -> bool:
    """Return whether a release was published by the day `until`.

    A release without a date counts as published if a later release of its major version was published by then. Otherwise it
    counts as published unless its own major version, or an earlier one, is known to have begun after that day.
    """
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
    """Return whether builds that have to be compiled, because no file of them is published, are candidates.

    Such builds are candidates if the spec compiles PyTorch, or if no other build of the component is for the request's
    accelerator and platform.
    """
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


def _is_for_jetsons(build: Build) -> bool:
    return any(need.component == "jetson" for need in build.requires)


def _is_named(component: Component, build: Build, request: Request) -> bool:
    requires = request.spec.requires
    named = f"+{build.name}" in requires.get(component.name, "")
    return named or (component.name == "pytorch" and requires.get("pytorch_build") == build.name)


def preference(candidate: ReleaseCandidate) -> tuple[Version, bool, Version]:
    """Return the sort key of a candidate, greater for a more preferred one.

    It compares the release, then whether the build is the release's default (the most tested one), then the number of the
    runtime in the build's name.
    """
    release, build = candidate.release, candidate.build
    number = _NUMBER.search(build.name) if build is not None else None
    return release.version, build is not None and build.default, Version.parse(number[0] if number else "0")
