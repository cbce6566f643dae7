"""Change as little of an earlier lock as possible: every locked version that can stay does; each change has its reason.

The searches try locked versions first, key by key, and do not return to a locked version that they gave up. So each locked
version that was given up is tried again together with all locked versions in the answer. The set of changes is then
irreducible: none of the versions given up could have stayed, with the rest of the answer unchanged.
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
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.instance import ProblemInstance


def with_least_change(instance: ProblemInstance, pins: dict[Key, Candidate]) -> dict[Key, Candidate]:
    """Return an answer in which every locked version that can stay does; `pins` itself when none was given up needlessly.

    A component or distribution that the request upgrades has the version that it has in `pins`. The locked version of another
    distribution than those that the spec names stays only beside what the named ones and the components have without it. When
    an index cannot be reached, `pins` is returned.
    """
    given_up = _given_up(instance, pins)
    if not given_up:
        return pins
    leading = [one for one in given_up if _leads(instance, one.key)]
    search, found = CompleteSearch(instance), pins
    try:
        for some in (leading, [one for one in given_up if one not in leading]):
            kept = [one for key, one in found.items() if _stays(instance, key, one, is_after_leading=some is not leading)]
            before = len(kept)
            for candidate in some:
                if search.find(given=[*kept, candidate]) is not None:
                    kept.append(candidate)
            better = search.best(given=kept) if len(kept) > before else None
            found = better if better is not None and not violations(instance, better) else found
    except UnavailableError:
        return pins
    finally:
        search.close()
    return found


def _leads(instance: ProblemInstance, key: Key) -> bool:
    """Return whether a key is decided before the other distributions: a component, or a distribution that the spec names."""
    return not key.is_package or key in instance.named


def _stays(instance: ProblemInstance, key: Key, candidate: Candidate, *, is_after_leading: bool) -> bool:
    """Return whether a version of an answer stays while locked versions are tried: it is locked, upgraded, or leads."""
    is_locked = _locked(instance.problem.request, key) == candidate.label
    return is_locked or _is_upgraded(instance, key) or (is_after_leading and _leads(instance, key))


def moves(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Move]:
    """Yield the changes of locked versions with their reasons; nothing when the request names nothing to upgrade.

    An upgrade that did not change a version is yielded, too, if a newer version exists that could be installed.
    """
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
    """Return the locked versions that are not in `pins` although they are preferred to the chosen versions.

    Left out: versions that a constraint or hash excludes, versions that cannot be installed, and keys that the request
    upgrades.
    """
    found = []
    for key in sorted(
        pins, key=lambda key: (key.is_package, key not in instance.named, instance.problem.order.get(key, 0), key)
    ):
        locked = _locked(instance.problem.request, key)
        if locked is None or locked == pins[key].label or _is_upgraded(instance, key):
            continue
        for candidate in instance.candidates(key):
            if candidate is pins[key]:
                break  # the policy wants the chosen version more than the locked one
            if candidate.label == locked and not instance.bounds.excludes(candidate) and not _is_out(candidate):
                found.append(candidate)
    return found


def _is_out(candidate: Candidate) -> bool:
    """Return whether a version has no file for the target, or is withheld: yanked, or a pre-release beside final versions."""
    return candidate.has_no_file or candidate.is_withheld


def _name(key: Key) -> str:
    """Return the name under which a lock lists a key.

    "" for a key that a lock does not list: a distribution with extras, a mutex, a device, target or slot of a component
    (`gpu:9.0`), and the wheel of PyTorch.
    """
    is_own = key != TORCH and "[" not in key.name and ":" not in key.name and not key.is_mutex
    return key.name if is_own else ""


def _locked(request: Request, key: Key) -> str | None:
    return request.preferred.get(_name(key)) if key.scope in {"", PACKAGE} else None


def _is_upgraded(instance: ProblemInstance, key: Key) -> bool:
    name = _name(key)
    return bool(name) and key.scope in {"", PACKAGE} and name in instance.problem.request.upgraded


def _why_not(instance: ProblemInstance, pins: Mapping[Key, Candidate], key: Key, label: str) -> MoveReason:
    """Return why a locked version, `label` of `key`, is not in the answer: the first reason found."""
    locked = next((one for one in instance.candidates(key) if one.label == label), None)
    name = DISTRIBUTION_OF_COMPONENT.get(key.name, key.name)
    if locked is None:
        return NoLongerOffered(name=name, label=label, is_distribution=key.is_package)
    if isinstance(locked, FileCandidate) and _is_out(locked):
        return NotInstallable(name=name, label=label, problem=locked.release.why_not)
    for needed in instance.requirements_on(pins):
        if needed.key == key and not instance.accepts(needed, locked):
            return RuledOut(ground=needed.ground)
    return unmet_need(instance, pins, locked) or NothingHolds(is_newer=False)


def _why_no_newer(instance: ProblemInstance, pins: Mapping[Key, Candidate], chosen: Candidate) -> MoveReason | None:
    """Return why an upgrade did not change the version; None when no newer version can be installed."""
    for better in instance.candidates(chosen.key):
        if better is chosen:
            break
        if instance.bounds.excludes(better) or _is_out(better):
            continue
        for needed in instance.requirements_on(pins):
            if needed.key == chosen.key and not instance.accepts(needed, better):
                return RuledOut(ground=needed.ground)
        return unmet_need(instance, pins, better) or NothingHolds(is_newer=True)
    return None


def unmet_need(instance: ProblemInstance, pins: Mapping[Key, Candidate], candidate: Candidate) -> RuledOut | None:
    """Return the first requirement of a candidate that a chosen version does not meet; None when all are met."""
    for needed in instance.requirements(candidate):
        pinned = pins.get(needed.key)
        if pinned is not None and not instance.accepts(needed, pinned):
            return RuledOut(ground=needed.ground, has=pinned.label)
    return None
