"""The bodies of project pages on disk, one file each, as they were sent; read back only when they are whole.

A page may be megabytes long and is read again only for another wish, so it is kept beside the database and not in it: there
it would be written twice, and every row would be as long.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LARGEST = 256 * 1024 * 1024
"""Bytes of an answer, packed or not. No page comes near it; more would be sent to exhaust memory."""

_MOST_PARTS = 64
"""Packed bodies one after another, which gzip allows and hardly a server makes use of."""


class Bodies:
    """Files named after the URL they answer. Safe to share between threads and processes: a file is replaced, never changed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, url: str) -> bytes | None:
        """What was kept of a URL, as it was kept; None for nothing. Its hash tells the caller whether it is whole."""
        try:
            return self._path(url).read_bytes()
        except OSError:
            return None

    def store(self, url: str, content: bytes) -> None:
        """Keep a body in place of the one before; where that cannot be done, nothing is kept."""
        path = self._path(url)
        # One name for all who write it, so that a process that was killed leaves nothing behind for ever. Two that write at the
        # same time may mix, which the hash shows whoever reads it.
        draft = path.with_name(f"{path.name}.part")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content)
            draft.replace(path)
        except OSError:
            _remove(draft)

    def _path(self, url: str) -> Path:
        return self._directory / body_name(url)


def body_name(url: str) -> str:
    """What the file of a page's body is called."""
    return hashlib.sha256(url.encode()).hexdigest()[:40]


def unpacked(content: bytes, encoding: str) -> bytes | None:
    """A body without the compression it was sent with (`gzip`, or "" for none).

    None for one that is cut off or damaged, or that grows beyond all bounds.
    """
    if not encoding:
        return content
    body = b""
    for _ in range(_MOST_PARTS):
        if not content:
            break
        inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            body += inflate.decompress(content, LARGEST + 1 - len(body))
        except zlib.error:
            return None
        if not inflate.eof or len(body) > LARGEST:
            return None
        content = inflate.unused_data
    return None if content else body


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
