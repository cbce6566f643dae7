"""Access to a machine to inspect: its files, below `/` or in a saved tree, and the output of programs if it runs."""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from pathlib import Path

from msgspec import Struct

_MOST_LINKS = 40
"""The most symbolic links that are followed in one path, as many as Linux follows (path_resolution(7))."""

_MOST_BYTES = 256 * 1024 * 1024


class Machine(Struct, frozen=True):
    """The machine whose files are below `root`; `/` is the running machine.

    A file that is missing, forbidden or unreadable is no error: the facts in it stay unknown. A program may run for `timeout`
    seconds: `nvidia-smi` takes several without a persistence daemon, and never returns if the driver hangs.
    """

    root: Path
    timeout: float = 10.0

    @property
    def is_live(self) -> bool:
        """Whether this is the running machine, on which programs can be run, too."""
        return self.root == Path("/")

    def bytes(self, path: str, *, most: int = _MOST_BYTES) -> bytes | None:
        """Return the first `most` bytes of a file, None if it cannot be read."""
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
        """Return the text of a file, "" if it cannot be read; bytes that are not UTF-8 are replaced."""
        return (self.bytes(path) or b"").decode("utf-8", "replace")

    def names(self, path: str) -> tuple[str, ...] | None:
        """Return the sorted names in a directory; None if it cannot be listed, () if it is empty."""
        try:
            real = self._real(path)
            return None if real is None else tuple(sorted(entry.name for entry in real.iterdir()))
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists; a link without a target does not."""
        try:
            real = self._real(path)
            return real is not None and real.exists()
        except OSError:
            return False

    def link_name(self, path: str) -> str:
        """Return the last part of the target of a symbolic link, without following it; "" if there is no link."""
        try:
            directory = self._real(str(Path(path).parent))
            return "" if directory is None else (directory / Path(path).name).readlink().name
        except OSError:
            return ""

    def ask(self, *command: str) -> str:
        """Return the standard output of a program on the running machine.

        "" if the machine is a saved tree, or if the program is missing, fails or exceeds the timeout.
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
        """Return the path with links followed as if `root` were `/`, as in chroot: absolute links stay inside a saved tree.

        None if there are more links than Linux follows.
        """
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
