"""The files of a project -> its releases, each with the one file an installer would take on the target, or why none; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.filename import Filename, parse_filename
from provisioner.index.model import FIND_LINKS, PackageRelease
from provisioner.index.obstacle import Obstacle, wheel_obstacle
from provisioner.index.tags import best_rank, tag_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from provisioner.index.model import Environment, IndexFile

ONLY_SDIST = Obstacle("only a source distribution; policy `allow: [sdist]` would take it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is wanted of every project: for which environment, up to which day, and what is allowed."""

    environment: Environment
    exclude_newer: str | None = None
    accepts_undated: bool = False
    allow_prerelease: bool = False
    allow_sdist: bool = False

    def releases(self, name: NormalizedName, files: Iterable[IndexFile]) -> tuple[PackageRelease, ...]:
        """Every version the files make up, newest first; pre-releases only when allowed or when there is nothing else.

        Among files that fit equally well the earlier one is taken. With `exclude_newer` a file without an upload time is left
        out. Raises `UnavailableError` when the index gives no upload time at all: then nothing could be chosen. Source: PEP
        700, which leaves upload times to the index.
        """
        versions: dict[Version, list[tuple[Filename, IndexFile]]] = {}
        for file in files:
            named = parse_filename(file.filename, name)
            if named is not None:
                versions.setdefault(named.version, []).append((named, file))
        if self.exclude_newer is not None and not self.accepts_undated:
            self._refuse_untimed([file for listed in versions.values() for _, file in listed])
        has_final = any(self._is_final(version, listed) for version, listed in versions.items())
        return tuple(
            self._release(name, version, versions[version])
            for version in sorted(versions, reverse=True)
            if self.allow_prerelease or not has_final or not version.is_prerelease
        )

    def _is_final(self, version: Version, files: Sequence[tuple[Filename, IndexFile]]) -> bool:
        """Whether pre-releases need not be taken because of this version: a withdrawn placeholder is no reason."""
        is_offered = any(file.yanked is None and self._is_in_time(file) for _, file in files)
        return not version.is_prerelease and is_offered

    def _release(self, name: NormalizedName, version: Version, files: Sequence[tuple[Filename, IndexFile]]) -> PackageRelease:
        ranks = tag_ranks(self.environment)
        fitting = [(named, file) for named, file in files if self._fits(named, ranks)]
        installable = [(named, file) for named, file in fitting if takes_python(file.requires_python, self.environment.python)]
        in_time = [(named, file) for named, file in installable if self._is_in_time(file)]
        needed = next((file.requires_python for _, file in fitting or files if file.requires_python), "")
        if in_time:
            chosen = _best(in_time, ranks)
            why = "" if chosen.yanked is None else f"yanked: {chosen.yanked}" if chosen.yanked else "yanked"
            return PackageRelease(name=name, version=version, file=chosen, why_not=why, requires_python=needed)
        late = [file for _, file in installable]
        obstacle = self._obstacle(files, has_fitting=bool(fitting), late=late, needed=needed)
        return PackageRelease(
            name=name,
            version=version,
            file=None,
            why_not=obstacle.text,
            blocked_by=obstacle.component,
            requires_python=needed,
        )

    def _fits(self, named: Filename, ranks: Mapping[str, int]) -> bool:
        return best_rank(named.tag, ranks) is not None if named.tag else self.allow_sdist

    def _obstacle(
        self, files: Sequence[tuple[Filename, IndexFile]], *, has_fitting: bool, late: Sequence[IndexFile], needed: str
    ) -> Obstacle:
        if any(moment(file.upload_time) is not None for file in late):
            return Obstacle(f"uploaded after {self.exclude_newer}")
        if late:
            return Obstacle(f"it has no upload time, so it may be newer than {self.exclude_newer}")
        if has_fitting:
            return Obstacle(f"needs python {needed}", "python")
        tags = [named.tag for named, _ in files if named.tag]
        return wheel_obstacle(tags, self.environment) if tags else ONLY_SDIST

    def _is_in_time(self, file: IndexFile) -> bool:
        """What cannot be shown to be old enough is left out: a mirror may know the times of older files only.

        Where `accepts_undated` is set, it is taken, and whoever set it says that it is unverified.
        """
        if self.exclude_newer is None:
            return True
        uploaded = moment(file.upload_time)
        return self.accepts_undated if uploaded is None else uploaded < cutoff(self.exclude_newer)

    def _refuse_untimed(self, files: Sequence[IndexFile]) -> None:
        # A directory of wheels has no upload times at all, and is no index that ought to have them.
        listed = [file for file in files if file.index != FIND_LINKS]
        if listed and all(moment(file.upload_time) is None for file in listed):
            raise UnavailableError(
                f"index `{listed[0].index}` gives no upload times, so exclude-newer cannot be honoured",
                causes=(f"`{listed[0].filename}` is listed without one",),
                hints=("leave exclude-newer out, or use an index that gives upload times",),
            )


def _best(files: Sequence[tuple[Filename, IndexFile]], ranks: Mapping[str, int]) -> IndexFile:
    def preference(position: int) -> tuple[bool, bool, int, tuple[int, str], int]:
        named, file = files[position]
        is_wheel = bool(named.tag)
        rank = best_rank(named.tag, ranks) if is_wheel else None
        return (file.yanked is None, is_wheel, -(rank or 0), named.build, -position)

    return files[max(range(len(files)), key=preference)][1]


@lru_cache(maxsize=4096)
def takes_python(requires_python: str | None, python: str) -> bool:
    """Whether a Requires-Python allows the target's Python; one that cannot be read excludes nothing, as in pip.

    A series (`3.12`) stands for its newest patch release: what an image of that series holds.
    """
    if not requires_python:
        return True
    try:
        specifiers = SpecifierSet(requires_python)
    except InvalidSpecifier:
        return True
    release = f"{python}.99" if python.count(".") == 1 else python
    return specifiers.contains(release, prereleases=True)


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
