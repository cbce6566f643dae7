"""Count the NVIDIA GPU targets of a library from the headers of its fat binaries, in a stream, without unpacking any code.

NVIDIA documents no layout. This one was measured with `fatbinary` and `ptxas` of CUDA 13.5 (nvidia-cuda-nvcc 13.5.37): images
of known kind and target were packed and their headers compared. It agrees with what `cuobjdump --list-elf` prints.

A container is a header of 16 bytes (magic, version 1, length of the header, length of all that follows) and entries. An entry
is a header of 64 bytes or more (kind, its own length, length of the image, ISA version, target, flags) and an image.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINER_MAGIC = bytes.fromhex("50ed55ba01001000")
"""The first bytes of a container: magic 0xBA55ED50, version 1, header length 16; the magic alone also occurs in code."""

CONTAINER_HEAD, ENTRY_HEAD, MOST_ENTRY_HEAD = 16, 64, 1 << 16

FAMILY_ONLY = 1 << 21
"""Flag of code for an `f` target, which of all later GPUs only those of its family run.

Measured: `sm_100f` differs from `sm_100` in this bit.
"""

ARCHITECTURE_ONLY = 1 << 20
"""Flag of code for an `a` target, run by that GPU only. Measured: `sm_90a` differs from `sm_90` in this bit."""

_KINDS = {1: "compute", 2: "sm", 16: "sm"}
"""Kind of an entry -> the prefix of its target's name; entries of other kinds hold no code for a GPU.

1 is PTX, 2 machine code, 16 machine code of newer compilers that is finished when it is loaded.
"""

_PTX = 1
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_ARCHITECTURES = range(10, 1000)


class _Container(Struct):
    """A container that is being read: the offsets of its end and of its next entry (`at`) from the start of the stream."""

    end: int
    at: int


class FatBinaryReader:
    """Counts the targets in a stream that is fed to it piece by piece; a piece may begin and end anywhere.

    Damaged and random bytes are skipped: bytes that are no entry end their container.
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._start = 0
        """The offset of the buffer from the start of the stream."""
        self._at = 0
        """The offset of the next byte to read in the buffer."""
        self._container: _Container | None = None
        self._counts: Counter[str] = Counter()
        self._isa: dict[str, tuple[int, int]] = {}
        self.containers = 0
        """The number of containers found so far."""

    @property
    def position(self) -> int:
        """The number of bytes fed so far."""
        return self._start + len(self._buffer)

    @property
    def targets(self) -> Mapping[str, int]:
        """For each target (`sm_90`, `sm_90a`, `compute_90`), the number of entries so far with code for it; sorted."""
        return {name: self._counts[name] for name in sorted(self._counts, key=target_key)}

    @property
    def isa(self) -> Mapping[str, str]:
        """For each PTX target (`compute_90`), the newest version of the PTX ISA (`8.7`) in which code for it is written."""
        return {name: ".".join(map(str, self._isa[name])) for name in sorted(self._isa, key=target_key)}

    def feed(self, piece: bytes) -> None:
        """Scan the next bytes of the library, counting the targets of each entry whose header is complete."""
        self._buffer = self._buffer[self._at :] + piece
        self._start, self._at = self._start + self._at, 0
        while self._scan() if self._container is None else self._entry(self._container):
            pass

    def _scan(self) -> bool:
        """Look for the next container; returns True when it was found, False when more bytes are needed."""
        found = self._buffer.find(CONTAINER_MAGIC, self._at)
        if found < 0:
            self._at = max(self._at, len(self._buffer) - len(CONTAINER_MAGIC) + 1)
            return False
        self._at = found
        if found + CONTAINER_HEAD > len(self._buffer):
            return False
        (length,) = struct.unpack_from("<Q", self._buffer, found + 8)
        begin = self._start + found + CONTAINER_HEAD
        self._at += CONTAINER_HEAD
        self._container = _Container(end=begin + length, at=begin)
        self.containers += 1
        return True

    def _entry(self, container: _Container) -> bool:
        """Read the header of the container's next entry, or leave the container; returns False when more bytes are needed."""
        self._at = min(container.at - self._start, len(self._buffer))
        if container.at > self._start + self._at:
            return False
        if container.at + ENTRY_HEAD > container.end:
            self._container = None
            return True
        if self._at + ENTRY_HEAD > len(self._buffer):
            return False
        kind, _, head, length, _, _, minor, major, architecture, _, _, flags = _ENTRY.unpack_from(self._buffer, self._at)
        after = container.at + head + length
        if not ENTRY_HEAD <= head <= MOST_ENTRY_HEAD or after > container.end or architecture not in _ARCHITECTURES:
            # These bytes are no entry, so the container was none; another one may begin in them.
            self._container = None
            return True
        if kind in _KINDS:
            name = f"{_KINDS[kind]}_{architecture}{_suffix(flags)}"
            self._counts[name] += 1
            if kind == _PTX:
                self._isa[name] = max(self._isa.get(name, (0, 0)), (major, minor))
        container.at = after
        return True


def _suffix(flags: int) -> str:
    return "a" if flags & ARCHITECTURE_ONLY else "f" if flags & FAMILY_ONLY else ""


RARE_BELOW = 0.5
"""The fraction of the kernels of a library's most frequent target below which another target of the library is ignored."""


def target_key(name: str) -> tuple[str, int, str]:
    """Return a sort key that groups machine code and PTX, and sorts `sm_90` before `sm_90a` before `sm_100`."""
    kind, _, number = name.partition("_")
    digits = number.rstrip("af")
    return kind, int(digits) if digits.isdigit() else 0, number[len(digits) :]
