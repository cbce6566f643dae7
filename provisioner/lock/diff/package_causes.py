"""Causes of changes of packages between two locks: dependents, requests, new releases; otherwise unknown.

A requirement is the cause only if it rules the other version out; a new release only if its file was uploaded after every file
of the old lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.grounds.change import (
    BroughtAlong,
    ByBound,
    ByComponent,
    ByKey,
    ByNoDependent,
    ByOwnNeed,
    ByPython,
    ByRequest,
    FreedFrom,
    FreedNeed,
    ReleasedSince,
    RuledOutBy,
    TakenAlong,
    Unknown,
    UnknownElsewhere,
)
from provisioner.grounds.requirement import Subject
from provisioner.lock.requested import EXCLUDE_NEWER, recorded_requirements
from provisioner.names import COMPONENT_OF_DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from provisioner.grounds.change import Cause, Change
    from provisioner.lock.diff.side import Side
    from provisioner.lock.format.model import LockedPackage

_INPUTS = ("spec", "matrix", "provision")


def package_causes(change: Change, old: Side, new: Side) -> tuple[Cause, ...]:
    """Return the causes of a change of a package; never empty, because an unknown cause is one, too."""
    if change.aspect != "version":
        found = tuple(_of_same_version(change, old, new))
    elif change.change in {"added", "removed"}:
        found = tuple(_of_one_lock(change, old, new))
    else:
        found = tuple(_of_moved(change, old, new))
    return found or (unknown(old, new),)


def requested_causes(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the changed requests, constraints and overrides of a distribution that rule its old or new version out."""
    name = change.subject
    before, after = old.request(name), new.request(name)
    was, now = before.range if before else "", after.range if after else ""
    last = after or before
    if last is not None and was != now and (is_ruled_out(name, now, change.old) or is_ruled_out(name, was, change.new)):
        yield ByRequest(name=name, before=was, after=now, is_distribution=True, places=last.places)
    for table in ("constraints", "overrides"):
        key = f"{table}.{name}"
        was, now = old.value(key), new.value(key)
        if was != now and (is_ruled_out(name, now, change.old) or is_ruled_out(name, was, change.new)):
            places = (new if now else old).places_of(key)
            yield ByBound(table=table, name=name, before=was, after=now, places=places)


def is_ruled_out(name: str, wanted: str, version: str) -> bool:
    """Return whether a recorded request excludes a version; False for several requests, which are for several environments."""
    requirements = recorded_requirements(name, wanted) if wanted else ()
    try:
        return len(requirements) == 1 and not requirements[0].specifier.contains(PackageVersion(version), prereleases=True)
    except ValueError:  # also for numbers with more digits than Python converts
        return False


def unknown(old: Side, new: Side) -> Cause:
    """Return an unknown cause, with the inputs that differ between the locks and may be the reason."""
    if not old.inputs or not new.inputs:
        return UnknownElsewhere()
    inputs = tuple(name for name in _INPUTS if old.inputs.get(name) != new.inputs.get(name))
    if "spec" not in inputs or old.requested is None or new.requested is None:
        return Unknown(inputs=inputs)
    keys = sorted({*old.requested, *new.requested})
    return Unknown(inputs=inputs, keys=tuple(key for key in keys if old.requested.get(key) != new.requested.get(key)))


def _is_moved(name: str, old: Side, new: Side) -> bool:
    return old.version(name) != new.version(name)


def _of_component(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the component that a distribution is, such as `pytorch` for `torch`, if the component changed as well."""
    component = COMPONENT_OF_DISTRIBUTION.get(change.subject)
    if component and old.labels.get(component) != new.labels.get(component):
        yield ByComponent(name=change.subject, component=component)


def _of_one_lock(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the causes why only one lock has a package: a request for it, or a dependent that was added, removed or changed."""
    name = change.subject
    yield from _of_component(change, old, new)
    is_new = change.change == "added"
    here, elsewhere = (new, old) if is_new else (old, new)
    request = here.request(name)
    if request is not None and elsewhere.request(name) is None:
        was, now = ("", request.range) if is_new else (request.range, "")
        yield ByRequest(name=name, before=was, after=now, is_distribution=True, places=request.places)
        return
    dependents = here.dependents_of(name)
    if not dependents and here.inputs:
        yield ByNoDependent(is_new=is_new)
    moving = [one for one in dependents if _is_moved(one, old, new)]
    for one in moving:
        spelled = _spelled(name, one, new) or _spelled(name, one, old)
        kind = BroughtAlong if is_new else TakenAlong
        yield kind(dependent=Subject(one, here.version(one)), requirement=spelled)
    if dependents and not moving and old.labels.get("python") != new.labels.get("python"):
        yield ByPython(python=here.labels.get("python", ""), aspect="dependent", dependent=dependents[0])


def _spelled(name: str, dependent: str, side: Side) -> str:
    """Return the requirement of a dependent as its metadata spells it; "" when the lock does not record the requirement."""
    return next((str(requirement) for entry, requirement in side.requirements_of(name) if entry.name == dependent), "")


def _of_moved(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    name = change.subject
    found: list[Cause] = [*_of_component(change, old, new), *requested_causes(change, old, new)]
    for entry, requirement in _excluding(new, name, change.old):
        found.append(RuledOutBy(dependent=entry.subject, requirement=str(requirement), version=change.old))
    found = found or [*_of_own_needs(name, old, new)]
    if not found:
        for entry, requirement in _excluding(old, name, change.new):
            is_gone = new.version(entry.name) == ""
            found.append(FreedFrom(dependent=entry.subject, requirement=str(requirement), is_gone=is_gone))
    yield from found or [*by_day(name, old, new)] or [*_of_index(change, old, new)] or _of_freed(change, old, new)


def _of_own_needs(name: str, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the requirements of the old version of a package that a changed package of the new lock does not meet."""
    for entry in old.packages.get(name, ()):
        for requirement in map(Requirement, entry.requires):
            needed = canonicalize_name(requirement.name)
            for one in new.packages.get(needed, ()) if _is_moved(needed, old, new) else ():
                if not requirement.specifier.contains(one.version, prereleases=True):
                    need, has = str(requirement), one.subject
                    yield ByOwnNeed(package=entry.subject, requirement=need, needed=has, is_held=False)


def _of_freed(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the requirements of the new version of a package on versions of another package that the old spec ruled out."""
    for entry in new.packages.get(change.subject, ()):
        for requirement in map(Requirement, entry.requires):
            needed = canonicalize_name(requirement.name)
            if not _is_moved(needed, old, new) or requirement.specifier.contains(old.version(needed) or "0", prereleases=True):
                continue
            request = old.request(needed)
            bounds = {"packages": request.range if request else "", "constraints": old.value(f"constraints.{needed}")}
            for table, bound in bounds.items():
                if is_ruled_out(needed, bound, new.version(needed)):
                    need = str(requirement)
                    yield FreedNeed(package=entry.subject, requirement=need, needed=needed, table=table, range=bound)
                    break


def _excluding(side: Side, name: str, version: str) -> Iterator[tuple[LockedPackage, Requirement]]:
    try:
        found = PackageVersion(version)
    except InvalidVersion:
        return
    for entry, requirement in side.requirements_of(name):
        if not requirement.specifier.contains(found, prereleases=True):
            yield entry, requirement


def by_day(name: str, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the changed day of `policy.exclude-newer`: the old one excluded the new file of a distribution, or the reverse."""
    was, now = old.value(EXCLUDE_NEWER), new.value(EXCLUDE_NEWER)
    if was == now:
        return
    came, went = _uploaded(name, new), _uploaded(name, old)
    uploaded = came.date().isoformat() if came is not None else ""
    before = went.date().isoformat() if went is not None else ""
    is_freed, is_excluded = bool(was) and uploaded > was[:10], bool(now) and before > now[:10]
    if is_freed or is_excluded:
        yield ByKey(
            key=EXCLUDE_NEWER,
            before=was or None,
            after=now or None,
            uploaded=uploaded if is_freed else "",
            uploaded_before="" if is_freed else before,
            places=new.places_of(EXCLUDE_NEWER),
        )


def _uploaded(name: str, side: Side) -> datetime | None:
    """Return when the first file of a distribution in a lock was uploaded; None if that is unknown."""
    times = [file.upload_time for one in side.packages.get(name, ()) for file in one.files if file.upload_time]
    return min(times, default=None)


def _of_index(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the upload of the new release as the cause, if it was after the old lock's newest file."""
    uploaded, newest = _uploaded(change.subject, new), old.newest_upload()
    if change.change == "upgraded" and uploaded and newest and uploaded > newest:
        yield ReleasedSince(uploaded=uploaded.date().isoformat(), newest=newest.date().isoformat())


def _of_same_version(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Yield the cause why the same version has another file or requirement: another Python, or other indexes in the spec."""
    before, python = old.labels.get("python"), new.labels.get("python")
    if change.aspect in {"file", "requires"} and before and python and before != python:
        yield ByPython(python=python, aspect=change.aspect)
    elif change.aspect in {"file", "index", "place"} and old.requested is not None and new.requested is not None:
        for key in sorted(key for key in {*old.requested, *new.requested} if key.startswith("indexes.")):
            was, now = old.requested.get(key), new.requested.get(key)
            if was != now:
                yield ByKey(key=key, before=was, after=now)
                return
