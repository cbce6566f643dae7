"""A map whose values are each made once, however many threads ask for them at the same time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from provisioner.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Value = TypeVar("Value")


class OnceMap(Generic[Value]):
    """Remembers the value that was made for each key, or the `ProvisionError` that was raised instead."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, threading.Lock] = {}
        self._done: dict[Hashable, Value | ProvisionError] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._done

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key: remembered, waited for where another thread makes it, or made here."""
        if key not in self._done:
            with self._lock:
                under_way = self._under_way.setdefault(key, threading.Lock())
            with under_way:
                if key not in self._done:
                    try:
                        self._done[key] = make()
                    except ProvisionError as error:
                        self._done[key] = error
        found = self._done[key]
        if isinstance(found, ProvisionError):
            raise found.with_traceback(None)
        return found

    def known(self, key: Hashable) -> Value | None:
        """Return the value of a key; None where it was not made, or could not be."""
        found = self._done.get(key)
        return None if isinstance(found, ProvisionError) else found
