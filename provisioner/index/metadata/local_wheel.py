"""What a wheel on this machine says of itself where no page says it: the Python it needs."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.index.metadata.core_metadata import UnusableMetadataError, parse_metadata, wheel_metadata

if TYPE_CHECKING:
    from provisioner.index.model import IndexFile


def with_python(file: IndexFile) -> IndexFile:
    """The file with its Requires-Python: as its page states it, else, for a wheel on disk, as its metadata does.

    A wheel that cannot be read stays as it is: whoever chooses it meets the error, with its words.
    """
    if file.requires_python is not None or not file.path or not file.filename.endswith(".whl"):
        return file
    return replace(file, requires_python=_stated(file.path, file.filename))


@lru_cache(maxsize=4096)
def _stated(path: str, filename: str) -> str | None:
    try:
        with Path(path).open("rb") as stream:
            return parse_metadata(wheel_metadata(stream, filename)).requires_python or None
    except (OSError, UnusableMetadataError):
        return None
