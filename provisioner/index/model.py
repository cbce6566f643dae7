"""Data types of the index client (`IndexFile`, `PackageRelease`, `Environment`) and protocols of the sources of releases."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, Required, Self, TypedDict, Unpack, runtime_checkable

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace
from packaging.utils import NormalizedName  # noqa: TC002 - msgspec reads the annotation at run time
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement

FIND_LINKS = "find-links"
"""The value of `IndexFile.index` for files from find-links, pip's directories and pages of files of any project."""

DIRECT_URL, DIRECT_PATH = "url", "path"
"""The values of `IndexFile.index` for files of direct references (`name @ https://…`, `name @ file:./name-1.0.whl`)."""

EXPLICIT_ONLY = "a pre-release, for requirements that name one"
"""The `why_not` of a pre-release that only a requirement naming a pre-release may select."""


class Environment(Struct, frozen=True, kw_only=True):
    """The target environment that packages must install in, never the machine this program runs on.

    `platform` is `linux/amd64` and the like; `python` is `3.12`; `glibc` is the newest glibc symbol version the target has
    (None on macOS, or when it is unknown); `macos` is the deployment target.
    """

    platform: str
    python: str
    glibc: tuple[int, int] | None = None
    macos: tuple[int, int] | None = None


class IndexFile(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One wheel or source distribution of a project, as its index lists it.

    `sha256` is lower-case hex, "" when the index gives no hash. A local file (`find-links`, `file://`) has a `path` and an
    empty `url`. `upload_time` is the text of the index (RFC 3339), None when the index gives no upload time. `yanked` is the
    reason of a yanked file ("" when no reason is given), None for a file that is not yanked. `provenance` is the URL of the
    file's attestations (PEP 740), "" when the index publishes none. `has_metadata` is True when the index announces a
    `.metadata` file (PEP 658); `metadata_sha256` is the hash of the `.metadata` file, "" when unknown.
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
    """One version of one project, with the file that an installer would pick for the target environment.

    `file` is None when no file fits; `why_not` then gives the reason as text, such as `no wheel for cp314 on linux/amd64 (has
    cp310, cp311)` or `needs python >=3.10,<3.13`. A usable release has an empty `why_not`. Two kinds of release have both: a
    yanked one, because PEP 592 lets an exact pin select it, and an `is_explicit_only` one, which is a pre-release of a project
    that has final versions and may be selected only by a requirement that names a pre-release. `blocked_by` is the property of
    the environment that rules the release out: `python`, `glibc`, `platform`, or "" when the file itself does (yanked, a source
    distribution). `allowance` is the value of `policy.allow` that would make a file acceptable, "" when no value would.

    `version_text` is the version in its normal form, `str(version)`, and `file_text` the file as JSON. The texts are kept, and
    not what they say, because a project may have a thousand releases, of which a solve compares a few and takes the file of
    one. `has_file` and `is_wheel` tell what is asked of all.
    """

    name: NormalizedName
    version_text: str
    has_file: bool
    is_wheel: bool
    file_text: Raw
    why_not: str = ""
    blocked_by: str = ""
    requires_python: str = ""
    is_explicit_only: bool = False
    allowance: str = ""

    @classmethod
    def of(cls, file: IndexFile | None, **fields: Unpack[_Fields]) -> Self:
        """Return a release with this file; `fields` are the other ones."""
        is_wheel = file is not None and file.filename.endswith(".whl")
        return cls(has_file=file is not None, is_wheel=is_wheel, file_text=Raw(_ENCODER.encode(file)), **fields)

    def with_file(self, file: IndexFile) -> PackageRelease:
        """Return this release with another file."""
        text = Raw(_ENCODER.encode(file))
        return replace(self, has_file=True, is_wheel=file.filename.endswith(".whl"), file_text=text)

    @property
    def file(self) -> IndexFile | None:
        """The file that an installer would pick; None when no file fits."""
        return _FILE.decode(self.file_text) if self.has_file else None

    @property
    def version(self) -> Version:
        """The version as installers compare it."""
        return _version(self.version_text)

    @property
    def is_usable(self) -> bool:
        """Whether an installer selects this release without a requirement that pins it or names a pre-release."""
        return self.has_file and not self.why_not


class _Fields(TypedDict, total=False):
    """The fields of a release beside its file."""

    name: Required[NormalizedName]
    version_text: Required[str]
    why_not: str
    blocked_by: str
    requires_python: str
    is_explicit_only: bool
    allowance: str


_version = lru_cache(maxsize=65536)(Version)
_ENCODER = Encoder()
_FILE = Decoder(IndexFile)


class PackageSource(Protocol):
    """The interface through which the solver reads an index; `provisioner.index.client.PackageIndex` implements it."""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Return every version of a project, newest first, usable or not; empty when no index knows the project.

        `index` is the name of the index to read; with "", `provisioner.index.routing` chooses it. Raises `UnavailableError`
        when the index cannot be reached, or in offline mode when its page is not cached.
        """

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        """Return the requirements of the release's file that apply in the environment with at least one of `extras`.

        The extra "" stands for an installation without extras. Raises `UnavailableError` when the metadata cannot be fetched,
        and `UnusableMetadataError` when the metadata is invalid, so that the file cannot be chosen.
        """

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        """Return the normalized extras that the release's metadata declares (Provides-Extra); raises `UnavailableError`.

        For a release without a file for the environment, the metadata of a file for another one is read.
        """

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        """Start reading the project pages of `names` and the metadata of likely releases in the background; never raises.

        With `follows`, the projects that this metadata names are read, too, and so on.
        """


@runtime_checkable
class PrereleaseSource(Protocol):
    """The interface through which the solver reads pre-releases of projects that also have final versions."""

    def prereleases(self, name: NormalizedName) -> tuple[PackageRelease, ...]:
        """Return the usable pre-releases that `PackageSource.releases` omits, newest first; each has `is_explicit_only` set."""


@runtime_checkable
class PackedSource(Protocol):
    """The interface through which the solver learns which metadata a build may change."""

    def is_packed(self, file: IndexFile) -> bool:
        """Return whether the requirements of a source distribution are those it was packed with, and left to a build."""


@runtime_checkable
class FileSource(Protocol):
    """The interface through which the solver reads files of direct references and learns which metadata was built."""

    def direct(self, name: NormalizedName, url: str) -> PackageRelease:
        """Return the release of a direct reference (`name @ url`); raises `ProvisionError` when the file cannot be read."""

    def is_built(self, file: IndexFile) -> bool:
        """Return whether a file's requirements were found by building it, so that another machine may get different ones."""
