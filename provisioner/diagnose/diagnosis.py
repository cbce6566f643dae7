"""Diagnose a log: the causes of its failures in their order, what follows from each, what is harmless, and the remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from provisioner.diagnose.facts import holds, machine_facts, unknown_guards
from provisioner.diagnose.recognise import recognise
from provisioner.diagnose.remedies import Remedies
from provisioner.resolver.rules.guards import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.diagnose.facts import MachineFacts
    from provisioner.diagnose.log import Log
    from provisioner.diagnose.recognise import Quote, Recognised
    from provisioner.diagnose.remedies import Wanted
    from provisioner.grounds.diagnosis import Remedy
    from provisioner.host.model import Host
    from provisioner.matrix.model import Failure, Matrix
    from provisioner.matrix.need import Need

EXIT_CODES = {"cause": 1, "harmless": 0, "unknown": 3}
"""The exit code of each verdict: a cause was found, all that was recognised is harmless, nothing can be told."""


class Explanation(Struct, frozen=True, kw_only=True):
    """One failure that explains messages of the log, with its remedies; `when` are the facts that it depends on, all unknown.

    `remedies` are () for a failure that is told only as another possibility.
    """

    failure: Failure
    when: tuple[Need, ...] = ()
    remedies: tuple[Remedy, ...] = ()


class Finding(Struct, frozen=True, kw_only=True):
    """Messages of a log, and what explains them: the likeliest failure first, then others that leave the same messages.

    `consequences` are messages that follow from this failure. For a consequence whose cause is not in the log, `possible` are
    the failures that it can follow from.
    """

    recognised: Recognised
    explanations: tuple[Explanation, ...]
    consequences: tuple[Recognised, ...] = ()
    possible: tuple[Explanation, ...] = ()

    @property
    def main(self) -> Explanation:
        """The likeliest explanation."""
        return self.explanations[0]


class Diagnosis(Struct, frozen=True, kw_only=True):
    """The answer about one log: its findings with the root cause first, harmless messages, facts, and unexplained lines.

    `may_be_translated`: nothing was recognised, and the log has letters of another language than that of the rows.
    """

    findings: tuple[Finding, ...]
    harmless: tuple[Recognised, ...]
    facts: MachineFacts
    unexplained: tuple[Quote, ...]
    unexplained_count: int
    lines: int
    may_be_translated: bool = False
    skipped: int = 0
    skipped_lines: int = 0

    @property
    def verdict(self) -> Literal["cause", "harmless", "unknown"]:
        """`cause` if a failure was recognised, `harmless` if all that speaks of errors is known to be, else `unknown`."""
        if self.findings:
            return "cause"
        return "harmless" if self.harmless and not self.unexplained_count else "unknown"


def diagnose(
    log: Log,
    matrix: Matrix,
    *,
    profile: Host | None = None,
    wanted: Wanted | None = None,
    locked: Mapping[str, str] | None = None,
) -> Diagnosis:
    """Return what a log says of a machine and its stack.

    `profile` has the facts of the machine, `wanted` is the lock or spec that is to run on it, `locked` has the lock's versions.
    """
    found = recognise(log, matrix)
    readings = [reading for one in found.failures for reading in one.readings]
    facts = machine_facts([*found.readings, *readings], matrix, profile=profile, locked=locked)
    harmful = [one for one in found.failures if one.failure.kind != "benign"]
    ordering = _Order(matrix, facts, Remedies(matrix, facts, wanted=wanted))
    return Diagnosis(
        findings=tuple(ordering.findings(harmful)),
        harmless=tuple(one for one in found.failures if one.failure.kind == "benign"),
        facts=facts,
        unexplained=found.unexplained,
        unexplained_count=found.unexplained_count,
        lines=len(set(log.numbers)),
        may_be_translated=not found.failures and log.has_other_letters,
        skipped=log.skipped,
        skipped_lines=log.skipped_lines,
    )


class _Order:
    """Puts the failures of a log into order: alternatives together, consequences below causes, the deepest layer first."""

    def __init__(self, matrix: Matrix, facts: MachineFacts, remedies: Remedies) -> None:
        self._facts = facts
        self._remedies = remedies
        self._depth = {name: position for position, name in enumerate(matrix.order)}
        self._by_name = {failure.name: failure for failure in matrix.failures}

    def findings(self, found: Sequence[Recognised]) -> list[Finding]:
        """Return the findings, the root cause first: causes before consequences, what is particular before what is general.

        Of several, those of the host's layers come before those of the stack's.
        """
        groups = self._alternatives(found)
        leaders = {one.failure.name: group for group in groups for one in group}
        caused: dict[int, list[Recognised]] = {}
        roots: list[list[Recognised]] = []
        for group in groups:
            cause = next((leaders[name] for one in group for name in one.failure.follows if name in leaders), None)
            if cause is None or cause is group:
                roots.append(group)
            else:
                caused.setdefault(id(self._root(cause, leaders)), []).append(group[0])
        findings = [self._finding(group, tuple(caused.get(id(group), ()))) for group in roots]
        return sorted(findings, key=self._rank)

    def _root(self, group: list[Recognised], leaders: Mapping[str, list[Recognised]]) -> list[Recognised]:
        """Return the first cause of a chain of consequences; a circle of them ends where it began."""
        seen = {id(group)}
        while True:
            cause = next((leaders[name] for one in group for name in one.failure.follows if name in leaders), None)
            if cause is None or id(cause) in seen:
                return group
            seen.add(id(cause))
            group = cause

    def _rank(self, finding: Finding) -> tuple[bool, bool, int, int]:
        failure = finding.main.failure
        return failure.kind == "consequence", failure.general, -self._depth.get(failure.layer, 0), finding.recognised.line

    def _alternatives(self, found: Sequence[Recognised]) -> list[list[Recognised]]:
        """Return the failures in groups that explain the same messages, those that facts of the host rule out left out."""
        groups: list[list[Recognised]] = []
        for one in found:
            group = next((group for group in groups if any(self._are_alike(one, other) for other in group)), None)
            if group is None:
                groups.append([one])
            else:
                group.append(one)
        kept = [[one for one in group if self._verdict(one.failure) is not Verdict.NO] or group for group in groups]
        return [sorted(group, key=self._likelihood) for group in kept]

    def _are_alike(self, one: Recognised, other: Recognised) -> bool:
        lines = {index for index, _ in one.spans}
        return bool(set(one.failure.alike) & set(other.failure.alike)) and any(index in lines for index, _ in other.spans)

    def _verdict(self, failure: Failure) -> Verdict:
        return holds((*failure.when, *failure.on), self._facts)

    def _likelihood(self, one: Recognised) -> tuple[int, int]:
        """Return a key that puts first what stated facts confirm, then what depends on the fewest unknown facts."""
        failure = one.failure
        guards = (*failure.when, *failure.on)
        confirmed = sum(1 for need in guards if need.component != "accelerator" and holds((need,), self._facts) is Verdict.YES)
        return len(unknown_guards(guards, self._facts)), -confirmed

    def _finding(self, group: Sequence[Recognised], consequences: tuple[Recognised, ...]) -> Finding:
        first, *others = group
        follows = () if first.failure.kind != "consequence" else first.failure.follows
        told = {one.failure.name for one in group}
        possible = [self._by_name[name] for name in follows if name not in told]
        return Finding(
            recognised=first,
            explanations=(self._explanation(first.failure, is_main=True), *(self._explanation(one.failure) for one in others)),
            consequences=tuple(sorted(consequences, key=lambda one: one.line)),
            possible=tuple(self._explanation(one) for one in possible if self._verdict(one) is not Verdict.NO),
        )

    def _explanation(self, failure: Failure, *, is_main: bool = False) -> Explanation:
        when = unknown_guards((*failure.when, *failure.on), self._facts)
        return Explanation(failure=failure, when=when, remedies=self._remedies.of(failure) if is_main else ())
