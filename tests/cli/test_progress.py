"""What a slow solve says while it works: on a terminal one line that is overwritten, elsewhere a plain line now and then."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK
from tests.pseudo_terminal import on_a_terminal

if TYPE_CHECKING:
    from tests.project import Project

OFTEN = "from provisioner.cli import display\ndisplay.PROGRESS_DELAY_SECONDS, display._PLAIN_PAUSE_SECONDS = 0.2, 0.25"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def slow(project: Project) -> Project:
    """An index that takes its time for every answer."""
    project.index.delay = 0.4
    return project


def test_a_slow_solve_says_now_and_then_how_far_it_is_and_nothing_of_it_on_stdout(slow: Project) -> None:
    process = slow.spawn("solve", "--format", "json", before=OFTEN)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.startswith("{\n")
    lines = err.splitlines()
    assert lines[0] == "Solving ..."
    reported = [line for line in lines[1:] if line.startswith("Solving: ")]
    host = slow.index.root.removeprefix("http://")
    shape = rf"Solving: (\d+) projects?, metadata of \d+ files?(, [\d.]+ \w+)?(; waiting for \S+ from {re.escape(host)})?"
    matches = [re.fullmatch(shape, line) for line in reported]
    assert len(matches) >= 2
    assert all(matches), reported
    counts = [int(match[1]) for match in matches if match]
    assert counts == sorted(counts)
    assert any("; waiting for alpha from " in line for line in reported)
    assert "\x1b" not in err


def test_a_quick_solve_says_nothing_of_it(project: Project) -> None:
    process = project.spawn("solve", before="from provisioner.cli import display\ndisplay.PROGRESS_DELAY_SECONDS = 60")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "Solving" not in err


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}], ids=["colour", "no colour"])
def test_a_terminal_shows_one_line_that_is_gone_in_the_end(slow: Project, variables: dict[str, str]) -> None:
    shown = solve_on_a_terminal(slow, variables)
    assert "waiting for alpha from 127.0.0.1" in ESCAPE.sub("", shown)
    assert re.search(r"Solving: \d+ projects?, metadata of \d+ files?", ESCAPE.sub("", shown))
    assert bool(re.search(r"\x1b\[[0-9;]*m", shown.partition("wrote")[0])) is not bool(variables)
    # Every time the line is drawn it takes the place of the one before; only what stays ends in a newline.
    during = shown.partition("✓")[0]
    assert "Solving" in during
    assert "Solving" not in shown.partition("✓")[2]
    assert "\n" not in ESCAPE.sub("", during).strip("\r\n")
    assert ESCAPE.sub("", shown).rstrip().endswith(f"wrote {LOCK}, Dockerfile, provision/install.py\nnext: docker build .")


def solve_on_a_terminal(project: Project, variables: dict[str, str]) -> str:
    """What `solve` shows on a terminal 100 cells wide."""
    code = f"{OFTEN}\nfrom provisioner.cli.app import main; main()"
    environment = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "FORCE_COLOR", "CI"}}
    environment |= {"TERM": "xterm", "COLUMNS": "100", **variables}
    return on_a_terminal(code, "solve", variables=environment, cwd=project.folder, seconds=60)
