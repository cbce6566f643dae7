"""Work done once per key, however many threads ask for it at the same time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from provisioner.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Value = TypeVar("Value")


class Memo(Generic[Value]):
    """Remembers the value, or the `ProvisionError`, that each key came to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._working: dict[Hashable, threading.Lock] = {}
        self._done: dict[Hashable, Value | ProvisionError] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._done

    def get(self, key: Hashable, work: Callable[[], Value]) -> Value:
        """The value of `key`: remembered, waited for when another thread is at it, or worked out here."""
        if key not in self._done:
            with self._lock:
                working = self._working.setdefault(key, threading.Lock())
            with working:
                if key not in self._done:
                    self._done[key] = _outcome(work)
        found = self._done[key]
        if isinstance(found, ProvisionError):
            raise found.with_traceback(None)
        return found


def _outcome(work: Callable[[], Value]) -> Value | ProvisionError:
    try:
        return work()
    except ProvisionError as error:
        return error
