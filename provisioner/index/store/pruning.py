"""The cache shrinks: what nobody has used for three months goes, once a day, at the end of a run that asked indexes.

Nothing here is worth an error, and nothing is lost but time: what goes is read again by who needs it. A run that is killed
leaves the tables as they were or as they are to be, and at worst files that the next day takes away. A run that may ask
nothing (`--offline`) takes nothing away, for it could not get it back.
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

from provisioner.index.store.bodies import body_name
from provisioner.index.store.cache import FILE, PAGES, TABLES, julian_day

if TYPE_CHECKING:
    from collections.abc import Iterator

DAYS = 90
"""What was not used for so long goes."""

STAMP = "pruned"
"""The file whose time says when the cache was last looked through."""

SECONDS = 86400.0

_OTHERS = re.compile(r"(index|pages)-\d+(\.sqlite3)?(-wal|-shm)?")
"""What this program and other versions of it keep, by its name."""

_FORGET = (
    # what was stored since the last time counts as used today
    "INSERT OR IGNORE INTO used_selection SELECT url, wish, :today FROM selection",
    "INSERT OR IGNORE INTO used_record SELECT key, :today FROM record",
    "DELETE FROM selection WHERE (url, wish) IN (SELECT url, wish FROM used_selection WHERE day < :oldest)",
    "DELETE FROM record WHERE key IN (SELECT key FROM used_record WHERE day < :oldest)",
    "DELETE FROM page WHERE fetched < :moment AND url NOT IN (SELECT url FROM selection WHERE url IS NOT NULL)",
    "DELETE FROM used_selection WHERE day < :oldest",
    "DELETE FROM used_record WHERE day < :oldest",
)


class Pruned(Struct, frozen=True, kw_only=True):
    """What went: rows of the tables, files, and the bytes that are free now; not `is_complete` where the tables were in use."""

    rows: int = 0
    files: int = 0
    size: int = 0
    is_complete: bool = True


def prune_if_due(directory: Path, *, now: float | None = None) -> Pruned | None:
    """Prune a cache that was not looked through for a day; None where that is not due, or where nothing can be written.

    The first time, and whenever the time of the last is not known, only that is written down.
    """
    now = time.time() if now is None else now
    stamp = directory / STAMP
    try:
        age = now - stamp.stat().st_mtime
        if 0 <= age < SECONDS:
            return None
        os.utime(stamp, (now, now))  # before, so that two that run at once do not both
    except FileNotFoundError:
        with suppress(OSError):
            stamp.touch()
        return None
    except OSError:
        return None
    return prune(directory, now=now)


def prune(directory: Path, *, now: float | None = None, days: int = DAYS) -> Pruned:
    """Take away what was not used for so many days; safe beside any number of other runs."""
    now = time.time() if now is None else now
    oldest = now - days * SECONDS
    tables = directory / FILE
    before = _size(tables)
    rows, kept = _forget(tables, now=now, days=days)
    files, size = 0, max(0, before - _size(tables))
    for path in list(_unused(directory, kept, oldest)):
        with suppress(OSError):
            status = path.lstat()
            if status.st_mtime < oldest:  # nobody has written it anew since
                path.unlink()
                files, size = files + 1, size + status.st_size
    return Pruned(rows=rows, files=files, size=size, is_complete=kept is not None)


def clean(directory: Path) -> Pruned:
    """Take everything away that this program keeps there, and nothing else; runs that use it find nothing and go on."""
    files = size = 0
    for path, status in list(_files(directory)):
        top = path.relative_to(directory).parts[0]
        if _OTHERS.fullmatch(top) or top in {"answers", "matrix", STAMP}:
            with suppress(OSError):
                path.unlink()
                files, size = files + 1, size + status.st_size
    return Pruned(files=files, size=size)


def size_of(directory: Path) -> int:
    """Bytes of all files below a directory."""
    return sum(status.st_size for _, status in _files(directory))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _forget(path: Path, *, now: float, days: int) -> tuple[int, frozenset[str] | None]:
    """Forget what was not used: how many rows went, and what the bodies are called that are still wanted (None: not known)."""
    day = julian_day(now)
    try:
        if not path.is_file():
            return 0, frozenset()
        with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
            connection.executescript(TABLES)  # an older program knows nothing of uses
            connection.execute("BEGIN IMMEDIATE")
            before = _rows(connection)
            for statement in _FORGET:
                connection.execute(statement, {"today": day, "oldest": day - days, "moment": now - days * SECONDS})
            after = _rows(connection)
            urls = connection.execute("SELECT url FROM page").fetchall()
            connection.execute("COMMIT")
            with suppress(sqlite3.Error):  # a full disk, or somebody who writes: what went is gone all the same
                _shrink(connection)
    except (sqlite3.Error, OSError):
        return 0, None  # somebody else is writing, or it is not a cache: another day
    return before - after, frozenset(body_name(url) for (url,) in urls if isinstance(url, str))


def _rows(connection: sqlite3.Connection) -> int:
    counts = (connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("page", "selection", "record"))  # noqa: S608 - constants
    return int(sum(counts))


def _shrink(connection: sqlite3.Connection) -> None:
    """Give room back where most of the file is empty; otherwise it is used again."""
    free, pages = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("freelist_count", "page_count"))
    if free * 2 > pages > 1024:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _unused(directory: Path, kept: frozenset[str] | None, oldest: float) -> Iterator[Path]:
    """Bodies that no page names, what other versions of this program left, and decoded matrices; each when it is old."""
    others: dict[str, float] = {}
    for path, status in _files(directory):
        top = path.relative_to(directory).parts[0]
        is_unnamed = top == PAGES and kept is not None and path.name not in kept and status.st_mtime < oldest
        if is_unnamed or (top == "matrix" and max(status.st_mtime, status.st_atime) < oldest):
            yield path
        elif _OTHERS.fullmatch(top) and not top.startswith((FILE, PAGES)):
            name = top.partition(".")[0]
            others[name] = max(others.get(name, 0.0), status.st_mtime)
    for path, _ in _files(directory):
        name = path.relative_to(directory).parts[0].partition(".")[0]
        if others.get(name, oldest) < oldest:
            yield path


def _files(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder) / name
            with suppress(OSError):
                yield path, path.lstat()
