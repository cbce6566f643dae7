"""Tables that are derived from a matrix once, although a command solves many problems with it."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.matrix.model import Matrix

Table = TypeVar("Table")


def once_per_matrix(derive: Callable[[Matrix], Table]) -> Callable[[Matrix], Table]:
    """Return a function that keeps what `derive` returned for the matrix that it was called with last.

    A matrix is known by its identity: it is immutable, and to compare or hash two takes longer than to derive a table.
    """
    kept: list[tuple[Matrix, Table]] = []

    @wraps(derive)
    def derived(matrix: Matrix) -> Table:
        if not kept or kept[0][0] is not matrix:
            kept[:] = [(matrix, derive(matrix))]
        return kept[0][1]

    return derived
