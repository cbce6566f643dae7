"""Where a ground was read: a line of a file, a row of the matrix, a document, or an index."""

from __future__ import annotations

from msgspec import Struct

from provisioner.places import HostPlace, Place


class Documents(Struct, frozen=True):
    """Documents that the matrix cites, as their citations are spelled."""

    citations: tuple[str, ...]


class MatrixRow(Struct, frozen=True):
    """A named row of the matrix: a rule or a limit, with the line it stands on or the documents it cites."""

    table: str
    name: str
    place: Place | Documents


class Hazard(Struct, frozen=True):
    """A row of the matrix about files that several distributions write, with its reason."""

    place: Place
    because: str


class Metadata(Struct, frozen=True):
    """The metadata of one version of a distribution."""

    name: str
    version: str


class Index(Struct, frozen=True):
    """A package index by its name; "" for the index that is asked for a name, whichever it is."""

    name: str = ""


class Question(Struct, frozen=True):
    """What a person asked on the command line."""


class Attempts(Struct, frozen=True):
    """The Pythons that go with the system half of a problem, of which each is an attempt."""


Source = Place | HostPlace | Documents | MatrixRow | Hazard | Metadata | Index | Question | Attempts
