"""Re-lock preview: the changes from a lock to its successor with causes from the indexes, and packages that are held back.

`compare` finds causes in two lock files. Here the indexes are available as well, so upload dates and withdrawn or vanished
files can explain a change. A package that is older than its newest release gets the causes of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.errors import ProvisionError
from provisioner.grounds.change import (
    ByOwnNeed,
    Drifted,
    Held,
    HeldByBound,
    HeldByPackage,
    HeldByRequest,
    NoMetadata,
    OutSince,
    UnknownAgain,
    UnknownHold,
)
from provisioner.grounds.requirement import Subject
from provisioner.lock.check.files import NO_INDEX
from provisioner.lock.diff.compare import compare
from provisioner.lock.diff.package_causes import is_ruled_out
from provisioner.lock.diff.side import Side, side_of
from provisioner.lock.format.artifact import upload_moment
from provisioner.names import COMPONENT_OF_DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from packaging.requirements import Requirement as Pep508
    from packaging.utils import NormalizedName

    from provisioner.grounds.change import Cause, Change, Comparison
    from provisioner.grounds.finding import FileDrift
    from provisioner.index.model import Environment, PackageRelease
    from provisioner.lock.diff.side import Places
    from provisioner.lock.format.model import Lock, LockedPackage


class Releases(Protocol):
    """The queries to package indexes that this module needs; `provisioner.index.model.PackageSource` implements them."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Return every release of a project, newest first, including releases that cannot be installed."""

    def requirements(self, release: PackageRelease) -> tuple[Pep508, ...]:
        """Return the requirements of a release that hold in the environment of the answer."""


class _Answered(Struct, frozen=True, kw_only=True):
    """A new lock on one platform, with the indexes and the environment that it was solved with."""

    side: Side
    source: Releases
    environment: Environment


def successor_changes(
    old: Lock,
    new: Lock,
    drifts: Sequence[FileDrift] = (),
    *,
    is_upgrade: bool = False,
    places: Places | None = None,
) -> Comparison:
    """Return the changes from a lock to its successor, with the causes that the locks and the indexes prove.

    `drifts` are differences between files of the old lock and the indexes. `is_upgrade` means that the successor was solved
    without the old lock as its preference; `places` are the lines of the spec by key.
    """
    comparison = compare(old, new, places=places)
    changes = []
    for change in comparison.changes:
        causes = _causes(change, (old, new), drifts)
        known = [UnknownAgain(is_upgrade=is_upgrade) if cause.kind == "unknown" else cause for cause in causes]
        changes.append(replace(change, causes=tuple(known)))
    return replace(comparison, changes=tuple(changes))


def _causes(change: Change, locks: tuple[Lock, Lock], drifts: Sequence[FileDrift]) -> tuple[Cause, ...]:
    """Return the causes of a change: differences of the old file on its index, causes in the locks; if none, a release date."""
    if change.section == "system" and change.subject == "installer":
        return tuple(_of_installer(change, locks[1])) or change.causes
    if change.section != "packages":
        return change.causes
    offered = (Drifted(drift=one) for one in drifts if one.package.name == change.subject and one.kind != "redated")
    proven = (cause for cause in change.causes if cause.kind != "unknown")
    dated = _of_dates(change, locks[1]) if change.change == "upgraded" else ()
    return (*offered, *proven) or tuple(dated) or change.causes


def _of_installer(change: Change, new: Lock) -> Iterator[Cause]:
    """Yield the release date of the installer, which is always the newest that an index offers."""
    for stack in new.stacks:
        installer = stack.installer
        if installer is not None and change.new == f"{installer.name} {installer.version}":
            moment = installer.file.upload_time
            day = moment.date().isoformat() if moment else ""
            yield OutSince(version=installer.version, day=day, is_installer=True)
            return


def _of_dates(change: Change, new: Lock) -> Iterator[Cause]:
    """Yield the release date of the new version of a package, if known; no lock records why the old lock did not have it."""
    for package in new.packages:
        times = [file.upload_time for file in package.files if file.upload_time is not None]
        if package.name == change.subject and package.version in change.new and times:
            yield OutSince(version=package.version, day=min(times).date().isoformat())
            return


def held_back(lock: Lock, source: Releases, environment: Environment, *, places: Places | None = None) -> Iterator[Held]:
    """Yield the packages of a lock that are older than their newest release, by name, on the platform of `environment`.

    `source` are the indexes that the lock was made from. Only releases that an installer would choose by itself count.
    Components of the stack are left out, because the matrix explains their versions. `places` are the lines of the spec by
    key. Raises `UnavailableError` when an index cannot be reached.
    """
    answered = _Answered(side=side_of(lock, environment.platform, places), source=source, environment=environment)
    for name, (package, *others) in answered.side.packages.items():
        if others or name in COMPONENT_OF_DISTRIBUTION or package.index in NO_INDEX:
            continue
        newest = _newest(package, source)
        if newest is None:
            continue
        assert newest.file is not None, "a usable release has a file"
        moment = upload_moment(newest.file.upload_time)
        yield Held(
            name=name,
            version=package.version,
            newest=str(newest.version),
            uploaded=moment.date().isoformat() if moment is not None else "",
            platform=environment.platform,
            causes=_holding(name, newest, answered),
        )


def _newest(package: LockedPackage, source: Releases) -> PackageRelease | None:
    """Return the newest usable release if it is newer than the locked version; None if it is not, or if there is none."""
    name = canonicalize_name(package.name)
    try:
        locked = PackageVersion(package.version)
    except InvalidVersion:
        return None
    newest = next((one for one in source.releases(name, index=package.index) if one.is_usable), None)
    return newest if newest is not None and newest.version > locked else None


def _holding(name: str, newest: PackageRelease, answered: _Answered) -> tuple[Cause, ...]:
    """Return why the newest release was not chosen: requests and requirements that exclude it, else its own unmet ones."""
    side = answered.side
    found: list[Cause] = []
    request = side.request(name)
    if request is not None and is_ruled_out(name, request.range, str(newest.version)):
        found.append(HeldByRequest(name=name, range=request.range, places=request.places))
    for table in ("constraints", "overrides"):
        bound = side.value(f"{table}.{name}")
        if is_ruled_out(name, bound, str(newest.version)):
            found.append(HeldByBound(table=table, name=name, range=bound, places=side.places_of(f"{table}.{name}")))
    for entry, requirement in side.requirements_of(name):
        if not requirement.specifier.contains(newest.version, prereleases=True):
            found.append(HeldByPackage(dependent=entry.subject, requirement=str(requirement)))
    return tuple(found) or tuple(_own_needs(newest, answered)) or (UnknownHold(name=name),)


def _own_needs(newest: PackageRelease, answered: _Answered) -> Iterator[Cause]:
    """Yield the newest release's requirements that the lock does not meet, or a cause that its metadata is unavailable."""
    package = Subject(newest.name, str(newest.version))
    try:
        requirements = answered.source.requirements(newest)
    except ProvisionError as error:
        yield NoMetadata(package=package, problem=error.message)
        return
    for requirement in requirements:
        for entry in answered.side.packages.get(canonicalize_name(requirement.name), ()):
            if not requirement.specifier.contains(PackageVersion(entry.version), prereleases=True):
                has = entry.subject
                yield ByOwnNeed(package=package, requirement=str(requirement), needed=has, is_held=True)
