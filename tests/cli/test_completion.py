"""Tab in a real bash, after what `provision --show-completion` prints there."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash"),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose bash completes `provision`, which, when it is called otherwise, says what it was called with."""
    program = tmp_path / "bin/provision"
    program.parent.mkdir()
    run = f'exec env PYTHONPATH={ROOT} {sys.executable} -m provisioner "$@"'
    program.write_text(
        f'#!/bin/sh\n[ -n "$_PROVISION_COMPLETE" ] || [ "$1" = --show-completion ] && {run}\necho "called:$*:"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    lines = (f"PATH={program.parent}:$PATH", 'PS1="ready\\n"', 'eval "$(provision --show-completion)"')
    (tmp_path / "rc").write_text("\n".join((*lines, "")), encoding="utf-8")
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
def test_tab_completes_commands_options_and_words(typed: str, called: str, home: Path) -> None:
    assert f"called:{called}:" in pressed(typed, home)


def pressed(keys: str, home: Path) -> str:
    """Type keys and Enter into an interactive bash, and return what its terminal shows after them."""
    ours, shells = pty.openpty()
    command = ["bash", "--rcfile", str(home / "rc"), "-i"]
    variables = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "dumb"}
    with subprocess.Popen(command, stdin=shells, stdout=shells, stderr=shells, env=variables, start_new_session=True) as shell:
        os.close(shells)
        try:
            _until(ours, rb"ready")
            os.write(ours, keys.encode())
            os.write(ours, b"\n")
            shown = _until(ours, rb"(?s)called:.*ready")
            os.write(ours, b"exit\n")
            shell.wait(timeout=20)
        finally:
            shell.kill()
    os.close(ours)
    return shown.decode()


def _until(descriptor: int, pattern: bytes) -> bytes:
    """Read what a terminal shows until it has a pattern; one read may bring more than that."""
    shown, end = b"", time.monotonic() + 60
    while re.search(pattern, shown) is None:
        readable, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        assert readable, shown
        shown += os.read(descriptor, 1024)
    return shown
