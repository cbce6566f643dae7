"""Read a requirement file: named by the spec if all of it can be read there, copied without the rest if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.document import FileError, Position, is_file, is_there
from provisioner.errors import InvalidDocumentError
from provisioner.grounds.omission import Hashes, MissingFile
from provisioner.importers.requirement_lines import record_reading
from provisioner.spec.load import load_spec
from provisioner.spec.requirement_file import read_requirement_file

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.importers.importing import Importing


def read_requirements(path: Path, importing: Importing) -> None:
    """Read a requirement file that the user names; raises `FileError` if it cannot be read.

    A spec that names the file keeps its lines, hashes and indexes where people edit them. That spec would be refused for any
    line that is, so then the others are copied.
    """
    named_at = Position(1, 1, str(path))
    if not is_there(path):
        raise FileError(f"requirement file `{path}` does not exist")
    try:
        load_spec(path)
    except InvalidDocumentError:
        _copy(path, named_at, importing)
    else:
        importing.packages_from(path, named_at)


def read_named_requirements(path: Path, position: Position, importing: Importing) -> None:
    """Read a requirement file that another file names at `position`; a file that does not exist is an omission."""
    if is_file(path):
        read_requirements(path, importing)
    else:
        importing.omit(f"-r {importing.relative(path)}", position, MissingFile(importing.relative(path)))


def _copy(path: Path, named_at: Position, importing: Importing) -> None:
    reading = read_requirement_file(path, named_at=named_at, reads_environment=False)
    if not reading.done:  # it could not be read at all
        raise FileError(reading.mistakes[0].text)
    hashed = next((line for line in reading.lines if line.hashes), None)
    if hashed is not None:
        importing.omit("--hash", hashed.position, Hashes())
    record_reading(reading, importing)
