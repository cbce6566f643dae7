"""Read members of a wheel by byte ranges, from an index or from disk, without downloading the wheel.

Source of the layout: PKWARE APPNOTE.TXT 6.3.10, 4.3.7 (local file header) and 4.4.5 (compression methods).
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, Self, cast

from provisioner.errors import UnavailableError
from provisioner.index.metadata.ranged import RangedFile
from provisioner.measure import UnreadableArtefactError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.index.http.transport import Transport
    from provisioner.index.model import IndexFile

CHUNK = 4 << 20
"""The size in bytes of a range request while a member is streamed: small enough to stop early, large enough for speed."""

_LOCAL_HEADER = struct.Struct("<4s22xHH")


class _File(Protocol):
    """A file with the bytes of a wheel."""

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def read(self, size: int = -1, /) -> bytes: ...

    def close(self) -> None: ...


class RemoteWheel:
    """One wheel, opened to read its members; a context manager.

    Opening it reads its list of members. Every method raises `UnavailableError` if the network or disk fails and
    `UnreadableArtefactError` if the file is not a wheel, is damaged, or compresses a member in a way that wheels do not use.
    """

    def __init__(self, file: IndexFile, transport: Transport) -> None:
        self.filename = file.filename
        self._remote: RangedFile | None = None
        self._read = 0
        self._is_closed = False
        self._file = self._opened(file, transport)
        try:
            self._members = {info.filename: info for info in self._directory() if not info.is_dir()}
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; may be called from any thread. A read in another thread then ends with `UnavailableError`.

        A connection to an index is left open for other requests of its transport.
        """
        self._is_closed = True
        self._file.close()

    @property
    def fetched(self) -> int:
        """Bytes read so far from the network, or from disk for a local file."""
        return self._read + (self._remote.fetched if self._remote is not None else 0)

    def names(self) -> tuple[str, ...]:
        """Return the paths of the members, in the order of the wheel."""
        return tuple(self._members)

    def size(self, member: str) -> int:
        """Return the unpacked size of a member in bytes."""
        return self._info(member).file_size

    def packed_size(self, member: str) -> int:
        """Return the packed size of a member in bytes."""
        return self._info(member).compress_size

    def read(self, member: str) -> bytes:
        """Return the content of a small member, checked against its checksum."""
        return b"".join(self.stream(member))

    def stream(self, member: str) -> Iterator[bytes]:
        """Yield a member piece by piece, unpacked; when the caller stops, no more bytes are fetched.

        The checksum is checked at the end of the member.
        """
        info = self._info(member)
        if info.flag_bits & 0x1 or info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise self._unreadable(f"its member `{member}` is encrypted or packed in a way wheels do not use")
        checksum, length = 0, 0
        try:
            for piece in _inflated(self._packed(info), info):
                checksum, length = zlib.crc32(piece, checksum), length + len(piece)
                if length > info.file_size:
                    raise self._unreadable(f"its member `{member}` is longer than the wheel says")
                yield piece
        except zlib.error as error:
            raise self._unreadable(f"its member `{member}` cannot be inflated: {error}") from None
        if length != info.file_size or checksum != info.CRC:
            raise self._unreadable(f"its member `{member}` is damaged")

    def _opened(self, file: IndexFile, transport: Transport) -> _File:
        if not file.path:
            self._remote = RangedFile(transport, file.url, source=f"index `{file.index}`")
            return cast("_File", self._remote)
        try:
            return cast("_File", Path(file.path).open("rb"))
        except OSError as error:
            raise UnavailableError(f"`{file.path}` cannot be read: {error.strerror}") from None

    def _directory(self) -> list[zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(cast("IO[bytes]", self._file)) as archive:
                return archive.infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError, EOFError) as error:
            raise self._unreadable(f"it is not a wheel: {error}") from None

    def _info(self, member: str) -> zipfile.ZipInfo:
        found = self._members.get(member)
        if found is None:
            raise self._unreadable(f"it has no member `{member}`")
        return found

    def _packed(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        # The lengths in a local header can differ from those in the directory, so the data's start is known only from here.
        head = self._span(info.header_offset, info.header_offset + _LOCAL_HEADER.size)
        magic, name_length, extra_length = _LOCAL_HEADER.unpack(head)
        if magic != b"PK\x03\x04":
            raise self._unreadable(f"its member `{info.filename}` is not where the wheel says")
        start = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
        stop = start + info.compress_size
        for first in range(start, stop, CHUNK):
            yield self._span(first, min(stop, first + CHUNK))

    def _span(self, start: int, stop: int) -> bytes:
        if self._is_closed:
            raise UnavailableError(f"reading `{self.filename}` was given up")
        if self._remote is not None:
            content = self._remote.span(start, stop)
        else:
            try:
                self._file.seek(start)
                content = self._file.read(stop - start)
            except OSError as error:
                raise UnavailableError(f"`{self.filename}` cannot be read: {error.strerror}") from None
            self._read += len(content)
        if len(content) != stop - start:
            raise self._unreadable("it ends before its members do")
        return content

    def _unreadable(self, reason: str) -> UnreadableArtefactError:
        return UnreadableArtefactError(f"`{self.filename}` cannot be measured: {reason}")


def _inflated(packed: Iterator[bytes], info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield unpacked pieces of at most `CHUNK` bytes: a few packed kilobytes may hold gigabytes of zeros."""
    if info.compress_type == zipfile.ZIP_STORED:
        yield from packed
        return
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    for part in packed:
        rest = part
        while rest and not inflate.eof:
            piece = inflate.decompress(rest, CHUNK)
            rest = inflate.unconsumed_tail
            if piece:
                yield piece
    while piece := inflate.decompress(b"", CHUNK):
        yield piece
