"""Reads the files of a machine below a root: `/` for this one, or a saved tree."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from msgspec import Struct

_MOST_LINKS = 40
"""As many symbolic links as Linux follows in one path (path_resolution(7))."""

_MOST_BYTES = 256 * 1024 * 1024


class Tree(Struct, frozen=True):
    """Files below `root`. What is missing, not permitted or not readable is None: a fact that stays unknown."""

    root: Path

    @property
    def is_live(self) -> bool:
        """Whether this is the running machine, which can be asked by more than its files."""
        return self.root == Path("/")

    def bytes(self, path: str, *, most: int = _MOST_BYTES) -> bytes | None:
        """The first `most` bytes of a file."""
        try:
            real = self._real(path)
            # A saved tree may hold a pipe or device, which would never end or never begin.
            if real is None or not (self.is_live or real.is_file()):
                return None
            with real.open("rb") as stream:
                return stream.read(most)
        except OSError:
            return None

    def text(self, path: str) -> str | None:
        """A whole file as text; bytes that are not UTF-8 are replaced, since a fact beside them may still be readable."""
        content = self.bytes(path)
        return None if content is None else content.decode("utf-8", "replace")

    def names(self, path: str) -> tuple[str, ...] | None:
        """The names in a directory, sorted; None when it cannot be listed, which is not the same as empty."""
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

    def link_name(self, path: str) -> str | None:
        """The last part of what a symbolic link points to, itself not followed."""
        try:
            directory = self._real(str(Path(path).parent))
            return None if directory is None else (directory / Path(path).name).readlink().name
        except OSError:
            return None

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
