"""Where a matrix lies and the hash of what it says: all that is needed before deciding to read any YAML."""

from __future__ import annotations

import hashlib
from pathlib import Path

from provisioner.errors import ProvisionError

INDEX = "matrix.yaml"

PUBLISHED = "published"
"""The folder of other people's tables: what they say is compared with the matrix and is no part of what it says."""


class MatrixMissingError(ProvisionError):
    """The directory that should hold a matrix is not there, not readable, or has no YAML in it."""

    code = "no-matrix"
    exit_code = 2


def default_directory() -> Path:
    """The matrix that is shipped: inside the package when installed, at the top of the repository otherwise."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "matrices"
    return packaged if packaged.is_dir() else package.parent / "matrices"


def content_digest(directory: Path) -> str:
    """The SHA-256 over name, length and bytes of every YAML file below, in name order; raises `MatrixMissingError`."""
    digest = hashlib.sha256()
    try:
        next(directory.iterdir(), None)  # rglob is silent about a directory that cannot be read
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
