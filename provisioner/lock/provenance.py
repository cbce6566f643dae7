"""What indexes say of a lock's packages beside the files: where they are, and who attests what they serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.index.metadata.details import in_order
from provisioner.lock.format.artifact import public_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock, LockedPackage

    Identities = tuple[Mapping[str, Any], ...]


class Origins(Struct, frozen=True, kw_only=True):
    """`urls`: the base URL of each index by its name. `identities`: who attests a file, by the file's sha256."""

    urls: Mapping[str, str] = field(default_factory=dict)
    identities: Mapping[str, Identities] = field(default_factory=dict)


def with_origins(lock: Lock, origins: Origins) -> Lock:
    """The lock with the URL of each package's index, and the publishers that attest any of its files.

    An index in a folder of this machine has no URL that is true elsewhere, so its packages go without one.
    """
    return replace(lock, packages=tuple(_with_origin(package, origins) for package in lock.packages))


def earlier_details(lock: Lock | None) -> dict[str, tuple[int | None, Identities]]:
    """Size and publishers of every file of an earlier lock, by sha256: what an offline run falls back on.

    Publishers are recorded for all files of a package together, so they are told only of a package that has one file.
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
    url = public_url(origins.urls.get(package.index, "")).rstrip("/")
    found = (identity for file in package.files for identity in origins.identities.get(file.sha256, ()))
    return replace(
        package,
        index_url=url if url.startswith(("https://", "http://")) and package.archive is None else "",
        attestations=in_order(found),
    )
