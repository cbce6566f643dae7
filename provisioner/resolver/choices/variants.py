"""The releases and builds of components as candidates, in order of preference: what the matrix alone decides of such a list.

A command that solves many problems with one matrix lists and sorts them once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.matrix.families import families_of
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.requirement import Key, ReleaseCandidate
from provisioner.resolver.rules.lifecycle import day_of, is_prerelease
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.matrix.model import Component, Family, Matrix, Release

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
        self._built_for: dict[tuple[str, frozenset[str]], tuple[ReleaseCandidate, ...]] = {}
        self._for_jetsons: dict[str, frozenset[ReleaseCandidate]] = {}
        self._silent: dict[Family, frozenset[ReleaseCandidate]] = {}
        self._prereleases: dict[str, tuple[Release, ...]] = {}
        self._final: dict[str, frozenset[int]] = {}
        self._published: dict[tuple[str, str], frozenset[int]] = {}

    def of(self, name: str) -> tuple[ReleaseCandidate, ...]:
        """Return the variants of a component, most preferred first; those of a component with names for versions as given."""
        found = self._listed.get(name)
        if found is None:
            component = self._components[name]
            every = _variants(component)
            found = self._listed[name] = tuple(every if component.named else sorted(every, key=preference, reverse=True))
        return found

    def built_for(self, name: str, accelerators: frozenset[str]) -> tuple[ReleaseCandidate, ...]:
        """Return the variants of a component without a build, or with one for one of `accelerators`, in the order of `of`."""
        found = self._built_for.get((name, accelerators))
        if found is None:
            found = tuple(one for one in self.of(name) if one.build is None or one.build.accelerator in accelerators)
            self._built_for[name, accelerators] = found
        return found

    def for_jetsons(self, name: str) -> frozenset[ReleaseCandidate]:
        """Return the variants of a component whose builds need a Jetson."""
        found = self._for_jetsons.get(name)
        if found is None:
            needs = ((one, one.build.requires) for one in self.of(name) if one.build is not None)
            found = frozenset(one for one, some in needs if any(need.component == "jetson" for need in some))
            self._for_jetsons[name] = found
        return found

    def prereleases(self, name: str) -> tuple[Release, ...]:
        """Return the prereleases of a component."""
        found = self._prereleases.get(name)
        if found is None:
            found = self._prereleases[name] = tuple(filter(is_prerelease, self._components[name].releases))
        return found

    def final(self, name: str) -> frozenset[int]:
        """Return the releases of a component that are no prereleases, each by its identity."""
        found = self._final.get(name)
        if found is None:
            every = frozenset(map(id, self._components[name].releases))
            found = self._final[name] = every.difference(map(id, self.prereleases(name)))
        return found

    def published(self, name: str, until: str) -> frozenset[int]:
        """Return the releases of a component that were published by a day, each by its identity."""
        found = self._published.get((name, until))
        if found is None:
            component = self._components[name]
            found = frozenset(id(one) for one in _Published(component, until).among(component.releases))
            self._published[name, until] = found
        return found

    def silent(self, family: Family) -> frozenset[ReleaseCandidate]:
        """Return the variants of the subject of a family about which the family has no row."""
        found = self._silent.get(family)
        if found is None:
            every = self.of(family.subject)
            silent = (one for one in every if not self._families.speaks(family, one.release, one.build))
            found = self._silent[family] = frozenset(silent)
        return found


class _Published:
    """Whether releases of a component were published by a day, `until`.

    A release without a date counts as published if a later release of its major version was published by then. Otherwise it
    counts as published unless its own major version, or an earlier one, is known to have begun after that day.
    """

    def __init__(self, component: Component, until: str) -> None:
        self._day = str(day_of(until))
        self._first: dict[int, Version] = {}
        self._first_out: dict[int, Version] = {}
        self._last_out: dict[int, Version] = {}
        for one in component.releases:
            version = one.version
            if one.released and version.release:
                major = version.release[0]
                self._first[major] = min(version, self._first.get(major, version))
                if one.released <= self._day:
                    self._first_out[major] = min(version, self._first_out.get(major, version))
                    self._last_out[major] = max(version, self._last_out.get(major, version))

    def among(self, releases: Iterable[Release]) -> Iterator[Release]:
        """Yield those of some releases of the component that were published by the day."""
        for one in releases:
            if one.released <= self._day if one.released else self._is_out(one.version):
                yield one

    def _is_out(self, version: Version) -> bool:
        last = self._last_out.get(version.release[0]) if version.release else None
        if not version.release or (last is not None and last > version):
            return True
        # Old series get fixes for years, so only the date of a series' first release bounds those of later series.
        begun = (major for major, first in self._first.items() if first < version)
        return all(major in self._first_out and self._first_out[major] < version for major in begun)


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
