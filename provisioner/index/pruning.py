"""The removal of cache entries that nobody has used for three months, once a day, at the end of a run that may use the network.

Nothing here is worth an error, and nothing is lost but time: what was removed is read again when it is needed. A run that is
killed leaves the table as it was or as it is to be, and at worst files that are removed another day. A run with `--offline`
removes nothing, for it could not get it back.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.index.cache import FILE, PAGES, TABLE, body_name

if TYPE_CHECKING:
    from collections.abc import Iterator

DAYS = 90
"""Entries that were not used for so long are removed."""

STAMP = "pruned"
"""The file whose time says when the cache was last pruned."""

SECONDS = 86400.0
"""Of a day."""

_OURS = re.compile(r"(index|pages)-\d+(\.sqlite3)?(-wal|-shm)?")
"""What this program and other versions of it keep, by its name."""


class Pruned(Struct, frozen=True, kw_only=True):
    """What was removed: entries, files, and the bytes that are free now; not `is_complete` where the table was in use."""

    rows: int = 0
    files: int = 0
    size: int = 0
    is_complete: bool = True


def prune_if_due(directory: Path, *, now: float | None = None) -> Pruned | None:
    """Prune a cache that was not pruned for a day; None where that is not due, or where nothing can be written.

    The first time, and whenever the time of the last is not known, only that time is written down.
    """
    now = time.time() if now is None else now
    stamp = directory / STAMP
    try:
        age = now - stamp.stat().st_mtime
        if 0 <= age < SECONDS:
            return None
        os.utime(stamp, (now, now))  # before, so that two runs at once do not both prune
    except FileNotFoundError:
        with suppress(OSError):
            stamp.touch()
        return None
    except OSError:
        return None
    return prune(directory, now=now)


def prune(directory: Path, *, now: float | None = None, days: int = DAYS) -> Pruned:
    """Remove entries, bodies and files of other versions that were not used for so many days; safe beside other runs."""
    now = time.time() if now is None else now
    oldest = now - days * SECONDS
    table = directory / FILE
    before = _size(table)
    rows, bodies = _remove_entries(table, oldest=int(oldest // SECONDS))
    files, size = 0, max(0, before - _size(table))
    for path in list(_unused_files(directory, bodies, oldest)):
        with suppress(OSError):
            status = path.lstat()
            if status.st_mtime < oldest:  # nobody has written it anew since
                path.unlink()
                files, size = files + 1, size + status.st_size
    return Pruned(rows=rows, files=files, size=size, is_complete=bodies is not None)


def clean(directory: Path) -> Pruned:
    """Remove everything this program keeps there, and nothing else; runs under way go on with an empty cache."""
    files = size = 0
    for path, status in list(_files(directory)):
        top = path.relative_to(directory).parts[0]
        if _OURS.fullmatch(top) or top in {"answers", "matrix", STAMP}:
            with suppress(OSError):
                path.unlink()
                files, size = files + 1, size + status.st_size
    return Pruned(files=files, size=size)


def size_of(directory: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(status.st_size for _, status in _files(directory))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _remove_entries(path: Path, *, oldest: int) -> tuple[int, frozenset[str] | None]:
    """Remove the entries last used before a day.

    Returns their number and the names of the bodies whose pages are left; None for these where the table cannot be changed.
    """
    try:
        if not path.is_file():
            return 0, frozenset()
        with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
            connection.execute(TABLE)
            connection.execute("BEGIN IMMEDIATE")
            rows = connection.execute("DELETE FROM entry WHERE used < ?", (oldest,)).rowcount
            pages = connection.execute("SELECT substr(key, 6) FROM entry WHERE key GLOB 'page:*'").fetchall()
            connection.execute("COMMIT")
            with suppress(sqlite3.Error):  # a full disk, or another run that writes: the entries are gone all the same
                _return_space(connection)
    except (sqlite3.Error, OSError):
        return 0, None  # another run is writing, or it is not a cache: another day
    return rows, frozenset(body_name(url) for (url,) in pages)


def _return_space(connection: sqlite3.Connection) -> None:
    """Shrink the file where most of it is empty; otherwise its space is used again."""
    free, pages = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count"))
    if free * 2 > pages > 1024:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _unused_files(directory: Path, bodies: frozenset[str] | None, oldest: float) -> Iterator[Path]:
    """Yield old files: bodies without a page, what other versions of this program left, and decoded matrices.

    `bodies` are those whose pages are left, None where that is not known. Other versions' files go together, by the youngest.
    """
    youngest: dict[str, float] = {}
    for path, status in _files(directory):
        top = path.relative_to(directory).parts[0]
        is_orphan = top == PAGES and bodies is not None and path.name not in bodies and status.st_mtime < oldest
        if is_orphan or (top == "matrix" and max(status.st_mtime, status.st_atime) < oldest):
            yield path
        elif _OURS.fullmatch(top) and not top.startswith((FILE, PAGES)):
            name = top.partition(".")[0]
            youngest[name] = max(youngest.get(name, 0.0), status.st_mtime)
    for path, _ in _files(directory):
        name = path.relative_to(directory).parts[0].partition(".")[0]
        if youngest.get(name, oldest) < oldest:
            yield path


def _files(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder) / name
            with suppress(OSError):
                yield path, path.lstat()
