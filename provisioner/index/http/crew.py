"""Threads of which only as many work as there is something to wait for.

Apart from `pace`, which a run that finds everything in its cache loads, too.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from provisioner.index.http.pace import MOST

if TYPE_CHECKING:
    from collections.abc import Callable

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Crew(ThreadPoolExecutor):
    """Threads that work on as much at once as `at_once` says at the moment; the rest waits its turn, in order."""

    def __init__(self, at_once: Callable[[], int]) -> None:
        super().__init__(MOST, thread_name_prefix="index")
        self._at_once = at_once
        self._guard = threading.Lock()
        self._jobs: deque[tuple[Future[object], Callable[[], object]]] = deque()
        self._busy = 0
        self._is_dismissed = False

    def submit(self, fn: Callable[Given, Result], /, *args: Given.args, **kwargs: Given.kwargs) -> Future[Result]:
        """Have something done; raises `RuntimeError` once the crew was dismissed."""
        result: Future[Result] = Future()
        with self._guard:
            if self._is_dismissed:
                raise RuntimeError("the crew was dismissed")
            self._jobs.append((result, partial(fn, *args, **kwargs)))  # type: ignore[arg-type]  # it is given what it makes
            self._call_up()
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in the base class
        """Take nothing on any more; `cancel_futures` gives up what nobody began, `wait` waits for the rest."""
        with self._guard:
            self._is_dismissed = True
            given_up = tuple(self._jobs) if cancel_futures else ()
            if cancel_futures:
                self._jobs.clear()
        for result, _ in given_up:
            result.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _call_up(self) -> None:
        """Set as many threads to work as there is work and room for; the guard is held."""
        while self._busy < min(self._at_once(), self._busy + len(self._jobs)):
            super().submit(self._work)
            self._busy += 1

    def _work(self) -> None:
        while (job := self._next()) is not None:
            result, work = job
            if result.set_running_or_notify_cancel():
                _settle(result, work)

    def _next(self) -> tuple[Future[object], Callable[[], object]] | None:
        """What a thread does next; None for one that is not needed any more. More are called up when an index proves far."""
        with self._guard:
            if not self._jobs or self._busy > self._at_once():
                self._busy -= 1
                return None
            job = self._jobs.popleft()
            with suppress(RuntimeError):  # dismissed: those who are at it do the rest
                self._call_up()
            return job


def _settle(result: Future[object], work: Callable[[], object]) -> None:
    try:
        value = work()
    except BaseException as error:  # noqa: BLE001 - whoever asks for the result meets it
        result.set_exception(error)
    else:
        result.set_result(value)
