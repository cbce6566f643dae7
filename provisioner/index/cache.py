"""The disk cache of index data: typed entries in one SQLite file, and the bodies of project pages in files beside it.

Threads and processes may share it. It never raises: if the disk is full or read-only, or the file damaged, every look-up is a
cache miss. Entries unused for a long time are removed by `pruning`.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder

from provisioner.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE = "index-8.sqlite3"
"""The name of the SQLite file.

Its number is raised when the table or the encoding of entries changes, so older versions keep using their own file.
"""

PAGES = "pages-1"
"""The directory of the bodies of project pages.

They are not in the database because a page may be megabytes long and SQLite's write-ahead log would write it twice.
"""

TABLE = "CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, used INTEGER NOT NULL, content BLOB)"
"""The SQL that creates the table: `used` is the day of the last use (days since 1970), `content` a CRC-32 followed by JSON.

It is not WITHOUT ROWID, because such a table reads whole rows, which may be long here, to compare keys.
"""

USE_DAYS = 7
"""The age in days after which an entry's day of last use is updated; a higher precision would turn every read into a write."""

Value = TypeVar("Value")


class NotCachedError(UnavailableError):
    """A project page, metadata or hash is not cached and cannot be requested in offline mode; `what` names it in messages."""

    def __init__(self, what: str) -> None:
        super().__init__(f"offline: {what} is not in the cache; run once without --offline")
        self.what = what


def all_missing(errors: Sequence[NotCachedError]) -> UnavailableError:
    """Return one error that lists everything missing in the cache; `errors` must not be empty."""
    if len(errors) == 1:
        return errors[0]
    return UnavailableError(
        f"offline: {len(errors)} things that are needed are not in the cache; run once without --offline",
        causes=tuple(error.what for error in errors),
        hints=("what these need in turn shows only when they have been read",),
    )


class Cache:
    """The cache of index data in one directory; thread-safe, and safe beside other processes."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._bodies = directory / PAGES
        self._lock = threading.Lock()
        self._decoders: dict[object, Decoder[Any]] = {}
        self._decoding = threading.Lock()
        self._connection = self._open()

    def load(self, key: str, kind: type[Value]) -> Value | None:
        """Return the entry of `key`, decoded as `kind`; None when it is absent, damaged or of another type."""
        row = self._execute("SELECT content, used FROM entry WHERE key = ?", (key,))
        if row is None:
            return None
        stored, used = row
        content = memoryview(stored)[4:] if isinstance(stored, bytes) else None  # a view: an entry may be a megabyte long
        if content is None or stored[:4] != _checksum(content):
            return None
        if not (isinstance(used, int) and 0 <= today() - used < USE_DAYS):
            self._execute("UPDATE entry SET used = ? WHERE key = ?", (today(), key))
        with self._decoding:  # two threads that decode with one decoder for the first time end the process (msgspec)
            decoder = self._decoders.get(kind) or self._decoders.setdefault(kind, Decoder(kind))
            try:
                found: Value = decoder.decode(content)
            except (MsgspecError, UnicodeDecodeError):
                return None
        return found

    def store(self, key: str, value: object) -> None:
        """Store a value that msgspec can encode under `key`, replacing an earlier entry; does nothing when writing fails."""
        content = _ENCODER.encode(value)
        self._execute("REPLACE INTO entry VALUES (?, ?, ?)", (key, today(), _checksum(content) + content))

    def body(self, url: str) -> bytes | None:
        """Return the cached response body of a URL; None when it is not cached. The caller must verify its hash."""
        try:
            return (self._bodies / body_name(url)).read_bytes()
        except OSError:
            return None

    def store_body(self, url: str, content: bytes) -> None:
        """Store the response body of a URL, replacing an earlier one; does nothing when writing fails."""
        path = self._bodies / body_name(url)
        # One name for all who write it, so that a process that was killed leaves nothing behind for ever. Two that write at the
        # same time may mix their bytes, which the hash tells the reader.
        draft = path.with_name(f"{path.name}.part")
        try:
            self._bodies.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content)
            draft.replace(path)
        except OSError:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def __del__(self) -> None:
        # A caller that ends by an error may not come to `close`, and an open connection is a ResourceWarning.
        self.close()

    def close(self) -> None:
        """Close the connection to the SQLite file."""
        with self._lock:
            self._connection.close()

    def _execute(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Run one SQL statement and return its first row; None when there is no row or the statement fails.

        A damaged file is deleted, and an empty one created.
        """
        with self._lock:
            try:
                row: tuple[Any, ...] | None = self._connection.execute(statement, values).fetchone()
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                # A locked or full file, and values that no file can hold, are left alone.
                if _is_damage(error):
                    self._connection.close()
                    self._remove()
                    self._connection = self._open()
                return None
        return row

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
        return _read_only(self._path) or _connected(":memory:")

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)


def body_name(url: str) -> str:
    """Return the filename under which the response body of a URL is stored."""
    return hashlib.sha256(url.encode()).hexdigest()[:40]


def today() -> int:
    """Return the number of the present day, counted from 1970-01-01."""
    return int(time.time() // 86400)


def _is_damage(error: Exception) -> bool:
    """Return whether an SQLite error means that the file is damaged; a missing table or column counts as damage."""
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorcode == sqlite3.SQLITE_ERROR and str(error).startswith(("no such ", "table "))
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError)


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # A crash of the machine may lose the last entries, never damage the file: they are read again.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(TABLE)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _read_only(path: Path) -> sqlite3.Connection | None:
    """Open a cache file on a read-only disk, such as one shipped in an image; None when it is not a readable cache."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    except sqlite3.Error:
        return None
    try:
        connection.execute("SELECT key, used, content FROM entry LIMIT 1").fetchall()
    except sqlite3.Error:
        connection.close()
        return None
    return connection


def _checksum(content: bytes | memoryview) -> bytes:
    """Return the CRC-32 of an entry's content as 4 bytes, which detects damage by a crash or a bad disk."""
    return zlib.crc32(content).to_bytes(4, "big")


_ENCODER = Encoder()
