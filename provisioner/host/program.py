"""Runs a program of this machine for a fact that no file tells; a program that is absent, fails or hangs tells nothing."""

from __future__ import annotations

import shutil
import subprocess

PATIENCE_SECONDS = 10.0
"""`nvidia-smi` takes up to some seconds where no persistence daemon runs, and never returns from a wedged driver."""


def ask(*command: str) -> str | None:
    """Return what a program printed to stdout; None when it is not there, fails or takes too long."""
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        finished = subprocess.run(  # noqa: S603 - fixed commands of this package; no shell is involved
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return finished.stdout.decode("utf-8", "replace") if finished.returncode == 0 else None
