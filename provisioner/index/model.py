"""The nouns of a package index: files, the releases they make up, and the environment they are chosen for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement
    from packaging.utils import NormalizedName
    from packaging.version import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where packages must install: the *target*, never the machine this program runs on.

    `platform` is `linux/amd64` and the like; `python` is `3.12`; `glibc` is the newest glibc symbol version the target has
    (None on macOS, or when it is unknown); `macos` is the deployment target.
    """

    platform: str
    python: str
    glibc: tuple[int, int] | None = None
    macos: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One file of a project as its index lists it. `sha256` is lower-case hex, "" when the index gives none.

    `path` is set instead of a usable `url` for a local file (`find-links`, `file://`). `upload_time` is as the index
    spells it (RFC 3339), None when it gives none. `yanked` is the reason ("" for none given), None when not yanked.
    """

    filename: str
    url: str
    index: str
    sha256: str = ""
    size: int | None = None
    requires_python: str | None = None
    upload_time: str | None = None
    yanked: str | None = None
    has_metadata: bool = False
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRelease:
    """One version of one project with the file an installer would pick for the environment (None: nothing fits, and why).

    `why_not` is "" when `file` is set; otherwise one reason in words: no wheel for cp314 on linux/amd64 (has cp310, cp311);
    only a source distribution; needs python >=3.10,<3.13; yanked. `blocked_by` is the part of the environment that is in
    the way: `python`, `glibc`, `platform`, or "" when the file itself is (yanked, a source distribution).
    """

    name: NormalizedName
    version: Version
    file: IndexFile | None
    why_not: str = ""
    blocked_by: str = ""
    requires_python: str = ""


class PackageSource(Protocol):
    """What the solver asks of an index; `provisioner.index.client.PackageIndex` is the real one."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Every version, newest first, usable or not. `index` names one index; otherwise the configured routing decides.

        An unknown project is an empty tuple. Raises `UnavailableError` when the index cannot be reached or offline lacks it.
        """

    def requirements(self, release: PackageRelease) -> tuple[Requirement, ...]:
        """The Requires-Dist of the release's file, markers not evaluated; raises `UnavailableError`."""

    def prefetch(self, names: Iterable[NormalizedName]) -> None:
        """Start reading these projects in the background; never raises."""
