"""Packages that come from another index than they did in the lock before: what a name taken over looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.index.address import public_url
from provisioner.index.places.shared_names import names, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from packaging.utils import NormalizedName

    from provisioner.index.http.settings import IndexLocation
    from provisioner.lock.format.model import Lock


def moved_to_another(chosen: Mapping[NormalizedName, IndexLocation], earlier: Lock | None, platform: str) -> tuple[str, ...]:
    """One line for each two indexes that names have moved between since an earlier lock of the platform.

    An index is known by its address, so a new name for it is no move; of one on this machine a lock has only the name.
    """
    before = _origins(earlier, platform)
    moved: dict[tuple[str, str], list[str]] = {}
    for name, index in chosen.items():
        old, url = before.get(name, ("", ""))
        if old and not _is_same(index, old, url):
            moved.setdefault((f"`{old}` ({url})" if url else f"`{old}`", place(index)), []).append(name)
    return tuple(
        f"from another index than in the earlier lock: {names(found)} from {new}, before from {old}"
        for (old, new), found in moved.items()
    )


def as_before(chosen: Mapping[NormalizedName, IndexLocation], earlier: Lock | None, platform: str) -> frozenset[str]:
    """The names that an earlier lock of the platform has from the very address they come from now.

    Where they come from was told when that lock was made, and it says so to whoever reads it. Of an index on this machine a
    lock says no address, so nothing is known of these.
    """
    before = _origins(earlier, platform)
    return frozenset(name for name, index in chosen.items() if (old := before.get(name)) and old[1] and _is_same(index, *old))


def _origins(earlier: Lock | None, platform: str) -> dict[str, tuple[str, str]]:
    """The index of each package of a lock, by name and address; nothing where there is no lock of the platform."""
    if earlier is None or platform not in earlier.platforms:
        return {}
    packages = earlier.on(platform).packages
    return {package.name: (package.index, package.index_url) for package in packages if package.index}


def _is_same(index: IndexLocation, old: str, url: str) -> bool:
    return public_url(index.url).rstrip("/") == url.rstrip("/") if url else index.name == old
