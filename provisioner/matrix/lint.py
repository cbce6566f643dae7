"""A matrix as a whole: how many rows it has, and which of them have no effect.

`check` refuses what cannot be meant, such as a rule about versions nobody released; rules that bind nothing or that others
imply, and rows that nothing refers to or reaches, are well-formed, and mostly slips.
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
    """One thing that has no effect: its kind (kebab-case), where it stands, and a sentence."""

    kind: str
    where: str
    text: str


def lint(matrix: Matrix) -> tuple[Finding, ...]:
    """Every finding, in the order of the matrix."""
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
        """A requirement that every release meets."""
        for need in rule.require:
            component = self.matrix.components.get(need.component)
            if component is None or need.is_same or component.virtual or not component.releases:
                continue
            if all(need.allows(release.version) for release in component.releases):
                yield self._of(rule, "idle-rule", f"every release of `{need.component}` is {need}, so it binds nothing")

    def _shadowed(self) -> Iterator[Finding]:
        """A rule that another one implies: it applies wherever this one does, and allows no more."""
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
        """Whether, guards aside, whatever `weak` forbids is forbidden by `strong`."""
        if not self._within(weak.when, strong.when):
            return False
        return all(any(self._within(mine, need) for mine in strong.require) for need in weak.require)

    def _within(self, inner: Need, outer: Need) -> bool:
        """Whether everything one need allows is allowed by the other."""
        if inner.component != outer.component or inner.is_same != outer.is_same:
            return False
        question = (inner.component, str(inner), str(outer))
        if question not in self._answers:
            self._answers[question] = self._allowed(inner, outer) <= self._allowed(outer, inner)
        return self._answers[question]

    def _allowed(self, need: Need, other: Need) -> set[Version]:
        """The versions a need allows, among the component's own and those either range speaks of, and their neighbours."""
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
        """Releases are listed newest first, file by file, so that a reviewer sees a new row where it belongs."""
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
        """A product whose capability no row of `gpu` lists can be named and never be matched."""
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
    """A version just below: `550.54.15` gives `550.54.14.999999`."""
    numbers = list(version.release)
    place = next((at for at in reversed(range(len(numbers))) if numbers[at]), None)
    if place is None:
        return version
    return Version.parse(".".join(str(part) for part in (*numbers[:place], numbers[place] - 1, 999999)))


class Counts(Struct, frozen=True, kw_only=True):
    """`kinds` counts rows by what they are about: a component, `rules`, `gpus`, `images` ….

    A row counts as measured when one of its citations says that the artefact itself was read.
    """

    rows: int
    measured: int
    kinds: Mapping[str, int]
    measured_kinds: Mapping[str, int]


def count(matrix: Matrix) -> Counts:
    """Count every row that carries a citation of its own."""
    kinds: Counter[str] = Counter()
    measured: Counter[str] = Counter()
    for kind, sources in rows(matrix):
        kinds[kind] += 1
        if any(matrix.citations[source].measured for source in sources):
            measured[kind] += 1
    return Counts(rows=kinds.total(), measured=measured.total(), kinds=dict(kinds), measured_kinds=dict(measured))


def rows(matrix: Matrix) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every row as its kind and the keys of its citations; a release with builds is as many rows as it has builds."""
    for component in matrix.components.values():
        for release in component.releases:
            if release.source and not release.builds:
                yield component.name, release.source
            yield from ((component.name, build.source) for build in release.builds)
            yield from (("driver patches", patch.source) for patch in release.patched)
    yield from (("rules", rule.source) for rule in matrix.rules)
    yield from (("driver branches", branch.source) for branch in matrix.branches)
    yield from (("gpus", gpu.source) for gpu in matrix.gpus)
    yield from (("gfx overrides", override.source) for override in matrix.overrides)
    yield from (("images", image.source) for image in matrix.images)
    for distribution in matrix.distributions:
        if distribution.source:
            yield "distributions", distribution.source
        yield from (("distributions", implied.source) for implied in distribution.implies)
    yield from (("limits", limit.source) for limit in matrix.limits)
    yield from (("shared files", shared.source) for shared in matrix.shared_files)
    yield from (("variables", one.source) for one in matrix.variables)
    yield from (("failures", one.source) for one in matrix.failures)
    yield from (("driver packages", one.source) for one in matrix.driver_packages)
