"""Frameworks that packages hold back: a release the spec, the host and the matrix would allow, and a package refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.devices import FRAMEWORKS
from provisioner.solve.requirement import Key
from provisioner.solve.stack import HeldBack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.solve.requirement import Candidate, Requirement
    from provisioner.solve.universe import Universe
    from provisioner.versions import Version


def held_back(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[HeldBack]:
    """One line for each framework of the stack that is older than it would be without one of the packages."""
    if universe.packages is None:
        return
    for name in FRAMEWORKS:
        chosen = pins.get(Key(name))
        if chosen is not None:
            yield from _of(universe, pins, chosen)


def _of(universe: Universe, pins: Mapping[Key, Candidate], chosen: Candidate) -> Iterator[HeldBack]:
    key = chosen.key
    others = [one for one in universe.roots if one.key == key]
    by_packages: list[Requirement] = []
    for candidate in _named_first(universe, pins):
        wanted = [one for one in universe.requirements(candidate) if one.key == key]
        (by_packages if candidate.key.is_package else others).extend(wanted)
    by_release: dict[Version, list[Candidate]] = {}
    for one in universe.candidates(key):
        if _release(one) > _release(chosen) and _would_do(universe, pins, one, others):
            by_release.setdefault(_release(one), []).append(one)
    if not by_release:
        return
    newest = max(by_release)
    refusing = [one for one in by_packages if not any(one.allows(candidate) for candidate in by_release[newest])]
    if refusing:
        origin = refusing[0].origin
        before, after = chosen.label.partition("+")[0], by_release[newest][0].label.partition("+")[0]
        also = f", and {len(refusing) - 1} more like it" if len(refusing) > 1 else ""
        text = f"{key.name} {before} rather than {after}: {origin.text}{also}"
        yield HeldBack(component=key.name, chosen=before, newest=after, text=text, where=origin.where)


def _named_first(universe: Universe, pins: Mapping[Key, Candidate]) -> list[Candidate]:
    """What was chosen, distributions that the spec names before those they bring along."""
    named = universe.packages.order if universe.packages is not None else {}
    return sorted(pins.values(), key=lambda one: named.get(one.key, len(named)))


def _would_do(universe: Universe, pins: Mapping[Key, Candidate], one: Candidate, others: list[Requirement]) -> bool:
    """Whether a release is what the spec asks for and what the hosts run, as far as its own row tells."""
    if not all(universe.accepts(requirement, one) for requirement in others):
        return False
    return all(
        universe.accepts(need, pins[need.key])
        for need in universe.requirements(one)
        if need.key in pins and not need.key.is_package and (need.key.world or universe.problem.is_virtual(need.key.component))
    )


def _release(candidate: Candidate) -> Version:
    version: Version = candidate.subject[0].version
    return version
