"""Items are worked on in forked processes, with the results of one process, in the order of the items."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from provisioner.errors import UnavailableError
from provisioner.processes import forked, processors

needs_fork = pytest.mark.skipif(processors() == 1, reason="forks only on Linux, with two processors or more")


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=needs_fork), pytest.param(2, marks=needs_fork)])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    factor = 3  # a local value, which the processes have without a copy

    def work(number: int) -> tuple[int, bool]:
        return number * factor, os.getpid() == parent

    parent = os.getpid()
    with forked(work, workers, doing="counted") as run:
        assert list(run(range(5))) == [(number * 3, workers == 0) for number in range(5)]


@needs_fork
def test_a_process_that_is_killed_is_an_error() -> None:
    def kill(number: int) -> None:
        os.kill(os.getpid(), number)

    with (
        pytest.raises(UnavailableError, match="a process that counted was killed") as raised,
        forked(kill, 1, doing="counted", advice="count less") as run,
    ):
        list(run([signal.SIGKILL]))
    assert raised.value.hints == ("was there enough memory? count less",)


def test_without_semaphores_everything_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))  # what a root without /dev/shm says

    monkeypatch.setattr("_multiprocessing.SemLock", refuse)
    with forked(lambda _: os.getpid(), 2, doing="counted") as run:
        assert list(run(range(5))) == [os.getpid()] * 5
