"""A remote file read in parts, so that a wheel's metadata costs a few kilobytes and not the wheel."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.index.address import public_url
from provisioner.index.http.transport import refusal
from provisioner.index.metadata.core_metadata import UnusableMetadataError

if TYPE_CHECKING:
    from provisioner.index.http.transport import Response, Transport

TAIL = 64 * 1024
"""Bytes asked for first: the end of a wheel holds its list of members, and mostly the METADATA too (PEP 427 puts it last)."""

SMALL = 3 * TAIL
"""Bytes of a file that is asked for as a whole: where METADATA comes first, the end would be a request too many."""

STEP = 16 * 1024
"""Bytes asked for at least, after the first part."""

WHOLE = 4 * 1024 * 1024
"""Bytes. A server without ranges may send a file of this size whole; anything larger is never downloaded for its metadata."""

_DENIALS = frozenset({400, 405, 416, 501})
"""What servers answer that will not send a part of a file."""

_SPAN = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")

_LONGEST = 32 * 1024 * 1024
"""Bytes of one part. The list of members of a wheel of a hundred thousand files has 12 MB; more is there to exhaust memory."""


class RangedFile(io.RawIOBase):
    """A read-only, seekable view of a remote file; each part is fetched once."""

    def __init__(self, transport: Transport, url: str, *, source: str, size: int | None = None) -> None:
        """`size` is what the file is said to have, in bytes; None for what nobody says."""
        super().__init__()
        self._transport = transport
        self._url = url
        self._source = source
        self._parts: list[tuple[int, bytes]] = []
        self._position = 0
        self.fetched = 0
        """Bytes that came over the network for this file so far."""
        self._length = self._first_part(SMALL if size is not None and size <= SMALL else TAIL)

    def _first_part(self, tail: int) -> int:
        answer = self._ask(f"bytes=-{tail}", limit=WHOLE)
        if answer.status == 200:
            return self._whole(answer)
        if answer.status in _DENIALS:
            # Some servers know ranges from the front only; one byte tells the length.
            answer = self._ask("bytes=0-0", limit=WHOLE)
            if answer.status == 200:
                return self._whole(answer)
            if answer.status in _DENIALS:
                raise self._without_ranges()
        start, length = self._span(answer)
        self._parts.append((start, answer.body))
        return length

    def _whole(self, answer: Response) -> int:
        if not answer.body:
            raise self._without_ranges()
        self._parts.append((0, answer.body))
        return len(answer.body)

    def _without_ranges(self) -> UnavailableError:
        return UnavailableError(
            f"{self._source} has neither a metadata file nor byte ranges for `{self._url.rpartition('/')[2]}`",
            causes=(public_url(self._url),),
            hints=("use an index that serves `.metadata` files (PEP 658) or range requests",),
        )

    def _span(self, answer: Response) -> tuple[int, int]:
        span = _SPAN.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status != 206 or span is None:
            raise refusal(answer.status, self._url, source=self._source, looked_at=answer.looked_at)
        start, stop, length = int(span[1]), int(span[2]) + 1, int(span[3])
        if stop - start != len(answer.body):
            raise UnavailableError(f"{self._source} sends another range than it says", causes=(public_url(self._url),))
        return start, length

    def _ask(self, span: str, *, limit: int | None = None) -> Response:
        headers = {"Range": span, "Accept-Encoding": "identity"}
        answer = self._transport.request(self._url, source=self._source, headers=headers, limit=limit)
        self.fetched += len(answer.body)
        return answer

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The position, in bytes from the start."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes from the position, fetching what is missing."""
        stop = self._length if size < 0 else min(self._length, self._position + size)
        if stop <= self._position:
            return b""
        content = self._bytes(self._position, stop)
        self._position = stop
        return content

    def span(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`, fewer at the end of the file; they are not kept, so that gigabytes may stream."""
        stop = min(stop, self._length)
        if start >= stop:
            return b""
        return self._kept(start, stop) or self._fetched(start, stop).body

    def _bytes(self, start: int, stop: int) -> bytes:
        kept = self._kept(start, stop)
        if kept is not None:
            return kept
        # zipfile reads a member in small steps: fetching a little ahead makes one request of them.
        answer = self._fetched(start, min(self._length, max(stop, start + STEP)))
        self._parts.append((start, answer.body))
        return answer.body[: stop - start]

    def _kept(self, start: int, stop: int) -> bytes | None:
        for first, part in self._parts:
            if first <= start and stop <= first + len(part):
                return part[start - first : stop - first]
        return None

    def _fetched(self, start: int, stop: int) -> Response:
        if stop - start > _LONGEST:
            name = self._url.rpartition("/")[2]
            raise UnusableMetadataError(f"`{name}` has a list of members of {stop - start} bytes, and no wheel has")
        answer = self._ask(f"bytes={start}-{stop - 1}")
        found, _ = self._span(answer)
        if found != start or len(answer.body) != stop - start:
            raise UnavailableError(f"{self._source} sends another range than was asked for", causes=(public_url(self._url),))
        return answer
