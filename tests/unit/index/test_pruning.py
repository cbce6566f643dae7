"""The cache shrinks by what nobody has used for long, and by nothing else, whatever else is going on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from provisioner.index.cache import FILE, PAGES, Cache, body_name, today
from provisioner.index.pruning import STAMP, Pruned, prune, prune_if_due

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loopback_index import LoopbackIndex
    from tests.unit.index.conftest import OpenIndex

DAY = 86400.0
DEMO = canonicalize_name("demo")


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A cache with two pages, each with a body and another entry."""
    with closing(Cache(tmp_path)) as cache:
        for name in ("old", "new"):
            cache.store(f"page:{name}", name)
            cache.store_body(name, b"body of " + name.encode())
            cache.store(f"metadata:{name}", name)
    return tmp_path


def found(directory: Path) -> list[str]:
    with closing(Cache(directory)) as cache:
        return [
            name
            for name in ("old", "new")
            if cache.load(f"page:{name}", str) and cache.body(name) and cache.load(f"metadata:{name}", str)
        ]


def age(directory: Path, name: str, days: int) -> None:
    """Let everything of one name have been used so many days ago for the last time."""
    body = directory / PAGES / body_name(name)
    os.utime(body, (time.time() - days * DAY,) * 2)
    with closing(sqlite3.connect(directory / FILE)) as connection, connection:
        connection.execute(f"UPDATE entry SET used = {today() - days} WHERE key GLOB '*:{name}'")


def test_what_was_used_within_three_months_stays(filled: Path) -> None:
    assert prune(filled, now=time.time() + 89 * DAY) == Pruned()
    assert found(filled) == ["old", "new"]


def test_what_was_not_goes_with_its_body(filled: Path) -> None:
    age(filled, "old", 92)
    gone = prune(filled)
    assert (gone.rows, gone.files) == (2, 1)
    assert gone.size >= len(b"body of old")
    assert found(filled) == ["new"]
    assert sorted(path.name for path in (filled / PAGES).iterdir()) == [body_name("new")]
    assert prune(filled) == Pruned()


def test_reading_counts_as_use(filled: Path) -> None:
    for name in ("old", "new"):
        age(filled, name, 80)
    with closing(Cache(filled)) as cache:
        for kind in ("page", "metadata"):
            assert cache.load(f"{kind}:new", str) == "new"
    prune(filled, now=time.time() + 20 * DAY)
    assert found(filled) == ["new"]


def test_once_a_day_and_not_the_first_time(filled: Path) -> None:
    now = time.time()
    assert prune_if_due(filled, now=now + 500 * DAY) is None
    assert (filled / STAMP).exists()
    assert prune_if_due(filled, now=now + 0.9 * DAY) is None
    for days, gone in ((2, 0), (89, 0), (92, 4)):
        pruned = prune_if_due(filled, now=now + days * DAY)
        assert pruned is not None
        assert pruned.rows == gone
        assert prune_if_due(filled, now=now + (days + 0.9) * DAY) is None
    assert found(filled) == []


def test_other_versions_caches_and_decoded_matrices_go_when_they_are_old(filled: Path) -> None:
    names = (
        "index-4.sqlite3",
        "index-4.sqlite3-wal",
        "pages-0/ab",
        "index-3.sqlite3",
        "index-3.sqlite3-wal",
        "matrix/m-1.cache",
    )
    others = [filled / name for name in (*names, "answers/a.json", "matrix/m-2.cache", "somebody's")]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        if path.name not in {"index-3.sqlite3-wal", "m-2.cache"}:
            os.utime(path, (time.time() - 91 * DAY,) * 2)
    assert prune(filled).files == 4
    assert [path.name for path in others if path.exists()] == [
        "index-3.sqlite3",
        "index-3.sqlite3-wal",
        "a.json",
        "m-2.cache",
        "somebody's",
    ]
    assert found(filled) == ["old", "new"]


def test_a_draft_that_a_killed_run_left_goes(filled: Path) -> None:
    draft = filled / PAGES / "abc.part"
    draft.write_bytes(b"half")
    prune(filled)
    assert draft.exists()
    os.utime(draft, (time.time() - 91 * DAY,) * 2)
    prune(filled)
    assert not draft.exists()


@pytest.mark.parametrize("what", ["nothing", "no database", "a directory"])
def test_a_cache_that_is_none_is_no_error(tmp_path: Path, what: str) -> None:
    if what == "no database":
        (tmp_path / FILE).write_bytes(b"this is not a database" * 100)
    if what == "a directory":
        (tmp_path / FILE).mkdir()
    assert prune(tmp_path) == Pruned(is_complete=what != "no database")
    assert prune_if_due(tmp_path / "missing") is None
    assert not (tmp_path / "missing").exists()


def test_while_somebody_writes_nothing_is_waited_for_or_lost(filled: Path) -> None:
    age(filled, "old", 92)
    with closing(sqlite3.connect(filled / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert prune(filled) == Pruned(is_complete=False)
        assert time.monotonic() - began < 4  # SQLite itself would wait for five seconds
        other.execute("ROLLBACK")
    assert prune(filled).rows == 2


KILLED = """
import os, sqlite3, sys, signal
from pathlib import Path
def stop(*_): os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "files":
    Path.unlink = stop
else:
    connect = sqlite3.connect
    def connected(*words, **options):
        made = connect(*words, **options)
        made.set_trace_callback(lambda statement: stop() if statement.startswith(sys.argv[2]) else None)
        return made
    sqlite3.connect = connected
from provisioner.index import pruning
pruning.prune(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("where", ["DELETE", "SELECT", "COMMIT", "files"])
def test_a_run_that_is_killed_leaves_a_cache_that_works(filled: Path, where: str) -> None:
    age(filled, "old", 92)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(filled), where], check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr
    with closing(sqlite3.connect(filled / FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        count = connection.execute("SELECT count(*) FROM entry").fetchone()
    assert count == ((4,) if where != "files" else (2,))  # all of it or nothing
    prune(filled)
    assert found(filled) == ["new"]
    assert sorted(path.name for path in (filled / PAGES).iterdir()) == [body_name("new")]


def test_a_body_that_was_written_again_stays_though_its_page_is_gone(filled: Path) -> None:
    age(filled, "old", 92)
    with closing(Cache(filled)) as cache:
        cache.store_body("old", b"again")
    assert prune(filled).rows == 2
    with closing(Cache(filled)) as cache:
        assert cache.body("old") == b"again"


def test_much_room_is_given_back(tmp_path: Path) -> None:
    with closing(Cache(tmp_path)) as cache:
        for number in range(600):
            cache.store(str(number), "x" * 20_000)
    before = sum(path.stat().st_size for path in tmp_path.glob(f"{FILE}*"))
    assert prune(tmp_path) == Pruned()
    assert prune(tmp_path, now=time.time() + 91 * DAY).rows == 600
    assert sum(path.stat().st_size for path in tmp_path.glob(f"{FILE}*")) < before / 10


class TestInARun:
    def test_an_online_run_prunes_and_keeps_what_it_used(
        self, served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path
    ) -> None:
        served.add_wheel("demo", "1.0", requires=["beta"])
        served.cache_control = "max-age=600"
        cache = tmp_path / "cache"
        with open_index() as client:
            client.requirements(client.releases(DEMO)[0])
        prune(cache)
        with closing(sqlite3.connect(cache / FILE)) as connection, connection:
            connection.execute("UPDATE entry SET used = used - 95")
            assert connection.total_changes
        os.utime(cache / STAMP, (time.time() - 2 * DAY,) * 2)
        with open_index() as client:
            client.requirements(client.releases(DEMO)[0])
        assert time.time() - (cache / STAMP).stat().st_mtime < 60
        with open_index(offline=True) as client:
            assert [str(one) for one in client.requirements(client.releases(DEMO)[0])] == ["beta"]

    def test_an_offline_run_takes_nothing_away(self, served: LoopbackIndex, open_index: OpenIndex, tmp_path: Path) -> None:
        served.add_wheel("demo", "1.0")
        with open_index() as client:
            client.releases(DEMO)
        stamp = tmp_path / "cache" / STAMP
        os.utime(stamp, (time.time() - 2 * DAY,) * 2)
        before = stamp.stat().st_mtime
        with open_index(offline=True) as client:
            client.releases(DEMO)
        assert stamp.stat().st_mtime == before
