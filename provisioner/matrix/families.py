"""Families of rows: which rows speak of which releases of one component about another, and where they are silent.

A family is a pair of components, such as ROCm and GPUs, and all rows about it: needs of releases and of their builds, targets
that builds were compiled for, and rules. The rows tell which pairs there are. Whether silence about a release means "no limit"
or "not known" they cannot tell, so `families` of `matrix.yaml` lists the pairs of which it means the latter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.matrix.model import Family
from provisioner.matrix.need import need_of
from provisioner.matrix.once import once_per_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Build, Component, Matrix, Release, Rule
    from provisioner.matrix.need import Need
    from provisioner.versions import Version

_CEILINGS = frozenset({"<", "<=", "==", "===", "~="})

Pair = tuple[str, str]
"""The subject and the object of a family."""


class Coverage(Struct, frozen=True, kw_only=True):
    """What the rows of one family speak of: `releases` is the number of releases of its subject, `silent` those without a row.

    A release is silent if it has no row, or a build without one, as `7.2.4` or `2.7.1+cu118`. `family` is the family of
    `matrix.yaml`, None where silence is no limit.
    """

    subject: str
    object: str
    releases: int
    silent: tuple[str, ...]
    family: Family | None = None


class Families:
    """The families of a matrix."""

    def __init__(self, matrix: Matrix) -> None:
        self._components = matrix.components
        self._declared: dict[str, list[Family]] = {}
        for family in matrix.families:
            self._declared.setdefault(family.subject, []).append(family)
        self._ceilings: dict[Pair, dict[tuple[int, ...], Version]] = {}
        self._series: dict[Pair, frozenset[tuple[int, ...]]] = {}
        self._rules: dict[Pair, list[Rule]] = {}
        for rule in matrix.rules:
            for need in rule.require:
                self._rules.setdefault((rule.when.component, need.component), []).append(rule)

    def of(self, subject: str) -> tuple[Family, ...]:
        """Return the families of `matrix.yaml` about a component."""
        return tuple(self._declared.get(subject, ()))

    def speaks(self, family: Family, release: Release, build: Build | None) -> bool:
        """Return whether a row of a family says which releases of its object go with a build of a release, or the release."""
        pair = family.subject, family.object
        if not family.releases.allows(release.version):
            return True
        if family.is_by_series:
            return release.version.release[: self._components[pair[0]].series] in self._series_with_rows(pair)
        if not family.is_ceiling:
            return self._has_row(pair, release, build)
        component = self._components[family.subject]
        first = self._first_ceilings(pair).get(release.version.release[: component.series])
        return first is not None and first <= release.version

    def _series_with_rows(self, pair: Pair) -> frozenset[tuple[int, ...]]:
        """Return the series of a component of which some release, or all its builds, have a row about another component."""
        if pair not in self._series:
            component = self._components[pair[0]]
            self._series[pair] = frozenset(
                one.version.release[: component.series]
                for one in component.releases
                if all(self._has_row(pair, one, build) for build in one.builds or (None,))
            )
        return self._series[pair]

    def _first_ceilings(self, pair: Pair) -> dict[tuple[int, ...], Version]:
        """Return, by series, the oldest release of a component with a row that bounds another component from above."""
        found = self._ceilings.get(pair)
        if found is None:
            found = self._ceilings[pair] = {}
            component = self._components[pair[0]]
            for release in component.releases:
                series = release.version.release[: component.series]
                if _has_ceiling(need_of(release.requires, pair[1])):
                    found[series] = min(release.version, found.get(series, release.version))
        return found

    def _has_row(self, pair: Pair, release: Release, build: Build | None) -> bool:
        target = pair[1]
        if target == "driver" and release.driver is not None:
            return True
        if target == "gpu" and build is not None and (build.sass is not None or build.gfx is not None):
            return True
        builds = () if build is None else build.requires
        if need_of(release.requires, target) is not None or need_of(builds, target) is not None:
            return True
        return any(rule.when.allows(release.version) for rule in self._rules.get(pair, ()))

    def coverage(self) -> tuple[Coverage, ...]:
        """Return what every family speaks of, those of `matrix.yaml` first; families without any release are left out."""
        declared = {(one.subject, one.object): one for found in self._declared.values() for one in found}
        pairs = dict.fromkeys([*declared, *sorted(self._pairs())])
        return tuple(
            self._of(pair, declared.get(pair))
            for pair in pairs
            if pair[0] in self._components and self._components[pair[0]].releases
        )

    def _pairs(self) -> Iterator[Pair]:
        yield from self._rules
        for name, component in self._components.items():
            yield from ((name, target) for target in _targets(component))

    def _of(self, pair: Pair, family: Family | None) -> Coverage:
        component = self._components[pair[0]]
        any_of_it = family if family is not None else Family(subject=pair[0], object=pair[1], because="")
        platforms = _platforms(any_of_it)
        silent: list[str] = []
        found = [one for one in component.releases if any_of_it.releases.allows(one.version) and _is_for(one, platforms)]
        for release in found:
            builds = [one for one in release.builds if _is_build_for(release, one, platforms) and _is_about(any_of_it, one)]
            mute = [one for one in builds if not self.speaks(any_of_it, release, one)]
            if builds and len(mute) < len(builds):
                silent.extend(f"{release.version}+{one.name}" for one in mute)
            elif mute or (not release.builds and not self.speaks(any_of_it, release, None)):
                silent.append(str(release.version))
        return Coverage(
            subject=pair[0], object=pair[1], releases=len(found), silent=tuple(dict.fromkeys(silent)), family=family
        )


families_of = once_per_matrix(Families)
"""Return the families of a matrix, derived once."""


def _targets(component: Component) -> Iterator[str]:
    for release in component.releases:
        yield from (need.component for need in release.requires)
        if release.driver is not None:
            yield "driver"
        for build in release.builds:
            yield from (need.component for need in build.requires)
            if build.sass is not None or build.gfx is not None:
                yield "gpu"


def _has_ceiling(need: Need | None) -> bool:
    """Return whether a need bounds a component from above."""
    return need is not None and (bool(need.one_of) or any(one.operator in _CEILINGS for one in need.range.clauses))


def _platforms(family: Family) -> frozenset[str]:
    found = need_of(family.on, "platform")
    return frozenset(str(one) for one in found.one_of) if found is not None else frozenset()


def _is_about(family: Family, build: Build) -> bool:
    """Return whether a family is about a build: one for its accelerators, or for none in particular."""
    found = need_of(family.on, "accelerator")
    return found is None or not build.accelerator or build.accelerator in {str(one) for one in found.one_of}


def _is_for(release: Release, platforms: frozenset[str]) -> bool:
    if not release.builds:
        return _shares(release.platforms, platforms)
    return any(_is_build_for(release, build, platforms) for build in release.builds)


def _is_build_for(release: Release, build: Build, platforms: frozenset[str]) -> bool:
    return _shares(build.platforms or release.platforms, platforms)


def _shares(own: tuple[str, ...], platforms: frozenset[str]) -> bool:
    return not own or not platforms or not platforms.isdisjoint(own)
