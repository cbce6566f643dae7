"""After a search that went back: versions that could be newer, everything else being as it is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.requirement import SHARED_FILE, TORCH
from provisioner.resolver.search.provider import connected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.universe import Universe


def as_new_as_can_be(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    """The answer with every distribution at the most wanted version that all others allow and that asks nothing new of them.

    An engine that takes a choice back may keep what only that choice asked for: a version that fits, and is old for no reason.
    Each step leaves everything else alone, so no answer gets worse. A version whose metadata is out of reach is not tried.
    """
    current = dict(pins)
    while (better := next(_better(universe, current), None)) is not None:
        current = connected(universe, better)
    return current


def _better(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[dict[Key, Candidate]]:
    """Answers in which one distribution, with its extras, is at a more wanted version."""
    asked = _asked(universe, pins)
    for keys in _distributions(pins).values():
        # Requirements on it from within, of an extra on its distribution, are those of the version that is tried.
        outside = [one for key in keys for one, parent in asked.get(key, ()) if parent is None or parent not in keys]
        others = {key: pin for key, pin in pins.items() if key not in keys}
        for candidates in _preferred(universe, pins, keys):
            if (moved := _moved(universe, candidates, others=others, outside=outside)) is not None:
                yield moved


def _moved(
    universe: Universe, candidates: Mapping[Key, Candidate], *, others: Mapping[Key, Candidate], outside: Sequence[Requirement]
) -> dict[Key, Candidate] | None:
    """All others with a distribution at another version, which takes the files that nobody else writes; None where it fails."""
    # Asked first, for it costs nothing: what a version requires has to be read of an index.
    if not all(universe.accepts(one, candidates[one.key]) for one in outside):
        return None
    with suppress(UnavailableError):
        left = _still_asked(universe, candidates, outside)
        found = {**others, **left}
        for one in (one for candidate in left.values() for one in universe.requirements(candidate)):
            if one.key.component == SHARED_FILE and one.key not in found:
                found[one.key] = next(place for place in universe.candidates(one.key) if universe.accepts(one, place))
            if one.key not in found or not universe.accepts(one, found[one.key]):
                return None
        return found
    return None


def _still_asked(
    universe: Universe, candidates: Mapping[Key, Candidate], outside: Sequence[Requirement]
) -> dict[Key, Candidate]:
    """Of a distribution and its extras those that others ask for, and those that these ask for at the version that is tried."""
    found: dict[Key, Candidate] = {}
    waiting = [one.key for one in outside]
    while waiting:
        key = waiting.pop()
        if key in candidates and key not in found:
            found[key] = candidates[key]
            waiting.extend(one.key for one in universe.requirements(candidates[key]))
    return found


def _asked(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[Key, list[tuple[Requirement, Key | None]]]:
    """What is required of each key, and by which."""
    found: dict[Key, list[tuple[Requirement, Key | None]]] = {}
    for root in universe.roots:
        found.setdefault(root.key, []).append((root, None))
    for key, pin in pins.items():
        for requirement in universe.requirements(pin):
            found.setdefault(requirement.key, []).append((requirement, key))
    return found


def _distributions(pins: Mapping[Key, Candidate]) -> dict[str, list[Key]]:
    """The keys of each distribution, itself and with extras; the framework's wheel follows its build."""
    found: dict[str, list[Key]] = {}
    for key in sorted(pins):
        if key.is_package and key != TORCH:
            found.setdefault(key.name.partition("[")[0], []).append(key)
    return found


def _preferred(universe: Universe, pins: Mapping[Key, Candidate], keys: list[Key]) -> Iterator[dict[Key, Candidate]]:
    """The versions of one distribution that are wanted more than the chosen one, most wanted first."""
    listed = universe.candidates(keys[0])
    position = listed.index(pins[keys[0]])
    with_extras = [{one.label: one for one in universe.candidates(key)} for key in keys[1:]] if position else []
    for candidate in listed[:position]:
        chosen = [candidate, *(table[candidate.label] for table in with_extras if candidate.label in table)]
        if len(chosen) == len(keys):
            yield dict(zip(keys, chosen, strict=True))
