"""Selection of releases: groups a project's files by version and picks the file that an installer would choose; pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.model import FIND_LINKS, Environment, IndexFile, PackageRelease
from provisioner.index.pages.filename import build_number, parsed_version, split_filename
from provisioner.index.pages.tags import Incompatibility, filename_ranks, wheel_incompatibility

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

SELECTION_RULES = 3
"""The number of the rules by which releases get their file, or the reason for none.

It is raised when these rules change: what another version of the program selected from a page is kept under another key.
"""

ONLY_SDIST = Incompatibility("only a source distribution; policy `allow: [sdist]` would take it", allowance="sdist")
OR_SDIST = "; policy `allow: [sdist]` would take its source distribution"


class ListedFile(Protocol):
    """The fields with which files are selected: those of an `IndexFile`, or of a page entry not yet converted to one."""

    @property
    def filename(self) -> str:
        """The name of the file."""

    @property
    def index(self) -> str:
        """The name of the file's index, "" for an entry of a JSON page."""

    @property
    def requires_python(self) -> str | None:
        """The file's Requires-Python, None when the index gives none."""

    @property
    def upload_time(self) -> str | None:
        """The file's upload time as the index spells it, None when the index gives none."""

    @property
    def yanked(self) -> str | None:
        """The reason why the file was yanked ("" when none is given), None when it is not yanked."""


def as_it_is(file: ListedFile) -> IndexFile:
    """Return an `IndexFile` unchanged; the default of `Listing.finish`, for files that need no conversion."""
    assert isinstance(file, IndexFile), "entries of a page are finished by their page"
    return file


class Listing(Struct, frozen=True, kw_only=True):
    """The files of a project page in the order of the page; `finish` converts one of them to an `IndexFile`.

    The conversion is delayed because nine of ten files are for other Pythons and platforms; converting all would be a tenth of
    the work of a solve with an empty cache (docs/speed.md).
    """

    files: Sequence[ListedFile]
    finish: Callable[[ListedFile], IndexFile] = as_it_is

    def finished(self) -> tuple[IndexFile, ...]:
        """Return every file as an `IndexFile`."""
        return tuple(map(self.finish, self.files))


class _Named(NamedTuple):
    """A file with the tag and the build number in its filename; the tag of a source distribution is ""."""

    tag: str
    build: str
    file: ListedFile


class Selection(Struct, frozen=True, kw_only=True):
    """The criteria by which files are selected; the fields are those of `IndexSettings`, for one project."""

    environment: Environment
    exclude_newer: str | None = None
    accepts_undated: bool = False
    allow_prerelease: bool = False
    allow_sdist: bool = False

    def releases(
        self, name: NormalizedName, files: Iterable[ListedFile], finish: Callable[[ListedFile], IndexFile] = as_it_is
    ) -> tuple[PackageRelease, ...]:
        """Return one release for each version among `files`, newest first; `finish` converts the chosen file to an `IndexFile`.

        Each release gets the file that an installer prefers, the first one listed if it prefers several equally. Pre-releases
        are left out unless they are allowed or the project has no final version. With `exclude_newer`, files without an upload
        time are not chosen, and `UnavailableError` is raised when the index gives no upload times at all (PEP 700 leaves them
        optional); neither applies with `accepts_undated`.
        """
        versions = _by_version(name, files)
        if self.exclude_newer is not None and not self.accepts_undated:
            _refuse_undated([one.file for named in versions.values() for one in named], finish)
        has_final = any(self._is_final(version, named) for version, named in versions.items())
        return tuple(
            self._release(name, version, versions[version], finish)
            for version in sorted(versions, reverse=True)
            if self.allow_prerelease or not has_final or not version.is_prerelease
        )

    def _is_final(self, version: Version, files: Sequence[_Named]) -> bool:
        """Return whether a version is final and has a file that is neither yanked nor too new.

        If a project has such a version, its pre-releases are not needed.
        """
        return not version.is_prerelease and any(one.file.yanked is None and self._is_in_time(one.file) for one in files)

    def _release(
        self, name: NormalizedName, version: Version, files: Sequence[_Named], finish: Callable[[ListedFile], IndexFile]
    ) -> PackageRelease:
        ranks = filename_ranks(self.environment)
        python = self.environment.python
        fitting = [one for one in files if (ranks[one.tag] is not None if one.tag else self.allow_sdist)]
        installable = [one for one in fitting if takes_python(one.file.requires_python, python)]
        in_time = [one for one in installable if self._is_in_time(one.file)]
        stated = next((text for one in fitting or files if (text := one.file.requires_python)), "")
        requires_python = " ".join(stated.split())  # words of the index, which must not pass for lines of this program
        if in_time:
            file = finish(in_time[0].file if len(in_time) == 1 else _best(in_time, ranks))
            why_not = "" if file.yanked is None else f"yanked: {file.yanked}" if file.yanked else "yanked"
            return PackageRelease.of(
                name=name, version_text=str(version), file=file, why_not=why_not, requires_python=requires_python
            )
        if any(moment(one.file.upload_time) is not None for one in installable):
            found = Incompatibility(f"uploaded after {self.exclude_newer}")
        elif installable:
            found = Incompatibility(f"it has no upload time, so it may be newer than {self.exclude_newer}")
        elif fitting:
            found = Incompatibility(f"needs python {requires_python}", "python")
        else:
            found = self._tag_incompatibility(files)
        return PackageRelease.of(
            name=name,
            version_text=str(version),
            file=None,
            why_not=found.text,
            blocked_by=found.component,
            allowance=found.allowance,
            requires_python=requires_python,
        )

    def _tag_incompatibility(self, files: Sequence[_Named]) -> Incompatibility:
        tags = frozenset(one.tag for one in files if one.tag)
        if not tags:
            return ONLY_SDIST
        found = wheel_incompatibility(tags, self.environment)
        if not any(map(self._is_usable_sdist, files)):
            return found
        return replace(found, text=f"{found.text}{OR_SDIST}", allowance="sdist")

    def _is_usable_sdist(self, named: _Named) -> bool:
        """Return whether a file is a source distribution that could be chosen if policy allowed source distributions."""
        if named.tag or named.file.yanked is not None:
            return False
        return takes_python(named.file.requires_python, self.environment.python) and self._is_in_time(named.file)

    def _is_in_time(self, file: ListedFile) -> bool:
        """Return whether the upload time of a file is before the limit of `exclude_newer`.

        A file without an upload time counts as too new unless `accepts_undated`: a mirror may know the times of older files
        only.
        """
        if self.exclude_newer is None:
            return True
        uploaded = moment(file.upload_time)
        return self.accepts_undated if uploaded is None else uploaded < cutoff(self.exclude_newer)


def _by_version(name: NormalizedName, files: Iterable[ListedFile]) -> dict[Version, list[_Named]]:
    """Return the files of each version, in the order of `files`; equal versions (`1.0`, `1.0.0`) are grouped."""
    versions: dict[Version, list[_Named]] = {}
    spelled: dict[str, list[_Named]] = {}
    for file in files:
        split = split_filename(file.filename, name)
        if split is None:
            continue
        text, tag, build = split
        named = spelled.get(text)
        if named is None:
            version = parsed_version(text)
            # Text that is no version gets a list that is never looked at, so that it is parsed once.
            named = spelled[text] = versions.setdefault(version, []) if version is not None else []
        named.append(_Named(tag, build, file))
    return versions


def _refuse_undated(files: Sequence[ListedFile], finish: Callable[[ListedFile], IndexFile]) -> None:
    # A directory of wheels has no upload times at all, and is no index that ought to have them.
    listed = [file for file in files if file.index != FIND_LINKS]
    if listed and all(moment(file.upload_time) is None for file in listed):
        first = finish(listed[0])
        raise UnavailableError(
            f"index `{first.index}` gives no upload times, so exclude-newer cannot be honoured",
            causes=(f"`{first.filename}` is listed without one",),
            hints=("leave exclude-newer out, or use an index that gives upload times",),
        )


def _best(files: Sequence[_Named], ranks: Mapping[str, int | None]) -> ListedFile:
    def preference(position: int) -> tuple[bool, bool, int, tuple[int, str], int]:
        tag, build, file = files[position]
        rank = ranks[tag] if tag else None
        return (file.yanked is None, bool(tag), -(rank or 0), build_number(build), -position)

    return files[max(range(len(files)), key=preference)].file


@lru_cache(maxsize=4096)
def takes_python(requires_python: str | None, python: str) -> bool:
    """Return whether a Requires-Python allows the target's Python; an invalid one allows everything, as in pip.

    A series (`3.12`) is evaluated as its newest patch release, the one that images of that series contain.
    """
    if not requires_python:
        return True
    release = f"{python}.99" if python.count(".") == 1 else python
    try:
        return SpecifierSet(requires_python).contains(release, prereleases=True)
    except ValueError:  # `InvalidSpecifier`, or digits by the thousand
        return True


@lru_cache(maxsize=65536)
def moment(text: str | None) -> datetime | None:
    """Parse an upload time (RFC 3339; UTC without an offset); None when it is absent or malformed."""
    try:
        read = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return read.replace(tzinfo=UTC) if read is not None and read.tzinfo is None else read


@lru_cache(maxsize=16)
def cutoff(text: str) -> datetime:
    """Return the first moment that an `exclude_newer` of `text` excludes: the end of that day (UTC), or that time itself.

    Raises `ProvisionError` when the text is neither a date nor a time.
    """
    try:
        return datetime.combine(date.fromisoformat(text) + timedelta(days=1), time(), UTC)
    except ValueError:
        pass
    read = moment(text)
    if read is None:
        raise ProvisionError(f"exclude-newer `{text}` is not a date", hints=("write it as 2026-09-01",))
    return read
