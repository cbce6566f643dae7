"""Whether what was once taken from the cache is still what one would take from it: pages and records by their hashes."""

from __future__ import annotations

import sqlite3

TYPE_CHECKING = False  # a repeated answer waits for this module, and `typing` takes as long as all of it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def stand(pages: Sequence[Any], records: Sequence[Any], *, now: float) -> bool:
    """Whether every page (`[cache file, URL, sha256, offline]`) and record (`[cache file, key, check]`) is as it was.

    A page must be fresh besides, unless it was read offline, where age does not matter. Raises `TypeError` or `ValueError` for
    what is neither.
    """
    files = {file for file, *_ in (*pages, *records)}
    return all(
        _in_file(file, [one for one in pages if one[0] == file], [one for one in records if one[0] == file], now)
        for file in files
    )


def _in_file(file: str, pages: Sequence[Any], records: Sequence[Any], now: float) -> bool:
    try:
        connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=1)
        try:
            return _are_pages(connection, pages, now) and _are_records(connection, records)
        finally:
            connection.close()
    except sqlite3.Error:
        return False


def _are_pages(connection: sqlite3.Connection, pages: Sequence[Any], now: float) -> bool:
    for _, url, sha256, is_offline in pages:
        row = connection.execute("SELECT sha256, fetched, fresh FROM page WHERE url = ?", (url,)).fetchone()
        if row is None or row[0] != sha256 or not (is_offline or 0 <= now - row[1] < row[2]):
            return False
    return True


def _are_records(connection: sqlite3.Connection, records: Sequence[Any]) -> bool:
    for _, key, check in records:
        row = connection.execute("SELECT substr(content, 1, 4) FROM record WHERE key = ?", (key,)).fetchone()
        if (None if row is None else bytes(row[0]).hex()) != check:
            return False
    return True
