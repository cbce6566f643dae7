"""Provenance of locked packages: the URL of their index, who attests their files, and packages whose index has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.grounds.notice import MovedIndex
from provisioner.index.address import public_url
from provisioner.index.dependency_confusion import index_name
from provisioner.index.metadata.details import in_order
from provisioner.index.notice import IndexName
from provisioner.index.routing import normalized_pattern
from provisioner.index.settings import IndexLocation
from provisioner.lock.format.artifact import locked_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock, LockedPackage

    Identities = tuple[Mapping[str, Any], ...]
    from packaging.utils import NormalizedName

    from provisioner.spec.model import IndexSpec


def location_of(index: IndexSpec) -> IndexLocation:
    """Return an index of a spec as an `IndexLocation`, with the patterns of its packages normalized."""
    packages = tuple(map(normalized_pattern, index.packages))
    return IndexLocation(name=index.name, url=index.url, packages=packages, is_page=index.kind == "find-links")


class Origins(Struct, frozen=True, kw_only=True):
    """The origins of packages, as the indexes state them.

    `urls` is the base URL of each index by its name; `identities` are the publishers that attest a file, by the file's sha256,
    and `licenses` those that its metadata declares.
    """

    urls: Mapping[str, str] = field(default_factory=dict)
    identities: Mapping[str, Identities] = field(default_factory=dict)
    licenses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def with_origins(lock: Lock, origins: Origins) -> Lock:
    """Return the lock with the index URL and licences of each package, and the publishers that attest any of its files.

    The URL stays empty for an index in a folder of this machine, whose URL is useless elsewhere, and for a package that was
    requested by URL or path.
    """
    return replace(lock, packages=tuple(_with_origin(package, origins) for package in lock.packages))


def earlier_details(lock: Lock | None) -> dict[str, tuple[int | None, Identities]]:
    """Return the size and the publishers of every file of an earlier lock, by sha256, as a fallback for an offline run.

    A lock records publishers for all files of a package together, so they are returned only for a package with one file and
    are empty otherwise. The result is empty when there is no earlier lock.
    """
    found: dict[str, tuple[int | None, Identities]] = {}
    if lock is None:
        return found
    for package in lock.packages:
        identities = package.attestations if len(package.files) == 1 else ()
        found.update({file.sha256: (file.size, identities) for file in package.files})
    installers = (stack.installer.file for stack in lock.stacks if stack.installer is not None)
    return {**{file.sha256: (file.size, ()) for file in installers}, **found}


def _with_origin(package: LockedPackage, origins: Origins) -> LockedPackage:
    url = locked_url(origins.urls.get(package.index, "")).rstrip("/")
    found = (identity for file in package.files for identity in origins.identities.get(file.sha256, ()))
    return replace(
        package,
        index_url=url if url.startswith(("https://", "http://")) and package.archive is None else "",
        attestations=in_order(found),
        licenses=tuple(dict.fromkeys(one for file in package.files for one in origins.licenses.get(file.sha256, ()))),
    )


def moved_packages(
    chosen: Mapping[NormalizedName, IndexLocation], earlier: Lock | None, platform: str
) -> tuple[MovedIndex, ...]:
    """Return one notice for each pair of indexes between which packages have moved since an earlier lock.

    `chosen` is the index of each package now; it is compared with the earlier lock's packages on `platform`. Indexes are
    compared by URL, so a renamed index is no move; an index on this machine, for which a lock records no URL, is compared by
    name.
    """
    before = _origins(earlier, platform)
    moved: dict[tuple[IndexName, IndexName], list[str]] = {}
    for name, index in chosen.items():
        old, url = before.get(name, ("", ""))
        if old and not _is_same(index, old, url):
            moved.setdefault((IndexName(old, url), index_name(index)), []).append(name)
    return tuple(MovedIndex(packages=tuple(names), index=new, before=old) for (old, new), names in moved.items())


def as_before(chosen: Mapping[NormalizedName, IndexLocation], earlier: Lock | None, platform: str) -> frozenset[str]:
    """Return the names of the packages whose index has the same URL now as in an earlier lock of the platform.

    These indexes were reported to the user when the earlier lock was made. A lock records no URL for an index on this machine,
    so packages from such an index are never returned.
    """
    before = _origins(earlier, platform)
    return frozenset(name for name, index in chosen.items() if (old := before.get(name)) and old[1] and _is_same(index, *old))


def _origins(earlier: Lock | None, platform: str) -> dict[str, tuple[str, str]]:
    """Return the index name and index URL of each package of a lock; empty when there is no lock of the platform."""
    if earlier is None or platform not in earlier.platforms:
        return {}
    packages = earlier.on(platform).packages
    return {package.name: (package.index, package.index_url) for package in packages if package.index}


def _is_same(index: IndexLocation, old: str, url: str) -> bool:
    return public_url(index.url).rstrip("/") == url.rstrip("/") if url else index.name == old
