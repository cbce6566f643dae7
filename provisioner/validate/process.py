"""Run a program, pass on its stderr line by line, and kill it with its children after a timeout."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from provisioner.validate.engine import EngineError, Finished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from provisioner.validate.engine import Log

TIMED_OUT = -1
"""The exit code in `Finished` of a program that was killed because of a timeout."""


def stream(
    command: Sequence[str],
    log: Log | None = None,
    *,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Finished:
    """Run `command` to its end and return its exit code and output; `log` receives each line of stderr as it is printed.

    `timeout` is in seconds; `environment` is added to that of this process, and `folder` is where the
    program runs (default: that of this process). The exit code after signal n is 128 + n, as in
    shells, and `TIMED_OUT` after a timeout. Raises `EngineError` when the program cannot be started.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the caller builds the argument list; no shell is involved
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=None if environment is None else {**os.environ, **environment},
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        raise EngineError(f"`{command[0]}` cannot be started: {error.strerror}") from None
    with process:
        return _follow(process, log, timeout)


def _follow(process: subprocess.Popen[str], log: Log | None, timeout: float | None) -> Finished:
    has_expired = threading.Event()

    def expire() -> None:
        has_expired.set()
        _kill(process)

    printed: list[str] = []
    reader = threading.Thread(target=printed.extend, args=(process.stdout or (),), daemon=True)
    reader.start()
    timer = threading.Timer(timeout, expire) if timeout is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    errors: list[str] = []
    try:
        for line in process.stderr or ():
            errors.append(line)
            if log is not None:
                log(line.rstrip("\n"))
        code = process.wait()
    except BaseException:
        # After an interrupt, the build must not go on in the background.
        _kill(process)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    reader.join()
    exit_code = TIMED_OUT if has_expired.is_set() else code if code >= 0 else 128 - code
    return Finished(exit_code=exit_code, stdout="".join(printed), stderr="".join(errors))


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a program and its children, which share a process group."""
    with suppress(ProcessLookupError, PermissionError):  # the group has ended; macOS raises EPERM until it is waited for
        os.killpg(process.pid, signal.SIGKILL)
