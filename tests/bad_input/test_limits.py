"""Documents of tens of megabytes, of endless depth or of endless content: an error in a moment, with file and limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.project import Project

SECONDS = 10
"""What an answer may take of the processor; on a quiet machine it is a second, and four for the values."""

SIZE = 50_000_000


def long(line: str) -> Callable[[], str]:
    """As many lines as fill fifty megabytes; built only by the test that needs them."""
    return lambda: line * (SIZE // len(line))


def always(text: str) -> Callable[[], str]:
    return lambda: text


def bomb() -> str:
    """Ten levels of nine aliases: half a kilobyte that means some three thousand million values."""
    lines = ["a: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{one}: &a{one} [{', '.join([f'*a{one - 1}'] * 9)}]" for one in range(1, 10)]
    return "\n".join(lines)


SOLVE, CHECK, HOST = ("solve", "--dry-run", "--offline"), ("check", LOCK), ("doctor", "--host", "host.yaml")
MATRIX = ("matrix", "check", "--matrix", "m")
MEGABYTES = "is larger than 4 MB, the most that is read of one"
CHARACTERS = "the file has more than 4,000,000 characters, the most that are read of a document"
HUGE = "is nested too deeply, or holds too much, to be read"
NONE = "is none of the tables that can be compared"
DEEP = "the file is nested too deeply to be read"

CASES = {
    "a spec of 50 MB": ("provision.yaml", long("# a comment\n"), SOLVE, MEGABYTES),
    "a profile of 50 MB": ("host.yaml", long("- a\n"), ("explain", "--host", "host.yaml"), CHARACTERS),
    "a lock of 50 MB": (LOCK, long("a = 1\n"), CHECK, CHARACTERS),
    "a project of 50 MB": ("pyproject.toml", long("# a comment\n"), (*SOLVE[:1], "pyproject.toml", *SOLVE[1:]), CHARACTERS),
    "requirements of 50 MB": ("requirements.txt", long("numpy\n"), (*SOLVE[:1], "requirements.txt", *SOLVE[1:]), MEGABYTES),
    "a report of nvidia-smi of 50 MB": ("smi.xml", long("<gpu></gpu>"), ("inspect", "--from", "smi.xml"), CHARACTERS),
    "a spec of too many values": ("provision.yaml", always("a: [" + "1," * 150_000 + "]"), SOLVE, HUGE),
    "a bomb of aliases": ("provision.yaml", bomb, SOLVE, HUGE),
    "a list in a list, in blocks": ("provision.yaml", always("- " * 100_000), SOLVE, HUGE),
    "a list in a list, in brackets": ("provision.yaml", always("a: " + "[" * 100_000), SOLVE, HUGE),
    "a bomb of aliases, in a matrix": ("m/matrix.yaml", bomb, MATRIX, HUGE),
    "a list in a list, in a matrix": ("m/matrix.yaml", always("order: " + "[" * 100_000), MATRIX, HUGE),
    "a list in a list in blocks, in a matrix": ("m/matrix.yaml", always("order:\n  " + "- " * 100_000), MATRIX, HUGE),
    "a matrix of 50 MB": ("m/matrix.yaml", long("# a comment\n"), MATRIX, MEGABYTES),
    "an object in an object, in a table": (
        "t.json",
        always('{"a":' * 100_000),
        ("matrix", "diff", "--against", "t.json"),
        NONE,
    ),
    "a map in a map, in a lock": (LOCK, always("a = " + "{a = " * 50_000), CHECK, DEEP),
    "a key of very many parts": (LOCK, always("x = 1\n" + ".".join(["a"] * 30_000) + " = 1"), CHECK, "has more than 100 parts"),
    "quoted parts, too": (LOCK, always(".".join(['"a"', "'b'"] * 30_000) + " = 1"), CHECK, "has more than 100 parts"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_too_large_is_refused_in_a_moment(project: Project, name: str) -> None:
    file, text, words, message = CASES[name]
    project.write()
    (project.folder / file).parent.mkdir(exist_ok=True)
    (project.folder / file).write_text(text(), encoding="utf-8")
    began = time.process_time()
    outcome = project.run(*words)
    assert outcome.code == 2
    assert message in outcome.err
    assert file in outcome.err
    assert time.process_time() - began < SECONDS


def test_a_device_without_end_is_read_no_further_than_a_file(project: Project) -> None:
    outcome = project.run("solve", "/dev/zero", "--dry-run", "--offline")
    assert outcome.code == 2
    assert "/dev/zero" in outcome.err


def test_a_long_line_with_many_dots_is_no_key(project: Project) -> None:
    words = ".".join(["a"] * 99)
    (project.folder / "pyproject.toml").write_text(
        f'[project]\nname = "x"\nversion = "1"\ndescription = "{words}"\n{words} = 1\n', encoding="utf-8"
    )
    assert "parts" not in project.run("solve", "pyproject.toml", "--dry-run", "--offline").err
