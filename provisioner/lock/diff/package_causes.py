"""Why packages differ between two locks: what requires them, what was asked for, what was released since; else: unknown.

A requirement is the cause only where it rules the other version out; "released since" is said only where the new file is
younger than every file of the old lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.lock.diff.causes import key_words, unknown
from provisioner.lock.diff.comparison import Cause
from provisioner.lock.diff.package_requests import asked_causes, fails, spelled
from provisioner.names import COMPONENT_OF_DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from provisioner.lock.diff.comparison import Change
    from provisioner.lock.diff.side import Side
    from provisioner.lock.format.model import LockedPackage


def package_causes(change: Change, old: Side, new: Side) -> tuple[Cause, ...]:
    """Why a package came, went, moved, or is another file of the same version; never empty."""
    if change.aspect != "version":
        return tuple(_of_same_version(change, old, new)) or (unknown(old, new),)
    reading = _of_one_lock if change.change in {"added", "removed"} else _of_moved
    found = tuple(reading(change, old, new))
    return found or (unknown(old, new),)


def _is_moved(name: str, old: Side, new: Side) -> bool:
    return old.version(name) != new.version(name)


def _of_component(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """`torch` is the component `pytorch`, whose own change says why."""
    component = COMPONENT_OF_DISTRIBUTION.get(change.subject)
    if component and old.labels.get(component) != new.labels.get(component):
        yield Cause(kind="follows", subject=component, text=f"{change.subject} is the component {component}")


def _of_one_lock(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Why a package is in one lock only: it was asked for there, or what required it came or went."""
    name = change.subject
    yield from _of_component(change, old, new)
    is_new = change.change == "added"
    here, elsewhere = (new, old) if is_new else (old, new)
    request = here.request(name)
    if request is not None and elsewhere.request(name) is None:
        asked = spelled(name, request[0])
        text = f"the spec asks for `{asked}` now" if is_new else f"the spec asked for `{asked}` and does no longer"
        yield Cause(kind="spec", text=text, where=request[1])
        return
    dependents = here.dependents_of(name)
    if not dependents and here.inputs:
        told = "no package of the lock requires it, so the spec does"
        yield Cause(kind="spec", text=told if is_new else "no package of the old lock required it, so its spec did")
    yield from _of_dependents(name, dependents, (old, new), "requires it now" if is_new else "required it before")


def _of_dependents(name: str, dependents: tuple[str, ...], sides: tuple[Side, Side], verb: str) -> Iterator[Cause]:
    """Packages that came, went or moved and so brought or took this one; else the Python that their markers ask for."""
    old, new = sides
    moving = [one for one in dependents if _is_moved(one, old, new)]
    for one in moving:
        yield Cause(kind="follows", subject=one, text=f"{one} {_version_that(one, sides, verb)} {verb}{_as(name, one, sides)}")
    if dependents and not moving and old.labels.get("python") != new.labels.get("python"):
        here = (old if verb.endswith("before") else new).labels.get("python", "")
        yield Cause(kind="follows", subject="python", text=f"{dependents[0]} requires it on python {here}")


def _version_that(name: str, sides: tuple[Side, Side], verb: str) -> str:
    return sides[0 if verb.endswith("before") else 1].version(name)


def _as(name: str, dependent: str, sides: tuple[Side, Side]) -> str:
    """How the dependent spells the requirement, in the lock that has it."""
    for side in reversed(sides):
        for entry, requirement in side.requirements_of(name):
            if entry.name == dependent:
                return f" (`{requirement}`)"
    return ""


def _of_moved(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    name = change.subject
    found = [*_of_component(change, old, new), *asked_causes(change, old, new)]
    found += [
        _ruled_out(entry.name, entry.version, requirement, change.old)
        for entry, requirement in _excluding(new, name, change.old)
    ]
    found = found or [*_of_own_needs(name, old, new)]
    if not found:
        for entry, requirement in _excluding(old, name, change.new):
            text = f"{entry.name} {entry.version} required `{requirement}` before"
            is_gone = new.version(entry.name) == ""
            found.append(Cause(kind="follows", subject=entry.name, text=f"{text}{' and is gone' if is_gone else ''}"))
    yield from found or [*_of_index(change, old, new)] or _of_freed(change, old, new)


def _of_own_needs(name: str, old: Side, new: Side) -> Iterator[Cause]:
    """What the old version required itself and the new lock no longer has in that range."""
    for entry in old.packages.get(name, ()):
        for text in entry.requires:
            requirement = Requirement(text)
            needed = canonicalize_name(requirement.name)
            moved = [one for one in new.packages.get(needed, ()) if _is_moved(needed, old, new)]
            for one in moved:
                if not requirement.specifier.contains(one.version, prereleases=True):
                    said = f"{name} {entry.version} requires `{requirement}`, and {needed} is {one.version} now"
                    yield Cause(kind="follows", subject=needed, text=said)


def _of_freed(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """What the new version requires itself and the old spec ruled out, of another package."""
    for entry in new.packages.get(change.subject, ()):
        for text in entry.requires:
            requirement = Requirement(text)
            needed = canonicalize_name(requirement.name)
            now, said = new.version(needed), (old.request(needed) or ("", ""))[0]
            bound = (old.asked or {}).get(f"constraints.{needed}", "")
            if not _is_moved(needed, old, new) or requirement.specifier.contains(old.version(needed) or "0", prereleases=True):
                continue
            if fails(needed, said, now) or fails(needed, bound, now):
                before = f"asked for `{needed}{said}`" if fails(needed, said, now) else f"constrained it to `{needed}{bound}`"
                told = f"{entry.name} {entry.version} requires `{requirement}`, and the spec {before}"
                yield Cause(kind="follows", subject=needed, text=told)


def _excluding(side: Side, name: str, version: str) -> Iterator[tuple[LockedPackage, Requirement]]:
    try:
        found = PackageVersion(version)
    except InvalidVersion:
        return
    for entry, requirement in side.requirements_of(name):
        if not requirement.specifier.contains(found, prereleases=True):
            yield entry, requirement


def _ruled_out(dependent: str, version: str, requirement: Requirement, old: str) -> Cause:
    return Cause(kind="follows", subject=dependent, text=f"{dependent} {version} requires `{requirement}`, which {old} is not")


def _of_index(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """A release that the old lock could not have, by the dates its index gives."""
    if change.change != "upgraded":
        return
    uploaded, before = _uploaded(new, change.subject), old.newest_upload()
    cutoffs = [(side.asked or {}).get("policy.exclude-newer") for side in (old, new)]
    if uploaded and cutoffs[0] and cutoffs[0] != cutoffs[1] and uploaded.date().isoformat() > cutoffs[0][:10]:
        text = f"the spec says {key_words('policy.exclude-newer', cutoffs[0], cutoffs[1])}; it was uploaded {_day(uploaded)}"
        yield Cause(kind="spec", text=text, where=new.place("policy.exclude-newer"))
    elif uploaded and before and uploaded > before:
        text = f"released since: uploaded {_day(uploaded)}, the newest file of the old lock {_day(before)}"
        yield Cause(kind="index", text=text)


def _uploaded(side: Side, name: str) -> datetime | None:
    times = [file.upload_time for entry in side.packages.get(name, ()) for file in entry.files if file.upload_time]
    return min(times, default=None)


def _day(moment: datetime) -> str:
    return moment.date().isoformat()


def _of_same_version(change: Change, old: Side, new: Side) -> Iterator[Cause]:
    """Another file or requirement of the same version: because Python moved, or the indexes of the spec did."""
    python = old.labels.get("python"), new.labels.get("python")
    if change.aspect == "file" and python[0] != python[1] and all(python):
        yield Cause(kind="follows", subject="python", text=f"python {python[1]} takes another file")
    elif change.aspect == "requires" and python[0] != python[1] and all(python):
        yield Cause(kind="follows", subject="python", text=f"its markers say something else on python {python[1]}")
    elif change.aspect in {"file", "index", "place"} and old.asked is not None and new.asked is not None:
        keys = sorted(key for key in {*old.asked, *new.asked} if key.startswith("indexes."))
        moved = [key for key in keys if old.asked.get(key) != new.asked.get(key)]
        for key in moved[:1]:
            yield Cause(kind="spec", text=f"the spec says {key_words(key, old.asked.get(key), new.asked.get(key))}")
