"""The directory of a matrix and the hash of its files, with which a decoded matrix is found without parsing YAML."""

from __future__ import annotations

import hashlib
from pathlib import Path

from provisioner.errors import ProvisionError

INDEX = "matrix.yaml"

PUBLISHED = "published"
"""The folder of other projects' tables, which are compared with the matrix and are not part of it."""


class MatrixMissingError(ProvisionError):
    """Raised when the directory of a matrix does not exist, cannot be read, or has no YAML file."""

    code = "no-matrix"
    exit_code = 2


def default_directory() -> Path:
    """Return the directory of the shipped matrix: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "matrices"
    return packaged if packaged.is_dir() else package.parent / "matrices"


def content_digest(directory: Path) -> str:
    """Return the SHA-256 of names, lengths and bytes of all YAML files below a directory, sorted by path, without `PUBLISHED`.

    Raises `MatrixMissingError` when the directory cannot be read or has no YAML file.
    """
    digest = hashlib.sha256()
    try:
        next(directory.iterdir(), None)  # rglob does not raise for a directory that cannot be read
        paths = sorted(path for path in directory.rglob("*.yaml") if path.parent.name != PUBLISHED)
        for path in paths:
            content = path.read_bytes()
            name = path.relative_to(directory).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    except OSError as error:
        raise MatrixMissingError(f"matrix directory `{directory}` cannot be read: {error.strerror}") from None
    if not paths:
        raise MatrixMissingError(f"matrix directory `{directory}` holds no YAML file", hints=(f"it needs a {INDEX}",))
    return digest.hexdigest()
