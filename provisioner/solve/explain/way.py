"""A way out of a conflict: changes that were solved again and work, what they cost, and what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.solve.explain.change import LEFT_OUT, TARGET, Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.solve.explain.cost import Cost
    from provisioner.solve.stack import Hint


class Way(Struct, frozen=True, kw_only=True):
    """Changes that work, what they cost, and what they give."""

    changes: tuple[Change, ...]
    costs: tuple[Cost, ...]
    gives: Mapping[str, str]


def told(change: Change) -> tuple[str, str, str, str]:
    """What makes a change another one; two lines about one distribution that are left out differ in what they say."""
    return change.component, change.text, change.host, change.instead if change.text == LEFT_OUT else ""


def gives_up(changes: Iterable[Change]) -> bool:
    """Whether a part of the request is left out."""
    return any(_is_given_up(change.component, change.text) for change in changes)


def is_given_up(hint: Hint) -> bool:
    """The same of a way as it is told."""
    return any(_is_given_up(component, text) for component, text in hint.changes)


def _is_given_up(component: str, text: str) -> bool:
    """A constraint, an override and hashes, which are told by a line and a name, ask for nothing; nor does a host."""
    return text == LEFT_OUT and "." not in component and component not in {TARGET, "requires-python"}


def says_more(way: Way, ways: Iterable[Way]) -> bool:
    """Whether one of the ways does with some of the changes: a request that is left out frees what was changed beside it."""
    said = {told(change) for change in way.changes}
    return any({told(change) for change in other.changes} < said for other in ways)
