"""A matrix kept decoded between runs, under the hash of its YAML, so that most commands never parse YAML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.matrix.codec import FORMAT, decode, encode
from provisioner.matrix.location import content_digest, default_directory

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix


def cached_matrix(directory: Path | None = None) -> Matrix:
    """Return the matrix of a directory (the shipped one by default): from the cache when the YAML is unchanged.

    Raises what `load_matrix` raises. A cache that is damaged, of another version or not writable is as good as none.
    """
    directory = directory if directory is not None else default_directory()
    digest = content_digest(directory)
    path = _cache_file(directory, digest)
    found = _read(path, digest)
    if found is not None:
        return found
    from provisioner.matrix.load import load_matrix

    matrix = load_matrix(directory)
    _write(path, matrix)
    return matrix


def _cache_file(directory: Path, digest: str) -> Path:
    # positions name the directory, so the same files under another name are another entry
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("provision")) / "matrix" / f"{directory.name}-{digest}-{FORMAT}.json"


def _read(path: Path, digest: str) -> Matrix | None:
    try:
        matrix = decode(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return matrix if matrix.digest == digest else None


def _write(path: Path, matrix: Matrix) -> None:
    from provisioner.document import FileError, write_text

    try:
        write_text(path, json.dumps(encode(matrix), separators=(",", ":")))
    except FileError:
        return
