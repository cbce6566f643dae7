"""The releases and builds of a component that may be chosen, most wanted first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.solve.policy import arranged, is_by, offered
from provisioner.solve.requirement import Candidate, Key
from provisioner.versions import Version

if TYPE_CHECKING:
    from provisioner.matrix.model import Build, Component, Release
    from provisioner.solve.target import Wish

_NUMBER = re.compile(r"\d+(?:\.\d+)*")
"""The runtime in the name of a build: `cu126`, `rocm6.2.4`."""

LABELLED_BUILDS = frozenset({"pytorch", "macos"})
"""Components whose builds people name: `2.7.1+cu126`, `10.13.6+17G65`; of others the release is enough."""

ACCELERATOR_OF = {"cuda": "cuda", "rocm": "rocm"}
"""Runtimes that only stacks of one accelerator have. Elsewhere they have no candidates: a stack for AMD that asks for CUDA is
impossible, not a stack for NVIDIA. CPU stacks may still hold a CUDA that nothing uses, such as their base image's."""


def candidates_of(component: Component, wish: Wish, key: Key | None = None) -> tuple[Candidate, ...]:
    """List what may be chosen for a component in the order the wish prefers."""
    key = key or Key(component.name)
    accelerator = wish.accelerator
    owner = ACCELERATOR_OF.get(component.name, accelerator)
    if owner != accelerator and not (component.name == "cuda" and accelerator == "cpu"):
        return ()
    until = wish.spec.policy.exclude_newer
    may_compile = _may_compile(component, wish)
    found = []
    for release in offered(component, wish, key.world):
        if until is not None and not is_by(release.released, until):
            continue
        if not release.builds:
            found.append(Candidate(key, release.version, str(release.version), (release, None)))
        for build in release.builds:
            # Another accelerator is another wish: it is neither chosen nor held against this one.
            if build.accelerator not in {"", accelerator}:
                continue
            if build.is_compiled and not (may_compile or _is_named(component, build, wish)):
                continue
            version = Version.parse(f"{release.version}+{build.name}")
            label = str(version) if component.name in LABELLED_BUILDS else str(release.version)
            found.append(Candidate(key, version, label, (release, build)))
    if not component.is_named:
        is_oldest = wish.spec.policy.strategy == "oldest" and not component.is_virtual
        found.sort(key=_preference, reverse=True)
        if is_oldest:
            found.sort(key=lambda candidate: candidate.version)
    return arranged(found, wish, component.name)


def _may_compile(component: Component, wish: Wish) -> bool:
    """Builds nobody publishes are for those who compile the framework, and for platforms that have nothing else."""
    if wish.spec.build is not None and wish.spec.build.kind == "pytorch":
        return True
    accelerator = wish.accelerator
    return not any(
        not build.is_compiled and build.accelerator == accelerator and _serves(release, build, wish.platform)
        for release in component.releases
        for build in release.builds
    )


def _serves(release: Release, build: Build, platform: str) -> bool:
    platforms = build.platforms or release.platforms
    return not platforms or platform in platforms


def _is_named(component: Component, build: Build, wish: Wish) -> bool:
    requires = wish.spec.requires
    named = f"+{build.name}" in requires.get(component.name, "")
    return named or (component.name == "pytorch" and requires.get("pytorch_build") == build.name)


def _preference(candidate: Candidate) -> tuple[Version, bool, Version]:
    """Newest release first; of its builds the index default first (one index, what everybody tests), then newer CUDA, ROCm."""
    release, build = candidate.subject
    number = _NUMBER.search(build.name) if build is not None else None
    return release.version, build is not None and build.is_default, Version.parse(number[0] if number else "0")
