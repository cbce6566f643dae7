"""Check whether the packages of a lock satisfy the spec, each other and the stack, without an index."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.errors import ProvisionError
from provisioner.grounds.finding import (
    DedicatedIndex,
    ForbiddenRelease,
    IndexOfOthers,
    LateUpload,
    MissingExtras,
    MissingPackage,
    MovedIndex,
    OtherBuild,
    OtherComponent,
    OtherFile,
    OtherHash,
    OtherIndex,
    OtherRuns,
    OtherVersion,
    RequiredBy,
    SourceDistribution,
    UnlistedIndex,
    UnneededExtras,
    UnneededPackages,
    UnrecordedExtras,
    line_of,
)
from provisioner.grounds.requirement import Ground, Subject
from provisioner.index.direct_reference import direct_reference
from provisioner.index.markers import Markers, marker_environment
from provisioner.index.metadata.core_metadata import parse_requirement
from provisioner.index.model import DIRECT_PATH, DIRECT_URL, FIND_LINKS, Environment
from provisioner.index.pages.selection import cutoff
from provisioner.index.routing import route
from provisioner.index.settings import IndexSettings
from provisioner.lock.check.kept import kept
from provisioner.lock.format.artifact import locked_url
from provisioner.lock.provenance import location_of
from provisioner.lock.requested import recorded_extras
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_OF_COMPONENT, pep508
from provisioner.resolver.choices.frameworks import published_version
from provisioner.resolver.requirement import PYTORCH, TORCH, ReleaseCandidate
from provisioner.resolver.rules.bundled import BUNDLED
from provisioner.resolver.rules.policy import uploads_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.requirements import Requirement as Pep508
    from packaging.utils import NormalizedName

    from provisioner.grounds.finding import Finding, IndexDifference, Reason
    from provisioner.index.direct_reference import DirectReference
    from provisioner.lock.format.model import Lock, LockedPackage
    from provisioner.matrix.model import Distribution
    from provisioner.resolver.problem import Problem


def package_findings(lock: Lock, problem: Problem) -> Iterator[Finding]:
    """Yield a finding for each requirement that a lock of one platform does not meet, and for packages nothing requires."""
    environment = Environment(platform=lock.stack.platform, python=lock.stack.components.get("python", "3.12"))
    markers = Markers(marker_environment(environment))
    missing = list(_of_requirements(lock, problem, markers))
    yield from missing
    yield from _of_bounds(lock, problem, markers)
    yield from _of_overrides(lock, problem, markers)
    if lock.stack.runs != problem.request.runs:
        yield OtherRuns(needed=problem.request.runs, locked=lock.stack.runs, place=problem.request.place("runs"))
    yield from _of_extras(lock, problem, markers)
    yield from _of_indexes(lock, problem)
    if not any(isinstance(finding, MissingPackage) for finding in missing):  # a missing package may need the rest
        needed = _reached(lock, problem)
        if rest := [package for package in lock.packages if package.name not in needed]:
            yield UnneededPackages(subjects=tuple(one.subject for one in rest))
    yield from _of_components(lock)
    yield from _of_build(lock, problem)


def policy_findings(lock: Lock, problem: Problem) -> Iterator[Finding]:
    """Yield a finding for each package that the policy forbids: prereleases, source distributions, uploads after its last day.

    A prerelease that the policy neither allows nor forbids is accepted: its project may have no final release, which a lock
    does not record. Components that the policy forbids are found by solving (`check.stack`).
    """
    request = problem.request
    policy = request.spec.policy
    until = uploads_until(problem.matrix, policy)
    for package in lock.packages:
        subject = package.subject
        has_wheel = any(file.filename.endswith(".whl") for file in package.files)
        is_prerelease = "prerelease" in policy.forbid and _version(package.version).is_prerelease
        for word, is_so in (("prerelease", is_prerelease), ("sdist", not has_wheel)):
            if is_so and word in policy.forbid:
                place = request.place(f"policy.forbid.{policy.forbid.index(word)}")
                yield ForbiddenRelease(subject=subject, word=word, place=place)
        # A file that the spec names by URL or path may be a source distribution.
        if not (has_wheel or package.archive or {"sdist", "build"} & {*policy.allow, *policy.forbid}):
            yield SourceDistribution(subject=subject, place=request.place("policy.allow"))
        times = [file.upload_time for file in package.files if file.upload_time is not None]
        if until is not None and any(time >= cutoff(until) for time in times):
            key = "policy.strategy" if policy.exclude_newer is None else "policy.exclude-newer"
            yield LateUpload(subject=subject, until=until, place=request.place(key))


def _by_name(lock: Lock) -> dict[str, LockedPackage]:
    return {package.name: package for package in lock.packages}


def _of_requirements(lock: Lock, problem: Problem, markers: Markers) -> Iterator[Finding]:
    """Yield a finding for each requirement of the spec or of a locked package that the lock does not meet."""
    locked = _by_name(lock)
    for requirement, ground in problem.packages:
        if markers.hold(requirement.marker):
            yield from _unmet(requirement, locked, ground)
    for package in lock.packages:
        for text in package.requires:
            required = parse_requirement(text)
            if not problem.overrides or not problem.overrides.of(canonicalize_name(required.name)):
                yield from _unmet(required, locked, RequiredBy(package.subject, text))


def _unmet(requirement: Pep508, locked: dict[str, LockedPackage], by: Reason) -> Iterator[Finding]:
    name = canonicalize_name(requirement.name)
    package = locked.get(name)
    place = line_of(by) if isinstance(by, Ground) else None
    if package is None:
        yield MissingPackage(object=name, by=by, place=place)
    elif not _meets(requirement, package):
        yield OtherVersion(subject=package.subject, by=by, place=place)
    elif requirement.url is not None and not _is_of_file(package, direct_reference(name, requirement.url, Path())):
        yield OtherFile(subject=package.subject, by=by, place=place)


def _meets(requirement: Pep508, package: LockedPackage) -> bool:
    return requirement.specifier.contains(_version(package.version), prereleases=True)


_version = cache(PackageVersion)


def _is_of_file(package: LockedPackage, reference: DirectReference) -> bool:
    """Return whether a package is locked from the file that a requirement names by URL or path.

    A path differs between machines, so a file on this machine is compared by its name.
    """
    for file in package.files:
        is_there = file.filename == reference.filename if reference.path else file.url == reference.url
        if is_there and reference.sha256 in {"", file.sha256}:
            return True
    return False


def _of_bounds(lock: Lock, problem: Problem, markers: Markers) -> Iterator[Finding]:
    """Yield a finding for each constraint or list of hashes in the spec that a locked distribution does not meet."""
    locked = _by_name(lock)
    for constraint, ground in problem.constraints:
        package = locked.get(canonicalize_name(constraint.name))
        if package is not None and markers.hold(constraint.marker) and not _meets(constraint, package):
            yield OtherVersion(subject=package.subject, by=ground, place=line_of(ground))
    for name, digests in problem.request.spec.hashes.items():
        for file in locked[name].files if name in locked else ():
            if file.sha256 not in digests:
                yield OtherHash(subject=locked[name].subject, place=problem.request.place(f"hashes.{name}"))


def _of_overrides(lock: Lock, problem: Problem, markers: Markers) -> Iterator[Finding]:
    """Yield a finding for each override that is not met, if a locked package requires the distribution."""
    if not problem.overrides:
        return
    locked = _by_name(lock)
    for name in sorted({canonicalize_name(parse_requirement(text).name) for one in lock.packages for text in one.requires}):
        for override, ground in problem.overrides.of(name):
            if markers.hold(override.marker):
                yield from _unmet(override, locked, ground)


def _of_extras(lock: Lock, problem: Problem, markers: Markers) -> Iterator[Finding]:
    """Yield a finding for extras that are required and not locked, or locked and not required.

    Locked versions do not show extras (`alpha[more]` and `alpha` may have the same version), so the recorded requests are
    compared.
    """
    locked = _by_name(lock)
    required = [text for package in lock.packages for text in package.requires]
    solved = _extras_of(required)
    for name, extras in recorded_extras(lock.asked).items():
        solved.setdefault(name, set()).update(extras)
    for requirement, ground in problem.packages:
        name = canonicalize_name(requirement.name)
        missing = sorted({canonicalize_name(extra) for extra in requirement.extras} - solved.get(name, set()))
        if name in locked and missing and markers.hold(requirement.marker):
            kind = MissingExtras if lock.asked else UnrecordedExtras
            yield kind(subject=locked[name].subject, extras=tuple(missing), by=ground, place=line_of(ground))
    wanted = _extras_of((*problem.request.spec.packages, *problem.request.spec.overrides, *required))
    for known in sorted(solved.keys() & locked.keys()):
        if rest := sorted(solved[known] - wanted.get(known, set())):
            yield UnneededExtras(subject=locked[known].subject, extras=tuple(rest))


def _extras_of(requirements: Iterable[str]) -> dict[str, set[NormalizedName]]:
    found: dict[str, set[NormalizedName]] = {}
    for text in requirements:
        if "[" in text:
            requirement = pep508(text)
            extras = {canonicalize_name(extra) for extra in requirement.extras}
            found.setdefault(canonicalize_name(requirement.name), set()).update(extras)
    return found


def _of_indexes(lock: Lock, problem: Problem) -> Iterator[Finding]:
    """Yield a finding for packages from another index than the spec gives them.

    A spec without `indexes:` leaves the indexes to each machine, so nothing is yielded for it.
    """
    request = problem.request
    if not request.spec.lists_indexes:
        return
    settings = IndexSettings(indexes=tuple(map(location_of, request.spec.indexes)), pytorch_index="")
    found: dict[IndexDifference, list[LockedPackage]] = {}
    for package in lock.packages:
        if package.index and package.index not in {DIRECT_PATH, DIRECT_URL}:
            difference = _index_difference(package, settings)
            if difference is not None:
                found.setdefault(difference, []).append(package)
    for difference, packages in found.items():
        yield OtherIndex(subjects=tuple(one.subject for one in packages), difference=difference, place=request.place("indexes"))


def _index_difference(package: LockedPackage, settings: IndexSettings) -> IndexDifference | None:
    """Return how the index of a locked package differs from the one that the spec gives it; None when both are the same.

    None, too, for files from `find-links`, and when the index cannot be located but the spec has a template (a URL with
    `{variant}`).
    """
    try:
        locations = route(package.name, package.index, settings).locations
    except ProvisionError:  # no index of that name, or two that claim the package
        return UnlistedIndex(package.index)
    if not locations:
        is_switched_off = package.index != FIND_LINKS and not any(one.is_template for one in settings.indexes)
        return UnlistedIndex(package.index) if is_switched_off else None
    (index,) = locations
    if index.name != package.index:
        return DedicatedIndex(index=package.index, dedicated=index.name)
    if index.packages and not index.pins(package.name):
        return IndexOfOthers(index.name, index.packages)
    url = locked_url(index.url).rstrip("/")
    if package.index_url and package.index_url.rstrip("/") != url:
        return MovedIndex(index=index.name, locked=package.index_url, needed=url)
    return None


def _reached(lock: Lock, problem: Problem) -> set[str]:
    """Return the names of the locked packages that the spec's requests require, by metadata or by rules of the matrix."""
    packages = _by_name(lock)
    waiting = [package.name for package in kept(lock, problem)]
    waiting += [name for component, name in DISTRIBUTION_OF_COMPONENT.items() if component in problem.request.spec.requires]
    known = {one.name: one for one in problem.matrix.distributions if one.name in packages}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in packages and name not in found:
            found.add(name)
            waiting += [*packages[name].dependencies, *(_implied(known[name]) if name in known else ())]
    return found


def _implied(known: Distribution) -> Iterator[str]:
    """Yield the distributions that some version of a distribution needs according to the matrix, but not to its metadata."""
    for row in known.implies:
        yield from row.packages
        yield from (DISTRIBUTION_OF_COMPONENT.get(need.component, "") for need in row.require)
    yield DISTRIBUTION_OF_COMPONENT.get(known.compiled_against, "")


def _of_components(lock: Lock) -> Iterator[Finding]:
    """Yield a finding for each component whose version in the stack differs from that of its locked package."""
    locked, components = _by_name(lock), lock.stack.components
    for component, distributions in BUNDLED.items():
        wanted = components.get(component)
        carriers = [locked[name] for name in distributions if name in locked]
        # A carrier may be for another CUDA than the framework's, which loads its own. The matrix lists files that both write.
        if wanted and not any(PackageVersion(one.version) == PackageVersion(wanted) for one in carriers):
            for one in carriers:
                yield OtherComponent(object=component, needed=wanted, subject=one.subject)
    for name, component in COMPONENT_OF_DISTRIBUTION.items():
        wanted = components.get(component)
        if wanted and name in locked and _release(locked[name].version) != _release(wanted):
            yield OtherComponent(object=component, needed=wanted, subject=locked[name].subject)


def _release(version: str) -> str:
    return PackageVersion(version).base_version


def _of_build(lock: Lock, problem: Problem) -> Iterator[Finding]:
    """Yield a finding if the locked torch wheel is of another build than the stack's.

    The wheel of a release on PyPI, for example, is not its CPU build.
    """
    components = lock.stack.components
    label = f"{components.get(PYTORCH.name)}+{components.get('pytorch_build')}"
    build = next((one for one in problem.domains.get(PYTORCH, ()) if one.label == label), None)
    torch = _by_name(lock).get(TORCH.name)
    if torch is None or not isinstance(build, ReleaseCandidate) or build.build is None or build.build.compiled:
        return
    wanted = published_version(build)
    # Another release is a finding of its own.
    if _release(torch.version) == wanted.base_version and PackageVersion(torch.version) != wanted:
        yield OtherBuild(subject=Subject(PYTORCH.name, label), needed=str(wanted), locked=torch.version)
