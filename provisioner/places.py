"""Places: lines of files, cited in errors and in the reasons of a choice (grounds)."""

from __future__ import annotations

from msgspec import Struct


class Place(Struct, frozen=True, order=True):
    """A line of a file, counted from 1; line 0 means the whole file, or an item of it that `file` names (`nodes.json[3]`).

    `file` is relative to the folder of the spec, or begins with `matrices/`.
    """

    file: str
    line: int = 0

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse `provision.yaml:7`; a text that does not end in `:` and a number is a file name, with line 0."""
        file, _, line = text.rpartition(":")
        return cls(file, int(line)) if file and line.isdigit() else cls(text)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class HostPlace(Struct, frozen=True):
    """The place in a host profile that states a fact; `others` is the number of further profiles with the same facts.

    If no line is known, `place` holds the host's label as its file.
    """

    place: Place
    others: int = 0
