"""The nouns of a package index: files, the releases they make up, the environment they are selected for, their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct
from packaging.utils import NormalizedName  # noqa: TC002 - msgspec reads the annotation at run time
from packaging.version import Version  # noqa: TC002 - as above

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement

FIND_LINKS = "find-links"
"""The index name of files found in a find-links place, which is no index."""

DIRECT_URL, DIRECT_PATH = "url", "path"
"""The index names of files that a requirement names itself (`name @ https://…`, `name @ file:./name-1.0.whl`)."""

EXPLICIT_ONLY = "a pre-release, for requirements that name one"
"""Why an explicit-only pre-release is not usable for every requirement."""


class Environment(Struct, frozen=True, kw_only=True):
    """Where packages must install: the *target*, never the machine this program runs on.

    `platform` is `linux/amd64` and the like; `python` is `3.12`; `glibc` is the newest glibc symbol version the target has
    (None on macOS, or when it is unknown); `macos` is the deployment target.
    """

    platform: str
    python: str
    glibc: tuple[int, int] | None = None
    macos: tuple[int, int] | None = None


class IndexFile(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One file of a project as its index lists it. `sha256` is lower-case hex, "" when the index gives none.

    `path` is set instead of a usable `url` for a local file (`find-links`, `file://`). `upload_time` is as the index
    spells it (RFC 3339), None when it gives none. `yanked` is the reason ("" for none given), None when not yanked.
    `provenance` is the URL of the file's attestations (PEP 740), "" when the index publishes none.
    `has_metadata` is whether the index says that a `.metadata` file stands beside it, `metadata_sha256` that file's hash.
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
    metadata_sha256: str = ""
    path: str = ""
    provenance: str = ""


class PackageRelease(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One version of one project with the file an installer would pick for the environment (None: nothing fits, and why).

    `why_not` is one reason in words: no wheel for cp314 on linux/amd64 (has cp310, cp311); only a source distribution; needs
    python >=3.10,<3.13; yanked. A yanked release keeps its `file` beside its reason, for PEP 592 lets an exact pin select it,
    and so does one that is `is_explicit_only`; in every other case one of the two is empty. `blocked_by` is the part of the
    environment that rules the release out: `python`, `glibc`, `platform`, or "" when the file itself does (yanked, a source
    distribution). `allowance` is the word of `policy.allow` that would take a file, "" for none. `is_explicit_only`: a
    pre-release of a project that has final versions, for requirements that name one.
    """

    name: NormalizedName
    version: Version
    file: IndexFile | None
    why_not: str = ""
    blocked_by: str = ""
    requires_python: str = ""
    is_explicit_only: bool = False
    allowance: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether an installer would take this release without being told to."""
        return self.file is not None and not self.why_not


class PackageSource(Protocol):
    """What the solver requests of an index; `provisioner.index.client.PackageIndex` is the real one."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Return every version, newest first, usable or not. `index` names one index; otherwise the routing decides.

        An unknown project is an empty tuple. Raises `UnavailableError` when the index cannot be reached or offline lacks it.
        """

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        """Return what the release's file requires in the environment with one of some extras ("": with none).

        Raises `UnavailableError`, or `UnusableMetadataError` for a file that cannot be chosen.
        """

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        """Return the extras the release's metadata names (Provides-Extra), normalized; raises `UnavailableError`."""

    def prefetch(self, names: Iterable[NormalizedName]) -> None:
        """Start reading these projects in the background; never raises."""


@runtime_checkable
class PrereleaseSource(Protocol):
    """What the solver requests of an index about pre-releases of projects that have final versions too."""

    def prereleases(self, name: NormalizedName) -> tuple[PackageRelease, ...]:
        """Return the pre-releases with a file that `releases` leaves out, newest first, each `is_explicit_only`."""


@runtime_checkable
class FileSource(Protocol):
    """What the solver requests of an index about single files, beyond what indexes list."""

    def direct(self, name: NormalizedName, url: str) -> PackageRelease:
        """Return the release that a requirement names by URL or path; raises `ProvisionError` for a file out of reach."""

    def is_built(self, file: IndexFile) -> bool:
        """Whether the requirements of a file were found by building it, which another machine might not confirm."""
