"""The formats that a spec can be made from, each with the files that it is known by, and how they are read together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import FileError, read_text
from provisioner.errors import UsageError
from provisioner.importers.cog import read_cog
from provisioner.importers.conda import read_conda
from provisioner.importers.dockerfile import read_dockerfile
from provisioner.importers.importing import Importing
from provisioner.importers.poetry import read_pyproject
from provisioner.importers.requirements import read_requirements
from provisioner.importers.settling import settled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from provisioner.importers.importing import Imported
    from provisioner.matrix.model import Matrix

MOST_BYTES = 5_000_000
"""The largest file that is read; what people write by hand is a thousandth of it."""


class Format(Struct, frozen=True, kw_only=True):
    """One format: a pattern of the names of its files, a pattern of a line that every such file has, and its reader.

    `content` decides for a file whose name says nothing; "" if the format is known by name alone.
    """

    title: str
    names: str
    content: str = ""
    read: Callable[[Path, Importing, Matrix], None]


FORMATS: dict[str, Format] = {
    "cog": Format(title="cog.yaml", names=r"cog\.ya?ml", content=r"^build:\s*(#.*)?$", read=read_cog),
    "conda": Format(
        title="a conda environment.yml",
        names=r"(.*[-_.])?(environment|env|conda)([-_.].*)?\.ya?ml",
        content=r"^dependencies:\s*(#.*)?$",
        read=read_conda,
    ),
    "dockerfile": Format(
        title="a Dockerfile",
        names=r"(.*\.)?(docker|container)file(\..*)?",
        content=r"^\s*FROM\s+\S+",
        read=read_dockerfile,
    ),
    "project": Format(
        title="a pyproject.toml",
        names=r".*\.toml",
        read=lambda path, importing, _: read_pyproject(path, importing),
    ),
    "requirements": Format(
        title="a requirements.txt",
        names=r".*\.(txt|in)",
        read=lambda path, importing, _: read_requirements(path, importing),
    ),
}
"""The formats by name, in the order in which a name or a line is compared with them."""


def import_files(paths: Sequence[Path], *, folder: Path, matrix: Matrix) -> Imported:
    """Return the content of a spec in `folder` that files ask for together, and what of them could not be carried over.

    Where two files contradict each other, the first one counts. Raises `FileError` for a file that cannot be read, `UsageError`
    for one of an unknown format, and `InvalidDocumentError` with every mistake at its line and column.
    """
    importing = Importing(folder)
    for path in paths:
        importing.source(path)
        format_of(path).read(path, importing, matrix)
    return settled(importing.result(), matrix)


def format_of(path: Path) -> Format:
    """Return the format of a file, by its name, else by its content; raises `FileError` and `UsageError` as `import_files`."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # the reader tells what is wrong
    if size > MOST_BYTES:
        raise FileError(f"`{path}` has {size} bytes; more than {MOST_BYTES} are not read")
    name = path.name.lower()
    by_name = next((one for one in FORMATS.values() if re.fullmatch(one.names, name)), None)
    if by_name is not None:
        return by_name
    text = read_text(path, kind="file")
    for one in FORMATS.values():
        if one.content and re.search(one.content, text, re.MULTILINE | re.IGNORECASE):
            return one
    known = ", ".join(one.title for one in FORMATS.values())
    raise UsageError(f"the format of `{path}` is not known", hints=(f"known by name or content: {known}",))
