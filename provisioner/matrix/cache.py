"""A matrix kept decoded, under the hash of its YAML, so that most commands never parse YAML.

A wheel brings it along (`hatch_build.py`); what has none, a checkout or a matrix of the user's own, is kept in the user's cache
once it was read.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from zlib import crc32

from msgspec import ValidationError, msgpack

from provisioner.caches import cache_directory
from provisioner.matrix.location import content_digest, default_directory
from provisioner.matrix.model import Matrix

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 11
"""Changes with how values are packed. A new field needs no other number: YAML that has it was never packed before."""

SHIPPED = "matrix.msgpack"
"""The name of the decoded matrix in the folder of its YAML."""


def pack(matrix: Matrix) -> bytes:
    """Return a matrix as the content of a file: a line that says what it is, and the matrix as msgpack."""
    body = msgpack.encode(matrix)
    return _head(matrix.digest, body) + body


def unpack(content: bytes, digest: str) -> Matrix | None:
    """Return the matrix that was packed; None where the content is damaged, of another format, or of YAML with another hash."""
    _, end, body = content.partition(b"\n")
    if not end or content[: -len(body)] != _head(digest, body):
        return None
    try:
        return msgpack.decode(body, type=Matrix)
    except ValidationError:  # of other structs than those of today
        return None


def _head(digest: str, body: bytes) -> bytes:
    """Return the first line of a file: its format, the hash of the YAML, and the CRC-32 of the rest, which finds damage."""
    return f"provision matrix {FORMAT} {digest} {crc32(body):08x}\n".encode()


def cached_matrix(directory: Path | None = None) -> Matrix:
    """Return the matrix of a directory (the shipped one by default): as it was decoded before when the YAML is unchanged.

    Raises what `load_matrix` raises. A file that is damaged, of another version or not writable is as good as none.
    """
    directory = directory if directory is not None else default_directory()
    digest = content_digest(directory)
    found = _read(directory / SHIPPED, digest)
    if found is not None:
        return found
    # positions name the directory, so the same files under another name are another entry
    path = cache_directory() / "matrix" / f"{directory.name}-{digest}-{FORMAT}.cache"
    found = _read(path, digest)
    if found is not None:
        return found
    from provisioner.document import FileError
    from provisioner.matrix.load import load_matrix

    matrix = load_matrix(directory)
    with suppress(FileError):
        _write(path, matrix)
    return matrix


def ship(directory: Path, path: Path) -> None:
    """Write the decoded matrix of a directory for a wheel to bring along; raises what `load_matrix` raises, and `FileError`."""
    from provisioner.matrix.load import load_matrix

    _write(path, load_matrix(directory))


def _read(path: Path, digest: str) -> Matrix | None:
    try:
        return unpack(path.read_bytes(), digest)
    except OSError:
        return None


def _write(path: Path, matrix: Matrix) -> None:
    from provisioner.document import write_together

    write_together({path: pack(matrix)})
