"""Sources of grounds: a line of a file, a row of the matrix, a document, or an index."""

from __future__ import annotations

from msgspec import Struct

from provisioner.places import HostPlace, Place


class Documents(Struct, frozen=True):
    """Documents that the matrix cites, as spelled in the matrix."""

    citations: tuple[str, ...]


class MatrixRow(Struct, frozen=True):
    """A named row of the matrix, such as a rule or a limit, with its line or the documents that it cites."""

    table: str
    name: str
    place: Place | Documents


class Hazard(Struct, frozen=True):
    """A row of the matrix about files that several distributions contain; `because` is the reason that it gives."""

    place: Place
    because: str


class Metadata(Struct, frozen=True):
    """The metadata of one version of a distribution."""

    name: str
    version: str


class Index(Struct, frozen=True):
    """A package index by its name; "" for whichever index serves a distribution."""

    name: str = ""


class Question(Struct, frozen=True):
    """The command line, on which the user asked a question."""


Source = Place | HostPlace | Documents | MatrixRow | Hazard | Metadata | Index | Question
