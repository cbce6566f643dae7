"""Pruning of the disk cache: at the end of a run, at most once a day, entries unused for `DAYS` are removed.

It never raises: entries are removed in one transaction, and files that cannot be removed remain until a later run. Runs with
`--offline` do not prune, because they could not request the data again.
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
"""The number of days without use after which an entry is removed."""

STAMP = "pruned"
"""The name of the file whose modification time is the time of the last pruning."""

SECONDS = 86400.0
"""The seconds of a day."""

_OURS = re.compile(r"(index|pages)-\d+(\.sqlite3)?(-wal|-shm)?")
"""The names of cache files and directories of any version of this program."""


class Pruned(Struct, frozen=True, kw_only=True):
    """The number of entries (`rows`) and files that were removed, and the bytes freed (`size`).

    `is_complete` is False when the entries were left alone because another run was using the table.
    """

    rows: int = 0
    files: int = 0
    size: int = 0
    is_complete: bool = True


def prune_if_due(directory: Path, *, now: float | None = None) -> Pruned | None:
    """Prune the cache unless it was pruned within the last day; None when it was, or when the directory cannot be written.

    When the time of the last pruning is unknown, as on the first run, the present time is recorded and None returned.
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
    """Remove entries, page bodies and files of other program versions that were unused for `days` at the POSIX time `now`.

    Other runs may use the cache meanwhile. `now` defaults to the present time.
    """
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
    """Remove all cache files of this program from a directory, but no other files; runs in progress get an empty cache."""
    files = size = 0
    for path, status in list(_files(directory)):
        top = path.relative_to(directory).parts[0]
        if _OURS.fullmatch(top) or top in {"answers", "matrix", STAMP}:
            with suppress(OSError):
                path.unlink()
                files, size = files + 1, size + status.st_size
    return Pruned(files=files, size=size)


def size_of(directory: Path) -> int:
    """Return the total size in bytes of all files below a directory."""
    return sum(status.st_size for _, status in _files(directory))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _remove_entries(path: Path, *, oldest: int) -> tuple[int, frozenset[str] | None]:
    """Remove the entries last used before the day `oldest` (days since 1970).

    Returns the number of removed entries, and the filenames of the page bodies whose entries remain; None in place of the
    filenames when the table cannot be changed.
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
    """Shrink the SQLite file if more than half of it is free space; otherwise SQLite reuses the space."""
    free, pages = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count"))
    if free * 2 > pages > 1024:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _unused_files(directory: Path, bodies: frozenset[str] | None, oldest: float) -> Iterator[Path]:
    """Yield files last used before `oldest`: page bodies without an entry, decoded matrices, and files of other versions.

    `bodies` are the filenames of the page bodies that still have an entry; with None, no page body is yielded. The files of
    another version of this program are yielded together, once the youngest of them is old enough.
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
