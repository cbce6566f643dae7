"""The host compilers a CUDA toolkit accepts: the conditions over the #error lines of its crt/host_config.h.

The conditions count, not the text of the messages: from 12.2 on the text lags behind the condition for clang.
"""

from __future__ import annotations

import re

from msgspec import Struct

_GCC = re.compile(r"^#if\s+__GNUC__\s*>\s*(\d+)\s*$\s*^#error\b[^\n]*GNU", re.MULTILINE)
_CLANG = re.compile(
    r"^#if\s+defined\(__clang__\)[^\n]*$\s*^#if\s+\(__clang_major__\s*>=\s*(\d+)\)[^\n]*$\s*^#error\b", re.MULTILINE
)
_RSQRT = re.compile(r"rsqrt\s*\(\s*double[^;]*?\)\s*([^;]*);")


class HostCompilers(Struct, frozen=True, kw_only=True):
    """The first major version of each compiler that is refused; None where the header has no such check."""

    gcc: int | None = None
    clang: int | None = None


def host_compilers(header: str) -> HostCompilers:
    """Read crt/host_config.h."""
    gcc, clang = _GCC.search(header), _CLANG.search(header)
    return HostCompilers(gcc=int(gcc[1]) + 1 if gcc else None, clang=int(clang[1]) if clang else None)


def declares_rsqrt_noexcept(header: str) -> bool | None:
    """Whether crt/math_functions.h declares `rsqrt(double)` with an exception specifier, as glibc 2.42 does.

    Without one, every program that includes both fails to compile. None where the header does not declare it.
    """
    found = _RSQRT.search(header)
    return None if found is None else bool(found[1].strip())
