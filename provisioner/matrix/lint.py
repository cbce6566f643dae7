"""Lint of a matrix: the number of its rows, and rows that have no effect.

`check` rejects inconsistent rows. The findings here are consistent but probably mistakes: rules that exclude nothing or that
another rule implies, and rows to which nothing refers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import Component, Matrix, Rule
    from provisioner.matrix.need import Need


class Finding(Struct, frozen=True, kw_only=True):
    """One row without effect: the kind of finding (`idle-rule`), its file and line or name (`where`), and a message."""

    kind: str
    where: str
    text: str


def lint(matrix: Matrix) -> tuple[Finding, ...]:
    """Return every finding, in the order of the matrix."""
    return tuple(_Linter(matrix).findings())


class _Linter:
    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self._answers: dict[tuple[str, str, str], bool] = {}

    def findings(self) -> Iterator[Finding]:
        for rule in self.matrix.rules:
            yield from self._idle(rule)
        yield from self._shadowed()
        for component in self.matrix.components.values():
            yield from self._unordered(component)
        yield from self._uncited()
        yield from self._products()

    def _idle(self, rule: Rule) -> Iterator[Finding]:
        """Yield a finding for each requirement of a rule that every release of the required component meets."""
        for need in (*rule.require, *rule.expect):
            component = self.matrix.components.get(need.component)
            if component is None or need.is_same or component.virtual or not component.releases:
                continue
            if all(need.allows(release.version) for release in component.releases):
                yield self._of(rule, "idle-rule", f"every release of `{need.component}` is {need}, so it binds nothing")

    def _shadowed(self) -> Iterator[Finding]:
        """Yield a finding for each rule that another rule implies: one that applies at least as often and allows no more."""
        by_subject: dict[str, list[tuple[Rule, frozenset[tuple[str, str]]]]] = {}
        for rule in self.matrix.rules:
            guards = frozenset((need.component, str(need)) for need in rule.on)
            others = by_subject.setdefault(rule.when.component, [])
            for other, other_guards in others:
                if other_guards <= guards and self._implies(other, rule):
                    yield self._of(rule, "shadowed-rule", f"rule `{other.name}` says all of it")
                elif guards <= other_guards and self._implies(rule, other):
                    yield self._of(other, "shadowed-rule", f"rule `{rule.name}` says all of it")
            others.append((rule, guards))

    def _implies(self, strong: Rule, weak: Rule) -> bool:
        """Return whether `strong` forbids everything that `weak` forbids, their host conditions (`on`) aside."""
        if not self._within(weak.when, strong.when):
            return False
        strongest = strong.require if weak.require else (*strong.require, *strong.expect)
        return all(any(self._within(mine, need) for mine in strongest) for need in (*weak.require, *weak.expect))

    def _within(self, inner: Need, outer: Need) -> bool:
        """Return whether every version that `inner` allows is allowed by `outer`."""
        if inner.component != outer.component or inner.is_same != outer.is_same:
            return False
        question = (inner.component, str(inner), str(outer))
        if question not in self._answers:
            self._answers[question] = self._allowed(inner, outer) <= self._allowed(outer, inner)
        return self._answers[question]

    def _allowed(self, need: Need, other: Need) -> set[Version]:
        """Return the allowed versions among samples: the component's releases, the bounds of both needs, and neighbours."""
        component = self.matrix.components.get(need.component)
        tried = {release.version for release in component.releases} if component else set()
        for one in (need, other):
            tried.update(one.one_of)
            for clause in one.range.clauses:
                text = clause.version.public
                tried.update((clause.version, Version.parse(f"{text}.0.1"), Version.parse(f"{text}.999999")))
                tried.add(_below(clause.version))
        return {version for version in tried if need.allows(version)}

    def _unordered(self, component: Component) -> Iterator[Finding]:
        """Yield a finding for each release that is listed below an older one of its file; files list the newest first."""
        if component.named:
            return
        last: dict[str, object] = {}
        for release in component.releases:
            place = self.matrix.place_of(f"{component.name}=={release.version}")
            file = place.file
            before = last.get(file)
            if before is not None and release.version > before:  # type: ignore[operator]
                text = f"`{component.name}` {release.version} stands below {before}; newest comes first"
                yield Finding(kind="order", where=str(place), text=text)
            last[file] = release.version

    def _uncited(self) -> Iterator[Finding]:
        releases = (release for component in self.matrix.components.values() for release in component.releases)
        cited = {key for _, sources in rows(self.matrix) for key in sources}
        cited.update(key for release in releases for key in release.source)
        for key, citation in self.matrix.citations.items():
            if key not in cited:
                yield Finding(kind="unused-source", where=key, text=f"no row cites source `{key}` ({citation.title})")

    def _products(self) -> Iterator[Finding]:
        """Yield a finding for each GPU product whose compute capability is not a release of the component `gpu`."""
        known = (
            {str(release.version) for release in self.matrix.components["gpu"].releases}
            if "gpu" in self.matrix.components
            else set()
        )
        for gpu in self.matrix.gpus:
            if gpu.compute_capability and gpu.compute_capability not in known:
                text = f"`{gpu.name}` has compute capability {gpu.compute_capability}, which component `gpu` does not list"
                yield Finding(kind="unreachable-row", where=gpu.name, text=text)

    def _of(self, rule: Rule, kind: str, text: str) -> Finding:
        return Finding(
            kind=kind, where=str(self.matrix.positions.get(f"rule:{rule.name}", "")), text=f"rule `{rule.name}`: {text}"
        )


def _below(version: Version) -> Version:
    """Return a version just below another: `550.54.15` becomes `550.54.14.999999`; a version of zeros is returned unchanged."""
    numbers = list(version.release)
    place = next((at for at in reversed(range(len(numbers))) if numbers[at]), None)
    if place is None:
        return version
    return Version.parse(".".join(str(part) for part in (*numbers[:place], numbers[place] - 1, 999999)))


class Counts(Struct, frozen=True, kw_only=True):
    """The numbers of rows of a matrix: of all `rows`, and in `kinds` by component or type of row (`rules`, `gpus`, `images`).

    A row counts as measured when one of its citations is `measured`: its facts were read from the artefact itself. `measured`
    and `measured_kinds` are the numbers of measured rows.
    """

    rows: int
    measured: int
    kinds: Mapping[str, int]
    measured_kinds: Mapping[str, int]


def count(matrix: Matrix) -> Counts:
    """Return the numbers of rows; each row that carries a citation of its own counts."""
    kinds: Counter[str] = Counter()
    measured: Counter[str] = Counter()
    for kind, sources in rows(matrix):
        kinds[kind] += 1
        if any(matrix.citations[source].measured for source in sources):
            measured[kind] += 1
    return Counts(rows=kinds.total(), measured=measured.total(), kinds=dict(kinds), measured_kinds=dict(measured))


def rows(matrix: Matrix) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the kind and the citation keys of every row; each build of a release counts as a row of its own."""
    for component in matrix.components.values():
        for release in component.releases:
            if release.source and not release.builds:
                yield component.name, release.source
            yield from ((component.name, build.source) for build in release.builds)
            yield from (("driver patches", patch.source) for patch in release.patched)
    yield from (("kernels", one.source) for one in matrix.kernels.values())
    yield from (("sonames", row.source) for found in matrix.sonames.values() for row in found)
    yield from (("rules", rule.source) for rule in matrix.rules)
    yield from (("driver branches", branch.source) for branch in matrix.branches)
    yield from (("gpus", gpu.source) for gpu in matrix.gpus)
    yield from (("gpu chips", chip.source) for chip in matrix.chips)
    yield from (("gfx overrides", override.source) for override in matrix.overrides)
    yield from (("seen to run", row.source) for row in matrix.seen_to_run)
    yield from (("performance", row.source) for row in matrix.performance)
    yield from (("images", image.source) for image in matrix.images)
    yield from (("Python builds", one.source) for one in matrix.python_builds)
    for distribution in matrix.distributions:
        if distribution.source:
            yield "distributions", distribution.source
        yield from (("distributions", implied.source) for implied in distribution.implies)
        yield from (("distributions", loading.source) for loading in distribution.loads)
        yield from (("distributions", opened.source) for opened in distribution.opens)
        yield from (("distributions", optional.source) for optional in distribution.optional)
        if distribution.used is not None:
            yield "distributions", distribution.used.source
    yield from (("limits", limit.source) for limit in matrix.limits)
    yield from (("distributions", file.source) for file in matrix.toolkit_files)
    yield from (("shared files", shared.source) for shared in matrix.shared_files)
    yield from (("published wheels", one.source) for one in matrix.published)
    yield from (("declared targets", one.source) for one in matrix.declared)
    yield from (("variables", one.source) for one in matrix.variables)
    yield from (("failures", one.source) for one in matrix.failures)
    yield from (("statements of logs", one.source) for one in matrix.statements)
    yield from (("driver packages", one.source) for one in matrix.driver_packages)
    yield from (("host repositories", one.source) for one in matrix.host_repositories)
    yield from (("host packages", one.source) for one in matrix.host_packages)
    yield from (("builds from source", one.source) for one in matrix.source_builds)
    yield from (("GPU wheels", one.source) for one in matrix.wheels)
    yield from (("system wheels", one.source) for one in matrix.system_wheels)
    yield from (("system packages", one.source) for one in matrix.system_libraries)
    yield from (("system packages", one.source) for one in matrix.system_tools)
    yield from (("system needs", one.source) for one in matrix.system_needs)
