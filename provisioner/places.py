"""Places: lines of files that a person or the matrix wrote, as grounds and errors cite them."""

from __future__ import annotations

from msgspec import Struct


class Place(Struct, frozen=True, order=True):
    """A line of a file, counted from 1; 0 stands for the file as a whole, or for the item that `file` names behind its path.

    `file` is relative to the spec, or `matrices/…`.
    """

    file: str
    line: int = 0

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read `provision.yaml:7`; a text that does not end in a number is the name of a file."""
        file, _, line = text.rpartition(":")
        return cls(file, int(line)) if file and line.isdigit() else cls(text)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class HostPlace(Struct, frozen=True):
    """The line of a host profile that states a fact, which `others` more profiles state alike; the host's label without one."""

    place: Place
    others: int = 0
