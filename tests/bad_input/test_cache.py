"""A cache that is damaged, full, read-only, shared or cut off in the middle of a write: it costs time and nothing else."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from provisioner.index.cache import FILE, PAGES
from provisioner.matrix.cache import cached_matrix
from tests.project import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.project import Project

KILLED_AFTER = """
import os, signal, threading
threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGKILL)).start()
"""


@pytest.fixture(scope="session")
def decoded_matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The part of a cache that holds the decoded matrix, which takes seconds to make and is not what is tested here."""
    home = tmp_path_factory.mktemp("matrix")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        cached_matrix()
    return home / "provision" / "matrix"


@pytest.fixture
def cache(project: Project, decoded_matrix: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that commands keep their cache in; pages in it are fresh for as long as a test may take."""
    shutil.copytree(decoded_matrix, project.folder / "cache" / "provision" / "matrix")
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.folder / "cache"))
    project.index.cache_control = "max-age=3600"
    return project.folder / "cache" / "provision"


@pytest.fixture
def disk(cache: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of its own that caches are kept on."""
    mounted: list[Path] = []

    def mount() -> Path:
        program = shutil.which("mount")
        if program is None or os.geteuid() != 0:
            pytest.skip("a disk of a known size takes root and mount")
        folder = tmp_path_factory.mktemp("disk")
        done = subprocess.run(
            [program, "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        shutil.copytree(cache / "matrix", folder / "provision" / "matrix")
        return folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(mount()))
    yield mounted[0]
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def solved(project: Project, *words: str) -> str:
    """The lock that a run writes, which must succeed."""
    outcome = project.run("solve", "--upgrade", *words)
    assert outcome.code == 0, outcome.err
    return project.read(LOCK)


def asked(project: Project) -> int:
    """How many requests came since this was last called."""
    count = project.index.requests.total()
    project.index.requests.clear()
    return count


def forget(cache: Path) -> None:
    """Remove what was read from indexes."""
    for path in cache.glob(f"{FILE}*"):
        path.unlink()
    shutil.rmtree(cache / PAGES, ignore_errors=True)


def test_a_cache_that_is_whole_is_asked_and_nobody_else(project: Project, cache: Path) -> None:
    lock = solved(project)
    assert asked(project) > 0
    assert solved(project) == solved(project, "--offline") == lock
    assert asked(project) == 0
    assert (cache / FILE).is_file()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"no database at all",
        lambda content: content[: len(content) // 2],
        lambda content: content[:100],
        lambda content: b"\0" * len(content),
        lambda content: content[:4096] + random.Random(1).randbytes(len(content) - 4096),
    ],
    ids=["emptied", "replaced", "cut in half", "cut after the header", "zeroed", "overwritten after the first page"],
)
def test_a_damaged_database_is_begun_anew(project: Project, cache: Path, damage: Callable[[bytes], bytes]) -> None:
    lock = solved(project)
    _settle(cache / FILE)
    path = cache / FILE
    path.write_bytes(damage(path.read_bytes()))
    assert solved(project) == lock
    asked(project)
    assert solved(project) == lock
    assert asked(project) == 0


def test_a_database_of_another_shape_is_begun_anew(project: Project, cache: Path) -> None:
    connection = sqlite3.connect(cache / FILE)
    connection.executescript("CREATE TABLE page (url TEXT PRIMARY KEY, files BLOB); CREATE TABLE selection (a, b);")
    connection.close()
    lock = solved(project)
    asked(project)
    assert solved(project, "--offline") == lock
    assert asked(project) == 0


def test_the_cache_of_an_older_program_is_left_to_it(project: Project, cache: Path) -> None:
    (cache / "index-3.sqlite3").write_bytes(b"what an older program kept")
    solved(project)
    assert (cache / "index-3.sqlite3").read_bytes() == b"what an older program kept"


@pytest.mark.parametrize("damage", [lambda body: body[: len(body) // 2], lambda body: body[:-1] + b"\0", lambda _: b""])
def test_a_damaged_page_is_read_again(project: Project, cache: Path, damage: Callable[[bytes], bytes]) -> None:
    solved(project)
    pages = sorted((cache / PAGES).iterdir())
    assert len(pages) == 3
    for page in pages:
        page.write_bytes(damage(page.read_bytes()))
    # Another request: what was selected before is of no use, the pages themselves are needed.
    project.spec("[alpha]", "policy: {allow: [sdist]}")
    refused = project.run("solve", "--offline")
    assert refused.code == 3
    assert refused.err.startswith("error: offline: ")
    asked(project)
    solved(project)
    assert asked(project) >= 3
    solved(project, "--offline")


@pytest.mark.parametrize("room", [0, 8, 48], ids=lambda room: f"{room} kB left")
def test_a_cache_on_a_full_disk_costs_time_and_nothing_else(
    project: Project, cache: Path, disk: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)
    os.truncate(disk / "ballast", (disk / "ballast").stat().st_size - room * 1024)
    lock = solved(project)
    assert solved(project) == lock
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    assert solved(project) == lock


def test_a_cache_that_an_image_brings_along_is_read_though_it_cannot_be_written(project: Project, disk: Path) -> None:
    lock = solved(project)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    asked(project)
    assert solved(project, "--offline") == solved(project) == lock
    assert asked(project) == 0
    project.spec("['alpha<2']")
    assert "alpha-1.0-py3-none-any.whl" in solved(project)


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_at_once_share_one_cache(project: Project, cache: Path, count: int) -> None:
    for number in range(30):
        project.index.add_wheel(f"many-{number}", "1.0", requires=[f"many-{number + 1}"] if number < 29 else [])
    project.spec("[alpha, many-0]")
    processes = [project.spawn("solve", "--upgrade", "--out", f"out-{number}") for number in range(count)]
    ends = [(process.communicate(timeout=240), process.returncode) for process in processes]
    assert [code for _, code in ends] == [0] * count, ends
    locks = {(project.folder / f"out-{number}" / LOCK).read_bytes() for number in range(count)}
    assert len(locks) == 1
    asked(project)
    solved(project, "--offline")
    assert asked(project) == 0
    assert _integrity(cache / FILE) == "ok"


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_a_cache_that_works(project: Project, cache: Path) -> None:
    for number in range(40):
        project.index.add_wheel(f"many-{number}", "1.0", requires=[f"many-{number + 1}"] if number < 39 else [])
    project.spec("[alpha, many-0]")
    started = time.monotonic()
    whole = project.spawn("solve", "--dry-run")
    whole.communicate(timeout=240)
    assert whole.returncode == 0
    length = time.monotonic() - started
    killed = 0
    for part in range(1, 10):
        if part % 3 == 1:
            forget(cache)
        process = project.spawn("solve", "--dry-run", before=KILLED_AFTER.format(seconds=length * part / 10))
        process.communicate(timeout=240)
        killed += process.returncode == -signal.SIGKILL
        if (cache / FILE).is_file():
            assert _integrity(cache / FILE) == "ok"
    assert killed >= 3
    lock = solved(project)
    assert not list((cache / PAGES).glob("*.part"))
    assert solved(project, "--offline") == lock


def _settle(path: Path) -> None:
    """Bring what lies beside a database into it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def _integrity(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()
