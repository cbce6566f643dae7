"""What the C library's allocator is told before pages are read: pages come and go, and each may be megabytes long."""

from __future__ import annotations

import sys

LARGE = 128 * 1024
"""Bytes from which a block is the system's own and goes back to it at once: what glibc starts with, before it adapts."""

_M_MMAP_THRESHOLD = -3
"""Source: <malloc.h> of glibc."""


def give_back_large_blocks() -> bool:
    """Have every large block given back when it is let go of, for the rest of the process; whether that could be asked.

    glibc raises its threshold to the largest block it saw freed (mallopt(3), "dynamic mmap threshold"), up to 32 MiB. From the
    first large page on, bodies would be cut from the heaps of the threads that read them and leave holes nobody else can use.
    Another C library has no such call, and nothing is changed there.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE))
    except (ImportError, OSError, AttributeError):
        return False
