"""Progress of an index client: how many projects and files it has read, and its requests in flight; thread-safe."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


class Activity:
    """Thread-safe counters of what was read so far, the URLs of the requests in flight, and the file being built."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[object, str] = {}
        self.built = ""
        """The source distribution that is being built to learn its requirements, "" when none is."""
        self.projects = 0
        """The number of projects whose releases were read."""
        self.metadata = 0
        """The number of files whose requirements were read."""
        self.received = 0
        """Bytes of response bodies received over the network."""

    def count(self, *, projects: int = 0, metadata: int = 0, received: int = 0) -> None:
        """Add the arguments to the counters of the same names."""
        with self._lock:
            self.projects += projects
            self.metadata += metadata
            self.received += received

    @contextmanager
    def waiting_for(self, url: str) -> Iterator[None]:
        """Record a request to `url` as in flight while the `with` block runs."""
        token = object()
        with self._lock:
            self._open[token] = url
        try:
            yield
        finally:
            with self._lock:
                del self._open[token]

    @contextmanager
    def building(self, filename: str) -> Iterator[None]:
        """Record a source distribution as being built while the `with` block runs; one at a time is."""
        self.built = filename
        try:
            yield
        finally:
            self.built = ""

    @property
    def waiting(self) -> str:
        """The URL of the request that has been in flight for the longest, "" when there is none."""
        with self._lock:
            return next(iter(self._open.values()), "")


def progress_line(activities: Iterable[Activity]) -> str:
    """Return the summed progress as text: `42 projects, metadata of 31 files, 12.3 MB; waiting for numpy from pypi.org`.

    A build is told rather than a request: its own requests are pip's, and unknown here.
    """
    known = tuple(activities)
    projects, metadata = sum(one.projects for one in known), sum(one.metadata for one in known)
    received = sum(one.received for one in known)
    parts = [_counted(projects, "project"), f"metadata of {_counted(metadata, 'file')}"]
    parts += [readable_size(received)] if received else []
    built = next((one.built for one in known if one.built), "")
    if built:
        return f"{', '.join(parts)}; building {built} to learn what it requires"
    waiting = next((one.waiting for one in known if one.waiting), "")
    return ", ".join(parts) + (f"; waiting for {_shown(waiting)}" if waiting else "")


def readable_size(size: int) -> str:
    """Return a number of bytes as text with a decimal unit: `12.3 MB`, `1 byte`."""
    for factor, unit in _UNITS:
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return _counted(size, "byte")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{unquote(parts.path.rstrip('/').rpartition('/')[2])} from {parts.netloc.rpartition('@')[2]}"
