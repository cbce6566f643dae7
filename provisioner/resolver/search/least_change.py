"""Least change of an earlier lock: no locked version is given up that could stay, and each that moved has its reason.

The searches try locked versions first, key by key, and do not return to those they gave up. So each locked version that was
given up is tried again beside all that were kept. The set of moved versions is then irreducible: none of them could have
stayed, with the rest of the answer as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.grounds.choice import AskedFor, Move, NoLongerOffered, NothingHolds, NotInstallable, RuledOut
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.requirement import PACKAGE, TORCH, FileCandidate
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.choice import MoveReason
    from provisioner.request import Request
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance


def with_least_change(instance: ProblemInstance, pins: dict[Key, Candidate]) -> dict[Key, Candidate]:
    """Return an answer in which no locked version was given up that could stay; `pins` itself where none was.

    What the request upgrades is as new as in `pins`. Where an index is out of reach, `pins` is returned.
    """
    given_up = _given_up(instance, pins)
    if not given_up:
        return pins
    kept = [
        one for key, one in pins.items() if _locked(instance.problem.request, key) == one.label or _is_upgraded(instance, key)
    ]
    before = len(kept)
    search = CompleteSearch(instance)
    try:
        for candidate in given_up:
            if search.find(given=[*kept, candidate]) is not None:
                kept.append(candidate)
        found = search.best(given=kept) if len(kept) > before else None
    except UnavailableError:
        return pins
    finally:
        search.close()
    return pins if found is None or violations(instance, found) else found


def moves(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Move]:
    """Yield the changes of locked versions with their reasons; nothing where the request upgrades nothing by name."""
    request = instance.problem.request
    if not request.upgraded:
        return
    for key, candidate in pins.items():
        name = _name(key)
        if not name or key.scope not in {"", PACKAGE}:
            continue
        locked = _locked(request, key)
        if _is_upgraded(instance, key):
            earlier = request.upgraded.get(name, "")
            reason = _why_no_newer(instance, pins, candidate) if earlier == candidate.label else AskedFor()
            if earlier and reason is not None:
                yield Move(name=name, before=earlier, after=candidate.label, reason=reason)
        elif locked is not None and locked != candidate.label:
            reason = _why_not(instance, pins, key, locked)
            yield Move(name=name, before=locked, after=candidate.label, reason=reason)


def _given_up(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> list[Candidate]:
    """Return the locked versions that are wanted more than the chosen ones and that no bound excludes."""
    found = []
    direct = instance.finder.order if instance.finder else {}
    for key in sorted(pins, key=lambda key: (key.is_package, key not in direct, instance.problem.order.get(key, 0), key)):
        locked = _locked(instance.problem.request, key)
        if locked is None or locked == pins[key].label or _is_upgraded(instance, key):
            continue
        for candidate in instance.candidates(key):
            if candidate is pins[key]:
                break  # what the policy prefers stands before what is locked
            if candidate.label == locked and not instance.bounds.excludes(candidate) and not _is_out(candidate):
                found.append(candidate)
    return found


def _is_out(candidate: Candidate) -> bool:
    """Whether a version has no file for the target, or is yanked."""
    return candidate.has_no_file or candidate.is_withheld


def _name(key: Key) -> str:
    """Return the name of a key in a lock; "" for extras, mutexes and the framework's wheel, which a lock does not name."""
    is_own = key != TORCH and "[" not in key.name and ":" not in key.name and not key.is_mutex
    return key.name if is_own else ""


def _locked(request: Request, key: Key) -> str | None:
    return request.preferred.get(_name(key)) if key.scope in {"", PACKAGE} else None


def _is_upgraded(instance: ProblemInstance, key: Key) -> bool:
    name = _name(key)
    return bool(name) and key.scope in {"", PACKAGE} and name in instance.problem.request.upgraded


def _why_not(instance: ProblemInstance, pins: Mapping[Key, Candidate], key: Key, label: str) -> MoveReason:
    """Return why a locked version is not in the answer; the first of several reasons."""
    locked = next((one for one in instance.candidates(key) if one.label == label), None)
    name = DISTRIBUTION_OF_COMPONENT.get(key.name, key.name)
    if locked is None:
        return NoLongerOffered(name=name, label=label, is_distribution=key.is_package)
    if isinstance(locked, FileCandidate) and _is_out(locked):
        return NotInstallable(name=name, label=label, problem=locked.release.why_not)
    for needed in _wanted(instance, pins):
        if needed.key == key and not instance.accepts(needed, locked):
            return RuledOut(ground=needed.ground)
    return _own_needs(instance, pins, locked) or NothingHolds(is_newer=False)


def _why_no_newer(instance: ProblemInstance, pins: Mapping[Key, Candidate], chosen: Candidate) -> MoveReason | None:
    """Return why an upgrade kept its version; None where no version is newer."""
    for better in instance.candidates(chosen.key):
        if better is chosen:
            break
        if instance.bounds.excludes(better) or _is_out(better):
            continue
        for needed in _wanted(instance, pins):
            if needed.key == chosen.key and not instance.accepts(needed, better):
                return RuledOut(ground=needed.ground)
        return _own_needs(instance, pins, better) or NothingHolds(is_newer=True)
    return None


def _own_needs(instance: ProblemInstance, pins: Mapping[Key, Candidate], candidate: Candidate) -> RuledOut | None:
    """Return the first requirement of a candidate that the answer does not meet."""
    for needed in instance.requirements(candidate):
        pinned = pins.get(needed.key)
        if pinned is not None and not instance.accepts(needed, pinned):
            return RuledOut(ground=needed.ground, has=pinned.label)
    return None


def _wanted(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Requirement]:
    """Yield every requirement that an answer must meet, root requirements first."""
    yield from instance.roots
    for candidate in pins.values():
        yield from instance.requirements(candidate)
