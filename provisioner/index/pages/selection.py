"""The files of a project -> its releases, each with the one file an installer would take on the target, or why none; pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.model import FIND_LINKS, PackageRelease
from provisioner.index.pages.filename import build_number, parsed_version, split_filename
from provisioner.index.pages.listing import as_it_is
from provisioner.index.pages.obstacle import Obstacle, wheel_obstacle
from provisioner.index.pages.stated import in_one_line
from provisioner.index.pages.tags import filename_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from provisioner.index.model import Environment, IndexFile
    from provisioner.index.pages.listing import Listed

ONLY_SDIST = Obstacle("only a source distribution; policy `allow: [sdist]` would take it")
OR_SDIST = "; policy `allow: [sdist]` would take its source distribution"


class Selection(Struct, frozen=True, kw_only=True):
    """What is wanted of every project: for which environment, up to which day, and what is allowed."""

    environment: Environment
    exclude_newer: str | None = None
    accepts_undated: bool = False
    allow_prerelease: bool = False
    allow_sdist: bool = False

    def releases(
        self, name: NormalizedName, files: Iterable[Listed], finish: Callable[[Listed], IndexFile] = as_it_is
    ) -> tuple[PackageRelease, ...]:
        """Every version the files make up, newest first; pre-releases only when allowed or when there is nothing else.

        Among files that fit equally well the earlier one is taken; of the thousands a page may list, `finish` is called for the
        chosen ones alone. With `exclude_newer` a file without an upload time is left out. Raises `UnavailableError` when the
        index gives no upload time at all: then nothing could be chosen. Source: PEP 700, which leaves them to the index.
        """
        versions = _by_version(name, files)
        if self.exclude_newer is not None and not self.accepts_undated:
            _refuse_untimed([part.file for listed in versions.values() for part in listed], finish)
        has_final = any(self._is_final(version, listed) for version, listed in versions.items())
        return tuple(
            self._release(name, version, versions[version], finish)
            for version in sorted(versions, reverse=True)
            if self.allow_prerelease or not has_final or not version.is_prerelease
        )

    def _is_final(self, version: Version, files: Sequence[_Part]) -> bool:
        """Whether pre-releases need not be taken because of this version: a withdrawn placeholder is no reason."""
        return not version.is_prerelease and any(part.file.yanked is None and self._is_in_time(part.file) for part in files)

    def _release(
        self, name: NormalizedName, version: Version, files: Sequence[_Part], finish: Callable[[Listed], IndexFile]
    ) -> PackageRelease:
        ranks = filename_ranks(self.environment)
        python = self.environment.python
        fitting = [part for part in files if (ranks[part.tag] is not None if part.tag else self.allow_sdist)]
        installable = [part for part in fitting if takes_python(part.file.requires_python, python)]
        in_time = [part for part in installable if self._is_in_time(part.file)]
        needed = in_one_line(next((stated for part in fitting or files if (stated := part.file.requires_python)), ""))
        if in_time:
            chosen = in_time[0] if len(in_time) == 1 else _best(in_time, ranks)
            withdrawn = chosen.file.yanked
            why = "" if withdrawn is None else f"yanked: {withdrawn}" if withdrawn else "yanked"
            return PackageRelease(name=name, version=version, file=finish(chosen.file), why_not=why, requires_python=needed)
        late = [part.file for part in installable]
        obstacle = self._obstacle(files, has_fitting=bool(fitting), late=late, needed=needed)
        return PackageRelease(
            name=name,
            version=version,
            file=None,
            why_not=obstacle.text,
            blocked_by=obstacle.component,
            requires_python=needed,
        )

    def _obstacle(self, files: Sequence[_Part], *, has_fitting: bool, late: Sequence[Listed], needed: str) -> Obstacle:
        if any(moment(file.upload_time) is not None for file in late):
            return Obstacle(f"uploaded after {self.exclude_newer}")
        if late:
            return Obstacle(f"it has no upload time, so it may be newer than {self.exclude_newer}")
        if has_fitting:
            return Obstacle(f"needs python {needed}", "python")
        tags = frozenset(part.tag for part in files if part.tag)
        if not tags:
            return ONLY_SDIST
        found = wheel_obstacle(tags, self.environment)
        return replace(found, text=f"{found.text}{OR_SDIST}") if any(map(self._is_source, files)) else found

    def _is_source(self, part: _Part) -> bool:
        """Whether a file is a source distribution that would be taken if any were."""
        if part.tag or part.file.yanked is not None:
            return False
        return takes_python(part.file.requires_python, self.environment.python) and self._is_in_time(part.file)

    def _is_in_time(self, file: Listed) -> bool:
        """What cannot be shown to be old enough is left out: a mirror may know the times of older files only.

        Where `accepts_undated` is set, it is taken, and whoever set it says that it is unverified.
        """
        if self.exclude_newer is None:
            return True
        uploaded = moment(file.upload_time)
        return self.accepts_undated if uploaded is None else uploaded < cutoff(self.exclude_newer)


class _Part(NamedTuple):
    """A listed file and what its name says of it."""

    tag: str
    build: str
    file: Listed


def _by_version(name: NormalizedName, files: Iterable[Listed]) -> dict[Version, list[_Part]]:
    """The files of each version, in their order; spellings of one version (`1.0`, `1.0.0`) are one."""
    versions: dict[Version, list[_Part]] = {}
    spelled: dict[str, list[_Part]] = {}
    for file in files:
        split = split_filename(file.filename, name)
        if split is None:
            continue
        text, tag, build = split
        listed = spelled.get(text)
        if listed is None:
            version = parsed_version(text)
            # What no version is gets a list that nobody looks at, so that its text is read once.
            listed = spelled[text] = versions.setdefault(version, []) if version is not None else []
        listed.append(_Part(tag, build, file))
    return versions


def _refuse_untimed(files: Sequence[Listed], finish: Callable[[Listed], IndexFile]) -> None:
    # A directory of wheels has no upload times at all, and is no index that ought to have them.
    listed = [file for file in files if file.index != FIND_LINKS]
    if listed and all(moment(file.upload_time) is None for file in listed):
        first = finish(listed[0])
        raise UnavailableError(
            f"index `{first.index}` gives no upload times, so exclude-newer cannot be honoured",
            causes=(f"`{first.filename}` is listed without one",),
            hints=("leave exclude-newer out, or use an index that gives upload times",),
        )


def _best(files: Sequence[_Part], ranks: Mapping[str, int | None]) -> _Part:
    def preference(position: int) -> tuple[bool, bool, int, tuple[int, str], int]:
        tag, build, file = files[position]
        rank = ranks[tag] if tag else None
        return (file.yanked is None, bool(tag), -(rank or 0), build_number(build), -position)

    return files[max(range(len(files)), key=preference)]


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
    """An upload time as indexes spell it (RFC 3339); None for none or one that cannot be read."""
    try:
        read = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return read.replace(tzinfo=UTC) if read is not None and read.tzinfo is None else read


@lru_cache(maxsize=16)
def cutoff(text: str) -> datetime:
    """The first moment that is too new: the end of a day (UTC), or the time itself. Raises `ProvisionError`."""
    try:
        return datetime.combine(date.fromisoformat(text) + timedelta(days=1), time(), UTC)
    except ValueError:
        pass
    read = moment(text)
    if read is None:
        raise ProvisionError(f"exclude-newer `{text}` is not a date", hints=("write it as 2026-09-01",))
    return read
