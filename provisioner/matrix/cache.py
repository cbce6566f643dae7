"""A matrix kept decoded, under the hash of its YAML, so that most commands never parse YAML.

A wheel brings it along (`hatch_build.py`); what has none, a checkout or a matrix of the user's own, is kept in the user's cache
once it was read.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING
from zlib import crc32

from provisioner.caches import cache_directory
from provisioner.matrix.codec import FORMAT, decode, encode
from provisioner.matrix.location import content_digest, default_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from provisioner.matrix.model import Matrix


SHIPPED = "matrix.decoded"
"""The name of the decoded matrix in the folder of its YAML."""


def cached_matrix(directory: Path | None = None) -> Matrix:
    """Return the matrix of a directory (the shipped one by default): as it was decoded before when the YAML is unchanged.

    Raises what `load_matrix` raises. A file that is damaged, of another version or not writable is as good as none.
    """
    directory = directory if directory is not None else default_directory()
    digest = content_digest(directory)
    found = _read(directory / SHIPPED, digest)
    if found is not None:
        return found
    path = _cache_file(directory, digest)
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


def _cache_file(directory: Path, digest: str) -> Path:
    # positions name the directory, so the same files under another name are another entry
    return cache_directory() / "matrix" / f"{directory.name}-{digest}-{FORMAT}.cache"


def _read(path: Path, digest: str) -> Matrix | None:
    """The first line says where each section lies in the rest, and its checksum: a section is decoded when it is used.

    The checksum is over everything, so that damage is found now and not in the middle of the work.
    """
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        header = json.loads(head)
        spans = header["sections"]
        if header["checksum"] != _checksum(spans, body) or header["format"] != FORMAT:
            return None
        matrix = decode(lambda name: body[slice(*spans[name])])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return matrix if matrix.digest == digest else None


def _write(path: Path, matrix: Matrix) -> None:
    from provisioner.document import write_together

    spans, parts, start = {}, [], 0
    for name, text in encode(matrix).items():
        spans[name] = (start, start + len(text))
        parts.append(text)
        start += len(text)
    body = b"".join(parts)
    header = {"format": FORMAT, "checksum": _checksum(spans, body), "sections": spans}
    write_together({path: b"\n".join((json.dumps(header, separators=(",", ":")).encode(), body))})


def _checksum(spans: Mapping[str, Sequence[int]], body: bytes) -> int:
    return crc32(body, crc32(json.dumps(spans).encode()))
