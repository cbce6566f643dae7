"""What has been read from indexes before: one SQLite file, shared by concurrent runs; a damaged one is begun anew.

What nobody has used for long goes (`pruning`).

Nothing here is worth an error: where the disk is full, read-only or not ours, everything is a miss and reading goes on.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.index.store.bodies import Bodies

if TYPE_CHECKING:
    from pathlib import Path

FILE = "index-5.sqlite3"
"""The number changes with the tables and with the shape of what they hold; what an older program keeps is left to it."""

PAGES = "pages-1"
"""The directory of the pages' bodies."""

TABLES = """
CREATE TABLE IF NOT EXISTS page (
    url TEXT PRIMARY KEY, sha256 TEXT, etag TEXT, modified TEXT, fetched REAL, fresh REAL,
    content_type TEXT, answered TEXT, encoding TEXT);
CREATE TABLE IF NOT EXISTS selection (
    url TEXT, wish TEXT, sha256 TEXT, releases BLOB, PRIMARY KEY (url, wish));
CREATE TABLE IF NOT EXISTS record (key TEXT PRIMARY KEY, content BLOB);
CREATE TABLE IF NOT EXISTS used_selection (url TEXT, wish TEXT, day INTEGER, PRIMARY KEY (url, wish));
CREATE TABLE IF NOT EXISTS used_record (key TEXT PRIMARY KEY, day INTEGER);
"""
"""Not WITHOUT ROWID: such a table compares keys by reading whole rows, and a row here may be long.

The days (of the Julian calendar) on which something was used last stand apart, so that an older program, which knows nothing
of them, shares the file, and rows as long as these are not written anew for a day. What is stored has none until `pruning`
comes by.
"""

_SELECTION = "SELECT releases, {} FROM selection {} WHERE selection.url = ? AND selection.wish = ? AND sha256 = ?"
_RECORD = "SELECT content, {} FROM record {} WHERE record.key = ?"
_USED_SELECTION = "LEFT JOIN used_selection AS used ON used.url = selection.url AND used.wish = selection.wish"
_USED_RECORD = "LEFT JOIN used_record AS used ON used.key = record.key"

USE_DAYS = 7
"""That something is used is written down again after so many days: reading should not write."""

_PAGE = "url, sha256, etag, modified, fetched, fresh, content_type, answered, encoding"


class StoredPage(Struct, frozen=True, kw_only=True):
    """What is known of one URL: the hash of its body as it was sent ("" when there is no such page) and how to ask again.

    `fetched` is a POSIX time, `fresh` the seconds from then in which nobody needs to ask. `answered` is the URL where redirects
    ended, `encoding` the compression of the body that is kept.
    """

    url: str
    sha256: str
    etag: str = ""
    modified: str = ""
    fetched: float = 0.0
    fresh: float = 0.0
    content_type: str = ""
    answered: str = ""
    encoding: str = ""

    def is_fresh(self, now: float) -> bool:
        """Whether it may be used without asking; a clock set back makes it stale, not immortal."""
        return 0 <= now - self.fetched < self.fresh


class Cache:
    """Pages, the releases selected from them, and records (metadata, hashes) by key. Safe to share between threads."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self.bodies = Bodies(directory / PAGES)
        self._lock = threading.Lock()
        self._is_writable = True
        self._connection = self._open()

    @property
    def path(self) -> Path:
        """The file of tables."""
        return self._path

    def page(self, url: str) -> StoredPage | None:
        """What is known of a page, without its files; None for nothing, or for what no page can look like."""
        row = self._row(f"SELECT {_PAGE} FROM page WHERE url = ?", (url,))  # noqa: S608 - a constant
        return None if row is None else _stored(row)

    def store_page(self, page: StoredPage) -> None:
        """Remember a page in place of what was known of its URL."""
        self._write("REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _columns(page))

    def selection(self, page: StoredPage, wish: str) -> bytes | None:
        """What was selected from exactly this page for a wish; None when nothing was, or it is damaged."""
        row = self._row(self._query(_SELECTION, _USED_SELECTION), (page.url, wish, page.sha256))
        if row is not None and _is_long_ago(row[1]):
            self._write("REPLACE INTO used_selection VALUES (?, ?, ?)", (page.url, wish, julian_day(time.time())))
        return None if row is None else _checked(row[0])

    def store_selection(self, page: StoredPage, wish: str, releases: bytes) -> None:
        """Remember what was selected from a page for a wish."""
        self._write("REPLACE INTO selection VALUES (?, ?, ?, ?)", (page.url, wish, page.sha256, _with_checksum(releases)))

    def record(self, key: str) -> Any | None:  # noqa: ANN401 - plain JSON data
        """The record kept under a key; None when there is none, or it is damaged."""
        row = self._row(self._query(_RECORD, _USED_RECORD), (key,))
        if row is not None and _is_long_ago(row[1]):
            self._write("REPLACE INTO used_record VALUES (?, ?)", (key, julian_day(time.time())))
        return None if row is None else _decoded(row[0])

    def store_record(self, key: str, content: object) -> None:
        """Keep a record for as long as it is used: its key names content that cannot change."""
        self._write("REPLACE INTO record VALUES (?, ?)", (key, _encoded(content)))

    def __del__(self) -> None:
        # A caller that ends by an error may not come to `close`, and an open connection is a ResourceWarning.
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _query(self, query: str, use: str) -> str:
        """A query with the day of the last use; 0 where it cannot be written down, in a file that may not have the table."""
        return query.format("used.day", use) if self._is_writable else query.format("0", "")

    def _row(self, query: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._lock:
            try:
                row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                self._recover(error)
                return None
        return row

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._lock:
            try:
                self._connection.execute(statement, values)
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                self._recover(error)

    def _recover(self, error: Exception) -> None:
        """Begin a damaged file anew; a locked or full one, and values no file can hold, are left alone."""
        if not _is_damage(error):
            return
        self._connection.close()
        self._remove()
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        for _ in range(2):
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                return _connected(str(self._path))
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    break
                self._remove()
            except OSError:
                break
        found = _read_only(self._path)
        self._is_writable = found is None
        return found or _connected(":memory:")

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            try:
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
            except OSError:
                return


def julian_day(moment: float) -> int:
    """The day of a POSIX time as the tables of use have it: SQLite's `julianday`, which begins at noon."""
    return int(moment / 86400 + 2440587.5)


def _is_long_ago(day: object) -> bool:
    """Whether a use is long enough ago to be written down again; one of the future is, too."""
    return isinstance(day, int) and day > 0 and not 0 <= julian_day(time.time()) - day < USE_DAYS


def _is_damage(error: Exception) -> bool:
    """Whether the file itself is broken. Tables that are not there are damage, too: nobody else writes this file."""
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorcode == sqlite3.SQLITE_ERROR and str(error).startswith(("no such ", "table "))
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError)


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # A crash of the machine may lose the last entries, never damage the file: they are read again.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(TABLES)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _read_only(path: Path) -> sqlite3.Connection | None:
    """What lies on a disk that cannot be written, such as a cache that an image brings along; None where that is no cache."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    except sqlite3.Error:
        return None
    try:
        for query in (f"SELECT {_PAGE} FROM page", "SELECT url FROM selection", "SELECT key FROM record"):  # noqa: S608 - a constant
            connection.execute(f"{query} LIMIT 1").fetchall()
    except sqlite3.Error:
        connection.close()
        return None
    return connection


def _stored(row: tuple[Any, ...]) -> StoredPage | None:
    url, sha256, etag, modified, fetched, fresh, content_type, answered, encoding = row
    texts = (url, sha256, etag, modified, content_type, answered, encoding)
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(time, float) for time in (fetched, fresh)):
        return None
    return StoredPage(
        url=url,
        sha256=sha256,
        etag=etag,
        modified=modified,
        fetched=fetched,
        fresh=fresh,
        content_type=content_type,
        answered=answered,
        encoding=encoding,
    )


def _columns(page: StoredPage) -> tuple[Any, ...]:
    known = (page.url, page.sha256, page.etag, page.modified, page.fetched, page.fresh)
    return (*known, page.content_type, page.answered, page.encoding)


def _encoded(content: object) -> bytes:
    """JSON after its checksum: a row that a crash or a bad disk changed must not be taken for what was kept."""
    return _with_checksum(json.dumps(content, separators=(",", ":")).encode())


def _with_checksum(text: bytes) -> bytes:
    return zlib.crc32(text).to_bytes(4, "big") + text


def _checked(blob: object) -> bytes | None:
    return blob[4:] if isinstance(blob, bytes) and zlib.crc32(blob[4:]).to_bytes(4, "big") == blob[:4] else None


def _decoded(blob: object) -> Any | None:  # noqa: ANN401 - plain JSON data
    text = _checked(blob)
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None
