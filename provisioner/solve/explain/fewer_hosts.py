"""Ways out of a conflict that leave hosts out of the target: those whose facts stand against the others or against the request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.explain.change import LEFT_OUT, TARGET, Change

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provisioner.solve.search.complete import CompleteSearch
    from provisioner.solve.search.universe import Universe

MOST = 3
"""How many such ways are offered to be solved again."""


def fewer_hosts(universe: Universe, search: CompleteSearch, groups: Sequence[str]) -> Iterator[tuple[Change, ...]]:
    """Sets of hosts without which the clauses can be satisfied, each found from another host of the conflict."""
    facts = _facts_of_hosts(universe)
    found: list[frozenset[str]] = []
    for start in _concerned(facts, groups):
        gone = _gone(search, facts, start, groups)
        if gone and gone not in found and len(found) < MOST:
            found.append(gone)
            yield tuple(Change(component=TARGET, text=LEFT_OUT, host=label) for label in facts if label in gone)


def _facts_of_hosts(universe: Universe) -> dict[str, frozenset[str]]:
    """The groups of facts of each host, in the order of the target."""
    labels = [target.label for target in universe.problem.request.hosts]
    facts: dict[str, set[str]] = {label: set() for label in labels}
    for root in universe.roots:
        if root.origin.kind == "fact":
            for label in labels:
                if root.origin.group.endswith((f" of {label}", f" on {label}")):
                    facts[label].add(root.origin.group)
    return {label: frozenset(some) for label, some in facts.items()}


def _concerned(facts: dict[str, frozenset[str]], groups: Collection[str]) -> list[str]:
    return [label for label, some in facts.items() if some.intersection(groups)]


def _gone(search: CompleteSearch, facts: dict[str, frozenset[str]], start: str, groups: Sequence[str]) -> frozenset[str] | None:
    """`start` and every other host that has to go with it; None where none would be left, or nothing helps."""
    gone = {start}
    against = _kinds(start, facts[start].intersection(groups))
    while len(gone) < len(facts):
        dropped = frozenset[str]().union(*(facts[label] for label in gone))
        if not search.refutes(without=dropped):
            return frozenset(gone)
        core = search.core(without=dropped)
        others = [label for label in _concerned(facts, core) if label not in gone]
        if not others:
            return None
        # Of two that stand against each other the one goes that is like those that went.
        gone.add(max(others, key=lambda label: len(against & _kinds(label, facts[label].intersection(core)))))
    return None


def _kinds(label: str, groups: Collection[str]) -> set[str]:
    """The facts of a host without its name: `gpu 7.0`."""
    return {group.removesuffix(label) for group in groups}
