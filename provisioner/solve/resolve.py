"""Decide one universe: resolvelib searches, a pure check verifies, and the complete search has the last word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.complete import CompleteSearch
from provisioner.solve.provider import search
from provisioner.solve.universe import violations

if TYPE_CHECKING:
    from provisioner.solve.requirement import Candidate, Key
    from provisioner.solve.universe import Universe


def decide(universe: Universe) -> dict[Key, Candidate] | None:
    """Return the most wanted valid assignment, or None when there is provably none.

    resolvelib 1.2.1 was measured to deny solutions that exist and to return invalid ones on problems with cycles
    (its issue 206), so its "yes" is checked against every requirement and its "no" is only a reason to look harder.
    Raises `UnavailableError` when an index that the decision needs is out of reach.
    """
    pins = search(universe)
    if pins is not None and not violations(universe, pins):
        return pins
    complete = CompleteSearch(universe)
    try:
        decided = complete.best()
    finally:
        complete.close()
    assert decided is None or not violations(universe, decided), "the complete search returned an invalid assignment"
    return decided
