from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from provisioner.validate.engine import EngineError
from provisioner.validate.process import TIMED_OUT, stream

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-u", "-c", code)


def test_lines_of_stderr_arrive_while_the_program_runs(tmp_path: Path) -> None:
    """The program goes on only when its first line has arrived."""
    lines: list[str] = []
    seen = tmp_path / "seen"

    def arrived(line: str) -> None:
        lines.append(line)
        seen.touch()

    code = (
        f"import os,sys,time\nprint(0, file=sys.stderr)\nwhile not os.path.exists({str(seen)!r}): time.sleep(0.01)\n"
        "print(1, file=sys.stderr)"
    )
    finished = stream(python(code), arrived, timeout=60)
    assert lines == ["0", "1"]
    assert (finished.exit_code, finished.stderr) == (0, "0\n1\n")


def test_both_streams_are_whole_and_apart_however_much_is_printed() -> None:
    code = "import sys\nfor i in range(20000): print('out'); print('error', file=sys.stderr)\nsys.exit(3)"
    finished = stream(python(code), lambda _: None)
    assert finished.exit_code == 3
    assert finished.stdout == "out\n" * 20000
    assert finished.stderr == "error\n" * 20000


def test_a_program_whose_time_is_up_is_ended_with_its_children() -> None:
    started = time.monotonic()
    code = "import subprocess,sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    finished = stream(python(code), lambda _: None, timeout=0.7)
    assert finished.exit_code == TIMED_OUT
    assert time.monotonic() - started < 60


def test_a_signal_is_an_exit_code_as_shells_count() -> None:
    finished = stream(python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), lambda _: None)
    assert finished.exit_code == 128 + signal.SIGSEGV


def test_a_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(EngineError) as missing:
        stream(("/nowhere/program",), lambda _: None)
    assert missing.value.message == "`/nowhere/program` cannot be started: No such file or directory"


def test_an_interrupt_ends_the_program_too() -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt(line)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        stream(python("import sys,time; print('x', file=sys.stderr); time.sleep(600)"), interrupt)
    assert time.monotonic() - started < 60


def test_an_interrupt_is_one_where_nothing_may_be_ended_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, of programs that have ended and that nobody has waited for."""

    def refuse(group: int, number: int) -> None:
        raise PermissionError(group, number)

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt(line)

    monkeypatch.setattr(os, "killpg", refuse)
    with pytest.raises(KeyboardInterrupt):
        stream(python("import sys; print('x', file=sys.stderr)"), interrupt)
