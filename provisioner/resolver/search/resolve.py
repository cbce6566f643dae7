"""Decide one universe: resolvelib searches, a pure check verifies, and the complete search has the last word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.rules.policy import avoided
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.newer import as_new_as_can_be
from provisioner.resolver.search.provider import Course, search
from provisioner.resolver.search.universe import violations

if TYPE_CHECKING:
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.universe import Universe


def decide(universe: Universe) -> dict[Key, Candidate] | None:
    """Return the most wanted valid assignment, or None when there is provably none.

    Raises `UnavailableError` when an index that the decision needs is out of reach.
    """
    found = pins_or_refutation(universe)
    if isinstance(found, CompleteSearch):
        found.close()
        return None
    return found


def pins_or_refutation(universe: Universe) -> dict[Key, Candidate] | CompleteSearch:
    """Return the most wanted valid assignment, or the search that proved that there is none, for its caller to close.

    resolvelib 1.2.1 was measured to deny solutions that exist and to return invalid ones on problems with cycles
    (its issue 206), so its "yes" is checked against every requirement and its "no" is only a reason to look harder.
    When it goes back it jumps over choices that would have worked (measured: 1 of 16,000 small problems without cycles got a
    valid answer that is not the most wanted one), so a system stack found that way is decided again; with packages it stands
    unless something in it is to be avoided, for the complete search would read much more of an index.
    Raises `UnavailableError` when an index that the decision needs is out of reach.
    """
    course = Course(never_goes_back=universe.packages is None)
    # What has no file at all is a reason to stop before anything else is tried: resolvelib comes to it in the user's order.
    pins = None if _lacks_a_file(universe) else search(universe, course)
    is_valid = pins is not None and not violations(universe, pins)
    if pins is not None and is_valid and not course.has_gone_back:
        return pins
    if pins is not None and is_valid and _may_stand(universe, pins):
        return as_new_as_can_be(universe, pins)
    complete = CompleteSearch(universe)
    try:
        decided = complete.best()
    except UnavailableError:
        complete.close()
        if pins is None or not is_valid:
            pins = _found_in_another_order(universe)
        if pins is None:
            raise
        return pins
    except BaseException:
        complete.close()
        raise
    if decided is None:
        return complete
    complete.close()
    assert not violations(universe, decided), "the complete search returned an invalid assignment"
    return decided


def _found_in_another_order(universe: Universe) -> dict[Key, Candidate] | None:
    """A valid answer where neither search came to an end, by deciding first what is in most conflicts; None without one."""
    pins = search(universe, is_in_the_way_first=True) if universe.packages is not None else None
    return as_new_as_can_be(universe, pins) if pins is not None and not violations(universe, pins) else None


def _lacks_a_file(universe: Universe) -> bool:
    """Whether nothing can be installed of a distribution that is required from the start."""
    roots = (root for root in universe.roots if root.key.is_package)
    return any(all(one.has_no_file or not root.allows(one) for one in universe.candidates(root.key)) for root in roots)


def _may_stand(universe: Universe, pins: dict[Key, Candidate]) -> bool:
    """Whether a valid answer that may not be the most wanted one will do."""
    return universe.packages is not None and not any(avoided(universe.problem.request, pins))
