"""What has been read from indexes before: one SQLite file, shared by concurrent runs; a damaged one is begun anew.

Nothing here is worth an error: where the disk is full, read-only or not ours, everything is a miss and reading goes on.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE = "index-3.sqlite3"
"""The number changes with the tables and with the shape of what they hold."""

_TABLES = """
CREATE TABLE IF NOT EXISTS page (
    url TEXT PRIMARY KEY, sha256 TEXT, etag TEXT, modified TEXT, fetched REAL, fresh REAL, files BLOB);
CREATE TABLE IF NOT EXISTS selection (
    url TEXT, wish TEXT, sha256 TEXT, releases BLOB, PRIMARY KEY (url, wish));
CREATE TABLE IF NOT EXISTS record (key TEXT PRIMARY KEY, content BLOB);
"""
"""Not WITHOUT ROWID: such a table compares keys by reading whole rows, and a row here may be a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """What is known of one URL: the hash of its body ("" when there is no such page) and how to ask again.

    `fetched` is a POSIX time, `fresh` the seconds from then in which nobody needs to ask.
    """

    url: str
    sha256: str
    etag: str = ""
    modified: str = ""
    fetched: float = 0.0
    fresh: float = 0.0

    def is_fresh(self, now: float) -> bool:
        """Whether it may be used without asking; a clock set back makes it stale, not immortal."""
        return 0 <= now - self.fetched < self.fresh


class Cache:
    """Pages, the releases selected from them, and records (metadata, hashes) by key. Safe to share between threads."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._lock = threading.Lock()
        self._connection = self._open()

    def page(self, url: str) -> StoredPage | None:
        """What is known of a page, without its files."""
        row = self._row("SELECT sha256, etag, modified, fetched, fresh FROM page WHERE url = ?", (url,))
        if row is None:
            return None
        sha256, etag, modified, fetched, fresh = row
        return StoredPage(url=url, sha256=sha256, etag=etag, modified=modified, fetched=fetched, fresh=fresh)

    def files(self, page: StoredPage) -> Any | None:  # noqa: ANN401 - plain JSON data
        """The files of a page, as they were stored; None when they are not there or damaged."""
        row = self._row("SELECT files FROM page WHERE url = ? AND sha256 = ?", (page.url, page.sha256))
        return None if row is None else _decoded(row[0])

    def store_page(self, page: StoredPage, files: Sequence[Any]) -> None:
        """Remember a page and its files, in place of what was known of its URL."""
        self._write("REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?)", (*_columns(page), _encoded(files)))

    def touch_page(self, page: StoredPage) -> None:
        """Remember that a page was asked for again and is still the same."""
        url, *rest = _columns(page)
        self._write("UPDATE page SET sha256 = ?, etag = ?, modified = ?, fetched = ?, fresh = ? WHERE url = ?", (*rest, url))

    def selection(self, page: StoredPage, wish: str) -> Any | None:  # noqa: ANN401 - plain JSON data
        """What was selected from exactly this page for a wish; None when nothing was, or it is damaged."""
        query = "SELECT releases FROM selection WHERE url = ? AND wish = ? AND sha256 = ?"
        row = self._row(query, (page.url, wish, page.sha256))
        return None if row is None else _decoded(row[0])

    def store_selection(self, page: StoredPage, wish: str, releases: Sequence[Any]) -> None:
        """Remember what was selected from a page for a wish."""
        self._write("REPLACE INTO selection VALUES (?, ?, ?, ?)", (page.url, wish, page.sha256, _encoded(releases)))

    def record(self, key: str) -> Any | None:  # noqa: ANN401 - plain JSON data
        """The record kept under a key; None when there is none, or it is damaged."""
        row = self._row("SELECT content FROM record WHERE key = ?", (key,))
        return None if row is None else _decoded(row[0])

    def store_record(self, key: str, content: object) -> None:
        """Keep a record for ever: its key names content that cannot change."""
        self._write("REPLACE INTO record VALUES (?, ?)", (key, _encoded(content)))

    def __del__(self) -> None:
        # A caller that ends by an error may not come to `close`, and an open connection is a ResourceWarning.
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _row(self, query: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        with self._lock:
            try:
                row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
            except sqlite3.Error as error:
                self._recover(error)
                return None
        return row

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._lock:
            try:
                self._connection.execute(statement, values)
            except sqlite3.Error as error:
                self._recover(error)

    def _recover(self, error: sqlite3.Error) -> None:
        """Begin a damaged file anew; a locked or full one is left alone."""
        if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError):
            return
        self._connection.close()
        self._remove()
        self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        for _ in range(2):
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                return _connected(str(self._path))
            except sqlite3.OperationalError:
                break
            except sqlite3.DatabaseError:
                self._remove()
            except OSError:
                break
        return _connected(":memory:")

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            try:
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
            except OSError:
                return


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # A crash of the machine may lose the last entries, never damage the file: they are read again.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_TABLES)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _columns(page: StoredPage) -> tuple[str, str, str, str, float, float]:
    return page.url, page.sha256, page.etag, page.modified, page.fetched, page.fresh


def _encoded(content: object) -> bytes:
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)


def _decoded(blob: object) -> Any | None:  # noqa: ANN401 - plain JSON data
    if not isinstance(blob, bytes):
        return None
    try:
        return json.loads(zlib.decompress(blob))
    except (ValueError, zlib.error):
        return None
