"""Find the releases of other components that are compatible with a release.

A need is a requirement of a release or build on another component; a rule is a row of the matrix with such requirements of all
releases in a range. A pair of releases is compatible only if one of them has a need or rule about the other; without any,
nothing is known. Rules with guards hold on some hosts only, so they exclude nothing here; `rules_about` returns them too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.browse.summary import newest_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.matrix.model import Build, Component, Matrix, Release, Rule
    from provisioner.matrix.need import Need
    from provisioner.versions import Version

RELAXATIONS = frozenset({"minor-version", "forward-compat"})
BASES = ("native", "minor-version", "forward-compat", "")


class Companion(Struct, frozen=True, kw_only=True):
    """One release of another component and its compatible builds, () for a release without builds.

    `basis` is how the driver of the pair runs its CUDA, "" for other pairs.
    """

    component: str
    release: Release
    builds: tuple[Build, ...] = ()
    basis: str = ""


class Party(Struct, frozen=True, kw_only=True):
    """One release and build of a component: one side of a pair."""

    component: str
    release: Release
    build: Build | None

    @property
    def needs(self) -> tuple[Need, ...]:
        """The needs of the release and of the build."""
        return (*self.release.requires, *(self.build.requires if self.build is not None else ()))


def companions(matrix: Matrix, component: Component, releases: Sequence[Release]) -> tuple[Companion, ...]:
    """Return every release and build of other components that is compatible with any of `releases`, in the matrix's order."""
    ours = [party for release in releases for party in _parties(component.name, release)]
    checker = PairChecker(matrix)
    found = []
    for name in matrix.order:
        if name == component.name:
            continue
        for release in newest_first(matrix.components[name]):
            fitting = [(party, one) for party in _parties(name, release) for one in ours if checker.fit(one, party)]
            if fitting:
                builds = tuple(dict.fromkeys(party.build for party, _ in fitting if party.build is not None))
                basis = min((checker.basis(one, party) for party, one in fitting), key=BASES.index)
                found.append(Companion(component=name, release=release, builds=builds, basis=basis))
    return tuple(found)


def _parties(component: str, release: Release) -> Iterator[Party]:
    for build in release.builds or (None,):
        yield Party(component=component, release=release, build=build)


class PairChecker:
    """Checks whether two parties are compatible, with the needs and rules of each about the other."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._rules: dict[str, list[Rule]] = {}
        for rule in matrix.rules:
            if not rule.on:
                self._rules.setdefault(rule.when.component, []).append(rule)

    def fit(self, one: Party, other: Party) -> bool | None:
        """Return whether two parties are compatible; None if neither has a need or rule about the other."""
        statements = [*self._statements(one, other), *self._statements(other, one)]
        return all(statements) if statements else None

    def basis(self, one: Party, other: Party) -> str:
        """Return how the driver of a pair runs the CUDA of the pair, as one of `BASES`.

        "" if the driver does not run the CUDA, or if the pair is not a driver and a CUDA release.
        """
        from provisioner.resolver.rules.drivers import RunsCuda

        for toolkit, driver in ((one, other), (other, one)):
            minimum = toolkit.release.driver
            if minimum is not None and driver.component == "driver":
                runs = RunsCuda(self._matrix, toolkit.release.version, minimum, RELAXATIONS, forward=minimum.forward_compat)
                return runs.basis(driver.release.version)
        return ""

    def _statements(self, subject: Party, other: Party) -> Iterator[bool]:
        """Yield, for each need, rule and minimum driver of `subject` about `other`, whether `other` meets it."""
        ours, theirs = subject.release.version, other.release.version
        wanted = list(subject.needs)
        for rule in self._rules.get(subject.component, ()):
            if rule.when.allows(ours):
                wanted.extend(rule.require)
        for need in wanted:
            if need.component == other.component:
                yield ours == theirs if need.is_same else need.allows(theirs)
        if subject.release.driver is not None and other.component == "driver":
            yield bool(self.basis(subject, other))


def rules_about(matrix: Matrix, component: Component, releases: Sequence[Release]) -> tuple[Rule, ...]:
    """Return the rules whose condition covers one of `releases`, and those with a requirement on `component`."""
    versions = [release.version for release in releases]
    return tuple(
        rule
        for rule in matrix.rules
        if _covers(rule.when, component.name, versions) or any(need.component == component.name for need in rule.require)
    )


def _covers(need: Need, name: str, versions: Sequence[Version]) -> bool:
    return need.component == name and (need.is_same or any(need.allows(version) for version in versions))
