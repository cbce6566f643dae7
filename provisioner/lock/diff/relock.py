"""What solving again would change: a lock beside its successor, with what only an index knows, and what stays behind.

`compare` reads causes off two lock files. Here the index was just asked, so a change that two files cannot explain has dates,
withdrawn and vanished files to explain it, and what is not the newest has something that holds it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.errors import ProvisionError
from provisioner.index.markers import marker_environment
from provisioner.lock.check.files import NO_INDEX
from provisioner.lock.diff.compare import compare
from provisioner.lock.diff.comparison import Cause
from provisioner.lock.diff.side import Side, side_of
from provisioner.lock.format.artifact import upload_moment
from provisioner.names import COMPONENT_OF_DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from packaging.requirements import Requirement as Pep508
    from packaging.utils import NormalizedName

    from provisioner.index.model import Environment, PackageRelease
    from provisioner.lock.check.files import Offer
    from provisioner.lock.diff.comparison import Change, Comparison
    from provisioner.lock.format.model import Lock, LockedPackage


class Releases(Protocol):
    """What is asked of the indexes here; `provisioner.index.model.PackageSource` is one."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Every version, newest first, usable or not."""

    def requirements(self, release: PackageRelease) -> tuple[Pep508, ...]:
        """What a release requires, markers not evaluated."""


class Held(Struct, frozen=True, kw_only=True):
    """A package of an answer that is not the newest its index offers for this environment, and what holds it back."""

    name: str
    version: str
    newest: str
    uploaded: str
    platform: str
    causes: tuple[Cause, ...]


class _Answered(Struct, frozen=True, kw_only=True):
    """An answer on one platform and the indexes it was made from."""

    side: Side
    source: Releases
    environment: Environment


def successor_changes(
    old: Lock,
    new: Lock,
    found: Sequence[Offer] = (),
    *,
    is_upgrade: bool = False,
    places: Mapping[str, str] | None = None,
) -> Comparison:
    """Everything that differs between a lock and the one that solving again gives; causes as far as lock and index know.

    `is_upgrade` means that the new one was made without the old one as its preference; `places` say where each key of the
    spec stands.
    """
    comparison = compare(old, new, places=places)
    changes = []
    for change in comparison.changes:
        causes = _causes(change, (old, new), found)
        changes.append(replace(change, causes=tuple(_known(cause, is_upgrade=is_upgrade) for cause in causes)))
    return replace(comparison, changes=tuple(changes))


def _known(cause: Cause, *, is_upgrade: bool) -> Cause:
    """A cause that two locks leave unknown, without the doubts that do not arise where both were made here and now."""
    if cause.kind != "unknown":
        return cause
    without = "; without a lock to keep to, it is what the policy takes first" if is_upgrade else ""
    return replace(cause, text=f"unknown: no recorded request or rule explains it{without}")


def _causes(change: Change, locks: tuple[Lock, Lock], found: Sequence[Offer]) -> tuple[Cause, ...]:
    """What the index says of the old file first, then what the locks prove; a date instead of nothing."""
    if change.section == "system" and change.subject == "installer":
        return tuple(_of_installer(change, locks[1])) or change.causes
    if change.section != "packages":
        return change.causes
    offered = tuple(_of_offer(offer) for offer in found if offer.name == change.subject and offer.kind != "redated")
    proven = tuple(cause for cause in change.causes if cause.kind != "unknown")
    if offered or proven:
        return (*offered, *proven)
    dated = tuple(_of_dates(change, locks)) if change.change == "upgraded" else ()
    return dated or change.causes


def _of_offer(offer: Offer) -> Cause:
    text = f"index {offer.index} has another file under this name" if offer.kind == "exchanged" else offer.text
    return Cause(kind="index", text=text)


def _of_installer(change: Change, new: Lock) -> Iterator[Cause]:
    """The installer is the newest an index offers, whatever else is chosen."""
    for stack in new.stacks:
        if change.new and stack.installer is not None and stack.installer.version in change.new:
            moment = stack.installer.file.upload_time
            since = f"{stack.installer.version} is out since {moment.date().isoformat()}" if moment else "a newer one is out"
            yield Cause(kind="index", text=since)
            return


def _of_dates(change: Change, locks: tuple[Lock, Lock]) -> Iterator[Cause]:
    """When a newer release came that was there before the lock's newest file: what kept it away then, no lock records."""
    for package in locks[1].packages:
        times = [file.upload_time for file in package.files if file.upload_time is not None]
        if package.name == change.subject and package.version in change.new and times:
            when = min(times).date().isoformat()
            yield Cause(kind="index", text=f"{package.version} is out since {when}, and nothing recorded rules it out")
            return


def held_back(
    lock: Lock, source: Releases, environment: Environment, *, places: Mapping[str, str] | None = None
) -> Iterator[Held]:
    """What an answer does not take in its newest release, on the platform of `environment`, by name.

    `lock` is the answer, and `source` the indexes it was made from. Only releases an installer would take of its own accord
    count. Components of the stack have the matrix to explain them. `places` say where each key of the spec stands. Raises
    `UnavailableError`.
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
    """The newest usable release where it is newer than the locked one; None where the lock has it, or nothing is known."""
    name = canonicalize_name(package.name)
    try:
        locked = PackageVersion(package.version)
    except InvalidVersion:
        return None
    newest = next((one for one in source.releases(name, index=package.index) if one.is_usable), None)
    return newest if newest is not None and newest.version > locked else None


def _holding(name: str, newest: PackageRelease, answered: _Answered) -> tuple[Cause, ...]:
    """The request or the requirements that rule the newest release out, else those of its own that the answer does not meet."""
    found = [*_requested(name, newest, answered.side)]
    for entry, requirement in answered.side.requirements_of(name):
        if not requirement.specifier.contains(newest.version, prereleases=True):
            text = f"{entry.name} {entry.version} requires `{requirement}`"
            found.append(Cause(kind="follows", subject=entry.name, text=text))
    found = found or [*_own_needs(newest, answered)]
    untold = f"unknown: nothing in the answer rules it out by itself; `provision explain {name}` tries it"
    return tuple(found) or (Cause(kind="unknown", text=untold),)


def _requested(name: str, newest: PackageRelease, side: Side) -> Iterator[Cause]:
    """What the spec itself says of a distribution, where that rules its newest release out."""
    said, where = side.request(name) or ("", "")
    if _rules_out(name, said, newest):
        yield Cause(kind="spec", text=f"the spec asks for `{name}{said}`", where=where)
    for key, words in (("constraints", "constrains it to"), ("overrides", "overrides it with")):
        bound = (side.asked or {}).get(f"{key}.{name}", "")
        if _rules_out(name, bound, newest):
            yield Cause(kind="spec", text=f"the spec {words} `{name}{bound}`", where=side.place(f"{key}.{name}"))


def _rules_out(name: str, said: str, newest: PackageRelease) -> bool:
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Pep508

    if said in {"", "any version"}:
        return False
    try:
        specifier = Pep508(f"{name}{said}").specifier
    except InvalidRequirement:  # several for different environments: not judged
        return False
    return not specifier.contains(newest.version, prereleases=True)


def _own_needs(newest: PackageRelease, answered: _Answered) -> Iterator[Cause]:
    """What the newest release itself requires and the answer does not have; nothing where its metadata cannot be had."""
    try:
        requirements = answered.source.requirements(newest)
    except ProvisionError as error:
        yield Cause(kind="index", text=f"{newest.name} {newest.version} cannot be taken: {error.message}")
        return
    markers = marker_environment(answered.environment)
    for requirement in requirements:
        if requirement.marker is None or requirement.marker.evaluate({**markers, "extra": ""}):
            yield from _unmet(newest, requirement, answered.side)


def _unmet(newest: PackageRelease, requirement: Pep508, side: Side) -> Iterator[Cause]:
    needed = canonicalize_name(requirement.name)
    for entry in side.packages.get(needed, ()):
        if not requirement.specifier.contains(PackageVersion(entry.version), prereleases=True):
            text = f"{newest.name} {newest.version} requires `{requirement}`, and the answer has {needed} {entry.version}"
            yield Cause(kind="follows", subject=needed, text=text)
