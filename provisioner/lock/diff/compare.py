"""Two locks -> their changes and the causes, from the two files alone, without an index, the matrix or hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.errors import InvalidDocumentError
from provisioner.grounds.change import SECTIONS, Change, Comparison, EditedByHand, OfSpec, OtherProgram
from provisioner.lock.diff.causes import system_causes
from provisioner.lock.diff.hosts import host_changes
from provisioner.lock.diff.package_causes import package_causes
from provisioner.lock.diff.packages import by_name, package_changes
from provisioner.lock.diff.side import Side, inputs_of, side_of
from provisioner.lock.diff.system import differences, system_changes
from provisioner.lock.format.file import KIND, parse_any_lock, verify_digest
from provisioner.lock.format.model import Lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.errors import Mistake
    from provisioner.lock.diff.side import Places
    from provisioner.lock.format.model import LockedPackage


def compare(old: Lock, new: Lock, *, places: Places | None = None) -> Comparison:
    """Return every difference between two locks; an equal change on several platforms is one change.

    `places` are the lines of the new lock's spec by key, if the lock was made from that spec just now; otherwise None.
    """
    shared = tuple(platform for platform in old.platforms if platform in new.platforms)
    found = list(_platform_changes(old, new))
    unchanged: set[str] = set()
    for platform in shared:
        sides = side_of(old, platform), side_of(new, platform, places)
        changes = list(_side_changes(*sides))
        found += [replace(change, platforms=(platform,)) for change in changes]
        touched = {change.subject for change in changes if change.section == "packages"}
        unchanged |= sides[1].packages.keys() - touched
    unchanged -= {change.subject for change in found if change.section == "packages"}
    return Comparison(changes=(*_merged(found), *_input_changes(old, new)), platforms=shared, unchanged=len(unchanged))


def compare_texts(old: tuple[str, str], new: tuple[str, str]) -> Comparison:
    """Compare two lock files, each given as its name and its text; only their packages if another program wrote one of them.

    Raises `InvalidDocumentError` with the mistakes of both files.
    """
    mistakes: list[Mistake] = []
    hints: list[str] = []
    locks: list[Lock | tuple[LockedPackage, ...]] = []
    for name, text in (old, new):
        try:
            locks.append(parse_any_lock(text, file=name))
        except InvalidDocumentError as error:
            mistakes += error.mistakes
            hints += error.hints
    if mistakes:
        raise InvalidDocumentError(KIND, tuple(mistakes), hints=tuple(dict.fromkeys(hints)))
    before, after = locks
    files = ((name, text, lock) for (name, text), lock in zip((old, new), locks, strict=True))
    edited = tuple(EditedByHand(name) for name, text, lock in files if isinstance(lock, Lock) and not verify_digest(text))
    if isinstance(before, Lock) and isinstance(after, Lock):
        return replace(compare(before, after), notes=edited)
    others = tuple(name for (name, _), lock in zip((old, new), locks, strict=True) if not isinstance(lock, Lock))
    sides = [Side(packages=by_name(lock.packages if isinstance(lock, Lock) else lock)) for lock in locks]
    changes = tuple(_package_changes(*sides))
    unchanged = len(sides[1].packages.keys() - {change.subject for change in changes})
    return Comparison(changes=changes, unchanged=unchanged, notes=(*edited, OtherProgram(others)))


def _side_changes(old: Side, new: Side) -> Iterator[Change]:
    assert old.stack is not None, "a platform of a lock has a stack"
    assert new.stack is not None, "a platform of a lock has a stack"
    for change in (*host_changes(old.stack, new.stack), *system_changes(old.stack, new.stack)):
        yield replace(change, causes=system_causes(change, old, new))
    yield from _package_changes(old, new)


def _package_changes(old: Side, new: Side) -> Iterator[Change]:
    for change in package_changes(old.packages, new.packages):
        yield replace(change, causes=package_causes(change, old, new))


def _platform_changes(old: Lock, new: Lock) -> Iterator[Change]:
    """Yield a change for each platform that only one of the locks has; its stack and packages are not compared."""
    for one in old.platforms:
        if one not in new.platforms:
            yield Change(section="hosts", subject="platform", change="removed", old=one, is_breaking=True)
    for one in new.platforms:
        if one not in old.platforms:
            yield Change(section="hosts", subject="platform", change="added", new=one)


def _merged(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return equal changes on several platforms as one, ordered by section, breaking changes first in each section."""
    platforms: dict[Change, tuple[str, ...]] = {}
    for change in changes:
        plain = replace(change, platforms=())
        platforms[plain] = (*platforms.get(plain, ()), *change.platforms)
    merged = [replace(change, platforms=where) for change, where in platforms.items()]
    return tuple(sorted(merged, key=lambda change: (SECTIONS.index(change.section), not change.is_breaking)))


def _input_changes(old: Lock, new: Lock) -> Iterator[Change]:
    """Yield the changed inputs of two locks: name, spec (key by key if both locks record the keys), matrix and program."""
    before, after = {**inputs_of(old), "name": old.name}, {**inputs_of(new), "name": new.name}

    def changed(name: str) -> Iterator[Change]:
        if before[name] != after[name]:
            yield Change(section="inputs", subject=name, change="changed", old=before[name], new=after[name])

    yield from changed("name")
    keys = list(differences(old.asked, new.asked)) if old.asked and new.asked else []
    if keys and before["spec"] != after["spec"]:
        for key, change, value, now in keys:
            yield Change(section="inputs", subject=key, change=change, old=value, new=now)
    else:
        detail = OfSpec(is_recorded=bool(old.asked and new.asked))
        yield from (replace(change, detail=detail) for change in changed("spec"))
    yield from changed("matrix")
    yield from changed("provision")
