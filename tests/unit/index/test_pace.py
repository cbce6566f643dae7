"""How much is asked for at once: enough to be busy while answers are waited for, bounded, and nothing lost."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.index.client import PackageIndex
from provisioner.index.http import pace
from provisioner.index.http.crew import Crew
from provisioner.index.http.pace import FEWEST, MOST, Pace
from provisioner.index.http.settings import IndexLocation, IndexSettings
from provisioner.index.model import Environment
from tests.scripted_server import Answer, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Clock:
    """Stands where it is put."""

    now = 1.0
    spent = 0.0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.spent


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pace, "time", made)
    return made


def wait(one: Pace, clock: Clock, host: str, seconds: float) -> None:
    with one.measured(host):
        clock.now += seconds


@pytest.mark.parametrize(
    ("seconds", "at_once"), [(0.0005, 3), (0.0031, 4), (0.0202, 9), (0.0502, 19), (0.0872, 32), (0.5, 32), (60, 32)]
)
def test_the_farther_an_index_the_more_requests_are_under_way(clock: Clock, seconds: float, at_once: int) -> None:
    one = Pace()
    assert one.at_once == FEWEST == 3
    wait(one, clock, "a", seconds)
    assert one.at_once == at_once
    assert MOST == 32


def test_the_shortest_wait_for_a_host_counts_and_of_hosts_the_farthest(clock: Clock) -> None:
    one = Pace()
    wait(one, clock, "pages", 0.5)
    wait(one, clock, "pages", 0.0005)
    assert one.at_once == 3
    wait(one, clock, "files", 0.0301)
    assert one.at_once == 13
    wait(one, clock, "pages", 0.5)
    assert one.at_once == 13


def test_a_host_that_does_not_answer_calls_for_nothing(clock: Clock) -> None:
    one = Pace()

    def fall_silent() -> None:
        clock.now += 15
        raise TimeoutError

    with pytest.raises(TimeoutError), one.measured("a"):
        fall_silent()
    assert one.at_once == FEWEST


def wait_together(one: Pace, clock: Clock, number: int, *, spent: float) -> int:
    """Have some wait at once for a tenth of a second, of which the processor was busy for a part; how many may, then."""
    with ExitStack() as waits:
        for _ in range(number):
            waits.enter_context(one.measured("mirror"))
        clock.now += 0.1
        clock.spent += spent
    return one.at_once


def test_while_all_wait_and_the_processor_has_time_more_are_asked_for(clock: Clock) -> None:
    one = Pace()
    wait(one, clock, "mirror", 0.002)  # what the mirror has itself comes quickly, and is no measure of the rest
    assert [wait_together(one, clock, number, spent=0.06) for number in (3, 5, 8, 12, 18, 27, 32)] == [5, 8, 12, 18, 27, 32, 32]


def test_a_busy_processor_and_requests_that_nobody_waits_to_send_are_no_reason_to_ask_for_more(clock: Clock) -> None:
    one = Pace()
    wait(one, clock, "mirror", 0.002)
    assert wait_together(one, clock, 3, spent=0.08) == 3
    assert wait_together(one, clock, 2, spent=0.0) == 3
    assert wait_together(one, clock, 3, spent=0.0) == 5
    assert wait_together(one, clock, 4, spent=0.0) == 5


@pytest.fixture
def crew() -> Iterator[Crew]:
    made = Crew(lambda: 3)
    yield made
    made.shutdown(cancel_futures=True)


class Hall:
    """Counts who is in it at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = self.most = 0

    def visit(self, number: int) -> int:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.005)
        with self.lock:
            self.inside -= 1
        return number * number


def test_as_many_work_at_once_as_are_wanted_and_results_keep_their_order(crew: Crew) -> None:
    hall = Hall()
    assert list(crew.map(hall.visit, range(40))) == [number * number for number in range(40)]
    assert (hall.most, hall.inside) == (3, 0)
    assert list(crew.map(hall.visit, range(5))) == [0, 1, 4, 9, 16]


def test_more_are_called_up_while_there_is_work_and_leave_when_they_are_not_needed() -> None:
    wanted = [1]
    crew, hall = Crew(lambda: wanted[0]), Hall()
    results = [crew.submit(hall.visit, number) for number in range(60)]
    results[4].result()
    assert hall.most == 1
    wanted[0] = 8
    results[40].result()
    assert hall.most == 8
    wanted[0] = 2
    results[50].result()
    hall.most = 0
    assert [one.result() for one in results] == [number * number for number in range(60)]
    assert hall.most <= 2
    crew.shutdown()


def test_an_error_is_for_who_asks_for_the_result_and_ends_no_thread(crew: Crew) -> None:
    def divide(number: int) -> float:
        return 1 / number

    failed = [crew.submit(divide, 0) for _ in range(10)]
    assert crew.submit(divide, 4).result() == 0.25
    for one in failed:
        with pytest.raises(ZeroDivisionError):
            one.result()


def test_a_crew_that_is_dismissed_ends_what_was_begun_and_gives_up_the_rest() -> None:
    crew, begun, go_on = Crew(lambda: 2), threading.Semaphore(0), threading.Event()

    def work() -> str:
        begun.release()
        go_on.wait(10)
        return "done"

    results = [crew.submit(work) for _ in range(6)]
    begun.acquire()
    begun.acquire()
    threading.Timer(0.05, go_on.set).start()
    crew.shutdown(cancel_futures=True)
    assert [one.result() for one in results[:2]] == ["done", "done"]
    assert all(one.cancelled() for one in results[2:])
    with pytest.raises(RuntimeError, match="the crew was dismissed"):
        crew.submit(work)


def test_a_crew_that_is_dismissed_in_peace_does_everything_first() -> None:
    crew, hall = Crew(lambda: 2), Hall()
    results = [crew.submit(hall.visit, number) for number in range(20)]
    crew.shutdown()
    assert [one.result() for one in results] == [number * number for number in range(20)]


def test_a_far_index_is_read_by_many(tmp_path: Path) -> None:
    names = [f"demo-{number}" for number in range(120)]
    page = Answer(body=b"<html></html>", delay=0.05)
    with ScriptedServer({f"/simple/{one}/": [page] for one in names}) as server:
        settings = IndexSettings(indexes=(), retries=0, cache_directory=tmp_path / "cache")
        index = IndexLocation(name="main", url=server.url("/simple"))
        target = Environment(platform="linux/amd64", python="3.12")
        with PackageIndex(replace(settings, indexes=(index,)), target) as client:
            client.prefetch(canonicalize_name(one) for one in names)
            for one in names:
                assert client.releases(canonicalize_name(one)) == ()
        assert len(server.seen) == len(names)
        assert 12 <= server.at_once <= MOST + 1
