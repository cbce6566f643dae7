"""Disks that are full, processes that are killed, two runs at once: old files or new ones, never halves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.project import Project

KILLED_AT_FSYNC = """
import os, signal
calls, real = [], os.fsync
def fsync(descriptor):
    calls.append(descriptor)
    if len(calls) == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    real(descriptor)
os.fsync = fsync
"""
KILLED_AT_RENAME = """
import os, signal
calls, real = [], os.replace
def replace(source, target):
    if str(target).endswith(("Dockerfile", ".toml")):
        calls.append(target)
        if len(calls) == {number}:
            os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
os.replace = replace
"""


@pytest.fixture
def small_disk(project: Project) -> Iterator[Path]:
    """A disk of eight pages: room for a lock, a Dockerfile and its helper file, not for two of each."""
    folder = project.folder / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a disk of a known size takes root and mount")
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def visible(project: Project) -> dict[str, bytes]:
    return {name: content for name, content in project.files().items() if not name.rpartition("/")[2].startswith(".")}


def test_a_full_disk_is_said_and_what_was_there_stays_whole(project: Project, small_disk: Path) -> None:
    assert project.run("solve", "--out", "small").code == 0
    before = files_of(small_disk)
    assert sorted(before) == ["Dockerfile", "provision/install.py", LOCK]
    project.spec("['alpha<2']")
    outcome = project.run("solve", "--out", "small", "--upgrade")
    assert (outcome.code, outcome.out) == (2, "")
    written = "|".join(map(re.escape, before))
    assert re.fullmatch(
        rf"error: `small/({written})` cannot be written: No space left on device  \[file\]\n"
        r"\nhint: nothing was changed; free space or choose another --out\n",
        outcome.err,
    )
    assert files_of(small_disk) == before


def test_a_disk_that_was_full_from_the_start_holds_nothing_afterwards(project: Project, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 24576)
    outcome = project.run("solve", "--out", "small")
    assert outcome.code == 2
    assert "cannot be written: No space left on device" in outcome.err
    assert list(files_of(small_disk)) == ["ballast"]


@pytest.mark.parametrize("before", [KILLED_AT_FSYNC.format(number=1), KILLED_AT_FSYNC.format(number=2)])
def test_a_process_killed_while_it_writes_leaves_the_old_files(project: Project, before: str) -> None:
    assert project.run("solve").code == 0
    old = visible(project)
    project.spec("['alpha<2']")
    spec = {"provision.yaml": (project.folder / "provision.yaml").read_bytes()}
    process = project.spawn("solve", before=before)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert visible(project) == {**old, **spec}
    assert project.run("solve").code == 0
    assert project.run("check").code == 0


def test_a_process_killed_between_two_files_leaves_whole_ones_and_check_sees_it(project: Project) -> None:
    assert project.run("solve").code == 0
    old = visible(project)
    project.spec("['alpha<2']")
    process = project.spawn("solve", before=KILLED_AT_RENAME.format(number=2))
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    killed = visible(project)
    assert killed["Dockerfile"] == old["Dockerfile"]
    assert killed[LOCK] != old[LOCK]
    checked = project.run("check")
    assert checked.code == 1
    assert "`Dockerfile` is not what its lock renders" in checked.out
    assert project.run("solve").code == 0
    assert visible(project)[LOCK] == killed[LOCK]
    assert project.run("check").code == 0


def test_runs_at_once_in_one_folder_all_succeed_and_leave_one_answer(project: Project) -> None:
    assert project.run("solve").code == 0
    alone = project.files()
    for name in (LOCK, "Dockerfile"):
        (project.folder / name).unlink()
    processes = [project.spawn("solve") for _ in range(4)]
    ends = [(process.communicate(timeout=120), process.returncode) for process in processes]
    assert [code for _, code in ends] == [0, 0, 0, 0], ends
    assert project.files() == alone


def test_a_place_that_is_no_folder_is_refused(project: Project) -> None:
    project.write("a file", name="out")
    before = project.files()
    outcome = project.run("solve", "--out", "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "error: invalid value for '--out': Directory 'out' is a file  [bad-usage]\n"
        "\nhint: `provision solve --help` shows what can be given\n"
    )
    assert project.files() == before


def test_a_folder_where_a_file_must_go_is_refused_and_nothing_is_changed(project: Project) -> None:
    (project.folder / "Dockerfile").mkdir()
    before = project.files()
    outcome = project.run("solve")
    assert outcome.code == 2
    assert outcome.err == (
        "error: `Dockerfile` cannot be written: it is a directory  [file]\n"
        "\nhint: nothing was changed; free space or choose another --out\n"
    )
    assert project.files() == before


def test_no_docker_engine_cannot_tell(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project.run("solve").code == 0
    before = project.files()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{project.folder}/none.sock")
    outcome = project.run("validate", LOCK)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.startswith(f"error: no Docker engine answers at `unix://{project.folder}/none.sock`  [engine]\n")
    assert project.files() == before


def test_standard_output_on_a_full_disk_is_said(project: Project) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123 - a device, not a path of ours
        process = project.spawn("solve", "--dry-run", stdout=full)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert err.endswith("error: standard output cannot be written: No space left on device  [file]\n")


def test_a_terminal_that_cannot_spell_a_sign_gets_it_escaped(project: Project) -> None:
    process = project.spawn("solve", "née.yaml", "--format", "json", PYTHONIOENCODING="ascii")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert json.loads(out)["message"] == "spec `née.yaml` does not exist"
    assert err.startswith("error: spec `n\\xe9e.yaml` does not exist  [file]\n")


def test_an_interrupt_ends_the_program_at_once_although_an_index_does_not_answer(project: Project) -> None:
    project.index.delay = 60.0
    process = project.spawn("solve")
    while not project.index.requests:
        time.sleep(0.02)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - started < 20
    assert list(project.files()) == ["provision.yaml"]
