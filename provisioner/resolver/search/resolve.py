"""Decide one problem instance: resolvelib searches, `violations` verifies its answer, and a SAT search decides if it fails.

An assignment, or `pins`, is a chosen candidate for each key. The SAT search is `CompleteSearch`.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.requirement import SHARED_FILE, TORCH
from provisioner.resolver.rules.policy import avoided
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import violations
from provisioner.resolver.search.provider import LOG, PACKAGE_ROUNDS, SearchReporter, reachable, search

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.components import ComponentSearch
    from provisioner.resolver.search.instance import ProblemInstance


def decide(instance: ProblemInstance) -> dict[Key, Candidate] | None:
    """Return the most preferred valid assignment, or None when it is proved that there is none.

    Raises `UnavailableError` when an index that the decision needs cannot be reached, or when the search reads too many
    versions.
    """
    found = pins_or_proof(instance)
    if isinstance(found, CompleteSearch):
        found.close()
        return None
    return found


def pins_or_proof(
    instance: ProblemInstance, components: ComponentSearch | None = None
) -> dict[Key, Candidate] | CompleteSearch:
    """Return the most preferred valid assignment, or the search that proved that none exists, which the caller must close.

    `components` is the search of the instance's components, if there is one already.

    resolvelib 1.2.1 was measured to miss solutions and to return invalid ones on problems with cycles (its issue 206). So every
    assignment that it returns is verified, and if it finds none, the complete search decides.

    When resolvelib backtracks, it skips choices that would have worked (measured: 1 of 16,000 small problems without cycles got
    a valid answer that is not the most preferred one). So the complete search solves a system stack again if it was found with
    backtracking. For an answer with packages the complete search would read much more of an index, so it solves that again only
    if the answer has a version that the policy avoids; otherwise the distributions are moved to newer versions where possible.

    Raises `UnavailableError` when an index that the decision needs cannot be reached, or when the search reads too many
    versions.
    """
    reporter = SearchReporter(stops_on_conflict=instance.finder is None)
    # Without any file the problem has no answer; resolvelib would decide other distributions before it finds that out.
    pins = None if _lacks_a_file(instance) else search(instance, reporter, components)
    is_valid = pins is not None and not violations(instance, pins)
    _tell(instance, reporter, is_found=pins is not None, is_valid=is_valid)
    if pins is not None and is_valid and not reporter.has_backtracked:
        return pins
    if pins is not None and is_valid and instance.finder is not None and not any(avoided(instance.problem.request, pins)):
        return take_newer_versions(instance, pins)
    complete = CompleteSearch(instance)
    try:
        decided = complete.best()
    except UnavailableError:
        complete.close()
        if pins is None or not is_valid:
            pins = _with_conflicts_first(instance, components)
        if pins is None:
            raise
        return pins
    except BaseException:
        complete.close()
        raise
    if decided is None:
        LOG.log(_level(instance), "the complete search proves that there is no answer")
        return complete
    LOG.log(_level(instance), "the complete search has the answer")
    complete.close()
    assert not violations(instance, decided), "the complete search returned an invalid assignment"
    return decided


def _level(instance: ProblemInstance) -> int:
    """Return the level at which the decision of an instance is logged: searches of components alone are many, and small."""
    return logging.INFO if instance.finder is not None else logging.DEBUG


def _tell(instance: ProblemInstance, reporter: SearchReporter, *, is_found: bool, is_valid: bool) -> None:
    """Log how the search of resolvelib ended."""
    of = "components and packages" if instance.finder is not None else "components"
    end = "an answer" if is_valid else "an answer that violates a requirement" if is_found else "no answer"
    back = ", after going back" if reporter.has_backtracked else ""
    LOG.log(_level(instance), "%s: %s in %d rounds%s", of, end, reporter.rounds, back)


def _with_conflicts_first(instance: ProblemInstance, components: ComponentSearch | None) -> dict[Key, Candidate] | None:
    """Return a valid answer from a second run of resolvelib, which decides the keys with the most conflicts first.

    None when that run finds no valid answer either, and for a system stack, for which there is no second run.
    """
    if instance.finder is None:
        return None
    # The last resort: nothing decides the problem after it, so only its rounds are limited.
    reporter = SearchReporter(most_conflicts=PACKAGE_ROUNDS)
    pins = search(instance, reporter, components, decides_conflicts_first=True)
    return take_newer_versions(instance, pins) if pins is not None and not violations(instance, pins) else None


def _lacks_a_file(instance: ProblemInstance) -> bool:
    """Return whether a root requirement is on a distribution of which no allowed version has a file that can be used.

    Of wheels nothing is read; of source distributions, whether they can be used, until one can.
    """
    roots = (root for root in instance.roots if root.key.is_package)
    return any(all(not root.allows(one) or _is_out(instance, one) for one in instance.candidates(root.key)) for root in roots)


def _is_out(instance: ProblemInstance, candidate: Candidate) -> bool:
    if candidate.is_source:
        instance.requirements(candidate)
    return candidate.has_no_file or instance.is_known_unusable(candidate)


# -- newer versions after backtracking -----------------------------------------------------------------------------------------


def take_newer_versions(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    """Return an answer in which no single distribution could be at a more preferred version with the rest unchanged.

    If an engine takes a choice back, it may leave in the answer a version that only that choice required: valid, but older than
    necessary. Each step changes one distribution and requires nothing new of the others, so no distribution gets a less
    preferred version. A version whose metadata cannot be read is not tried.
    """
    current = dict(pins)
    while (better := next(_better(instance, current), None)) is not None:
        current = reachable(instance, better)
    return current


def _better(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[dict[Key, Candidate]]:
    """Yield valid answers in which one distribution, together with its extras, is at a more preferred version."""
    required = _required_by_key(instance, pins)
    for keys in _distributions(pins).values():
        # An extra requires its own distribution at the same version, whichever version is tried.
        outside = [one for key in keys for one, parent in required.get(key, ()) if parent is None or parent not in keys]
        others = {key: pin for key, pin in pins.items() if key not in keys}
        for candidates in _more_wanted(instance, pins, keys):
            if (changed := _changed(instance, candidates, others=others, outside=outside)) is not None:
                yield changed


def _changed(
    instance: ProblemInstance,
    candidates: Mapping[Key, Candidate],
    *,
    others: Mapping[Key, Candidate],
    outside: Sequence[Requirement],
) -> dict[Key, Candidate] | None:
    """Return the answer with a distribution at another version; None when a requirement is not met or metadata cannot be read.

    `candidates` are that version, plain and with each extra; `others` are the choices of all other keys; `outside` are the
    requirements on the distribution from the spec and from `others`. The keys of files that only this distribution writes are
    added to the answer.
    """
    # Checked first because it costs nothing: the requirements of a version have to be read from an index.
    if not all(instance.accepts(one, candidates[one.key]) for one in outside):
        return None
    known = (one for key in {one.key for one in outside} for one in instance.known_requirements(candidates[key]))
    if not all(instance.accepts(one, others[one.key]) for one in known if one.key in others):
        return None
    with suppress(UnavailableError):
        chosen = _still_required(instance, candidates, outside)
        found = {**others, **chosen}
        for one in (one for candidate in chosen.values() for one in instance.requirements(candidate)):
            if one.key.component == SHARED_FILE and one.key not in found:
                found[one.key] = next(place for place in instance.candidates(one.key) if instance.accepts(one, place))
            if one.key not in found or not instance.accepts(one, found[one.key]):
                return None
        return found
    return None


def _still_required(
    instance: ProblemInstance, candidates: Mapping[Key, Candidate], outside: Sequence[Requirement]
) -> dict[Key, Candidate]:
    """Return the candidates of a distribution and its extras that are required by `outside` or by one another."""
    found: dict[Key, Candidate] = {}
    waiting = [one.key for one in outside]
    while waiting:
        key = waiting.pop()
        if key in candidates and key not in found:
            found[key] = candidates[key]
            waiting.extend(one.key for one in instance.requirements(candidates[key]))
    return found


def _required_by_key(
    instance: ProblemInstance, pins: Mapping[Key, Candidate]
) -> dict[Key, list[tuple[Requirement, Key | None]]]:
    """Return the requirements on each key, each with the key of the candidate that has it; None for a root requirement."""
    found: dict[Key, list[tuple[Requirement, Key | None]]] = {}
    for root in instance.roots:
        found.setdefault(root.key, []).append((root, None))
    for key, pin in pins.items():
        for requirement in instance.requirements(pin):
            found.setdefault(requirement.key, []).append((requirement, key))
    return found


def _distributions(pins: Mapping[Key, Candidate]) -> dict[str, list[Key]]:
    """Return the keys of each distribution by name, plain and with extras.

    The wheel of PyTorch is left out: its version follows from the PyTorch build.
    """
    found: dict[str, list[Key]] = {}
    for key in sorted(pins):
        if key.is_package and key != TORCH:
            found.setdefault(key.distribution, []).append(key)
    return found


def _more_wanted(instance: ProblemInstance, pins: Mapping[Key, Candidate], keys: list[Key]) -> Iterator[dict[Key, Candidate]]:
    """Yield the versions of a distribution that are preferred to the chosen one, most preferred first.

    `keys` are the distribution and its extras; each result maps every one of these keys to its candidate of the version.
    """
    listed = instance.candidates(keys[0])
    position = listed.index(pins[keys[0]])
    with_extras = [{one.label: one for one in instance.candidates(key)} for key in keys[1:]] if position else []
    for candidate in listed[:position]:
        chosen = [candidate, *(table[candidate.label] for table in with_extras if candidate.label in table)]
        if len(chosen) == len(keys):
            yield dict(zip(keys, chosen, strict=True))
