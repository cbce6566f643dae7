"""What provision, uv and pip answered to one requirement set, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from resolvers import REFUSED, UNFINISHED, Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from requirement_sets import RequirementSet

OTHERS = ("uv", "pip")
UNASKED = "not asked"
PATIENCE = {"provision": 400, "uv": 300, "pip": 150}
"""Seconds for one answer."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers to one set; `by_other` is what uv and pip made of provision's, `by_ours` what provision made of theirs.

    Nobody is asked where the answers are the same, or where there is none to ask about. `read` is the day.
    """

    request: RequirementSet
    read: str
    ours: Answer
    theirs: Mapping[str, Answer]
    by_other: Mapping[str, Answer] = field(default_factory=dict)
    by_ours: Mapping[str, Answer] = field(default_factory=dict)

    def differing(self, tool: str) -> list[str]:
        """Distributions that provision and a tool disagree on, one missing from an answer included."""
        ours, theirs = self.ours.pins or {}, self.theirs[tool].pins or {}
        return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def verdict(comparison: Comparison, tool: str) -> str:
    """What came of the comparison with one tool, in a few words; a dispute is set in bold."""
    if tool not in comparison.theirs:
        return UNASKED
    ours, theirs = comparison.ours, comparison.theirs[tool]
    if theirs.code == UNFINISHED:
        accepted = comparison.by_other.get(tool)
        return "accepts ours, none in time" if accepted is not None and accepted.pins == ours.pins else "none in time"
    if ours.pins is None or theirs.pins is None:
        if {ours.code, theirs.code} == {REFUSED}:
            return "both refuse"
        return f"**{ours.code} / {theirs.code}**"
    if not comparison.differing(tool):
        return "same"
    by_other, by_ours = comparison.by_other.get(tool), comparison.by_ours.get(tool)
    accepts_ours = by_other is not None and by_other.pins == ours.pins
    accepts_theirs = by_ours is not None and by_ours.pins == theirs.pins
    if accepts_ours and accepts_theirs:
        return "both valid"
    return f"**{tool} refuses ours**" if not accepts_ours else f"**we refuse {tool}'s**"
