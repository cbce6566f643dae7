"""A thread-safe memo: each value is computed once, even when several threads request it at the same time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from provisioner.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Value = TypeVar("Value")


class OnceMap(Generic[Value]):
    """A thread-safe map from keys to values computed once, or to the `ProvisionError` that the computation raised."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, threading.Lock] = {}
        self._done: dict[Hashable, Value | ProvisionError] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._done

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of `key`, calling `make` to compute it only once; waits while another thread computes it.

        Raises the `ProvisionError` that `make` raised, also on every later call.
        """
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
        """Return the value of `key`; None when it was not computed yet, or computing it raised an error."""
        found = self._done.get(key)
        return None if isinstance(found, ProvisionError) else found
