"""Families: pairs of components, and for each the releases about which rows of the matrix state something, or nothing.

The rows of a family, such as ROCm and GPUs, are needs of releases and of their builds, targets that builds were compiled for,
and rules. So the pairs follow from the rows. Whether the lack of a row about a release means "no limit" or "not known" does
not: `families` of `matrix.yaml` declares the pairs for which it means "not known".
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
"""The subject and the object of a family: rows state which releases of the object work with a release of the subject."""


class Coverage(Struct, frozen=True, kw_only=True):
    """How much of one family its rows cover: `releases` is the number of releases of `subject`, `silent` those without a row.

    If only some builds of a release lack a row, these builds are listed: `2.7.1+cu118`. `family` is the declaration in
    `matrix.yaml`, None for a pair not listed there, for which the lack of a row means no limit.
    """

    subject: str
    object: str
    releases: int
    silent: tuple[str, ...]
    family: Family | None = None


class Families:
    """The families of a matrix: those that `matrix.yaml` declares, and the other pairs of components that rows are about."""

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
        """Return the families that `matrix.yaml` declares with a component as their subject."""
        return tuple(self._declared.get(subject, ()))

    def speaks(self, family: Family, release: Release, build: Build | None) -> bool:
        """Return whether a row of a family covers a release of its subject, or its `build` if that is not None.

        True for a release that the family itself does not cover, and for a build for an accelerator that it is not about.
        """
        pair = family.subject, family.object
        if not family.releases.allows(release.version) or (build is not None and not _is_about(family, build)):
            return True
        if family.is_by_series:
            return release.version.release[: self._components[pair[0]].series] in self._series_with_rows(pair)
        if not family.is_ceiling:
            return self._has_row(pair, release, build)
        component = self._components[family.subject]
        first = self._first_ceilings(pair).get(release.version.release[: component.series])
        return first is not None and first <= release.version

    def _series_with_rows(self, pair: Pair) -> frozenset[tuple[int, ...]]:
        """Return the series of a pair's first component that have a release with rows about the second for all its builds."""
        if pair not in self._series:
            component = self._components[pair[0]]
            self._series[pair] = frozenset(
                one.version.release[: component.series]
                for one in component.releases
                if all(self._has_row(pair, one, build) for build in one.builds or (None,))
            )
        return self._series[pair]

    def _first_ceilings(self, pair: Pair) -> dict[tuple[int, ...], Version]:
        """Return, by series, the oldest release of a pair's first component with a row that bounds the second from above."""
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
        """Return the coverage of every family, those declared in `matrix.yaml` first, without subjects that have no release."""
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
"""Return the families of a matrix; they are derived once for each matrix."""


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
    """Return whether a family covers a build: the family names the build's accelerator, or one of them names none."""
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
