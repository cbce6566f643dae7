"""What a page lists, read only as far as a choice among thousands of files needs; pure.

Nine of ten files of a page are for other Pythons and platforms. They are decoded in one go, without an object of ours for each
of their parts, and only the chosen ones become an `IndexFile`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from provisioner.index.model import IndexFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Listed(Protocol):
    """What a file is chosen by. An `IndexFile` is one, and so is an entry of a page that was not read any further."""

    @property
    def filename(self) -> str:
        """Its name."""

    @property
    def index(self) -> str:
        """The name of its index, "" for an entry that does not know it."""

    @property
    def requires_python(self) -> str | None:
        """The Pythons it is for."""

    @property
    def upload_time(self) -> str | None:
        """When it was uploaded, as its index spells it."""

    @property
    def yanked(self) -> str | None:
        """Why it was withdrawn ("" for no reason given), None when it was not."""


def as_it_is(file: Listed) -> IndexFile:
    """A file that was read to its end when it was listed."""
    assert isinstance(file, IndexFile), "only entries of a page are finished by their page"
    return file


class Listing(Struct, frozen=True, kw_only=True):
    """The files of a page in its order, and how one of them is read to its end."""

    files: Sequence[Listed]
    finish: Callable[[Listed], IndexFile] = as_it_is

    def finished(self) -> tuple[IndexFile, ...]:
        """Every file, read to its end."""
        return tuple(map(self.finish, self.files))
