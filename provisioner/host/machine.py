"""A machine to inspect: its files, below `/` or in a saved tree, and what programs of the running one print."""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from pathlib import Path

from msgspec import Struct

_MOST_LINKS = 40
"""As many symbolic links as Linux follows in one path (path_resolution(7))."""

_MOST_BYTES = 256 * 1024 * 1024


class Machine(Struct, frozen=True):
    """The machine whose files stand below `root`; `/` is the running one.

    What is missing, not permitted or not readable is a fact that stays unknown, never an error. A program is waited for
    `timeout` seconds: `nvidia-smi` takes some of them where no persistence daemon runs, and never returns from a wedged driver.
    """

    root: Path
    timeout: float = 10.0

    @property
    def is_live(self) -> bool:
        """Whether this is the running machine, which can be asked by more than its files."""
        return self.root == Path("/")

    def bytes(self, path: str, *, most: int = _MOST_BYTES) -> bytes | None:
        """Return the first `most` bytes of a file, None where it cannot be read."""
        try:
            real = self._real(path)
            # A saved tree may hold a pipe or device, which would never end or never begin.
            if real is None or not (self.is_live or real.is_file()):
                return None
            with real.open("rb") as stream:
                return stream.read(most)
        except OSError:
            return None

    def text(self, path: str) -> str:
        """Return a whole file, "" where it cannot be read; bytes that are not UTF-8 are replaced, for a fact may be beside."""
        return (self.bytes(path) or b"").decode("utf-8", "replace")

    def names(self, path: str) -> tuple[str, ...] | None:
        """Return the names in a directory, sorted; None where it cannot be listed, which is not the same as empty."""
        try:
            real = self._real(path)
            return None if real is None else tuple(sorted(entry.name for entry in real.iterdir()))
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there; a link to nothing is not."""
        try:
            real = self._real(path)
            return real is not None and real.exists()
        except OSError:
            return False

    def link_name(self, path: str) -> str:
        """Return the last part of what a symbolic link points to, without following it; "" where there is no link."""
        try:
            directory = self._real(str(Path(path).parent))
            return "" if directory is None else (directory / Path(path).name).readlink().name
        except OSError:
            return ""

    def ask(self, *command: str) -> str:
        """Return what a program of the running machine prints to stdout.

        "" where the machine is a saved tree, or the program is not there, fails or takes too long.
        """
        program = shutil.which(command[0]) if self.is_live else None
        if program is None:
            return ""
        try:
            finished = subprocess.run(  # noqa: S603 - fixed commands of this package; no shell is involved
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self.timeout,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return finished.stdout.decode("utf-8", "replace") if finished.returncode == 0 else ""

    def _real(self, path: str) -> Path | None:
        """Follow links as if `root` were `/`, as chroot does: an absolute link in a saved tree stays in that tree."""
        if self.is_live:
            return self.root / path
        waiting = deque(Path(path).parts)
        done: list[str] = []
        links = 0
        while waiting:
            part = waiting.popleft()
            here = self.root.joinpath(*done, part)
            if part == "/":
                done = []
            elif part == "..":
                done = done[:-1]
            elif here.is_symlink():
                links += 1
                if links > _MOST_LINKS:
                    return None
                waiting.extendleft(reversed(here.readlink().parts))
            else:
                done.append(part)
        return self.root.joinpath(*done)
