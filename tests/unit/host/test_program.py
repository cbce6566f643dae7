"""Programs that are asked for a fact: those that answer, and every other kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.host import program

if TYPE_CHECKING:
    from pathlib import Path


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
    assert program.ask("asked", "--version") == "--version\n"


def test_bytes_that_are_no_text_do_not_stop_the_answer(folder: Path) -> None:
    script(folder, "#!/bin/sh\nprintf 'caf\\351 1.2'\n")
    assert program.ask("asked") == "caf\ufffd 1.2"


def test_a_program_that_fails_tells_nothing(folder: Path) -> None:
    script(folder, "#!/bin/sh\necho 1.2; exit 9\n")
    assert program.ask("asked") is None


def test_a_program_that_is_absent_tells_nothing(folder: Path) -> None:
    assert program.ask("asked") is None


def test_a_program_that_cannot_be_started_tells_nothing(folder: Path) -> None:
    script(folder, "#!/no/such/interpreter\n")
    assert program.ask("asked") is None


def test_a_program_that_hangs_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "PATIENCE_SECONDS", 0.2)
    script(folder, "#!/bin/sh\nexec sleep 60\n")
    assert program.ask("asked") is None
