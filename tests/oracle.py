"""Brute force, independent of the solver: every combination is tried, every need of every release is checked.

It reads the matrix's nouns and compares versions; nothing of `provisioner.solve` is used.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import Matrix
    from provisioner.versions import Range, Version

Assignment = dict[str, "Version"]


def stacks(matrix: Matrix, requires: Mapping[str, Range]) -> Iterator[Assignment]:
    """Every valid choice of one release for every component, newest first in the declared order."""
    domains = [sorted((one.version for one in matrix.components[name].releases), reverse=True) for name in matrix.order]
    for choice in product(*domains):
        assignment = dict(zip(matrix.order, choice, strict=True))
        if holds(matrix, requires, assignment):
            yield assignment


def holds(matrix: Matrix, requires: Mapping[str, Range], assignment: Assignment) -> bool:
    """Whether every request and every need and rule of every chosen release is met."""
    if not all(wanted.allows(assignment[name]) for name, wanted in requires.items()):
        return False
    for name, version in assignment.items():
        chosen = next(one for one in matrix.components[name].releases if one.version == version)
        if not all(need.allows(assignment[need.component]) for need in chosen.needs):
            return False
    return all(
        need.allows(assignment[need.component])
        for rule in matrix.rules
        if rule.when.allows(assignment[rule.when.component])
        for need in rule.needs
    )
