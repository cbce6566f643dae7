"""A remote file read by HTTP range requests, so that reading a wheel's metadata takes a few kilobytes."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.index.address import public_url
from provisioner.index.http.transport import refusal
from provisioner.index.metadata.core_metadata import unusable

if TYPE_CHECKING:
    from provisioner.index.http.transport import Response, Transport

TAIL = 64 * 1024
"""Bytes of the first range, the end of the file: a wheel has its central directory there, and mostly METADATA (PEP 427)."""

SMALL = 3 * TAIL
"""The size in bytes up to which a file is requested whole, which saves a request when METADATA is at its beginning."""

STEP = 16 * 1024
"""The smallest size in bytes of a later range."""

WHOLE = 4 * 1024 * 1024
"""The largest file in bytes that is downloaded whole from a server that does not support ranges."""

_DENIALS = frozenset({400, 405, 416, 501})
"""HTTP statuses with which servers refuse a range request."""

_SPAN = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")

_LONGEST = 32 * 1024 * 1024
"""The largest range in bytes; even the central directory of a wheel with a hundred thousand files has only 12 MB."""


class RangedFile(io.RawIOBase):
    """A read-only, seekable view of a remote file; each range is fetched once."""

    def __init__(self, transport: Transport, url: str, *, source: str, size: int | None = None) -> None:
        """Fetch the end of the file; `size` is its size in bytes, None when the index does not list it.

        Raises `UnavailableError` when the file cannot be fetched or is too large for a server without ranges.
        """
        super().__init__()
        self._transport = transport
        self._url = url
        self._source = source
        self._parts: list[tuple[int, bytes]] = []
        self._position = 0
        self.fetched = 0
        """The bytes of this file received over the network."""
        self._length = self._fetch_tail(SMALL if size is not None and size <= SMALL else TAIL)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position, in bytes from the start."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position and return the new one; nothing is fetched."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes from the position, fetching the ranges that are missing."""
        start, stop = self._position, self._length if size < 0 else min(self._length, self._position + size)
        if stop <= start:
            return b""
        self._position = stop
        kept = self._kept(start, stop)
        if kept is not None:
            return kept
        # zipfile reads a member in small steps: fetching a little ahead makes one request of them.
        content = self._fetch(start, min(self._length, max(stop, start + STEP)))
        self._parts.append((start, content))
        return content[: stop - start]

    def span(self, start: int, stop: int) -> bytes:
        """Return the bytes from offset `start` up to `stop`, fewer at the end of the file; later reads fetch them again."""
        stop = min(stop, self._length)
        if start >= stop:
            return b""
        return self._kept(start, stop) or self._fetch(start, stop)

    def _kept(self, start: int, stop: int) -> bytes | None:
        for first, part in self._parts:
            if first <= start and stop <= first + len(part):
                return part[start - first : stop - first]
        return None

    def _fetch(self, start: int, stop: int) -> bytes:
        if stop - start > _LONGEST:
            name = self._url.rpartition("/")[2]
            raise unusable(name, f"has a list of members of {stop - start} bytes, and no wheel has")
        answer = self._request(f"bytes={start}-{stop - 1}")
        found, _ = self._span(answer)
        if found != start or len(answer.body) != stop - start:
            raise UnavailableError(f"{self._source} sends another range than was asked for", causes=(public_url(self._url),))
        return answer.body

    def _fetch_tail(self, size: int) -> int:
        """Fetch the end of the file, or the whole file from a server without ranges; returns the length of the file in bytes.

        Raises `UnavailableError` when the file is larger than `WHOLE` and the server does not support ranges.
        """
        answer = self._request(f"bytes=-{size}", limit=WHOLE)
        if answer.status in _DENIALS:
            # Some servers know ranges from the front only; one byte tells the length.
            answer = self._request("bytes=0-0", limit=WHOLE)
        if answer.status in _DENIALS or (answer.status == 200 and not answer.body):
            raise UnavailableError(
                f"{self._source} has neither a metadata file nor byte ranges for `{self._url.rpartition('/')[2]}`",
                causes=(public_url(self._url),),
                hints=("use an index that serves `.metadata` files (PEP 658) or range requests",),
            )
        start, length = (0, len(answer.body)) if answer.status == 200 else self._span(answer)
        self._parts.append((start, answer.body))
        return length

    def _span(self, answer: Response) -> tuple[int, int]:
        """Return the offset of the range in a response, and the length of the file.

        Raises `UnavailableError` when the response is no valid answer to a range request.
        """
        span = _SPAN.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status != 206 or span is None:
            raise refusal(answer.status, self._url, source=self._source, looked_at=answer.looked_at)
        start, stop, length = int(span[1]), int(span[2]) + 1, int(span[3])
        if stop - start != len(answer.body):
            raise UnavailableError(f"{self._source} sends another range than it says", causes=(public_url(self._url),))
        return start, length

    def _request(self, span: str, *, limit: int | None = None) -> Response:
        headers = {"Range": span, "Accept-Encoding": "identity"}
        answer = self._transport.request(self._url, source=self._source, headers=headers, limit=limit)
        self.fetched += len(answer.body)
        return answer
