"""Frameworks that packages hold back: spec, hosts and matrix allow a newer release, but a package's requirement does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import RUNTIMES
from provisioner.components import FRAMEWORKS
from provisioner.grounds.choice import HeldBack
from provisioner.resolver.requirement import FileCandidate, Key, ReleaseCandidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.instance import ProblemInstance
    from provisioner.versions import Version


def held_back(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[HeldBack]:
    """Yield each framework of the stack that is older than it would be without the packages.

    Nothing when there are no packages.
    """
    if instance.finder is None:
        return
    for name in FRAMEWORKS:
        chosen = pins.get(Key(name))
        if isinstance(chosen, ReleaseCandidate):
            yield from _of(instance, pins, chosen)


def _of(instance: ProblemInstance, pins: Mapping[Key, Candidate], chosen: ReleaseCandidate) -> Iterator[HeldBack]:
    key = chosen.key
    others = [one for one in instance.roots if one.key == key]
    by_packages: list[Requirement] = []
    for candidate in sorted(pins.values(), key=lambda one: instance.named.get(one.key, len(instance.named))):
        wanted = [one for one in instance.requirements(candidate) if one.key == key]
        if not candidate.key.is_package:
            others.extend(wanted)
        elif wanted and not _may_be_newer(instance, pins, candidate):
            by_packages.extend(wanted)
    by_release: dict[Version, list[ReleaseCandidate]] = {}
    for one in instance.candidates(key):
        is_newer = isinstance(one, ReleaseCandidate) and one.release.version > chosen.release.version
        if isinstance(one, ReleaseCandidate) and is_newer and _would_do(instance, pins, one, others):
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


def _may_be_newer(instance: ProblemInstance, pins: Mapping[Key, Candidate], one: Candidate) -> bool:
    """Return whether the other choices allow a newer version of a distribution, so that it does not hold the framework back.

    For example, a torchvision without a version in the spec is only as old as the torch it was chosen for.
    """
    newer = [
        other
        for other in instance.candidates(one.key)
        if isinstance(other, FileCandidate)
        and other.release.is_usable
        and not other.pep440.is_prerelease
        and other.pep440 > one.pep440
    ]
    if not newer:
        return False
    needs = (need for pin in pins.values() for need in instance.requirements(pin))
    on_it = [need for need in (*instance.roots, *needs) if need.key == one.key]
    return any(all(instance.accepts(need, other) for need in on_it) for other in newer)


def _would_do(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], one: ReleaseCandidate, others: list[Requirement]
) -> bool:
    """Return whether the requirements `others` and the hosts allow the release `one`, with a CUDA or ROCm that it requires.

    False for a build on an index that cannot be reached: no package holds that build back, and a warning names the index.
    """
    if not all(instance.accepts(requirement, one) for requirement in others):
        return False
    build = one.build
    if instance.finder is not None and build is not None and build.index in instance.finder.variant_indexes.unreached:
        return False
    return _runs(instance, pins, one) and all(
        any(instance.accepts(need, runtime) and _runs(instance, pins, runtime) for runtime in instance.candidates(need.key))
        for need in instance.requirements(one)
        if need.key.component in RUNTIMES
    )


def _runs(instance: ProblemInstance, pins: Mapping[Key, Candidate], one: Candidate) -> bool:
    """Return whether the hosts meet the requirements of a candidate on the components that hosts provide."""
    return all(
        instance.accepts(need, pins[need.key])
        for need in instance.requirements(one)
        if need.key in pins and not need.key.is_package and (need.key.scope or instance.problem.is_virtual(need.key.component))
    )
