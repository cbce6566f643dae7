"""Run a function on many items in forked processes, which have what the function needs without loading or copying it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from provisioner.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import ProcessPoolExecutor

_SHARES = 4
"""In how many shares a process gets its part of the items: in one, the last process would be waited for the longest."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def processors() -> int:
    """Return how many processes can be run at a time; 1 where none is forked: on Windows, and on macOS, where it is unsafe."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


@contextmanager
def forked(
    function: Callable[[Item], Result], workers: int, *, doing: str, advice: str = ""
) -> Iterator[Callable[[Sequence[Item]], Iterator[Result]]]:
    """Yield a function that returns the results for some items, in their order, from `workers` forked processes.

    The processes begin when that function is called, so that the caller can work beside them. Without workers, and on a system
    without semaphores, the results are computed here, each when it is asked for. Results are pickled. The function raises what
    `function` raises, and `UnavailableError` when a process is killed: a `multiprocessing.Pool` would wait for its result for
    ever. `doing` is what the processes do, for that error: `checked locks`; `advice` is what to try then.
    """
    pool = _pool(function, workers) if workers >= 1 else None
    if pool is None:
        yield lambda items: map(function, items)
        return
    from concurrent.futures.process import BrokenProcessPool  # loaded only for processes

    with pool:

        def results(items: Sequence[Item]) -> Iterator[Result]:
            # Neighbours are often alike, and a process keeps what it has read of one for the next.
            return pool.map(_called, items, chunksize=max(1, len(items) // (workers * _SHARES)))

        try:
            yield results
        except BrokenProcessPool:
            hint = " ".join(filter(None, ("was there enough memory?", advice)))
            raise UnavailableError(f"a process that {doing} was killed", hints=(hint,)) from None


def _pool(function: Callable[[Item], Result], workers: int) -> ProcessPoolExecutor | None:
    """Return a pool of processes that are forked when they get work; None where the system lets nobody make a semaphore.

    A root without `/dev/shm` has none, such as a chroot of a cluster, nor have some sandboxes.
    """
    import multiprocessing  # loaded only for processes
    from concurrent.futures import ProcessPoolExecutor

    fork = multiprocessing.get_context("fork")  # a fork is given the function without a copy
    try:
        return ProcessPoolExecutor(workers, mp_context=fork, initializer=_begin, initargs=(function,))
    except (OSError, NotImplementedError):
        return None


_function: Callable[[Any], Any]
"""The function of a forked process."""


def _begin(function: Callable[[Any], Any]) -> None:
    """Keep the function of this process, and leave interrupts to the one that forked it."""
    global _function  # noqa: PLW0603 - what a pool calls is a function of a module
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _called(item: Any) -> Any:  # noqa: ANN401 - a pool is given one function for items and results of any type
    return _function(item)
