"""A minimal conflict and the ways out of it, both found by solving again; never from an engine's own account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.complete import CompleteSearch
from provisioner.solve.hints import hints
from provisioner.solve.requirement import Matching, Within
from provisioner.solve.stack import Conflict, Reason

if TYPE_CHECKING:
    from provisioner.solve.requirement import Candidate, Requirement
    from provisioner.solve.universe import Universe

KINDS = ("request", "rule", "fact")
SHOWN = 4
"""How many members of one rule group are spelled out before the rest is counted."""


def explain_conflict(universe: Universe) -> Conflict:
    """Explain a universe that was proved impossible: the minimal members in order, and hints that were re-solved."""
    search = CompleteSearch(universe)
    try:
        groups = search.minimal()
        members = members_of(universe, search, groups)
        return Conflict(members=members, hints=hints(universe, search, groups))
    finally:
        search.close()


def members_of(universe: Universe, search: CompleteSearch, groups: tuple[str, ...]) -> tuple[Reason, ...]:
    """One line for each group, in order: requests, rules down the order, facts."""
    order = universe.problem.order
    found = []
    for group in groups:
        relevant = _relevant(search, group, groups)
        origin = relevant[0][1].origin
        target = min((order.get(one.key, len(order)) for _, one in relevant), default=0)
        subject = min((order.get(parent.key, -1) for parent, _ in relevant if parent), default=-1)
        text, where = _words(relevant)
        offer = _offer(universe, relevant[0][1])
        text = f"{text}: {offer}" if offer and len({one.origin.text for _, one in relevant}) == 1 else text
        found.append(
            (
                (KINDS.index(origin.kind), subject, target, group),
                Reason(component=origin.component, kind=origin.kind, text=text, where=where),
            )
        )
    return tuple(reason for _, reason in sorted(found, key=lambda item: item[0]))


def _relevant(search: CompleteSearch, group: str, groups: tuple[str, ...]) -> list[tuple[Candidate | None, Requirement]]:
    """The requirements of a group whose subject the other members still allow, newest subject first."""
    members = search.members(group)
    others = [one for other in groups if other != group for parent, one in search.members(other) if parent is None]
    kept = [
        (parent, one)
        for parent, one in members
        if parent is None or all(other.allows(parent) for other in others if other.key == parent.key)
    ]
    return sorted(kept or members, key=_newest_first)


def _newest_first(member: tuple[Candidate | None, Requirement]) -> tuple[tuple[int, ...], str]:
    """Subjects from new to old, whatever order the search met them in."""
    parent, _ = member
    if parent is None:
        return (), ""
    release = parent.pep440.release if parent.key.is_package else parent.version.release
    return tuple(-number for number in (*release, 0, 0, 0, 0)[:6]), parent.label


def _words(relevant: list[tuple[Candidate | None, Requirement]]) -> tuple[str, str]:
    """Say a whole group in one line: the one requirement it has, or what its subjects need, folded together."""
    texts = list(dict.fromkeys(one.origin.text for _, one in relevant))
    places = list(dict.fromkeys(one.origin.where for _, one in relevant if one.origin.where))
    where = places[0] if len(places) == 1 else f"{places[0]} and {len(places) - 1} more" if places else ""
    if len(texts) == 1:
        return texts[0], where
    folded: dict[str, list[str]] = {}
    for parent, one in relevant:
        label = parent.label if parent else ""
        name = parent.key.component if parent else one.origin.component
        need = one.origin.text.removeprefix(f"{name} {label}").strip().removeprefix(":").strip()
        labels = folded.setdefault(need, [])
        if label not in labels:
            labels.append(label)
    name = relevant[0][1].origin.component
    parts = [f"{name} {_span(labels)} {need}" for need, labels in folded.items()]
    shown = parts if len(parts) <= SHOWN else [*parts[: SHOWN - 1], f"and {len(parts) - SHOWN + 1} more like it"]
    return "; ".join(shown), where


def _span(labels: list[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{labels[-1]} … {labels[0]}" if len(labels) > 2 else " and ".join(labels)


def _offer(universe: Universe, requirement: Requirement) -> str:
    """What there is, for a range in which there is nothing; "" where something is in it."""
    if not isinstance(requirement.test, Matching | Within) or universe.allowed(requirement):
        return ""
    key = requirement.key
    name = key.name.partition("[")[0] if key.is_package else key.component
    offered = universe.candidates(key)
    if not offered:
        cut = universe.problem.wish.spec.policy.exclude_newer
        until = f" until {cut}" if cut else ""
        return f"no index offers `{name}`{until}" if key.is_package else f"the matrix has no {name} for this target{until}"
    withdrawn = next((one for one in offered if one.is_yanked and requirement.allows(one)), None)
    if withdrawn is not None:
        return f"{name} {withdrawn.label} is {withdrawn.subject.why_not}"
    labels = list(dict.fromkeys(one.label.partition("+")[0] for one in offered))
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return f"{'the index' if key.is_package else 'the matrix'} has {', '.join(labels[:SHOWN])}{more}"
