"""`provision cache` from outside."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from provisioner.caches import cache_directory
from provisioner.index.cache import FILE, PAGES, Cache, today

if TYPE_CHECKING:
    from pathlib import Path

    from tests.project import Project


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of these tests alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home of caches"))
    return cache_directory()


def test_where_it_is(project: Project, directory: Path) -> None:
    assert project.run("cache", "dir").out == f"{directory}\n"
    outcome = project.run("cache")
    assert (outcome.code, outcome.out) == (0, f"{directory}: 0.0 KiB\n")
    assert not directory.exists()


def test_what_it_holds_grows_with_a_run(project: Project, directory: Path) -> None:
    assert project.run("solve").code == 0
    outcome = project.run("cache", "--format", "json")
    held = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    assert outcome.json == {"directory": str(directory), "size": held}
    assert held > 10_000


def test_clean_takes_everything_of_ours_and_a_run_goes_on_without(project: Project, directory: Path) -> None:
    assert project.run("solve").code == 0
    (directory / "notes.txt").write_text("somebody's own")
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != "notes.txt")
    size = sum(path.stat().st_size for path in files)
    outcome = project.run("cache", "clean", "--format", "json")
    assert outcome.code == 0
    assert outcome.json == {
        "directory": str(directory),
        "size": 14,
        "removed": {"rows": 0, "files": len(files), "size": size},
    }
    assert [path.name for path in directory.rglob("*") if path.is_file()] == ["notes.txt"]
    assert project.run("solve", "--offline").code == 3
    assert project.run("solve").code == 0
    assert project.run("solve", "--offline").code == 0


def test_prune_takes_what_is_old(project: Project, directory: Path) -> None:
    with closing(Cache(directory)) as cache:
        for name in ("old", "new"):
            cache.store(f"page:{name}", name)
            cache.store_body(name, b"x" * 2048)
    with closing(sqlite3.connect(directory / FILE)) as connection, connection:
        connection.execute("UPDATE entry SET used = ? WHERE key = 'page:old'", (today() - 40,))
    for body in (directory / PAGES).iterdir():
        os.utime(body, (time.time() - 40 * 86400,) * 2)
    outcome = project.run("cache", "prune")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "removed 0.0 KiB (rows of tables: 0, files: 0)")
    outcome = project.run("cache", "prune", "--days", "30")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "removed 2.0 KiB (rows of tables: 1, files: 1)")
    assert (directory / FILE).exists()
    with closing(Cache(directory)) as cache:
        assert cache.load("page:new", str) == "new"
        assert cache.load("page:old", str) is None


def test_tables_in_use_are_told(project: Project, directory: Path) -> None:
    Cache(directory).close()
    with closing(sqlite3.connect(directory / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        outcome = project.run("cache", "prune")
    assert (outcome.code, outcome.out.splitlines()[0]) == (3, "removed 0.0 KiB (rows of tables: 0, files: 0)")
    assert outcome.err == (
        f"warning: the tables in {directory} are in use by another run, or no tables; nothing was taken from them\n"
    )


def test_days_are_of_prune(project: Project) -> None:
    outcome = project.run("cache", "clean", "--days", "3")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "error: --days belongs to `provision cache prune`, not to `clean`  [bad-usage]\n"
    assert project.run("cache", "prune", "--days", "-1").code == 2
    assert project.run("cache", "prune", "--days", "99999999999999999999").code == 2
    assert project.run("cache", "purge").code == 2


def test_a_copy_of_it_serves_another_machine(project: Project, directory: Path) -> None:
    project.index.json = True
    assert project.run("solve", "--cache-dir", "mine").code == 0
    assert (project.folder / "mine" / FILE).is_file()
    assert not directory.exists(), "the option is about this run's cache, all of it"
    before = project.files()
    other = project.folder / "another machine"
    other.mkdir()
    for name in ("mine", "provision.yaml"):
        (project.folder / name).rename(other / name)
    project.index.status = 503
    outcome = project.run(f"--cache-dir={other / 'mine'}", "solve", str(other / "provision.yaml"), "--offline")
    assert outcome.code == 0, outcome.err
    assert {name: (other / name).read_bytes() for name in ("pylock.trainer.toml", "Dockerfile")} == {
        name: before[name] for name in ("pylock.trainer.toml", "Dockerfile")
    }


def test_the_variable_names_it_and_the_option_is_for_one_run(
    project: Project, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVISION_CACHE_DIR", str(project.folder / "variable"))
    assert project.run("cache", "dir", "--cache-dir", "option").out == f"{project.folder / 'option'}\n"
    assert project.run("cache", "dir").out == f"{project.folder / 'variable'}\n"
    monkeypatch.delenv("PROVISION_CACHE_DIR")
    assert project.run("cache", "dir").out == f"{directory}\n"
    outcome = project.run("cache", "dir", "--cache-dir")
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, "error: --cache-dir names no folder  [bad-usage]")
