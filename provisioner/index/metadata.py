"""The dependencies of one file: from the cache, its metadata file, the end of a remote wheel, or the file on disk."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from provisioner.errors import RefusedError, UnavailableError
from provisioner.index.core_metadata import CoreMetadata, parse_metadata, sdist_requires, wheel_metadata
from provisioner.index.ranged import RangedFile

if TYPE_CHECKING:
    from provisioner.index.cache import Cache
    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings
    from provisioner.index.transport import Transport


class HashMismatchError(RefusedError):
    """A file is not the one its index announced."""

    code = "hash-mismatch"


class MetadataReader:
    """Reads core metadata through one cache and one transport."""

    def __init__(self, settings: IndexSettings, cache: Cache, transport: Transport) -> None:
        self._settings = settings
        self._cache = cache
        self._transport = transport

    def requires(self, file: IndexFile) -> tuple[str, ...]:
        """The Requires-Dist of a file, as it spells them.

        Raises `UnavailableError`, `HashMismatchError`, or `UnusableMetadataError` for a file that does not tell.
        """
        if file.path and not file.sha256:
            return self._local(file).requires
        key = f"requires:{file.sha256 or file.url}"
        stored = self._cache.record(key)
        if isinstance(stored, list) and all(isinstance(text, str) for text in stored):
            return tuple(stored)
        metadata = self._local(file) if file.path else self._remote(file)
        self._cache.store_record(key, list(metadata.requires))
        return metadata.requires

    def hash_and_size(self, file: IndexFile) -> tuple[str, int | None]:
        """The sha256 of a file and its size in bytes; read from the file itself when its index gives no hash.

        A remote file is then downloaded, once: the answer is kept under its URL.
        """
        if file.sha256:
            return file.sha256, file.size
        if file.path:
            return self._local_hash(Path(file.path))
        key = f"hash:{file.url}"
        stored = self._cache.record(key)
        if isinstance(stored, list) and len(stored) == 2:
            return str(stored[0]), int(stored[1])
        self._refuse_offline(file, "hash")
        digest, size = hashlib.sha256(), 0
        for chunk in self._transport.chunks(file.url, source=f"index `{file.index}`"):
            digest.update(chunk)
            size += len(chunk)
        self._cache.store_record(key, [digest.hexdigest(), size])
        return digest.hexdigest(), size

    def _local_hash(self, path: Path) -> tuple[str, int]:
        try:
            status = path.stat()
            key = f"hash:{path.absolute()}:{status.st_size}:{status.st_mtime_ns}"
            stored = self._cache.record(key)
            if isinstance(stored, str):
                return stored, status.st_size
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise UnavailableError(f"`{path}` cannot be read: {error.strerror}") from None
        self._cache.store_record(key, digest)
        return digest, status.st_size

    def _local(self, file: IndexFile) -> CoreMetadata:
        try:
            if not file.filename.endswith(".whl"):
                return sdist_requires(Path(file.path).read_bytes(), file.filename)
            with Path(file.path).open("rb") as stream:
                return parse_metadata(wheel_metadata(stream, file.filename))
        except OSError as error:
            raise UnavailableError(f"`{file.path}` cannot be read: {error.strerror}") from None

    def _remote(self, file: IndexFile) -> CoreMetadata:
        self._refuse_offline(file, "metadata")
        if not file.filename.endswith(".whl"):
            content = b"".join(self._transport.chunks(file.url, source=f"index `{file.index}`"))
            _verify(file.filename, wanted=file.sha256, content=content)
            return sdist_requires(content, file.filename)
        beside = self._metadata_file(file)
        return parse_metadata(self._from_wheel(file) if beside is None else beside)

    def _refuse_offline(self, file: IndexFile, what: str) -> None:
        if self._settings.offline:
            raise UnavailableError(
                f"offline: the {what} of `{file.filename}` (index {file.index}) is not in the cache; run once without --offline"
            )

    def _metadata_file(self, file: IndexFile) -> bytes | None:
        """PEP 658's file beside the wheel. Many mirrors have it without saying so, hence it is always tried first."""
        parts = urlsplit(file.url)
        url = urlunsplit(parts._replace(path=f"{parts.path}.metadata"))
        answer = self._transport.request(url, source=f"index `{file.index}`")
        if answer.status != 200 or not _is_metadata(answer.body):
            return None
        _verify(f"{file.filename}.metadata", wanted=file.metadata_sha256, content=answer.body)
        return answer.body

    def _from_wheel(self, file: IndexFile) -> bytes:
        with RangedFile(self._transport, file.url, source=f"index `{file.index}`") as stream:
            return wheel_metadata(stream, file.filename)


def _is_metadata(body: bytes) -> bool:
    """Whether an answer is core metadata: single-page sites answer every address with 200 and a page of their own."""
    return b"metadata-version:" in body[:4096].lower()


def _verify(filename: str, *, wanted: str, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if wanted and found != wanted:
        raise HashMismatchError(
            f"`{filename}` is not the file its index announced",
            causes=(f"wanted sha256 {wanted}", f"found sha256 {found}"),
            hints=("do not use it; tell the operator of the index, and remove what proxies may have cached",),
        )
