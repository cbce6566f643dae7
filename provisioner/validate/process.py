"""Run a program, hand on its lines as they come, and end it when its time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from provisioner.validate.engine import EngineError, Finished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.validate.engine import Log

TIMED_OUT = -1
"""The exit code of `Finished` when the program was ended because its time was up."""


def stream(
    command: Sequence[str], log: Log, *, timeout: float | None = None, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run `command` and return what it printed; each line of stderr goes to `log` as it comes.

    `timeout` is in seconds. A program ended by signal n has exit code 128 + n, as shells count. Raises `EngineError` when
    the program cannot be started at all.
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
            start_new_session=True,
        )
    except OSError as error:
        raise EngineError(f"`{command[0]}` cannot be started: {error.strerror}") from None
    with process:
        return _follow(process, log, timeout)


def _follow(process: subprocess.Popen[str], log: Log, timeout: float | None) -> Finished:
    has_expired = threading.Event()

    def expire() -> None:
        has_expired.set()
        _end(process)

    printed: list[str] = []
    reader = threading.Thread(target=_collect, args=(process.stdout, printed), daemon=True)
    reader.start()
    timer = threading.Timer(timeout, expire) if timeout is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    talk: list[str] = []
    try:
        for line in process.stderr or ():
            talk.append(line)
            log(line.rstrip("\n"))
        code = process.wait()
    except BaseException:
        # An interrupt must not leave a build running behind the user's back.
        _end(process)
        raise
    finally:
        if timer is not None:
            timer.cancel()
    reader.join()
    exit_code = TIMED_OUT if has_expired.is_set() else code if code >= 0 else 128 - code
    return Finished(exit_code=exit_code, stdout="".join(printed), stderr="".join(talk))


def _collect(pipe: IO[str] | None, into: list[str]) -> None:
    into.extend(pipe or ())


def _end(process: subprocess.Popen[str]) -> None:
    """End a program and its children: it leads a process group of its own."""
    with suppress(ProcessLookupError, PermissionError):  # nothing is left: macOS says EPERM of those that nobody waited for
        os.killpg(process.pid, signal.SIGKILL)
