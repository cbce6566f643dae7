"""At most one of many, in clauses that grow with their number and not with its square."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def at_most_one(literals: Sequence[int], fresh: Callable[[], int]) -> Iterator[tuple[int, ...]]:
    """Clauses by which no two of the literals hold; `fresh` gives a new variable, each of which says "here or before"."""
    before = 0
    for literal in literals:
        so_far = fresh()
        yield -literal, so_far
        if before:
            yield -before, so_far
            yield -before, -literal
        before = so_far
