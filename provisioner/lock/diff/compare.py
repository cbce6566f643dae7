"""Two locks -> what changed between them and why, from the two files alone: no index, no matrix, no host is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.errors import InvalidDocumentError
from provisioner.lock.diff.causes import system_causes
from provisioner.lock.diff.comparison import SECTIONS, Change, Comparison, differences
from provisioner.lock.diff.hosts import host_changes
from provisioner.lock.diff.package_causes import package_causes
from provisioner.lock.diff.packages import by_name, package_changes
from provisioner.lock.diff.side import Side, inputs_of, side_of
from provisioner.lock.diff.system import system_changes
from provisioner.lock.format.any_lock import parse_any_lock
from provisioner.lock.format.file import KIND, verify_digest
from provisioner.lock.format.model import Lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.errors import Mistake
    from provisioner.lock.format.model import LockedPackage

_INPUT_WORDS = {"matrix": "the matrix", "provision": "the program"}


def compare(old: Lock, new: Lock, *, places: Mapping[str, str] | None = None) -> Comparison:
    """Everything that differs, platform by platform; what is alike on several platforms is told once.

    `places` say where the keys of the new lock's spec stand, where it was made from that just now.
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


def compare_packages(old: Side, new: Side, *, notes: tuple[str, ...] = ()) -> Comparison:
    """Two locks of which one has packages only: what can be compared is compared, and `notes` say what cannot."""
    changes = [replace(one, causes=package_causes(one, old, new)) for one in package_changes(old.packages, new.packages)]
    touched = {change.subject for change in changes}
    return Comparison(changes=tuple(changes), unchanged=len(new.packages.keys() - touched), notes=notes)


def compare_texts(old: tuple[str, str], new: tuple[str, str]) -> Comparison:
    """Compare two lock files, each given as its name and its text; of another program's lock, packages only.

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
    notes = _edited(old, before) + _edited(new, after)
    if isinstance(before, Lock) and isinstance(after, Lock):
        return replace(compare(before, after), notes=notes)
    others = [f"`{name}`" for (name, _), lock in zip((old, new), locks, strict=True) if not isinstance(lock, Lock)]
    were = "was" if len(others) == 1 else "were"
    note = (
        f"{' and '.join(others)} {were} not written by provision: only packages are compared, and nothing says why they moved."
    )
    return compare_packages(_plain_side(before), _plain_side(after), notes=(*notes, note))


def _plain_side(lock: Lock | tuple[LockedPackage, ...]) -> Side:
    return Side(packages=by_name(lock.packages if isinstance(lock, Lock) else lock))


def _edited(given: tuple[str, str], lock: Lock | tuple[LockedPackage, ...]) -> tuple[str, ...]:
    if not isinstance(lock, Lock) or verify_digest(given[1]):
        return ()
    return (f"`{given[0]}` was edited by hand: its digest does not fit its content.",)


def _side_changes(old: Side, new: Side) -> Iterator[Change]:
    assert old.stack is not None, "a platform of a lock has a stack"
    assert new.stack is not None, "a platform of a lock has a stack"
    for change in (*host_changes(old.stack, new.stack), *system_changes(old.stack, new.stack)):
        yield replace(change, causes=system_causes(change, old, new))
    for change in package_changes(old.packages, new.packages):
        yield replace(change, causes=package_causes(change, old, new))


def _platform_changes(old: Lock, new: Lock) -> Iterator[Change]:
    """Platforms that the other lock does not have: nothing of theirs can be compared."""
    for platform in old.platforms:
        if platform not in new.platforms:
            text = f"platform {platform} is gone: its hosts fall out"
            yield Change(section="hosts", subject="platform", change="removed", text=text, old=platform, is_breaking=True)
    for platform in new.platforms:
        if platform not in old.platforms:
            yield Change(section="hosts", subject="platform", change="added", text=f"platform {platform} is new", new=platform)


def _merged(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The same change on several platforms as one; sections in order, what breaks hosts first in each."""
    platforms: dict[Change, tuple[str, ...]] = {}
    for change in changes:
        plain = replace(change, platforms=())
        platforms[plain] = (*platforms.get(plain, ()), *change.platforms)
    merged = [replace(change, platforms=where) for change, where in platforms.items()]
    return tuple(sorted(merged, key=lambda change: (SECTIONS.index(change.section), not change.is_breaking)))


def _input_changes(old: Lock, new: Lock) -> Iterator[Change]:
    """What the locks were made from: the spec key by key where both record it, the matrix, and the program."""
    if old.name != new.name:
        text = f"the locks have different names: {old.name} and {new.name}"
        yield Change(section="inputs", subject="name", change="changed", text=text, old=old.name, new=new.name)
    yield from _spec_changes(old, new)
    before, after = inputs_of(old), inputs_of(new)
    for name, words in _INPUT_WORDS.items():
        said, says = before[name], after[name]
        if said != says:
            shown = f"{_short(said)} -> {_short(says)}"
            yield Change(section="inputs", subject=name, change="changed", text=f"{words} changed: {shown}", old=said, new=says)


def _spec_changes(old: Lock, new: Lock) -> Iterator[Change]:
    if old.spec_digest == new.spec_digest:
        return
    changed = list(differences(old.asked, new.asked))
    if not old.asked or not new.asked or not changed:
        words = (
            "keys that decide no version, or its hosts"
            if old.asked and new.asked
            else "an earlier version kept no record of what"
        )
        text = f"the spec changed ({words})"
        yield Change(section="inputs", subject="spec", change="changed", text=text, old=old.spec_digest, new=new.spec_digest)
        return
    for key, change, said, says in changed:
        text = {
            "added": f"the spec says `{key}: {says}` now",
            "removed": f"the spec no longer says `{key}: {said}`",
            "changed": f"the spec says `{key}: {says}`, it said `{said}`",
        }[change]
        yield Change(section="inputs", subject=key, change=change, text=text, old=said, new=says)


def _short(digest: str) -> str:
    """The first characters of a hash, which are enough to tell two apart; a version as it is."""
    bare = digest.removeprefix("sha256:")
    return bare[:12] if len(bare) > 32 else digest
