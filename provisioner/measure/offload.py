"""Count the AMD GPU targets of a library from the offload bundles that Clang puts into it, in a stream.

Source: LLVM, "Clang Offload Bundler", "Bundled Binary File Layout" and "Compressed Bundles"; `CompressedOffloadBundle` of
llvm-project for the headers of versions 1 to 3.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
PACKED_MAGIC = b"CCOB"

ZLIB, ZSTD = 0, 1
"""Compression methods of a packed bundle (`llvm::compression::Format`)."""

WINDOW = 64 * 1024
"""The number of bytes of a bundle that are buffered; the list of targets at its beginning is far shorter."""

_PACKED_HEADS = {1: 20, 2: 24, 3: 32}
_TARGET = re.compile(rb"hipv?4?-amdgcn-amd-amdhsa-{1,2}(gfx[0-9a-f]+(?:-[0-9a-z-]+)?)")
_MOST_ENTRIES = 256


class OffloadReader:
    """Counts, for each gfx target, the bundles of GPU code for it in a stream that is fed piece by piece."""

    def __init__(self) -> None:
        self._buffer = b""
        self._counts: Counter[str] = Counter()
        self.unread = 0
        """The number of bundles compressed with zstd that were not read; zstandard reads them if it is installed."""

    @property
    def targets(self) -> Mapping[str, int]:
        """For each target (`gfx942`), the number of bundles with code for it so far."""
        return {name: self._counts[name] for name in sorted(self._counts)}

    def feed(self, piece: bytes) -> None:
        """Scan the next bytes; GPU code bundles in the last `WINDOW` bytes are counted by the next call, or by `finish`."""
        self._buffer += piece
        if len(self._buffer) > WINDOW:
            self._count(len(self._buffer) - WINDOW)

    def finish(self) -> None:
        """Count the bundles in the last bytes of the stream."""
        self._count(len(self._buffer))

    def _count(self, stop: int) -> None:
        """Count the bundles that begin before the offset `stop` of the buffer, and drop the bytes before it."""
        for magic, read in ((PLAIN_MAGIC, self._plain), (PACKED_MAGIC, self._packed)):
            at = self._buffer.find(magic)
            while 0 <= at < stop:
                read(self._buffer[at : at + WINDOW])
                at = self._buffer.find(magic, at + 1)
        self._buffer = self._buffer[stop:]

    def _plain(self, bundle: bytes) -> None:
        head = len(PLAIN_MAGIC) + 8
        if len(bundle) < head:
            return
        (count,) = struct.unpack_from("<Q", bundle, len(PLAIN_MAGIC))
        at = head
        for _ in range(min(count, _MOST_ENTRIES)):
            if at + 24 > len(bundle):
                return
            _, _, length = struct.unpack_from("<QQQ", bundle, at)
            name = bundle[at + 24 : at + 24 + min(length, WINDOW)]
            found = _TARGET.fullmatch(name.split(b":")[0])
            if found is not None:
                self._counts[found[1].decode().rstrip("-")] += 1
            at += 24 + length

    def _packed(self, bundle: bytes) -> None:
        if len(bundle) < 8:
            return
        version, method = struct.unpack_from("<HH", bundle, 4)
        head = _PACKED_HEADS.get(version)
        if head is None:
            return
        plain = _decompressed(bundle[head:], method)
        if plain is None:
            self.unread += 1
        elif plain.startswith(PLAIN_MAGIC):
            self._plain(plain)


def _decompressed(packed: bytes, method: int) -> bytes | None:
    """Return the beginning of a compressed bundle, b"" for bytes that are none; None for what zstandard cannot decompress."""
    if method == ZLIB:
        with suppress(zlib.error):
            return zlib.decompressobj().decompress(packed, WINDOW)
    elif method == ZSTD:
        try:
            import zstandard
        except ImportError:
            return None
        try:
            return zstandard.ZstdDecompressor().decompressobj().decompress(packed)[:WINDOW]
        except zstandard.ZstdError:
            return None
    return b""
