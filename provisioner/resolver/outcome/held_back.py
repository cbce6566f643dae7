"""What is held back: frameworks by the requirements of packages, and packages of the spec.

These are held back by the hosts, by what has no usable file, or by an index out of reach.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from provisioner.accelerators import RUNTIMES
from provisioner.components import FRAMEWORKS
from provisioner.errors import UnavailableError
from provisioner.grounds.choice import HeldBack
from provisioner.grounds.predicate import NoWheel
from provisioner.grounds.requirement import Entails, FixesPython
from provisioner.grounds.source import Metadata
from provisioner.resolver.requirement import PACKAGE, PYTORCH, SHARED_FILE, TORCH, FileCandidate, Key, ReleaseCandidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.grounds.requirement import Ground
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.instance import ProblemInstance
    from provisioner.versions import Version

_PYTHON = Key("python")
_FRAMEWORKS = frozenset(map(Key, FRAMEWORKS))
DEPTH = 3
"""How many requirements away from a package of the spec the distribution may be of which no file can be used."""


def held_back(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[HeldBack]:
    """Yield each framework of the stack that is older than it would be without the packages, then each package held back.

    Nothing when there are no packages.
    """
    if instance.finder is None:
        return
    named = instance.named if instance.problem.request.spec.policy.strategy != "oldest" else ()
    packages = [held for key in named for held in _of_package(instance, pins, key)]
    for name in FRAMEWORKS:
        chosen = pins.get(Key(name))
        if isinstance(chosen, ReleaseCandidate):
            yield from _of(instance, pins, chosen, {held.component for held in packages})
    yield from packages
    told = {held.component for held in packages}
    for key in named:
        if key.name not in told:
            yield from _by_choices(instance, pins, key)


def _of_package(instance: ProblemInstance, pins: Mapping[Key, Candidate], key: Key) -> Iterator[HeldBack]:
    """Yield a package of the spec if the hosts refuse its newest version, or something of which it needs an allowed file.

    That is a distribution without such a file, of others that it needs, too, or a PyTorch whose builds the hosts refuse.
    """
    chosen, newest = _chosen_and_newest(instance, pins, key)
    if chosen is None or newest is None:
        return
    with suppress(UnavailableError):
        refused = next(_host_needs(instance, pins, newest), None)
        if refused is not None:
            yield _held(chosen, newest, by=refused.ground)
            return
        newest_needs = instance.requirements(newest)
        for need in newest_needs:  # what hosts refuse is refused with every Python, unlike what has no file for one
            refused = _refused_in_every_version(instance, pins, need)
            if refused is not None:
                yield _held(chosen, newest, by=need.ground, because=refused.ground)
                return
        for need in newest_needs:
            lacking = _without_file(instance, need)
            if lacking is not None:
                allowed = [one for one in instance.candidates(lacking.key) if instance.accepts(lacking, one)]
                needs = instance.requirements(allowed[0])
                unmet = (one.ground for one in needs if not one.key.is_package and not instance.allowed(one))
                because = next(unmet, None) if lacking is need else lacking.ground
                python = pins[_PYTHON].label if _PYTHON in pins and any(one.is_for_another_python for one in allowed) else ""
                yield _held(chosen, newest, by=need.ground, because=because, python=python)
                return
        yield from _by_hosts(instance, pins, chosen, newest)
        yield from _by_indexes(instance, pins, chosen, newest)


def _held(chosen: Candidate, newest: Candidate, *, by: Ground, because: Ground | None = None, python: str = "") -> HeldBack:
    """Return that a package is held back at the chosen version, with the reasons of `HeldBack`."""
    name = chosen.key.name
    return HeldBack(component=name, chosen=chosen.label, newest=newest.label, by=by, because=because, python=python)


def left_out_with_pytorch(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> HeldBack | None:
    """Return the package of the spec that is held back because each PyTorch that the hosts run is on an index out of reach.

    None if the answer has a PyTorch, and if one is within reach.
    """
    if instance.finder is None or PYTORCH in pins or not instance.finder.variant_indexes.unreached:
        return None
    in_reach = [one for one in instance.candidates(PYTORCH) if not _is_out_of_reach(instance, one)]
    if any(_unmet_by_hosts(instance, pins, one) is None for one in in_reach):
        return None
    for key in instance.named:
        chosen, newest = _chosen_and_newest(instance, pins, key)
        if chosen is not None and newest is not None:
            with suppress(UnavailableError):
                if (held := next(_by_indexes(instance, pins, chosen, newest), None)) is not None:
                    return held
    return None


def _chosen_and_newest(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], key: Key
) -> tuple[FileCandidate | None, FileCandidate | None]:
    """Return the chosen version of a package of the spec and the newest that the spec allows; None twice if they are one."""
    return _with_newest(pins.get(key), (one for one in _admitted(instance, key) if one.release.is_usable))


def _with_newest(
    chosen: Candidate | None, offered: Iterable[FileCandidate]
) -> tuple[FileCandidate | None, FileCandidate | None]:
    """Return the chosen version of a package and the newest of those offered; None twice where none of these is newer."""
    newest = max(offered, key=lambda one: one.pep440, default=None)
    if newest is None or not isinstance(chosen, FileCandidate) or chosen.pep440 >= newest.pep440:
        return None, None
    return chosen, newest


def _admitted(instance: ProblemInstance, key: Key) -> Iterator[FileCandidate]:
    """Yield the versions of a package of the spec that the spec allows, whether they have a file or not."""
    roots = [root for root in instance.roots if root.key == key]
    for one in instance.candidates(key):
        if (
            isinstance(one, FileCandidate)
            and not instance.bounds.excludes(one)
            and all(instance.accepts(root, one) for root in roots)
        ):
            yield one


def _refused_in_every_version(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], need: Requirement
) -> Requirement | None:
    """Return what the first version that meets a requirement needs of the hosts, if the hosts refuse each such version.

    Only what is known of versions without their metadata is looked at. None for a requirement on no distribution.
    """
    if not need.key.is_package or need.key.is_mutex:
        return None
    allowed = [one for one in instance.candidates(need.key) if instance.accepts(need, one)]
    unmet = [next(_unmet_of_hosts(instance, pins, instance.known_requirements(one)), None) for one in allowed]
    return unmet[0] if unmet and None not in unmet else None


def _without_file(instance: ProblemInstance, need: Requirement, depth: int = DEPTH) -> Requirement | None:
    """Return the requirement that no file which can be used meets: `need`, or one that stands behind each of its versions.

    None where there is none within `depth` requirements. Only what the search has read is looked at.
    """
    if not need.key.is_package:
        return None
    allowed = instance.allowed(need)
    is_usable = False
    lacking: Requirement | None = None
    for one in instance.candidates(need.key):
        if one not in allowed or one.has_no_file or instance.is_known_unusable(one):
            continue
        is_usable = True
        further = instance.requirements(one) if depth and instance.is_read(one) else ()
        behind = next(filter(None, (_without_file(instance, other, depth - 1) for other in further)), None)
        if behind is None:
            return None
        lacking = lacking or behind
    return need if allowed and not is_usable else lacking


def _by_hosts(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], chosen: Candidate, newest: Candidate
) -> Iterator[HeldBack]:
    """Yield that a package is held back if the hosts refuse each build of PyTorch that goes with its newest version."""
    wanted = [one for one in instance.requirements(newest) if one.key == PYTORCH]
    by = next((one for one in wanted if PYTORCH in pins and not instance.accepts(one, pins[PYTORCH])), None)
    if by is None:
        return
    builds = [
        one
        for one in instance.candidates(PYTORCH)
        if all(instance.accepts(need, one) for need in wanted) and _has_wheel(instance, pins, one)
    ]
    unmet = [_unmet_by_hosts(instance, pins, one) for one in builds]
    refused = next(iter(unmet), None)
    if refused is not None and None not in unmet:
        yield _held(chosen, newest, by=by.ground, because=refused.ground)


def _by_indexes(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], chosen: Candidate, newest: Candidate
) -> Iterator[HeldBack]:
    """Yield that a package is held back if its newest version needs a PyTorch that only an index out of reach may have.

    The builds that the hosts refuse are left aside.
    """
    wanted = [one for one in instance.requirements(newest) if one.key == PYTORCH]
    if not wanted or (PYTORCH in pins and all(instance.accepts(one, pins[PYTORCH]) for one in wanted)):
        return
    builds = [one for one in instance.candidates(PYTORCH) if all(instance.accepts(need, one) for need in wanted)]
    missed = [one for one in builds if _is_out_of_reach(instance, one)]
    because = next(filter(None, (_not_found(instance, one) for one in missed)), None)
    if because is not None and all(_unmet_by_hosts(instance, pins, one) for one in builds if one not in missed):
        yield _held(chosen, newest, by=wanted[0].ground, because=because)


def _by_choices(instance: ProblemInstance, pins: Mapping[Key, Candidate], key: Key) -> Iterator[HeldBack]:
    """Yield a package of the spec if its newest version has no file that can be used, or requires another choice than was made.

    What the spec or the hosts exclude is no such choice, nor what was uploaded after the last day of the policy. Where it
    requires nothing of what was chosen otherwise, it is held back if it requires a framework that was not chosen at all.
    """
    offered = (one for one in _admitted(instance, key) if not one.is_withheld and not one.pep440.is_prerelease)
    chosen, newest = _with_newest(pins.get(key), (one for one in offered if not _is_too_new(one)))
    if chosen is None or newest is None:
        return
    with suppress(UnavailableError):
        needs = [*_needs(instance, newest)]
        unmet = [one for one in needs if one.key in pins and not instance.accepts(one, pins[one.key])]
        unmet.sort(key=lambda one: one.key == _PYTHON)
        by = next((one for one in unmet if newest.has_no_file or not _moves_along(instance, pins, one, user=key)), None)
        if by is not None and (_is_allowed(instance, by) or (newest.has_no_file and by.key != _PYTHON)):
            yield _held(chosen, newest, by=by.ground)
        elif not unmet and (lost := [one for one in needs if one.key in _FRAMEWORKS and one.key not in pins]):
            yield _held(chosen, newest, by=lost[0].ground)


def _is_too_new(version: FileCandidate) -> bool:
    """Return whether the day of the policy excludes the files: nothing of the target does, and no `allow` would admit them."""
    release = version.release
    return version.has_no_file and not release.blocked_by and not release.allowance


def _needs(instance: ProblemInstance, version: FileCandidate) -> Iterator[Requirement]:
    """Yield what a version of a package requires; with extras, what the same version requires without them, too."""
    for one in instance.requirements(version):
        if one.key.project != version.key.project:
            yield one
            continue
        for plain in instance.candidates(one.key):
            if instance.accepts(one, plain):
                yield from instance.requirements(plain)


def _moves_along(instance: ProblemInstance, pins: Mapping[Key, Candidate], need: Requirement, *, user: Key) -> bool:
    """Return whether another choice meets a requirement of `user`, and no other package is against it.

    What the spec names, Python and frameworks move to a newer version only.
    """
    packages = (pin for pin in pins.values() if pin.key.is_package and pin.key != user)
    needs = (one for pin in packages for one in instance.requirements(pin))
    on_it = [need, *(one for one in (*instance.roots, *needs) if one.key == need.key)]
    is_free = need.key.is_package and need.key not in instance.named
    others = (one for one in instance.candidates(need.key) if is_free or one.age > pins[need.key].age)
    return any(all(instance.accepts(one, other) for one in on_it) for other in others)


def _is_allowed(instance: ProblemInstance, need: Requirement) -> bool:
    """Return whether something that the spec and the hosts allow meets a requirement, with any of the spec's Pythons."""
    roots = [root for root in instance.roots if root.key == need.key and not isinstance(root.ground, FixesPython)]
    return any(all(instance.accepts(one, other) for one in (need, *roots)) for other in instance.candidates(need.key))


def _is_out_of_reach(instance: ProblemInstance, one: Candidate) -> bool:
    index = one.build.index if isinstance(one, ReleaseCandidate) and one.build is not None else ""
    return instance.finder is not None and instance.finder.variant_indexes.is_out_of_reach(index)


def _not_found(instance: ProblemInstance, build: Candidate) -> Ground | None:
    """Return that no wheel of a build was found on its index; None if one was."""
    grounds = (one.ground for wheel in _wheels(instance, build) for one in instance.requirements(wheel))
    return next((one for one in grounds if isinstance(one, Entails) and isinstance(one.predicate, NoWheel)), None)


def _has_wheel(instance: ProblemInstance, pins: Mapping[Key, Candidate], build: Candidate) -> bool:
    """Return whether a build is installed from a wheel that was found for the Python of the answer, or from none."""
    needs = ([one for one in instance.requirements(wheel) if one.key == _PYTHON] for wheel in _wheels(instance, build))
    is_from_wheel = any(one.key == TORCH for one in instance.requirements(build))
    return not is_from_wheel or any(all(instance.accepts(one, pins[_PYTHON]) for one in some) for some in needs)


def _wheels(instance: ProblemInstance, build: Candidate) -> list[Candidate]:
    """Return the wheels that a build may be installed from."""
    wanted = [one for one in instance.requirements(build) if one.key == TORCH]
    return [one for one in instance.candidates(TORCH) if wanted and all(instance.accepts(need, one) for need in wanted)]


def _unmet_by_hosts(instance: ProblemInstance, pins: Mapping[Key, Candidate], build: Candidate) -> Requirement | None:
    """Return what a build, or the first CUDA or ROCm that it allows, needs of the hosts and these lack; None if one has all."""
    unmet = next(_host_needs(instance, pins, build), None)
    if unmet is not None:
        return unmet
    for need in instance.requirements(build):
        if need.key.component in RUNTIMES and not need.key.is_package:
            runtimes = [one for one in instance.candidates(need.key) if instance.accepts(need, one)]
            found = [next(_host_needs(instance, pins, one), None) for one in runtimes]
            if found and all(found):
                return found[0]
    return None


def _of(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], chosen: ReleaseCandidate, held: set[str]
) -> Iterator[HeldBack]:
    """Yield a framework that is older than it would be without the packages; `held` are those held back themselves."""
    key = chosen.key
    others = [one for one in instance.roots if one.key == key]
    by_packages: list[Requirement] = []
    for candidate in sorted(pins.values(), key=lambda one: instance.named.get(one.key, len(instance.named))):
        wanted = [one for one in instance.requirements(candidate) if one.key == key]
        if not candidate.key.is_package:
            others.extend(wanted)
        elif wanted and (candidate.key.name in held or not _may_be_newer(instance, pins, candidate)):
            by_packages.extend(sorted(wanted, key=lambda one: not isinstance(one.ground.source, Metadata)))
    by_release: dict[Version, list[ReleaseCandidate]] = {}
    for one in instance.candidates(key):
        is_newer = isinstance(one, ReleaseCandidate) and one.release.version > chosen.release.version
        if isinstance(one, ReleaseCandidate) and is_newer and _may_be_chosen(instance, pins, one, others):
            by_release.setdefault(one.release.version, []).append(one)
    if not by_release:
        return
    newest = max(by_release)
    refusing = [one for one in by_packages if not any(one.allows(candidate) for candidate in by_release[newest])]
    reasons = [(one.ground, None) for one in refusing] or _clashes(instance, pins, by_release[newest])
    if not reasons:
        with suppress(UnavailableError):
            in_reach = ((version, _builds(instance, pins, by_release[version])) for version in sorted(by_release, reverse=True))
            newest, builds = next(((version, builds) for version, builds in in_reach if builds), (newest, []))
            reasons = _other_choices(instance, pins, builds)
    if reasons:
        by, because = reasons[0]
        yield HeldBack(
            component=key.name,
            chosen=str(chosen.release.version),
            newest=str(newest),
            by=by,
            more=len(reasons) - 1,
            because=because,
        )


def _builds(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], builds: Sequence[ReleaseCandidate]
) -> list[ReleaseCandidate]:
    """Return those of some builds of a framework that have a wheel within reach."""
    return [one for one in builds if _not_found(instance, one) is None and _has_wheel(instance, pins, one)]


def _clashes(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], builds: Sequence[ReleaseCandidate]
) -> list[tuple[Ground, Ground | None]]:
    """Return why builds exclude a chosen distribution: a file that it writes, and the CUDA release of each of them, too.

    The second ground is the requirement of a package on that distribution. [] when a build goes with a CUDA release that brings
    no such file.
    """
    found = []
    for build in builds:
        for runtime in _runtimes(instance, pins, build):
            clash = next((one for one in instance.requirements(runtime) if _is_written_by_another(instance, pins, one)), None)
            if clash is None:
                return []
            found.append(clash)
    return [(one.ground, _need_of_owner(instance, pins, one.key)) for one in found[:1]]


def _other_choices(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], builds: Sequence[ReleaseCandidate]
) -> list[tuple[Ground, Ground | None]]:
    """Return what the wheels of builds require, and what the newest version of another package requires otherwise.

    [] when one of the wheels goes with everything that was chosen, or with what may be chosen instead.
    """
    found = []
    for wheel in (wheel for build in builds for wheel in _wheels(instance, build)):
        needs = (one for one in instance.requirements(wheel) if one.key in pins and not instance.accepts(one, pins[one.key]))
        clashes = ((need, other) for need in needs if (other := _of_a_newest(instance, pins, need)) is not None)
        clash = next(clashes, None)
        if clash is None:
            return []
        found.append(clash)
    return [(need.ground, other.ground) for need, other in found[:1]]


def _of_a_newest(instance: ProblemInstance, pins: Mapping[Key, Candidate], need: Requirement) -> Requirement | None:
    """Return what a package that was chosen in its newest version requires of the same key, if nothing meets both."""
    for pin in pins.values():
        if pin.key.is_package and pin.key != TORCH and all(other.age <= pin.age for other in instance.candidates(pin.key)):
            for one in instance.requirements(pin):
                if one.key == need.key and not instance.allowed(one) & instance.allowed(need):
                    return one
    return None


def _runtimes(instance: ProblemInstance, pins: Mapping[Key, Candidate], build: ReleaseCandidate) -> Iterator[Candidate]:
    """Yield the releases of CUDA or ROCm that a build requires and that the hosts run."""
    for need in instance.requirements(build):
        if need.key.component in RUNTIMES:
            yield from (
                one for one in instance.candidates(need.key) if instance.accepts(need, one) and _runs(instance, pins, one)
            )


def _is_written_by_another(instance: ProblemInstance, pins: Mapping[Key, Candidate], need: Requirement) -> bool:
    return need.key.component == SHARED_FILE and need.key in pins and not instance.accepts(need, pins[need.key])


def _need_of_owner(instance: ProblemInstance, pins: Mapping[Key, Candidate], file: Key) -> Ground | None:
    """Return a requirement on the distribution that writes a file: if one has it, that of a package of the spec."""
    owner = Key(pins[file].label, PACKAGE)
    ordered = sorted(pins.values(), key=lambda one: instance.named.get(one.key, len(instance.named)))
    needs = (need for one in ordered if one.key.is_package for need in instance.requirements(one) if need.key == owner)
    return next((need.ground for need in needs), None)


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


def _may_be_chosen(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], one: ReleaseCandidate, others: list[Requirement]
) -> bool:
    """Return whether the requirements `others` and the hosts allow the release `one`, with a CUDA or ROCm that it requires.

    False for a build on an index that cannot be reached: no package holds that build back, and a warning names the index.
    """
    if not all(instance.accepts(requirement, one) for requirement in others):
        return False
    if _is_out_of_reach(instance, one):
        return False
    return _runs(instance, pins, one) and all(
        any(instance.accepts(need, runtime) and _runs(instance, pins, runtime) for runtime in instance.candidates(need.key))
        for need in instance.requirements(one)
        if need.key.component in RUNTIMES
    )


def _runs(instance: ProblemInstance, pins: Mapping[Key, Candidate], one: Candidate) -> bool:
    """Return whether the hosts meet the requirements of a candidate on the components that hosts provide."""
    return next(_host_needs(instance, pins, one), None) is None


def _host_needs(instance: ProblemInstance, pins: Mapping[Key, Candidate], one: Candidate) -> Iterator[Requirement]:
    """Yield the requirements of a candidate on the components that hosts provide, which the hosts do not meet."""
    yield from _unmet_of_hosts(instance, pins, instance.requirements(one))


def _unmet_of_hosts(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], needs: Iterable[Requirement]
) -> Iterator[Requirement]:
    """Yield those of some requirements that are on components which hosts provide, and that the hosts do not meet."""
    for need in needs:
        if need.key in pins and not need.key.is_package and need.key.component != SHARED_FILE:
            is_of_hosts = need.key.scope or instance.problem.is_virtual(need.key.component)
            if is_of_hosts and not instance.accepts(need, pins[need.key]):
                yield need
