"""A remote file read from its start, and no further than its reader asks."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


LARGEST_SEARCHED = 32 * 1024 * 1024
"""The most bytes of a file that are fetched to look for something in it."""


class SearchedInVainError(Exception):
    """`LARGEST_SEARCHED` bytes of a file were read, and more were asked for."""


class Download(io.RawIOBase):
    """A read-only stream over the body of a response, which is fetched piece by piece as it is read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._content = bytearray()
        self._position = 0
        self._is_whole = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the next `size` bytes, fewer at the end of the file; raises `SearchedInVainError` beyond the limit."""
        while not self._is_whole and (size < 0 or len(self._content) < self._position + size):
            self._fetch()
        found = bytes(self._content[self._position : len(self._content) if size < 0 else self._position + size])
        self._position += len(found)
        return found

    def verify_if_short(self, verify: Callable[..., None]) -> None:
        """Call `verify` with the whole `content` if nothing is left of it, which fetches at most one more piece."""
        if not self._is_whole:
            self._fetch()
        if self._is_whole:
            verify(content=self._content)

    def _fetch(self) -> None:
        piece = next(self._pieces, None)
        self._is_whole = piece is None
        self._content += piece or b""
        if len(self._content) > LARGEST_SEARCHED:
            raise SearchedInVainError
