"""Least change: nothing an earlier lock chose is given up that could stay, and what moved is told with its reason.

Searches take what is locked first, one key after the other; what they give up on the way they do not come back to. So each
choice that was given up is tried again beside all that was kept. What then has moved is a smallest set in this sense: no part
of it could have stayed, with the rest of the answer as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.grounds.choice import AskedFor, Move, NoLongerOffered, NothingHolds, NotInstallable, RuledOut
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.requirement import PACKAGE, TORCH, FileCandidate
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.universe import violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.choice import MoveReason
    from provisioner.request import Request
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.universe import Universe


def least_moved(universe: Universe, pins: dict[Key, Candidate]) -> dict[Key, Candidate]:
    """An answer in which nothing locked was given up that could stay; `pins` itself where that is so already.

    What the request asks to upgrade is as new as in `pins`. Where an index is out of reach, `pins` must do.
    """
    given_up = _given_up(universe, pins)
    if not given_up:
        return pins
    kept = [
        one for key, one in pins.items() if _locked(universe.problem.request, key) == one.label or _is_upgraded(universe, key)
    ]
    before = len(kept)
    search = CompleteSearch(universe)
    try:
        for candidate in given_up:
            if search.find(given=[*kept, candidate]) is not None:
                kept.append(candidate)
        found = search.best(given=kept) if len(kept) > before else None
    except UnavailableError:
        return pins
    finally:
        search.close()
    return pins if found is None or violations(universe, found) else found


def moves(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Move]:
    """What became of the versions of an earlier lock; nothing where the request asks to upgrade nothing by name."""
    request = universe.problem.request
    if not request.upgraded:
        return
    for key, candidate in pins.items():
        name = _name(key)
        if not name or key.scope not in {"", PACKAGE}:
            continue
        locked = _locked(request, key)
        if _is_upgraded(universe, key):
            earlier = request.upgraded.get(name, "")
            reason = _why_no_newer(universe, pins, candidate) if earlier == candidate.label else AskedFor()
            if earlier and reason is not None:
                yield Move(name=name, before=earlier, after=candidate.label, reason=reason)
        elif locked is not None and locked != candidate.label:
            reason = _why_not(universe, pins, key, locked)
            yield Move(name=name, before=locked, after=candidate.label, reason=reason)


def _given_up(universe: Universe, pins: Mapping[Key, Candidate]) -> list[Candidate]:
    """The locked choices that were wanted before those taken, and are not ruled out whatever else is chosen."""
    found = []
    direct = universe.packages.order if universe.packages else {}
    for key in sorted(pins, key=lambda key: (key.is_package, key not in direct, universe.problem.order.get(key, 0), key)):
        locked = _locked(universe.problem.request, key)
        if locked is None or locked == pins[key].label or _is_upgraded(universe, key):
            continue
        for candidate in universe.candidates(key):
            if candidate is pins[key]:
                break  # what the policy prefers stands before what is locked
            if candidate.label == locked and not universe.bounds.excludes(candidate) and not _is_out(candidate):
                found.append(candidate)
    return found


def _is_out(candidate: Candidate) -> bool:
    """Whether a version has no file for the target, or was withdrawn."""
    return candidate.has_no_file or candidate.is_withheld


def _name(key: Key) -> str:
    """The name of a key in a lock, "" for what a lock does not name on its own: extras, limits, the framework's wheel."""
    is_own = key != TORCH and "[" not in key.name and ":" not in key.name and not key.is_mutex
    return key.name if is_own else ""


def _locked(request: Request, key: Key) -> str | None:
    return request.preferred.get(_name(key)) if key.scope in {"", PACKAGE} else None


def _is_upgraded(universe: Universe, key: Key) -> bool:
    name = _name(key)
    return bool(name) and key.scope in {"", PACKAGE} and name in universe.problem.request.upgraded


def _why_not(universe: Universe, pins: Mapping[Key, Candidate], key: Key, label: str) -> MoveReason:
    """Return what rules out the locked version of something that moved; the first of several reasons."""
    locked = next((one for one in universe.candidates(key) if one.label == label), None)
    name = DISTRIBUTION_OF_COMPONENT.get(key.name, key.name)
    if locked is None:
        return NoLongerOffered(name=name, label=label, is_distribution=key.is_package)
    if isinstance(locked, FileCandidate) and _is_out(locked):
        return NotInstallable(name=name, label=label, problem=locked.release.why_not)
    for needed in _wanted(universe, pins):
        if needed.key == key and not universe.accepts(needed, locked):
            return RuledOut(ground=needed.ground)
    return _own_needs(universe, pins, locked) or NothingHolds(is_newer=False)


def _why_no_newer(universe: Universe, pins: Mapping[Key, Candidate], chosen: Candidate) -> MoveReason | None:
    """Return what keeps back something that was asked to move; None where there is nothing newer."""
    for better in universe.candidates(chosen.key):
        if better is chosen:
            break
        if universe.bounds.excludes(better) or _is_out(better):
            continue
        for needed in _wanted(universe, pins):
            if needed.key == chosen.key and not universe.accepts(needed, better):
                return RuledOut(ground=needed.ground)
        return _own_needs(universe, pins, better) or NothingHolds(is_newer=True)
    return None


def _own_needs(universe: Universe, pins: Mapping[Key, Candidate], candidate: Candidate) -> RuledOut | None:
    """Return the first requirement of a candidate that the answer does not meet."""
    for needed in universe.requirements(candidate):
        pinned = pins.get(needed.key)
        if pinned is not None and not universe.accepts(needed, pinned):
            return RuledOut(ground=needed.ground, has=pinned.label)
    return None


def _wanted(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Requirement]:
    """Everything an answer must meet, the spec's own first."""
    yield from universe.roots
    for candidate in pins.values():
        yield from universe.requirements(candidate)
