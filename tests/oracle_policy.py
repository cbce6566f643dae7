"""Brute force for policies: every combination, filtered and ordered by what the spec's `policy` says.

It reads the matrix's nouns and compares versions, and uses nothing of the solver. Dates are compared as texts of full days, so
that even this much is written differently from the code under test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.matrix.model import Matrix, Release
    from provisioner.versions import Range, Version


@dataclass(frozen=True, kw_only=True)
class Rules:
    """A policy in the oracle's own words. `day` is the reference day, `week_ago` the day a week before it, as `2026-06-08`."""

    strategy: str = "newest"
    forbid: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    prefer: Mapping[str, Range] = field(default_factory=dict)
    avoid: Mapping[str, Range] = field(default_factory=dict)
    locked: Mapping[str, str] = field(default_factory=dict)
    day: str = ""
    week_ago: str = ""


def is_refused(release: Release, rules: Rules) -> bool:
    """Whether a policy rules a release out whatever else holds."""
    is_stable = rules.strategy == "stable"
    ends = release.end_of_life and (release.end_of_life if len(release.end_of_life) == 10 else f"{release.end_of_life}-31")
    has_ended = bool(ends) and rules.day > ends
    is_early = bool(release.prerelease)
    refuses_ended = "end-of-life" in rules.forbid or (is_stable and "end-of-life" not in rules.allow)
    is_new = is_stable and release.released > rules.week_ago
    return (refuses_ended and has_ended) or is_new or (is_early and "prerelease" not in rules.allow)


def best(matrix: Matrix, requires: Mapping[str, Range], rules: Rules) -> dict[str, Version] | None:
    """The first valid choice when the components are read in the declared order, each as the policy wants it.

    For matrices whose releases have needs and no builds, and that have no rules.
    """
    names = tuple(matrix.order)
    domains = [[one for one in matrix.components[name].releases if not is_refused(one, rules)] for name in names]
    valid = []
    for choice in product(*domains):
        assignment = {name: one.version for name, one in zip(names, choice, strict=True)}
        met = all(need.allows(assignment[need.component]) for one in choice for need in one.requires)
        if met and all(wanted.allows(assignment[name]) for name, wanted in requires.items()):
            valid.append(assignment)
    valid.sort(key=lambda one: tuple(_wanted(name, one[name], rules) for name in names))
    return valid[0] if valid else None


def _wanted(name: str, version: Version, rules: Rules) -> tuple[int, int, int, int]:
    """The place of one choice among those of its component; invented versions are single numbers."""
    avoided = 1 if name in rules.avoid and rules.avoid[name].allows(version) else 0
    unpreferred = 1 if name in rules.prefer and not rules.prefer[name].allows(version) else 0
    moved = 1 if name in rules.locked and rules.locked[name] != version.text else 0
    number = version.release[0]
    return avoided, unpreferred, moved, number if rules.strategy == "oldest" else -number
