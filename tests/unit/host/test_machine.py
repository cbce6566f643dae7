"""Links of a saved tree stay in that tree; a file that cannot be read, and a program that does not answer, tell nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from provisioner.host.machine import Machine

RUNNING = Machine(Path("/"))


def test_an_absolute_link_is_followed_inside_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/target").write_text("inside")
    (root / "etc/link").symlink_to("/etc/target")
    (root / "usr").symlink_to("/etc")
    assert Machine(root).text("etc/link") == "inside"
    assert Machine(root).text("usr/link") == "inside"


def test_no_path_leads_out_of_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("outside")
    (root / "up").symlink_to("../secret")
    (root / "away").symlink_to(tmp_path / "secret")
    machine = Machine(root)
    assert machine.text("up") == ""
    assert machine.text("away") == ""
    assert machine.text("../secret") == ""


def test_a_ring_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    machine = Machine(tmp_path)
    assert machine.text("a") == ""
    assert machine.names("a") is None
    assert not machine.exists("a")


def test_a_pipe_in_a_saved_tree_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert Machine(tmp_path).bytes("pipe") is None


def test_a_directory_is_not_a_file_and_a_file_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"caf\xe9")
    machine = Machine(tmp_path)
    assert machine.text("") == ""
    assert machine.names("file") is None
    assert machine.names("absent") is None
    assert machine.text("file") == "caf\ufffd"


def test_a_link_names_what_it_points_to_even_when_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "driver").symlink_to("../../drivers/vfio-pci")
    assert Machine(tmp_path).link_name("driver") == "vfio-pci"
    assert Machine(tmp_path).link_name("absent") == ""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is searched for programs before any other."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def script(folder: Path, text: str, *, mode: int = 0o755) -> None:
    (folder / "asked").write_text(text)
    (folder / "asked").chmod(mode)


def test_what_a_program_prints_is_its_answer(folder: Path) -> None:
    script(folder, '#!/bin/sh\necho "$@"; echo talk >&2\n')
    assert RUNNING.ask("asked", "--version") == "--version\n"


def test_bytes_that_are_no_text_do_not_stop_the_answer(folder: Path) -> None:
    script(folder, "#!/bin/sh\nprintf 'caf\\351 1.2'\n")
    assert RUNNING.ask("asked") == "caf\ufffd 1.2"


def test_a_program_that_fails_tells_nothing(folder: Path) -> None:
    script(folder, "#!/bin/sh\necho 1.2; exit 9\n")
    assert RUNNING.ask("asked") == ""


def test_a_program_that_is_absent_tells_nothing(folder: Path) -> None:
    assert RUNNING.ask("asked") == ""


def test_a_program_that_cannot_be_started_tells_nothing(folder: Path) -> None:
    script(folder, "#!/no/such/interpreter\n")
    assert RUNNING.ask("asked") == ""


def test_a_program_that_hangs_is_not_waited_for(folder: Path) -> None:
    script(folder, "#!/bin/sh\nexec sleep 60\n")
    assert Machine(Path("/"), timeout=0.2).ask("asked") == ""


def test_a_saved_tree_is_asked_nothing(folder: Path) -> None:
    script(folder, "#!/bin/sh\necho 1.2\n")
    assert Machine(folder).ask("asked") == ""
