"""Requests and facts in a conflict that a person could change, and the values to change them to, nearest first.

A group is a set of requirements that a person could change together, such as a line of the spec or a fact of a host.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.version import Version as PackageVersion

from provisioner.accelerators import ON_GPUS, RUNTIMES
from provisioner.components import COMPONENTS, FRAMEWORKS
from provisioner.grounds.requirement import (
    CompilesOnlyFor,
    Constrains,
    FactOf,
    GivesHashes,
    NeedsToBeUsed,
    Overrides,
    RequiresComponent,
    RequiresPython,
)
from provisioner.host.facts import following, stated
from provisioner.request import may_compute_on_nvidia
from provisioner.resolver.choices.variants import variants_of
from provisioner.resolver.requirement import Key, Matching, ReleaseCandidate, Within, build_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.host.model import Host
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.complete import CompleteSearch
    from provisioner.resolver.search.instance import ProblemInstance

FIXED = frozenset({"platform", "accelerator", "image", "policy"})
"""Components that are not relaxed directly: the target, which no fix changes, and components that are edited in the request."""

OLDER_FIRST = frozenset({"kernel"})
"""Facts of which older values are tried before newer ones: releases are documented up to some version of the kernel."""

Numbers = tuple[int, ...]


def for_another_accelerator(instance: ProblemInstance, requirement: Requirement) -> ReleaseCandidate | None:
    """Return the most preferred build of a framework that a request allows and that is for another accelerator than the stack.

    Of several, one that the other lines of the spec allow, too. None if the request allows a build for the accelerator of the
    stack, or none at all.
    """
    key, request = requirement.key, instance.problem.request
    if key.is_package or key.component not in FRAMEWORKS or instance.allowed(requirement):
        return None

    def is_for_another(one: ReleaseCandidate) -> bool:
        platforms = () if one.build is None else one.build.platforms or one.release.platforms
        is_foreign = one.build is not None and one.build.accelerator not in {"", request.accelerator}
        return is_foreign and (not platforms or request.platform in platforms) and requirement.test.allows(one)

    found = list(filter(is_for_another, variants_of(instance.problem.matrix).of(key.component)))
    lines = [root.test for root in instance.roots if root.key == key]
    return next((one for one in found if all(line.allows(one) for line in lines)), found[0] if found else None)


class Relaxable(Struct, frozen=True):
    """A request or fact that a person could change.

    `group` is the group of its requirements, `key` the key that these requirements are on, and `current` one of the
    requirements. `followers` are the facts of the host that change with this one, because they are installed with it.
    """

    group: Group
    key: Key
    current: Requirement
    followers: tuple[Requirement, ...] = ()

    @property
    def groups(self) -> frozenset[Group]:
        """The groups of everything that changes."""
        return frozenset({self.group, *(one.ground.group for one in self.followers)})

    @property
    def is_fact(self) -> bool:
        """Whether this is a fact of a host."""
        return self.current.ground.kind == "fact"

    @property
    def is_bound(self) -> bool:
        """Whether this only excludes versions, so that a fix drops it: a constraint, an override or hashes."""
        return isinstance(self.current.ground, Constrains | Overrides | GivesHashes)

    @property
    def name(self) -> str:
        """The name of the line or fact.

        It differs from the key for a constraint or override, for hashes, and for `pytorch_build`, a line of its own about
        PyTorch's key.
        """
        ground = self.current.ground
        if isinstance(ground, Constrains | Overrides):
            return f"{ground.requirement} bound"  # two equal lines are dropped together, as one change
        if isinstance(ground, GivesHashes):
            return str(self.group)
        if isinstance(ground, RequiresComponent) and ground.name == "pytorch_build":
            return "pytorch_build"
        return self.key.distribution if self.key.is_package else self.key.component


def relaxables(instance: ProblemInstance, search: CompleteSearch, groups: Sequence[Group]) -> list[Relaxable]:
    """Return the requests and facts among `groups` that a person could change.

    Left out are rules, the target, requirements added by a question or a lock, and lines that are edited in the request only,
    such as Python when there are packages.
    """
    found = []
    extra = {root.ground.group for root in instance.problem.extra}
    for group in dict.fromkeys(_leading(instance, group) for group in groups):
        members = [one for one in search.members(group) if not isinstance(one[1].ground, NeedsToBeUsed)]
        for parent, requirement in members[:1]:
            one = Relaxable(group, requirement.key, requirement, _followers(instance, requirement))
            is_open = isinstance(requirement.test, Within) and not requirement.test.range.clauses
            # Architectures to compile for follow from the GPUs where there are some: their change changes them, and a list of
            # the spec is edited in the request.
            is_derived = one.name == "arch_list" and (one.is_fact or _has_gpus(instance))
            is_fixed = is_open or is_derived or one.name in FIXED or group in extra
            is_fixed = is_fixed or one.is_bound or _is_pointless(one, instance)
            is_fixed = is_fixed or isinstance(requirement.ground, RequiresPython | CompilesOnlyFor)
            is_environment = instance.finder is not None and one.name == "python"
            if (parent is None and not is_fixed and not is_environment) or one.is_bound:
                found.append(one)
    return found


def _has_gpus(instance: ProblemInstance) -> bool:
    return any(key.component == "gpu" and not key.is_package for key in instance.problem.domains)


def _followers(instance: ProblemInstance, requirement: Requirement) -> tuple[Requirement, ...]:
    """Return the facts of a host that change with the fact which a root requirement states; () for any other requirement."""
    key = requirement.key
    if requirement.ground.kind != "fact":
        return ()
    names = {name for host in _hosts(instance, key) for name in following(host, key.component)}
    return tuple(
        one for one in instance.roots if one.ground.kind == "fact" and one.key.scope == key.scope and one.key.name in names
    )


def _leading(instance: ProblemInstance, group: Group) -> Group:
    """Return the group of the fact with which the fact of `group` changes; `group` itself for any other requirement.

    A fact that differs from the one it should follow is a fault of its own, and can change alone.
    """
    if not isinstance(group, FactOf) or group.component not in COMPONENTS:
        return group
    key = Key(COMPONENTS[group.component].installed_with, group.host)
    is_in_step = any(
        group.component in following(host, key.component) and stated(host, group.component) == stated(host, key.component)
        for host in _hosts(instance, key)
    )
    leaders = (one.ground.group for one in instance.roots if is_in_step and one.key == key and one.ground.kind == "fact")
    return next(leaders, group)


def _hosts(instance: ProblemInstance, key: Key) -> Iterator[Host]:
    """Yield the hosts that a key is about."""
    return (target.host for target in instance.problem.request.hosts if target.label == key.scope)


def _is_pointless(one: Relaxable, instance: ProblemInstance) -> bool:
    """Return whether a fact is the macOS of a Mac without an NVIDIA GPU, which runs CUDA in no version of macOS."""
    request = instance.problem.request
    if one.name != "macos" or request.accelerator != "cuda":
        return False
    return not any(may_compute_on_nvidia(target.host) for target in request.hosts if target.label == one.key.scope)


def today(instance: ProblemInstance, one: Relaxable) -> Candidate | None:
    """Return the candidate that a host has now, which the fact `one` requires; None when no candidate meets the requirement."""
    return next((other for other in instance.candidates(one.key) if one.current.allows(other)), None)


def installed(instance: ProblemInstance, one: Relaxable) -> dict[str, str]:
    """Return the newer value of a host's fact that is installed there, mapped to the component that shows it; {} for none.

    A value counts as installed only if all has it that is installed with the fact.
    """
    now = today(instance, one)
    beside = _beside(instance, one)
    names = [name for names in beside.values() for name in names if COMPONENTS[name].shows_installed == one.name]
    if now is None or len(beside) != 1 or not names:
        return {}
    (value,) = beside
    return {value: names[0]} if _every_number(value) > _every_number(now.label) else {}


def _beside(instance: ProblemInstance, one: Relaxable) -> dict[str, list[str]]:
    """Return the values that a host states of what is installed with the fact `one`, each with the names of the components."""
    found: dict[str, list[str]] = {}
    for host in _hosts(instance, one.key):
        for follower in one.followers:
            name = follower.key.component
            found.setdefault(stated(host, name) or "", []).append(name)
    return found


def _every_number(text: str) -> Numbers:
    """Return all numbers in the text of a version, as of the kernel `6.8.0-45-generic`; () for a name."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def nearest(instance: ProblemInstance, one: Relaxable, *, other_pythons: bool = False) -> Iterator[Sequence[Candidate]]:
    """Yield lists of values to try, nearest first; the first value of each list that works is taken.

    For a host fact these are the values of what is installed with it, then the newer values, then the older ones; the other way
    round for a kernel. Values that are not numbers are in the order of the matrix, except that the remedy of the component
    comes first. For a request they are those of `_nearest_to_request`; with `other_pythons` also those that have a file for
    another Python alone.
    """
    candidates = instance.candidates(one.key)
    if not one.is_fact:
        yield _nearest_to_request(instance, one, other_pythons=other_pythons)
        return
    now = today(instance, one)
    if now is None:
        return
    if not candidates[0].version.release:
        remedy = COMPONENTS[one.name].remedy if one.name in COMPONENTS else ""
        yield sorted((other for other in candidates if other is not now), key=lambda other: other.label != remedy)
        return
    ready = _beside(instance, one)
    yield [other for other in candidates if other.label in ready and other is not now]
    newer = sorted((other for other in candidates if other.version > now.version), key=attrgetter("version"))
    older = sorted((other for other in candidates if other.version < now.version), key=attrgetter("version"), reverse=True)
    yield from (older, newer) if one.name in OLDER_FIRST else (newer, older)


def _nearest_to_request(instance: ProblemInstance, one: Relaxable, *, other_pythons: bool) -> list[Candidate]:
    """Return the values that a request excludes, nearest first.

    Values with unmeasured GPU code come last. Of the others, values of a requested release come first, then those of the
    releases with the fewest releases in between, a newer one before an older one; where the request names a version that does
    not exist, one of its series before either. Of one release the builds for the nearest CUDA or ROCm come first, of the same
    major before others. Equal ones, and names without an order, stay in the order of
    preference.
    """
    candidates = [
        other
        for other in instance.candidates(one.key)
        if not other.is_withheld and (not other.has_no_file or (other_pythons and other.is_for_another_python))
    ]
    asked = instance.allowed(one.current)
    others = [other for other in candidates if other not in asked]
    apart = _releases_apart(one.current, asked, candidates)
    runtimes = _runtimes_asked(one, candidates)

    def nearness(other: Candidate) -> tuple[object, ...]:
        return _rank(instance, other), apart(other), _runtimes_apart(other, runtimes)

    return sorted(others, key=nearness)


def nearest_to_named(requirement: Requirement, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates that a requirement excludes, by the number of releases between each and those that it names.

    Equal ones, and names without an order, stay in their order.
    """
    return sorted(candidates, key=_releases_apart(requirement, frozenset(), candidates))


def _releases_apart(
    requirement: Requirement, asked: frozenset[Candidate], candidates: Sequence[Candidate]
) -> Callable[[Candidate], tuple[int, int, bool]]:
    """Return a function for how many releases a candidate is from the nearest requested one, and whether it is older than that.

    Between the two stands how many leading numbers it lacks of a version that is named and does not exist, 0 where some do:
    2.5.1 is nearer to 2.5.99 than 2.6.0 is. `asked` are those of `candidates` that `requirement` allows.
    """
    releases = sorted({_numbers(other) for other in candidates})
    places = sorted(_places_asked(requirement, asked, releases))
    missing = () if any(place % 2 == 0 for place in places) else tuple(_named(requirement))

    def apart(other: Candidate) -> tuple[int, int, bool]:
        numbers = _numbers(other)
        distance, is_older = _apart(2 * bisect_left(releases, numbers), places)
        lacking = min((len(named) - _shared(named, numbers) for named in missing), default=0)
        return distance, lacking, is_older

    return apart


def _shared(some: Numbers, others: Numbers) -> int:
    """Return how many leading numbers two releases have in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(some, others, strict=False)))


def _numbers(candidate: Candidate) -> Numbers:
    """Return the numbers of a candidate's release, whatever its build, without trailing zeros."""
    return _trimmed(candidate.pep440.release if candidate.key.is_package else candidate.version.release)


def _trimmed(numbers: Numbers) -> Numbers:
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers


def _places_asked(requirement: Requirement, asked: frozenset[Candidate], releases: Sequence[Numbers]) -> set[int]:
    """Return the places of the releases that a request allows: twice their index in `releases`.

    If it allows none of them, the places are those of the versions that it names, an odd number for one between two releases.
    """
    if asked:
        return {2 * bisect_left(releases, _numbers(other)) for other in asked}
    found = set()
    for numbers in _named(requirement):
        index = bisect_left(releases, numbers)
        is_there = index < len(releases) and releases[index] == numbers
        found.add(2 * index if is_there else 2 * index - 1)
    return found


def _named(requirement: Requirement) -> Iterator[Numbers]:
    """Yield the numbers of the versions that the range of a requirement names."""
    test = requirement.test
    if isinstance(test, Within):
        yield from (_trimmed(clause.version.release) for clause in test.range.clauses)
    elif isinstance(test, Matching):
        named = (clause.version.removesuffix(".*") for clause in test.specifier if clause.operator != "===")
        yield from (_trimmed(PackageVersion(version).release) for version in named)


def _apart(place: int, places: Sequence[int]) -> tuple[int, bool]:
    """Return how far `place` is from the nearest of `places`, and whether it is lower than that one.

    (0, False) when `places` is empty. A place is a position among releases (see `_places_asked`).
    """
    index = bisect_left(places, place)
    near = places[max(index - 1, 0) : index + 1]
    return min(((abs(place - other), place < other) for other in near), default=(0, False))


def _runtimes_asked(one: Relaxable, candidates: Sequence[Candidate]) -> set[Numbers]:
    """Return the CUDA or ROCm releases of the builds that a request names; empty when it names no build."""
    test = one.current.test
    names = {clause.version.local for clause in test.range.clauses} if isinstance(test, Within) else set()
    if isinstance(test, Matching):
        names = {clause.version.partition("+")[2] for clause in test.specifier}
    if isinstance(one.current.ground, RequiresComponent) and one.current.ground.name == "pytorch_build":
        names = {one.current.ground.range}
    named = names - {""}
    return {_runtime(other) for other in candidates if (build := build_of(other)) is not None and build.name in named} - {()}


def _runtime(candidate: Candidate) -> Numbers:
    """Return the numbers of the CUDA or ROCm that a build needs; () for a build without one, or no build."""
    build = build_of(candidate)
    needs = build.requires if build is not None else ()
    clauses = (clause for need in needs if need.component in RUNTIMES for clause in need.range.clauses)
    return next((clause.version.release for clause in clauses), ())


def _runtimes_apart(candidate: Candidate, runtimes: set[Numbers]) -> tuple[int, int]:
    """Return how far the CUDA or ROCm of a build is from the nearest of `runtimes`: by major, then by minor number.

    (0, 0) when `runtimes` is empty.
    """
    major, minor = (*_runtime(candidate), 0, 0)[:2]
    found = []
    for other in runtimes:
        other_major, other_minor = (*other, 0)[:2]
        # Of a later major the first minor release is the nearest, of an earlier one the last.
        steps = abs(minor - other_minor) if major == other_major else minor if major > other_major else -minor
        found.append((abs(major - other_major), steps))
    return min(found, default=(0, 0))


def _rank(instance: ProblemInstance, candidate: Candidate) -> int:
    """Return 0 for a build or version ordered by its number alone, more for one to try last, such as one never measured."""
    if candidate.key.is_package:
        return instance.finder.rank(candidate) if instance.finder is not None else 0
    build = build_of(candidate)
    if build is None or build.accelerator not in ON_GPUS:
        return 0
    return int((build.sass if build.accelerator == "cuda" else build.gfx) is None)
