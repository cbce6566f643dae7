"""Frameworks that packages hold back: a release the spec, the host and the matrix would allow, and a package refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import HeldBack
from provisioner.resolver.requirement import FileCandidate, Key, ReleaseCandidate
from provisioner.resolver.rules.devices import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.universe import Universe
    from provisioner.versions import Version


RUNTIMES = frozenset({"cuda", "rocm"})
"""What a build brings along that has needs of its own of a host: its driver."""


def held_back(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[HeldBack]:
    """One line for each framework of the stack that is older than it would be without one of the packages."""
    if universe.packages is None:
        return
    for name in FRAMEWORKS:
        chosen = pins.get(Key(name))
        if isinstance(chosen, ReleaseCandidate):
            yield from _of(universe, pins, chosen)


def _of(universe: Universe, pins: Mapping[Key, Candidate], chosen: ReleaseCandidate) -> Iterator[HeldBack]:
    key = chosen.key
    others = [one for one in universe.roots if one.key == key]
    by_packages: list[Requirement] = []
    for candidate in _named_first(universe, pins):
        wanted = [one for one in universe.requirements(candidate) if one.key == key]
        if not candidate.key.is_package:
            others.extend(wanted)
        elif wanted and not _may_be_newer(universe, pins, candidate):
            by_packages.extend(wanted)
    by_release: dict[Version, list[ReleaseCandidate]] = {}
    for one in universe.candidates(key):
        is_newer = isinstance(one, ReleaseCandidate) and one.release.version > chosen.release.version
        if isinstance(one, ReleaseCandidate) and is_newer and _would_do(universe, pins, one, others):
            by_release.setdefault(one.release.version, []).append(one)
    if not by_release:
        return
    newest = max(by_release)
    refusing = [one for one in by_packages if not any(one.allows(candidate) for candidate in by_release[newest])]
    if refusing:
        yield HeldBack(
            component=key.name,
            chosen=str(chosen.release.version),
            newest=str(newest),
            by=refusing[0].ground,
            more=len(refusing) - 1,
        )


def _named_first(universe: Universe, pins: Mapping[Key, Candidate]) -> list[Candidate]:
    """What was chosen, distributions that the spec names before those they bring along."""
    named = universe.packages.order if universe.packages is not None else {}
    return sorted(pins.values(), key=lambda one: named.get(one.key, len(named)))


def _may_be_newer(universe: Universe, pins: Mapping[Key, Candidate], one: Candidate) -> bool:
    """Whether a newer version of a distribution would suit all others: then it goes along with a framework, and holds none.

    A torchvision that nobody asks for by version is as old as the torch beside it.
    """
    newer = [
        other
        for other in universe.candidates(one.key)
        if isinstance(other, FileCandidate)
        and other.release.is_usable
        and not other.pep440.is_prerelease
        and other.pep440 > one.pep440
    ]
    if not newer:
        return False
    needs = (need for pin in pins.values() for need in universe.requirements(pin))
    said = [need for need in (*universe.roots, *needs) if need.key == one.key]
    return any(all(universe.accepts(need, other) for need in said) for other in newer)


def _would_do(universe: Universe, pins: Mapping[Key, Candidate], one: ReleaseCandidate, others: list[Requirement]) -> bool:
    """Whether a release is what the spec asks for and what the hosts run, as far as its row and that of its CUDA tell.

    What an index out of reach may have is no package's doing; that it was left out is said elsewhere.
    """
    if not all(universe.accepts(requirement, one) for requirement in others):
        return False
    build = one.build
    if universe.packages is not None and build is not None and build.index in universe.packages.variants.unreached:
        return False
    return _runs(universe, pins, one) and all(
        any(universe.accepts(need, runtime) and _runs(universe, pins, runtime) for runtime in universe.candidates(need.key))
        for need in universe.requirements(one)
        if need.key.component in RUNTIMES
    )


def _runs(universe: Universe, pins: Mapping[Key, Candidate], one: Candidate) -> bool:
    """Whether the hosts have what a candidate itself needs of them."""
    return all(
        universe.accepts(need, pins[need.key])
        for need in universe.requirements(one)
        if need.key in pins and not need.key.is_package and (need.key.scope or universe.problem.is_virtual(need.key.component))
    )
