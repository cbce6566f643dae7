"""The cache of decoded matrices, keyed by the hash of their YAML, so that most commands never parse YAML.

The wheel of this program contains the decoded shipped matrix (`hatch_build.py`). The decoded matrix of a checkout, or of a
user's own YAML, is written to the user's cache directory when it is first read.
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

FORMAT = 12
"""The version of the encoding, raised when it changes; not for a new field, because YAML with it has another hash."""

SHIPPED = "matrix.msgpack"
"""The name of the decoded matrix in the folder of its YAML."""


def pack(matrix: Matrix) -> bytes:
    """Return the content of a cache file for a matrix: a header line and the matrix as msgpack."""
    body = msgpack.encode(matrix)
    return _head(matrix.digest, body) + body


_DECODED: dict[bytes, Matrix] = {}
"""The matrices that were read last, at most `_MOST`, by the first line of their files, which has their hash.

Programs that solve several times, and the tests, read the same file again.
"""

_MOST = 2


def unpack(content: bytes, digest: str) -> Matrix | None:
    """Return the matrix in a cache file; None when it is damaged, of another format, or its YAML's hash is not `digest`."""
    _, end, body = content.partition(b"\n")
    head = content[: -len(body)]
    if not end or head != _head(digest, body):
        return None
    if head not in _DECODED:
        try:
            found = msgpack.decode(body, type=Matrix)
        except ValidationError:  # encoded with other struct definitions
            return None
        while len(_DECODED) >= _MOST:
            del _DECODED[next(iter(_DECODED))]
        _DECODED[head] = found
    return _DECODED[head]


def _head(digest: str, body: bytes) -> bytes:
    """Return the header line of a cache file: its format, the hash of the YAML, and the CRC-32 of `body` to detect damage."""
    return f"provision matrix {FORMAT} {digest} {crc32(body):08x}\n".encode()


def cached_matrix(directory: Path | None = None) -> Matrix:
    """Return the matrix of a directory (default: the shipped one), from the cache when its YAML is unchanged.

    Raises the errors of `load_matrix`. A cache file that is damaged, of another format or not writable is ignored.
    """
    directory = directory or default_directory()
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
    """Write the decoded matrix of a directory to `path`, for inclusion in a wheel.

    Raises the errors of `load_matrix`, and `FileError` when `path` cannot be written.
    """
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
