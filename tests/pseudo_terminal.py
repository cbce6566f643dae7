"""Code run on a real pseudo-terminal, for tests of what only a terminal is shown."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def on_a_terminal(
    code: str, *arguments: str, variables: Mapping[str, str], cwd: Path | None = None, seconds: float = 20.0
) -> str:
    """Run code with all three streams on one, under exactly these variables, and return what it showed.

    Line ends are as the program wrote them. Fails when the code does, or takes longer than `seconds` to end.
    """
    main_end, program_end = pty.openpty()
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.Popen(
        command, cwd=cwd, stdin=program_end, stdout=program_end, stderr=program_end, env={"TERM": "xterm", **variables}
    )
    os.close(program_end)
    shown = b"".join(_chunks(main_end)).decode()
    os.close(main_end)
    assert process.wait(timeout=seconds) == 0, shown
    return shown.replace("\r\n", "\n")


def _chunks(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(descriptor, 4096)
        except OSError:  # Linux reports the closed other end as an error
            return
        if not chunk:
            return
        yield chunk
