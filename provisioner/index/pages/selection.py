"""The files of a project -> its releases, each with the one file an installer would take on the target, or why none; pure."""

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

ONLY_SDIST = Incompatibility("only a source distribution; policy `allow: [sdist]` would take it", allowance="sdist")
OR_SDIST = "; policy `allow: [sdist]` would take its source distribution"


class ListedFile(Protocol):
    """What a file is selected by: an `IndexFile`, or an entry of a page that was not read any further."""

    @property
    def filename(self) -> str:
        """The name of the file."""

    @property
    def index(self) -> str:
        """The name of its index, "" for an entry that does not know it."""

    @property
    def requires_python(self) -> str | None:
        """The Pythons it is for."""

    @property
    def upload_time(self) -> str | None:
        """When it was uploaded, as its index spells it."""

    @property
    def yanked(self) -> str | None:
        """Why it was yanked ("" for no reason given), None when it was not."""


def as_it_is(file: ListedFile) -> IndexFile:
    """Return a file that needs no finish."""
    assert isinstance(file, IndexFile), "entries of a page are finished by their page"
    return file


class Listing(Struct, frozen=True, kw_only=True):
    """The files of a page in its order, read as far as a selection needs; `finish` makes an `IndexFile` of one of them.

    Nine of ten files of a page are for other Pythons and platforms, and an object for each would be a tenth of the work of a
    solve with an empty cache (docs/speed.md).
    """

    files: Sequence[ListedFile]
    finish: Callable[[ListedFile], IndexFile] = as_it_is

    def finished(self) -> tuple[IndexFile, ...]:
        """Return every file as an `IndexFile`."""
        return tuple(map(self.finish, self.files))


class _Named(NamedTuple):
    """A file and what its name says of it; the tag of a source distribution is ""."""

    tag: str
    build: str
    file: ListedFile


class Selection(Struct, frozen=True, kw_only=True):
    """The criteria by which files are selected: for which environment, up to which day, and what is allowed."""

    environment: Environment
    exclude_newer: str | None = None
    accepts_undated: bool = False
    allow_prerelease: bool = False
    allow_sdist: bool = False

    def releases(
        self, name: NormalizedName, files: Iterable[ListedFile], finish: Callable[[ListedFile], IndexFile] = as_it_is
    ) -> tuple[PackageRelease, ...]:
        """Return every version the files make up, newest first; pre-releases only when allowed, or when nothing else is there.

        Among files that fit equally well the earlier one is taken. With `exclude_newer` a file without an upload time is left
        out; raises `UnavailableError` when the index gives no upload time at all, for then nothing could be selected. Source:
        PEP 700, which leaves upload times to the index.
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
        """Whether pre-releases need not be taken because of this version: a yanked placeholder is no reason."""
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
            return PackageRelease(name=name, version=version, file=file, why_not=why_not, requires_python=requires_python)
        if any(moment(one.file.upload_time) is not None for one in installable):
            found = Incompatibility(f"uploaded after {self.exclude_newer}")
        elif installable:
            found = Incompatibility(f"it has no upload time, so it may be newer than {self.exclude_newer}")
        elif fitting:
            found = Incompatibility(f"needs python {requires_python}", "python")
        else:
            found = self._tag_incompatibility(files)
        return PackageRelease(
            name=name,
            version=version,
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
        """Whether a file is a source distribution that would be taken if any were allowed."""
        if named.tag or named.file.yanked is not None:
            return False
        return takes_python(named.file.requires_python, self.environment.python) and self._is_in_time(named.file)

    def _is_in_time(self, file: ListedFile) -> bool:
        """Whether a file is shown to be old enough: a mirror may know the upload times of older files only.

        With `accepts_undated` one without a time is taken, and reported as unverified elsewhere.
        """
        if self.exclude_newer is None:
            return True
        uploaded = moment(file.upload_time)
        return self.accepts_undated if uploaded is None else uploaded < cutoff(self.exclude_newer)


def _by_version(name: NormalizedName, files: Iterable[ListedFile]) -> dict[Version, list[_Named]]:
    """Return the files of each version, in their order; spellings of one version (`1.0`, `1.0.0`) are one."""
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
    """Whether a Requires-Python allows the target's Python; one that cannot be read excludes nothing, as in pip.

    A series (`3.12`) stands for its newest patch release: what an image of that series holds.
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
    """Read an upload time as indexes spell it (RFC 3339); None for none or one that cannot be read."""
    try:
        read = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return read.replace(tzinfo=UTC) if read is not None and read.tzinfo is None else read


@lru_cache(maxsize=16)
def cutoff(text: str) -> datetime:
    """Return the first moment that is too new: the end of a day (UTC), or the time itself. Raises `ProvisionError`."""
    try:
        return datetime.combine(date.fromisoformat(text) + timedelta(days=1), time(), UTC)
    except ValueError:
        pass
    read = moment(text)
    if read is None:
        raise ProvisionError(f"exclude-newer `{text}` is not a date", hints=("write it as 2026-09-01",))
    return read
