"""Tables derived from a matrix that are cached, because a command solves many problems with one matrix."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.matrix.model import Matrix

Table = TypeVar("Table")


def once_per_matrix(derive: Callable[[Matrix], Table]) -> Callable[[Matrix], Table]:
    """Return a function that returns what `derive` returns, and caches the table of the last matrix that it was called with.

    Matrices are compared by identity: they are immutable, and comparing or hashing two takes longer than deriving a table.
    """
    kept: list[tuple[Matrix, Table]] = []

    @wraps(derive)
    def derived(matrix: Matrix) -> Table:
        if not kept or kept[0][0] is not matrix:
            kept[:] = [(matrix, derive(matrix))]
        return kept[0][1]

    return derived
