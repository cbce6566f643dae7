"""The hosts that a requirement reaches: the values that a range or list of a lock admits, and how two of them differ.

Locks keep host requirements as text: a range (`>=525.60.13`), a list of labels (`7.5, 8.0, 9.0`, `rhel 9 or ubuntu 24.04`), or
text that only the matrix understands. Of the last kind nothing is claimed beyond that they differ.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.gate.evaluate import GateFacts, GateGpu, completions, completions_of_gpu, is_met
from provisioner.gate.grammar import GateError, parse
from provisioner.grounds.change import FallOut
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterable

_SIDES = {">=": ("floor", False), ">": ("floor", True), "<=": ("ceiling", False), "<": ("ceiling", True)}
_SEPARATOR = re.compile(r", | or ")
_COMPARISON = re.compile(r"[<>=~!]")


class Span(Struct, frozen=True):
    """The versions between two ends; an end is a version and whether it is itself outside. None: no end."""

    floor: tuple[Version, bool] | None = None
    ceiling: tuple[Version, bool] | None = None

    @classmethod
    def parse(cls, text: str) -> Span | None:
        """Read a range of bounds; None for text that is anything else, such as `==12.*` or words."""
        try:
            clauses = Range.parse(text).clauses
        except ValueError:
            return None
        span = cls()
        for clause in clauses:
            if clause.operator not in _SIDES or clause.is_prefix:
                return None
            side, is_open = _SIDES[clause.operator]
            end = (clause.version, is_open)
            if side == "floor":
                span = Span(max(span.floor or end, end), span.ceiling)
            else:
                span = Span(span.floor, min(span.ceiling or end, end, key=_ceiling_order))
        return span

    def reaches_below(self, other: Span) -> bool:
        """Whether versions below the other's floor are in this span."""
        return other.floor is not None and (self.floor is None or self.floor < other.floor)

    def reaches_above(self, other: Span) -> bool:
        """Whether versions above the other's ceiling are in this span."""
        if other.ceiling is None:
            return False
        return self.ceiling is None or _ceiling_order(other.ceiling) < _ceiling_order(self.ceiling)


def _ceiling_order(end: tuple[Version, bool]) -> tuple[Version, bool]:
    """`<5` ends before `<=5`."""
    return end[0], not end[1]


def labels(text: str) -> tuple[str, ...] | None:
    """Return the labels of a list such as `7.5, 8.0` or `rhel 9 or ubuntu 24.04`; None for a range, () for nothing."""
    if _COMPARISON.search(text):
        return None
    return tuple(_SEPARATOR.split(text)) if text else ()


def direction(old: str, new: str) -> str:
    """Return how the admitted hosts differ: `tightened`, `loosened`, or `changed` (both, or not to be told); "" admits all."""
    if not old or not new:
        return "tightened" if new else "loosened"
    before, after = Span.parse(old), Span.parse(new)
    if before is not None and after is not None:
        loses = before.reaches_below(after) or before.reaches_above(after)
        wins = after.reaches_below(before) or after.reaches_above(before)
    else:
        listed, lists = labels(old), labels(new)
        if listed is None or lists is None:
            return "changed"
        loses, wins = bool(set(listed) - set(lists)), bool(set(lists) - set(listed))
    if loses == wins:
        return "changed"
    return "tightened" if loses else "loosened"


def fall_out(old: str, new: str) -> FallOut | None:
    """Return the hosts that met the old requirement and do not meet the new one; None where there are none."""
    before, after = Span.parse(old), Span.parse(new)
    if not new:
        return None
    if after is None or (before is None and old):
        return FallOut(outside=new) if direction(old, new) != "loosened" else None
    before = before or Span()
    below = str(after.floor[0]) if after.floor and before.reaches_below(after) else ""
    end, is_open = after.ceiling if after.ceiling and before.reaches_above(after) else ("", False)
    found = FallOut(below=below, above="" if is_open else str(end), start=str(end) if is_open else "")
    return found if found != FallOut() else None


def may_refuse(old: Iterable[str], new: str) -> bool:
    """Whether some host meets every old requirement of a container and not the new one; one that cannot be read may."""
    try:
        before, after = [parse(one) for one in old], parse(new)
    except GateError:
        return True
    every, anything = [*before, after], GateFacts()
    hosts = product(completions(every, anything), tuple(completions_of_gpu(every, GateGpu())))
    facts = ({**of_host, **of_gpu} for of_host, of_gpu in hosts)
    return any(all(is_met(one, host) for one in before) and not is_met(after, host) for host in facts)
