"""What earlier runs read from indexes: typed entries in one SQLite file, and the bodies of project pages beside it.

Threads and processes share it. Nothing here is worth an error: where the disk is full, read-only or damaged, every look-up is a
miss and reading goes on. What nobody has used for long is removed by `pruning`.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
import zlib
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder
from packaging.version import Version

from provisioner.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE = "index-7.sqlite3"
"""The number changes with the table and with the shape of its entries; what an older program keeps is left to it."""

PAGES = "pages-1"
"""The directory of the bodies of project pages.

They are beside the database and not in it: a page may be megabytes long, would be written twice there, and is read again only
when other files of it are wanted.
"""

TABLE = "CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, used INTEGER NOT NULL, content BLOB)"
"""`used` is the day of the last use, `content` JSON after its checksum.

Not WITHOUT ROWID: such a table compares keys by reading whole rows, and a row here may be long.
"""

USE_DAYS = 7
"""A use is written down again after so many days: reading should not write."""

Value = TypeVar("Value")


class NotCachedError(UnavailableError):
    """Something is not in the cache and must not be requested; `what` names it and its index."""

    def __init__(self, what: str) -> None:
        super().__init__(f"offline: {what} is not in the cache; run once without --offline")
        self.what = what


def all_missing(errors: Sequence[NotCachedError]) -> UnavailableError:
    """Return one error for everything that is known to be missing; at least one thing is."""
    if len(errors) == 1:
        return errors[0]
    return UnavailableError(
        f"offline: {len(errors)} things that are needed are not in the cache; run once without --offline",
        causes=tuple(error.what for error in errors),
        hints=("what these need in turn shows only when they have been read",),
    )


class Cache:
    """The cache in one directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._bodies = directory / PAGES
        self._lock = threading.Lock()
        self._decoders: dict[object, Decoder[Any]] = {}
        self._connection = self._open()

    def load(self, key: str, kind: type[Value]) -> Value | None:
        """Return the entry under a key; None where there is none, or where it is damaged or of another type."""
        row = self._execute("SELECT content, used FROM entry WHERE key = ?", (key,))
        if row is None:
            return None
        content, used = row
        if not (isinstance(content, bytes) and content[:4] == _checksum(content[4:])):
            return None
        if not (isinstance(used, int) and 0 <= today() - used < USE_DAYS):
            self._execute("UPDATE entry SET used = ? WHERE key = ?", (today(), key))
        decoder = self._decoders.get(kind) or self._decoders.setdefault(kind, Decoder(kind, dec_hook=_from_text))
        try:
            found: Value = decoder.decode(content[4:])
        except (MsgspecError, UnicodeDecodeError):
            return None
        return found

    def store(self, key: str, value: object) -> None:
        """Keep a value that msgspec can encode under a key, in place of what was there."""
        content = _ENCODER.encode(value)
        self._execute("REPLACE INTO entry VALUES (?, ?, ?)", (key, today(), _checksum(content) + content))

    def body(self, url: str) -> bytes | None:
        """Return the body that is kept of a URL; None for none. The caller verifies its hash."""
        try:
            return (self._bodies / body_name(url)).read_bytes()
        except OSError:
            return None

    def store_body(self, url: str, content: bytes) -> None:
        """Keep the body of a URL in place of the one before; where that cannot be done, nothing is kept."""
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
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _execute(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Run one statement and return its first row; None where it has none, or fails."""
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
    """Return the filename of a page's body."""
    return hashlib.sha256(url.encode()).hexdigest()[:40]


def today() -> int:
    """Return the days since 1970."""
    return int(time.time() // 86400)


def _is_damage(error: Exception) -> bool:
    """Whether the file itself is broken. A table that is not there is damage, too: nobody else writes this file."""
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
    """Open a cache on a disk that cannot be written, such as one that an image brings along; None where it is no cache."""
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


def _checksum(content: bytes) -> bytes:
    """Return what tells an entry that a crash or a bad disk changed."""
    return zlib.crc32(content).to_bytes(4, "big")


_ENCODER = Encoder(enc_hook=str)
"""Versions of packaging are written as text."""

_version = lru_cache(maxsize=65536)(Version)


def _from_text(kind: type[Any], text: Any) -> Any:  # noqa: ANN401 - whatever JSON holds in the place of a version
    if kind is not Version or not isinstance(text, str):
        raise TypeError(f"{text!r} is no {kind.__name__}")  # which the decoder makes an error of its own
    return _version(text)
