"""The Python packages of two locks: added, removed, moved, or the same version from another file or index.

Works on any two lists of locked packages, those of a lock that another program wrote included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.lock.diff.comparison import Change
from provisioner.lock.diff.system import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.lock.format.model import LockedFile, LockedPackage

Packages = dict[str, tuple["LockedPackage", ...]]
"""Every distribution of a lock by its name; several entries where it holds several versions for different environments."""

_CALENDAR = 1900
"""A first number as large as this is a year, of which no compatibility is promised or broken."""


def by_name(packages: Sequence[LockedPackage]) -> Packages:
    """The packages of a lock by name, the entries of one name in the order of their versions."""
    found: dict[str, list[LockedPackage]] = {}
    for package in packages:
        found.setdefault(package.name, []).append(package)
    return {name: tuple(sorted(found[name], key=lambda one: (one.version, one.platforms))) for name in sorted(found)}


def version_of(entries: Sequence[LockedPackage]) -> str:
    """The version of a distribution; of several entries all of them, and words for one that has none (a checkout, say)."""
    versions = dict.fromkeys(entry.version or "without a version" for entry in entries)
    return " and ".join(versions)


def package_changes(old: Packages, new: Packages) -> Iterator[Change]:
    """Every distribution that is not the same in both, by name; one whose version stayed may have several changes."""
    for name in sorted({*old, *new}):
        before, after = old.get(name, ()), new.get(name, ())
        if version_of(before) != version_of(after):
            yield _of_version(name, version_of(before), version_of(after))
            if before and after:
                yield from _of_other_files(f"{name} {version_of(after)}", before, after)
        else:
            yield from _of_same_version(name, before, after)


def _of_version(name: str, old: str, new: str) -> Change:
    change, note = _moved(old, new)
    text = arrow(name, old, new) + (f", {note}" if note else "")
    return Change(section="packages", subject=name, change=change, aspect="version", text=text, old=old, new=new)


def _moved(old: str, new: str) -> tuple[str, str]:
    """How a version moved, and what a reviewer should know of it."""
    if not old or not new:
        return ("added" if new else "removed"), ""
    try:
        before, after = PackageVersion(old), PackageVersion(new)
    except InvalidVersion:
        return "changed", ""
    if before.public == after.public:
        return "changed", "another build"
    is_major = (before.epoch, before.major) != (after.epoch, after.major) and before.major < _CALENDAR
    if before < after:
        return "upgraded", "a new major version" if is_major else ""
    return "downgraded", "a downgrade to an older major version" if is_major else "a downgrade"


def _of_same_version(name: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    version = version_of(new)
    before, after = _files(old), _files(new)
    exchanged = sorted(
        filename for filename in before.keys() & after.keys() if before[filename].sha256 != after[filename].sha256
    )
    for filename in exchanged:
        hashes = before[filename].sha256, after[filename].sha256
        text = f"{name} {version}: `{filename}` has other content under the same name: sha256 {hashes[0]} -> {hashes[1]}"
        yield _same(name, "content", text, (hashes[0], hashes[1]))
    if before.keys() != after.keys():
        gone, come = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
        text = f"{name} {version} {_files_moved(gone, come)}"
        yield _same(name, "file", text, (", ".join(gone), ", ".join(come)))
    if not exchanged and before.keys() == after.keys():
        yield from _of_same_files(f"{name} {version}", old, new)
    else:
        yield from _of_other_files(f"{name} {version}", old, new)


def _files_moved(gone: list[str], come: list[str]) -> str:
    """Which files an installer chooses from now; of one wheel each, only the tags that differ."""
    if len(gone) == len(come) == 1 and (tags := _tags_moved(gone[0], come[0])):
        return f"from another wheel: {tags}"
    if gone and come:
        return f"from another file: {', '.join(gone)} -> {', '.join(come)}"
    return f"from {', '.join(come)}, too" if come else f"no longer from {', '.join(gone)}"


def _tags_moved(old: str, new: str) -> str:
    """`cp312-cp312 -> cp313-cp313` of two wheels that differ in no more; "" where a name is not that of a wheel."""
    before, after = old.removesuffix(".whl").split("-"), new.removesuffix(".whl").split("-")
    if not (old.endswith(".whl") and new.endswith(".whl") and min(len(before), len(after)) >= 5):
        return ""
    ends = before[2:], after[2:]
    if len(ends[0]) == len(ends[1]):
        apart = [index for index in range(len(ends[0])) if ends[0][index] != ends[1][index]]
        ends = [ends[0][index] for index in apart], [ends[1][index] for index in apart]
    return f"{'-'.join(ends[0])} -> {'-'.join(ends[1])}" if before[:2] == after[:2] else ""


def _of_same_files(label: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    """What may differ around one file: where it comes from, and what it requires here."""
    name = new[0].name
    indexes = [", ".join(dict.fromkeys(entry.index for entry in entries if entry.index)) for entries in (old, new)]
    urls = [_index_urls(old), _index_urls(new)]
    if indexes[0] != indexes[1] and not (urls[0] == urls[1] != ""):
        text = f"{label} comes from index {indexes[1] or '(unnamed)'}, it came from {indexes[0] or '(unnamed)'}"
        yield _same(name, "index", text, (indexes[0], indexes[1]))
    elif (places := [_places(old), _places(new)])[0] != places[1]:
        text = f"{label}: the same file from another place: {places[0]} -> {places[1]}"
        yield _same(name, "place", text, (places[0], places[1]))
    elif urls[0] != urls[1] and all(urls):
        text = f"{label}: index {indexes[1]} is at {urls[1]}, it was at {urls[0]}"
        yield _same(name, "index", text, (urls[0], urls[1]))
    yield from _of_same_metadata(label, old, new)
    requires = [sorted({text for entry in entries for text in entry.requires}) for entries in (old, new)]
    if requires[0] != requires[1]:
        gone = [text for text in requires[0] if text not in requires[1]]
        come = [text for text in requires[1] if text not in requires[0]]
        parts = [f"no longer requires `{text}`" for text in gone] + [f"requires `{text}` now" for text in come]
        text = f"{label} {' and '.join(parts)}"
        yield _same(name, "requires", text, (", ".join(gone), ", ".join(come)))


def _of_other_files(label: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    """Whether other files come from another index, too: who took a name over has other files, or another version."""
    indexes = [", ".join(dict.fromkeys(entry.index for entry in entries if entry.index)) for entries in (old, new)]
    urls = [_index_urls(old), _index_urls(new)]
    if all(indexes) and indexes[0] != indexes[1] and not (urls[0] == urls[1] != ""):
        text = f"{label} comes from index {indexes[1]}, it came from {indexes[0]}"
        yield _same(new[0].name, "index", text, (indexes[0], indexes[1]))


def _of_same_metadata(label: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    """What indexes tell of the same files: who attests them, which Python they need, which variants there are.

    Earlier versions recorded none of it, so what the old lock does not say is no change.
    """
    name = new[0].name
    attested = [_identities(old), _identities(new)]
    if attested[0] != attested[1] and attested[0]:
        text = f"{label} is attested by {attested[1] or 'nobody that is recorded'}, it was by {attested[0]}"
        yield _same(name, "attestations", text, (attested[0], attested[1]))
    pythons = [
        ", ".join(dict.fromkeys(one.requires_python for one in entries if one.requires_python)) for entries in (old, new)
    ]
    if pythons[0] != pythons[1] and pythons[0]:
        text = f"{label} needs python {pythons[1] or '(unstated)'}, it needed {pythons[0]}"
        yield _same(name, "requires-python", text, (pythons[0], pythons[1]))
    lists = [", ".join(sorted({one.variants.sha256 for one in entries if one.variants})) for entries in (old, new)]
    if lists[0] != lists[1] and lists[0]:
        text = f"{label} has another list of wheel variants: sha256 {lists[0]} -> {lists[1] or '(none)'}"
        yield _same(name, "variants", text, (lists[0], lists[1]))


def _identities(entries: Sequence[LockedPackage]) -> str:
    """Every publisher on a few words: `GitHub environment=release repository=ada/alpha workflow=release.yml`."""
    return ", ".join(sorted({_identity(identity) for entry in entries for identity in entry.attestations}))


def _identity(identity: Mapping[str, Any]) -> str:
    """A publisher as a person would say it: its kind, then what else its index states, by name."""
    rest = [f"{key}={value}" for key, value in sorted(identity.items()) if key != "kind" and isinstance(value, (str, int))]
    return " ".join([str(identity.get("kind", "")), *rest])


def _index_urls(entries: Sequence[LockedPackage]) -> str:
    """Where the indexes are; a program that gives them no names has the URL in place of one."""
    urls = (entry.index_url or (entry.index if "://" in entry.index else "") for entry in entries)
    return ", ".join(sorted({url.rstrip("/") for url in urls if url}))


def _same(name: str, aspect: str, text: str, values: tuple[str, str]) -> Change:
    return Change(
        section="packages", subject=name, change="changed", aspect=aspect, text=text,
        old=values[0], new=values[1], is_breaking=aspect == "content",
    )  # fmt: skip


def _files(entries: Sequence[LockedPackage]) -> Mapping[str, LockedFile]:
    return {file.filename: file for entry in entries for file in entry.files}


def _places(entries: Sequence[LockedPackage]) -> str:
    return ", ".join(sorted(file.url or file.path for entry in entries for file in entry.files))
