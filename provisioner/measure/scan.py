"""Scan the bytes of a library: the CUDA runtime and compiler that it contains, the libraries that it names, NumPy's ABI.

All are found as plain bytes in a stream, so that libraries too large for memory are read like small ones.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable

RUNTIME_MARK = b"cudart.shm.%"
"""A text in every CUDA runtime, the shared (libcudart.so.*) and the static one (libcudart_static.a).

Measured: CUDA 11.8 to 13.5.
"""

SIGHTINGS = 2
"""How often a library must store the number of a CUDA release for that release to be taken as that of its runtime.

Every runtime stores its number in two functions. Measured: libcudart of CUDA 11.7 to 13.5, on x86_64 and arm64. Bytes that only
look like such a store occur once in some libraries: 14080 in libxgboost.so 3.1, 11000 in libcufft.so.11.
"""

COMPILER_MARK = b"is not defined for option"
"""A part of the message of ptxas, NVRTC and nvJitLink about an unknown GPU; only libraries with a compiler contain it."""

SONAME = re.compile(
    r"lib(?:cudart|cublas|cudnn|cufft|curand|cusolver|cusparse|cutensor|cupti|cufile|nvrtc|nvJitLink|nvToolsExt|nvinfer|nvonnxparser"
    r"|nvshmem|nvjpeg|npp|nccl|torch|c10|caffe2|amdhip64|hiprtc|hipblas|hipfft|hipsparse|hipsolver|hiprand|rocblas|rocfft|rocsolver"
    r"|rocsparse|rocrand|MIOpen|migraphx|rccl|hsa-runtime64|roctx64|roctracer64)[A-Za-z0-9_]*\.so(?:\.\d+)*"
)
"""The name by which a library of CUDA, PyTorch or ROCm is linked or loaded, except libraries of the driver.

A library that a wheel keeps to itself has a hash in its name (`libcudart-d0da41ae.so.11.0`), so its name does not match.
"""

NEAR = 16 << 10
"""The distance in bytes from the name of a system library within which names of other linked libraries lie.

Linkers put the names of linked libraries, and of versions, together at the end of the table of dynamic strings.
"""

SYSTEM = frozenset({"libc.so.6", "libstdc++.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libgcc_s.so.1"})
"""Libraries of the system; every library of a wheel links to at least one of these."""

_PATH = re.compile(rb"\0([!-~]*\$(?:ORIGIN|\{ORIGIN\})[!-~]*)(?=\0)")
# Not of a longer text: the first text of a section follows the last byte of the one before, whatever that is.
_NAME = re.compile(rb"[^ -~](lib[A-Za-z0-9_+-]+\.so(?:\.\d+)*)(?=\0)")
_TOOLS = re.compile(rb"release (\d+\.\d+), V\d+\.\d+\.\d+")
# cudaRuntimeGetVersion stores the runtime's version, 12080 for 12.8, at the address that it is given.
_STORED_X86 = re.compile(rb"\xc7\x07(..)\x00\x00", re.DOTALL)
_STORED_ARM = re.compile(rb"[\x80-\x87]\x52(?:.{4})?.[\x00-\x03]\x00\xb9", re.DOTALL)
_NUMPY_1, _NUMPY_2 = b"numpy.core._multiarray_umath", b"numpy._core._multiarray_umath"
_OVERLAP = 160
_LONGEST_PATHS = 2048
_AARCH64 = 183
"""The machine number of 64-bit Arm in the header of an ELF file. Source: ELF for the Arm 64-bit Architecture, "ELF Header"."""


class Scanner:
    """Scans a library in a stream that is fed piece by piece; a piece may begin and end anywhere."""

    def __init__(self) -> None:
        self._rest = b""
        self._start = 0
        self._is_arm = False
        self._has_runtime = False
        self._stored: Counter[int] = Counter()
        self._names: dict[str, set[int]] = {}
        self._system: list[int] = []
        self._paths: set[str] = set()
        self._tail = b""
        self._has_numpy_1 = False
        self._has_numpy_2 = False
        self._is_compiler = False
        self._tools: set[str] = set()

    def feed(self, piece: bytes) -> None:
        """Scan the next bytes of the library."""
        window = self._rest + piece
        if not self._start:
            self._is_arm = int.from_bytes(window[18:20], "little") == _AARCH64
        new = len(self._rest)
        self._has_runtime = self._has_runtime or RUNTIME_MARK in window
        self._is_compiler = self._is_compiler or COMPILER_MARK in window
        self._has_numpy_2 = self._has_numpy_2 or _NUMPY_2 in window
        self._has_numpy_1 = self._has_numpy_1 or _NUMPY_1 in window
        self._tools.update(match[1].decode() for match in _TOOLS.finditer(window))
        wider = self._tail + piece
        if b"$" in wider:
            self._paths.update(one for match in _PATH.finditer(wider) for one in match[1].decode().split(":"))
        self._tail = wider[-_LONGEST_PATHS:]
        for match in _NAME.finditer(window):
            name = match[1].decode()
            if name in SYSTEM:
                self._system.append(self._start + match.start())
            elif SONAME.fullmatch(name):
                self._names.setdefault(name, set()).add(self._start + match.start())
        for number in _stored_arm(window, new) if self._is_arm else _stored_x86(window, new):
            if 7000 <= number < 20000 and number % 10 == 0 and number % 1000 < 100:
                self._stored[number] += 1
        self._rest = window[-_OVERLAP:]
        self._start += len(window) - len(self._rest)

    @property
    def knows_links(self) -> bool:
        """Whether the table of dynamic strings was scanned, which is so once a library of the system (`SYSTEM`) was named."""
        return bool(self._system)

    @property
    def linked(self) -> tuple[str, ...]:
        """The libraries of CUDA, PyTorch and ROCm (`SONAME`) that the library links to, and its own name if that matches.

        These are the libraries named in the table of dynamic strings.
        """
        return tuple(sorted(name for name, places in self._names.items() if self._is_linked(places)))

    @property
    def searched(self) -> tuple[str, ...]:
        """The directories relative to that of the library (`$ORIGIN`) that are named in it, as in DT_RPATH and DT_RUNPATH."""
        return tuple(sorted(self._paths - {""}))

    @property
    def named(self) -> tuple[str, ...]:
        """All libraries of CUDA, PyTorch and ROCm (`SONAME`) that are named anywhere in the library, as a text of its own."""
        return tuple(sorted(self._names))

    @property
    def runtime(self) -> str:
        """The CUDA release of the runtime in the library (`12.8`), "" when it contains none or its release was not found.

        A release whose number is stored only once is accepted if a compiler of that release is named in the library, too.
        """
        seen = {number: count + (_release(number) in self._tools) for number, count in self._stored.items()}
        number = max(seen, key=lambda one: (seen[one], one), default=0)
        return _release(number) if self._has_runtime and number and seen[number] >= SIGHTINGS else ""

    @property
    def has_runtime(self) -> bool:
        """Whether the library contains a CUDA runtime."""
        return self._has_runtime

    @property
    def uses_runtime(self) -> bool:
        """Whether the library contains a CUDA runtime or links to the one in libcudart."""
        return self._has_runtime or any(name.startswith("libcudart.") for name in self.linked)

    @property
    def compiler(self) -> str:
        """The CUDA release of the compiler of GPU code in the library, "" when it contains none."""
        return max(self._tools, key=numbers_of, default="") if self._is_compiler else ""

    @property
    def tools(self) -> tuple[str, ...]:
        """The CUDA releases of the compilers named in the library's GPU code, oldest first; compressed code names none."""
        return tuple(sorted(self._tools, key=numbers_of))

    @property
    def needs_numpy_1(self) -> bool:
        """Whether the library uses NumPy's C API and was compiled against NumPy 1, so that it cannot be imported with NumPy 2.

        Modules compiled against NumPy 2 look for `numpy._core` first. Source: NumPy 2.0 migration guide, "NumPy C-API".
        """
        return self._has_numpy_1 and not self._has_numpy_2

    def _is_linked(self, places: Iterable[int]) -> bool:
        return any(abs(place - one) <= NEAR for place in places for one in self._system)


def _stored_x86(window: bytes, new: int) -> Iterable[int]:
    """Yield the numbers that the instruction `mov dword [rdi], NUMBER` stores, if it ends after the offset `new` of the window.

    The bytes before `new` were scanned with the previous piece.
    """
    return (int.from_bytes(match[1], "little") for match in _STORED_X86.finditer(window) if match.end() > new)


def _stored_arm(window: bytes, new: int) -> Iterable[int]:
    """Yield the numbers that `mov wN, #NUMBER` and `str wN, [xM]` store, if the latter ends after the offset `new`.

    The two instructions are adjacent, or have one other between them.
    """
    for match in _STORED_ARM.finditer(window):
        at = match.start() - 2
        if at < 0 or match.end() <= new:
            continue
        move, store = int.from_bytes(window[at : at + 4], "little"), int.from_bytes(match[0][-4:], "little")
        if move & 31 == store & 31:
            yield move >> 5 & 0xFFFF


def _release(number: int) -> str:
    """Return the CUDA release of a version number as stored in the runtime: 12.8 for 12080."""
    return f"{number // 1000}.{number % 1000 // 10}"
