"""Reads a directory of YAML into a matrix, or refuses it with every mistake of every file at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.matrix.model import Matrix


def load_matrix(directory: Path | None = None) -> Matrix:
    """Return the matrix of a directory (the shipped one by default), read from its YAML.

    Raises `MatrixMissingError` when there is no matrix there, and `InvalidDocumentError` with every mistake of all its files.
    """
    from provisioner.errors import InvalidDocumentError
    from provisioner.matrix.build import build_matrix
    from provisioner.matrix.check import check
    from provisioner.matrix.files import KIND, read_files
    from provisioner.matrix.location import content_digest, default_directory

    directory = directory if directory is not None else default_directory()
    digest = content_digest(directory)
    files = read_files(directory)
    mistakes = (*files.mistakes, *check(files))
    if mistakes:
        raise InvalidDocumentError(KIND, mistakes)
    return build_matrix(files, digest)
