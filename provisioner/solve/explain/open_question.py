"""Why an index that cannot be reached matters, in words: what stands against every answer without what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.explain.conflict import described
from provisioner.solve.explain.words import conflict_lines

if TYPE_CHECKING:
    from provisioner.errors import UnavailableError
    from provisioner.solve.search.complete import CompleteSearch
    from provisioner.solve.search.universe import Universe


def open_question(error: UnavailableError, universe: Universe, search: CompleteSearch) -> UnavailableError:
    """The same error, of an index that was left out of a search, with the conflict that was found without it."""
    lines = conflict_lines(described(universe, search, search.minimal()))
    error.causes = (*error.causes, "without what it has there is no answer:", *(f"  {line}" for line in lines))
    return error
