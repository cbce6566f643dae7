"""Tab in real shells, after what `provision --show-completion` prints there.

Where a shell is missing its tests are skipped with a reason; with PROVISION_REQUIRE_SHELLS=1 they fail instead.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


class Shell(NamedTuple):
    """How a shell is started so that it reads `file` in the home, and what stands there."""

    command: tuple[str, ...]
    file: str
    lines: tuple[str, ...]


SHELLS = {
    "bash": Shell(("bash", "--rcfile", "{home}/rc", "-i"), "rc", ("PS1='ready\\n'", 'eval "$(provision --show-completion)"')),
    "zsh": Shell(
        ("zsh", "-d", "-i"),
        ".zshrc",
        ("PS1='ready> '", "autoload -Uz compinit", "compinit -u", 'eval "$(provision --show-completion)"'),
    ),
    "fish": Shell(
        ("fish", "-i"),
        ".config/fish/config.fish",
        ("function fish_prompt; echo ready; end", "set -g fish_greeting", "provision --show-completion | source"),
    ),
}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """The name of a shell that is on the PATH."""
    name = str(request.param)
    if shutil.which(name) is None:
        reason = f"there is no {name} on the PATH"
        if os.environ.get("PROVISION_REQUIRE_SHELLS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return name


@pytest.fixture
def home(tmp_path: Path, shell: str) -> Path:
    """A home whose shell completes `provision`, which, when it is called otherwise, says what it was called with."""
    program = tmp_path / "bin/provision"
    program.parent.mkdir()
    run = f'exec env PYTHONPATH={ROOT} {sys.executable} -m provisioner "$@"'
    program.write_text(
        f'#!/bin/sh\n[ -n "$_PROVISION_COMPLETE" ] || [ "$1" = --show-completion ] && {run}\necho "called:$*:"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    file = tmp_path / SHELLS[shell].file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join((*SHELLS[shell].lines, "")), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("provision sol\t", "solve"),
        ("provision solve --upgrade-p\t", "solve --upgrade-package"),
        ("provision matrix aud\t", "matrix audit"),
        ("provision check --format sar\t", "check --format sarif"),
    ],
)
def test_tab_completes_commands_options_and_words(typed: str, called: str, shell: str, home: Path) -> None:
    assert f"called:{called}:" in pressed(typed, shell, home)


def pressed(keys: str, name: str, home: Path) -> str:
    """Type keys and Enter into an interactive shell, and return what its terminal shows after them."""
    command = [word.format(home=home) for word in SHELLS[name].command]
    variables = {"HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}", "TERM": "dumb"}
    child, terminal = pty.fork()  # fish asks for a terminal that controls it, which `subprocess` does not give
    if not child:
        try:
            os.execvpe(command[0], command, variables)
        finally:
            os._exit(127)
    try:
        _until(terminal, rb"ready")
        os.write(terminal, keys.encode())
        os.write(terminal, b"\n")
        return _until(terminal, rb"(?s)called:.*ready").decode()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


def _until(descriptor: int, pattern: bytes) -> bytes:
    """Read what a terminal shows until it has a pattern; one read may bring more than that."""
    shown, end = b"", time.monotonic() + 60
    while re.search(pattern, shown) is None:
        readable, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        assert readable, shown
        shown += os.read(descriptor, 1024)
    return shown
