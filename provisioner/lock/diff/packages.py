"""Changes of Python packages: added, removed, of another version, or the same version from another file or index.

Any two lists of locked packages can be compared, including those of locks that other programs wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from provisioner.grounds.change import Change, OfAddress, OfFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.lock.format.model import LockedFile, LockedPackage

Packages = dict[str, tuple["LockedPackage", ...]]
"""The entries of each distribution of a lock, by name; several for several versions in different environments."""


def by_name(packages: Sequence[LockedPackage]) -> Packages:
    """Return the packages of a lock by name, the entries of one name sorted by version."""
    found: dict[str, list[LockedPackage]] = {}
    for package in packages:
        found.setdefault(package.name, []).append(package)
    return {name: tuple(sorted(found[name], key=lambda one: (one.version, one.platforms))) for name in sorted(found)}


def version_of(entries: Sequence[LockedPackage]) -> str:
    """Return the version of a distribution, several joined by `and`; `without a version` for an entry that has none."""
    versions = dict.fromkeys(entry.version or "without a version" for entry in entries)
    return " and ".join(versions)


def package_changes(old: Packages, new: Packages) -> Iterator[Change]:
    """Yield the changes of each distribution, sorted by name; a distribution with the same version in both may have several."""
    for name in sorted({*old, *new}):
        before, after = old.get(name, ()), new.get(name, ())
        versions = version_of(before), version_of(after)
        if versions[0] != versions[1]:
            change = _moved(*versions)
            yield Change(section="packages", subject=name, change=change, aspect="version", old=versions[0], new=versions[1])
            if before and after:
                yield from _of_other_files(name, before, after)
        else:
            yield from _of_same_version(name, before, after)


def _moved(old: str, new: str) -> str:
    """Return `added`, `removed`, `upgraded` or `downgraded`; `changed` for another build, or for versions without an order."""
    if not old or not new:
        return "added" if new else "removed"
    try:
        before, after = PackageVersion(old), PackageVersion(new)
    except InvalidVersion:
        return "changed"
    if before.public == after.public:
        return "changed"
    return "upgraded" if before < after else "downgraded"


def _of_same_version(name: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    version, before, after = version_of(new), _files(old), _files(new)
    exchanged = sorted(one for one in before.keys() & after.keys() if before[one].sha256 != after[one].sha256)
    for filename in exchanged:
        change = _same(name, "content", version, before[filename].sha256, after[filename].sha256)
        yield replace(change, detail=OfFile(version=version, file=filename), is_breaking=True)
    if before.keys() != after.keys():
        gone, come = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
        yield _sets(name, "file", version, gone, come)
    if not exchanged and before.keys() == after.keys():
        yield from _of_same_files(name, old, new)
    else:
        yield from _of_other_files(name, old, new)


def _of_same_files(name: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    """Yield the changes of a package with the same files: source, publishers, Requires-Python, variants and requirements."""
    version = version_of(new)
    indexes, urls = (_indexes(old), _indexes(new)), (_index_urls(old), _index_urls(new))
    if indexes[0] != indexes[1] and not (urls[0] == urls[1] != ""):
        yield _same(name, "index", version, *indexes)
    elif (places := (_places(old), _places(new)))[0] != places[1]:
        yield _same(name, "place", version, *places)
    elif urls[0] != urls[1] and all(urls):
        yield replace(_same(name, "index", version, *urls), detail=OfAddress(version=version, index=indexes[1]))
    # Earlier versions of this program recorded none of these, so an empty old value is no change.
    for aspect, values in (
        ("attestations", [_identities(entries) for entries in (old, new)]),
        ("requires-python", [_unique(one.requires_python for one in entries) for entries in (old, new)]),
        ("variants", [_unique(sorted(one.variants.sha256 for one in entries if one.variants)) for entries in (old, new)]),
    ):
        if values[0] != values[1] and values[0]:
            yield _same(name, aspect, version, *values)
    yield from _of_licenses(name, old, new)
    requires = [sorted({text for entry in entries for text in entry.requires}) for entries in (old, new)]
    if requires[0] != requires[1]:
        gone = [text for text in requires[0] if text not in requires[1]]
        come = [text for text in requires[1] if text not in requires[0]]
        yield _sets(name, "requires", version, gone, come)


def _of_other_files(name: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    """Yield the changes of index and licences of a package whose version or files changed as well.

    Another index may mean that the name was taken over.
    """
    indexes, urls = (_indexes(old), _indexes(new)), (_index_urls(old), _index_urls(new))
    if all(indexes) and indexes[0] != indexes[1] and not (urls[0] == urls[1] != ""):
        yield _same(name, "index", version_of(new), *indexes)
    yield from _of_licenses(name, old, new)


def _of_licenses(name: str, old: Sequence[LockedPackage], new: Sequence[LockedPackage]) -> Iterator[Change]:
    """Yield the change of what a package declares; earlier versions of this program recorded no licences."""
    before, after = (_unique(one for entry in entries for one in entry.licenses) for entries in (old, new))
    if before and before != after:
        yield _same(name, "licenses", version_of(new), before, after)


def _same(name: str, aspect: str, version: str, old: str, new: str) -> Change:
    detail = OfFile(version=version)
    return Change(section="packages", subject=name, change="changed", aspect=aspect, old=old, new=new, detail=detail)


def _sets(name: str, aspect: str, version: str, gone: Sequence[str], come: Sequence[str]) -> Change:
    change = _same(name, aspect, version, ", ".join(gone), ", ".join(come))
    return replace(change, lost=tuple(gone), gained=tuple(come))


def _unique(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, texts)))


def _indexes(entries: Sequence[LockedPackage]) -> str:
    return _unique(entry.index for entry in entries)


def _identities(entries: Sequence[LockedPackage]) -> str:
    """Return the publishers of packages as text: `GitHub environment=release repository=ada/alpha workflow=release.yml`."""
    return ", ".join(sorted({_identity(identity) for entry in entries for identity in entry.attestations}))


def _identity(identity: Mapping[str, Any]) -> str:
    """Return a publisher as text: its kind, then the other fields of its attestation identity, by name."""
    rest = [f"{key}={value}" for key, value in sorted(identity.items()) if key != "kind" and isinstance(value, (str, int))]
    return " ".join([str(identity.get("kind", "")), *rest])


def _index_urls(entries: Sequence[LockedPackage]) -> str:
    """Return the URLs of the indexes of packages; some programs record the URL of an index in place of its name."""
    urls = (entry.index_url or (entry.index if "://" in entry.index else "") for entry in entries)
    return ", ".join(sorted({url.rstrip("/") for url in urls if url}))


def _files(entries: Sequence[LockedPackage]) -> Mapping[str, LockedFile]:
    return {file.filename: file for entry in entries for file in entry.files}


def _places(entries: Sequence[LockedPackage]) -> str:
    return ", ".join(sorted(file.url or file.path for entry in entries for file in entry.files))
