"""How many requests are kept under way: as many as it takes to be busy while answers are waited for, and no more.

Threads that have nothing to wait for stand in each other's way: the interpreter runs one at a time, and whoever hands over to
many loses time. Little's law says how many are needed: the wait for an answer, divided by the work that each answer makes.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FEWEST = 3
"""Requests under way at once before anything is known, and however near an index is."""

MOST = 32
"""Requests under way at once, beside that of the caller; most are to one host, which bounds them, too."""

EACH_SECONDS = 0.003
"""What one answer keeps the processor busy with, at least: a request takes 1 ms, to read a page 5, metadata less."""

WINDOW_SECONDS = 0.05
"""How long to look before the number grows for want of work."""

BUSY = 0.7
"""Of the time a processor has: a process that uses less while all wait could have more under way."""


class Pace:
    """How many requests the waits so far call for. Safe to share between threads.

    The shortest wait for a host counts at once: a wait is also as long as others keep this process busy, so an average would
    call for more threads, and these for more still. Where some answers take longer than that one, as those that a mirror has
    to fetch itself, the number grows as long as everybody waits and the processor has time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shortest: dict[object, float] = {}
        self._grown = 0
        self._waiting = self._most_waiting = 0
        self._since = self._spent = 0.0

    @contextmanager
    def measured(self, host: object) -> Iterator[None]:
        """Measure the block as a wait for the first bytes of an answer of a host; one that fails says nothing."""
        begun = time.perf_counter()
        with self._lock:
            self._waiting += 1
            self._most_waiting = max(self._most_waiting, self._waiting)
        try:
            yield
            waited = time.perf_counter() - begun
            with self._lock:
                self._shortest[host] = min(waited, self._shortest.get(host, waited))
        finally:
            with self._lock:
                self._look()
                self._waiting -= 1

    @property
    def at_once(self) -> int:
        """How many requests to have under way: by the farthest host that answers, or by the time that was left."""
        farthest = max(tuple(self._shortest.values()), default=0.0)
        return min(MOST, max(self._grown, FEWEST + int(farthest / EACH_SECONDS)))

    def _look(self) -> None:
        """Grow by half when in the last window all waited at once and the processor was not busy; the lock is held."""
        now, spent = time.perf_counter(), time.process_time()
        if now - self._since < WINDOW_SECONDS:
            return
        has_time = self._since > 0 and spent - self._spent < BUSY * (now - self._since)
        if has_time and self._most_waiting >= self.at_once:
            self._grown = self.at_once + (self.at_once + 1) // 2
        self._since, self._spent, self._most_waiting = now, spent, self._waiting - 1
