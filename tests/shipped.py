"""The shipped matrix, read once by each process that runs tests: as the fixture `matrix`, or here where no fixture reaches."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from provisioner.matrix.cache import cached_matrix

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix


@cache
def shipped() -> Matrix:
    """The shipped matrix; not to be asked for while modules are imported, when there is no cache of the tests' own yet."""
    return cached_matrix()
