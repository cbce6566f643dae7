"""The releases and builds of components as candidates, in order of preference: what the matrix alone decides of such a list.

A command that solves many problems with one matrix lists and sorts them once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.matrix.families import families_of
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Component, Family, Matrix

_NUMBER = re.compile(r"\d+(?:\.\d+)*")
"""The number of the runtime in the name of a build: `126` in `cu126`, `6.2.4` in `rocm6.2.4`."""

LABELLED_BUILDS = frozenset({"pytorch", "macos"})
"""Components whose candidates are labelled with their builds: `2.7.1+cu126`, `10.13.6+17G65`."""


class Variants:
    """The variants of every component of a matrix: its releases, and of those with builds the builds."""

    def __init__(self, matrix: Matrix) -> None:
        self._components = matrix.components
        self._families = families_of(matrix)
        self._listed: dict[str, tuple[ReleaseCandidate, ...]] = {}
        self._silent: dict[Family, frozenset[ReleaseCandidate]] = {}

    def of(self, name: str) -> tuple[ReleaseCandidate, ...]:
        """Return the variants of a component, most preferred first; those of a component with names for versions as given."""
        found = self._listed.get(name)
        if found is None:
            component = self._components[name]
            every = _variants(component)
            found = self._listed[name] = tuple(every if component.named else sorted(every, key=preference, reverse=True))
        return found

    def silent(self, family: Family) -> frozenset[ReleaseCandidate]:
        """Return the variants of the subject of a family about which the family has no row."""
        found = self._silent.get(family)
        if found is None:
            every = self.of(family.subject)
            silent = (one for one in every if not self._families.speaks(family, one.release, one.build))
            found = self._silent[family] = frozenset(silent)
        return found


variants_of = once_per_matrix(Variants)
"""Return the variants of the components of a matrix; they are listed once for each matrix."""


def _variants(component: Component) -> Iterator[ReleaseCandidate]:
    key = Key(component.name)
    for release in component.releases:
        if not release.builds:
            yield ReleaseCandidate(key, release.version, str(release.version), release)
        for build in release.builds:
            version = Version.parse(f"{release.version}+{build.name}")
            label = str(version) if component.name in LABELLED_BUILDS else str(release.version)
            yield ReleaseCandidate(key, version, label, release, build)


def preference(candidate: ReleaseCandidate) -> tuple[Version, bool, Version]:
    """Return the sort key of a candidate, greater for a more preferred one.

    It compares the release, then whether the build is the release's default (the most tested one), then the number of the
    runtime in the build's name.
    """
    release, build = candidate.release, candidate.build
    number = _NUMBER.search(build.name) if build is not None else None
    return release.version, build is not None and build.default, Version.parse(number[0] if number else "0")
