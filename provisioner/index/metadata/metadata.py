"""The dependencies of one file: from the cache, its metadata file, the end of a remote wheel, or the file on disk."""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError, RefusedError, UnavailableError
from provisioner.index.address import origin
from provisioner.index.metadata.build import MetadataBuilder
from provisioner.index.metadata.core_metadata import (
    LARGEST,
    CoreMetadata,
    UnusableMetadataError,
    parse_metadata,
    require_same_release,
    sdist_requires,
    wheel_metadata,
)
from provisioner.index.model import DIRECT_PATH, DIRECT_URL
from provisioner.index.offline import NotCachedError

if TYPE_CHECKING:
    from provisioner.index.http.settings import IndexSettings
    from provisioner.index.http.transport import Transport
    from provisioner.index.model import IndexFile
    from provisioner.index.store.cache import Cache


LARGEST_SOURCE = 512 * 1024 * 1024
"""Bytes of a source distribution, which is read as a whole."""

LARGE = 64 * 1024 * 1024
"""Bytes. A mirror may have to fetch a wheel whole before it can send a part of it, so of these a part is asked for last."""

VAIN = 3
"""Metadata files that a host turned out not to have before it is asked for the wheel first."""


class HashMismatchError(RefusedError):
    """A file is not the one its index announced."""

    code = "hash-mismatch"


class _Adopted(Struct, frozen=True, kw_only=True):
    """What is known of a file that a requirement names by URL or path, and the hashes that requirements state."""

    core: CoreMetadata
    key: str
    stated: frozenset[str]


def is_certain(key: str) -> bool:
    """Whether a key (`direct:URL:VALIDATOR`) names one content of a URL, and not just the URL."""
    return not key.endswith(":")


def verify_stated(where: str, *, stated: str, found: str) -> None:
    """Raise `HashMismatchError` unless a file is the one whose hash a requirement states."""
    if stated != found:
        raise HashMismatchError(
            f"{where} is not the file that the requirement states",
            causes=(f"wanted sha256 {stated}", f"found sha256 {found}"),
            hints=("do not use it before you know why; then correct the `#sha256=` of the requirement",),
        )


class MetadataReader:
    """Reads core metadata through one cache and one transport."""

    def __init__(self, settings: IndexSettings, cache: Cache, transport: Transport) -> None:
        self._settings = settings
        self._cache = cache
        self._transport = transport
        self._builder = MetadataBuilder(settings, cache, login_for=transport.login_for)
        self._adopted: dict[str, _Adopted] = {}
        self._absent: Counter[tuple[str, str]] = Counter()
        self._present: Counter[tuple[str, str]] = Counter()
        """How often a host that announces no metadata file had none, and one."""

    def requires(self, file: IndexFile) -> tuple[str, ...]:
        """The Requires-Dist of a file, as it spells them.

        Raises `UnavailableError`, `HashMismatchError`, or `UnusableMetadataError` for a file that does not tell.
        """
        adopted = self._adopted.get(file.path or file.url)
        if adopted is not None:
            return adopted.core.requires
        if file.path and not file.sha256:
            return self.core(file).requires
        key = f"requires:{file.sha256 or file.url}"
        stored = self._cache.record(key)
        if isinstance(stored, list) and all(isinstance(text, str) for text in stored):
            return tuple(stored)
        metadata = self.core(file)
        if not metadata.is_built:
            if file.requires_python is None and metadata.requires_python:
                self._cache.store_record(f"python:{file.sha256 or file.url}", metadata.requires_python)
            self._cache.store_record(key, list(metadata.requires))
        return metadata.requires

    def python(self, file: IndexFile) -> str:
        """The Requires-Python that was read with the requirements of a file whose page states none; "" for no such thing.

        Source: PEP 503, by which an index may state it and need not.
        """
        if file.requires_python is not None:
            return ""
        stored = self._cache.record(f"python:{file.sha256 or file.url}")
        return stored if isinstance(stored, str) else ""

    def extras(self, file: IndexFile) -> tuple[str, ...]:
        """The Provides-Extra of a file, normalized (PEP 685); raises as `requires` does."""
        key = f"extras:{file.sha256 or file.url}"
        stored = self._cache.record(key) if file.sha256 else None
        if isinstance(stored, list) and all(isinstance(text, str) for text in stored):
            return tuple(stored)
        names = tuple(canonicalize_name(name) for name in self.core(file).provides_extra)
        if file.sha256:
            self._cache.store_record(key, list(names))
        return names

    def core(self, file: IndexFile) -> CoreMetadata:
        """The metadata of a file, read from the file or from what stands beside it, whatever was read before.

        Raises as `requires` does.
        """
        core = self._local(file) if file.path else self._remote(file)
        require_same_release(file.filename, core, is_named=file.index in {DIRECT_PATH, DIRECT_URL})
        return core

    def is_built(self, file: IndexFile) -> bool:
        """Whether the requirements of a file were found by building it, on this machine."""
        return not file.filename.endswith(".whl") and self._builder.has_built(file)

    def hash_and_size(self, file: IndexFile) -> tuple[str, int | None]:
        """The sha256 of a file and its size in bytes; read from the file itself when its index gives no hash.

        A remote file is then downloaded, once: the answer is kept under its URL.
        """
        if file.sha256:
            return file.sha256, file.size
        if file.path:
            return self._local_hash(Path(file.path))
        adopted = self._adopted.get(file.url)
        key = f"hash:{file.url if adopted is None else adopted.key}"
        stored = self._cache.record(key) if adopted is None or is_certain(key) or self._settings.offline else None
        if not (isinstance(stored, list) and len(stored) == 2):
            stored = list(self._streamed(file))
            self._cache.store_record(key, stored)
        for stated in sorted(adopted.stated) if adopted is not None else ():
            verify_stated(f"`{file.url}`", stated=stated, found=str(stored[0]))
        return str(stored[0]), int(stored[1])

    def adopt(self, file: IndexFile, core: CoreMetadata, *, key: str, sha256: str) -> None:
        """Take over what was read of a file that a requirement names by URL or path.

        `key` says which content of the URL it was (`is_certain`), `sha256` is the hash that the requirement states, or "".
        """
        place = file.path or file.url
        stated = self._adopted[place].stated if place in self._adopted else frozenset[str]()
        if core.is_built:
            self._builder.mark(file)
        self._adopted[place] = _Adopted(core=core, key=key, stated=stated | {sha256} if sha256 else stated)

    def _streamed(self, file: IndexFile) -> tuple[str, int]:
        """The sha256 and the size of a remote file, which is read as a whole and not kept."""
        self._refuse_offline(file, "hash")
        digest, size = hashlib.sha256(), 0
        for chunk in self._transport.chunks(file.url, source=_source(file)):
            digest.update(chunk)
            size += len(chunk)
        return digest.hexdigest(), size

    def _local_hash(self, path: Path) -> tuple[str, int]:
        try:
            status = path.stat()
            # Its mtime is what its maker says it is (`cp -p`, `rsync -t`); nobody sets its number and its ctime.
            times = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
            key = f"hash:{path.absolute()}:{status.st_dev}:{status.st_ino}:{status.st_size}:{times}"
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
                return self._of_source(file, Path(file.path).read_bytes())
            with Path(file.path).open("rb") as stream:
                return parse_metadata(wheel_metadata(stream, file.filename))
        except OSError as error:
            raise UnavailableError(f"`{file.path}` cannot be read: {error.strerror}") from None

    def _remote(self, file: IndexFile) -> CoreMetadata:
        kept = None if file.filename.endswith(".whl") else self._builder.kept(file)
        if kept is not None:
            return kept
        self._refuse_offline(file, "metadata")
        if not file.filename.endswith(".whl"):
            content = self._whole(file)
            _verify(file.filename, wanted=file.sha256, content=content)
            return self._of_source(file, content)
        return parse_metadata(self._of_wheel(file))

    def _of_wheel(self, file: IndexFile) -> bytes:
        """The METADATA of a remote wheel, by the way that will likely take one request.

        Many mirrors have metadata files without saying so, hence one is asked for whatever the page says. Where that is mostly
        in vain the wheel is asked first, and the file beside it should the wheel not tell.
        """
        host = origin(file.url)
        is_small = file.size is not None and file.size <= LARGE
        if not file.has_metadata and is_small and self._absent[host] >= max(VAIN, self._present[host]):
            with suppress(ProvisionError):
                return self._from_wheel(file)
        beside = self._metadata_file(file)
        if not file.has_metadata:
            (self._absent if beside is None else self._present)[host] += 1
        return self._from_wheel(file) if beside is None else beside

    def _whole(self, file: IndexFile) -> bytes:
        """A source distribution, which cannot be read in parts."""
        content = bytearray()
        for chunk in self._transport.chunks(file.url, source=_source(file)):
            content += chunk
            if len(content) > LARGEST_SOURCE:
                raise UnusableMetadataError(f"`{file.filename}` has more than {LARGEST_SOURCE >> 20} MiB, and is not read")
        return bytes(content)

    def _of_source(self, file: IndexFile, content: bytes) -> CoreMetadata:
        """What a source distribution says of itself, or what its build says where policy allows to build it."""
        try:
            return sdist_requires(content, file.filename)
        except UnusableMetadataError as error:
            if not (self._settings.allow_build and error.is_build_needed):
                raise
            return self._builder.metadata(file, content)

    def _refuse_offline(self, file: IndexFile, what: str) -> None:
        if self._settings.offline:
            raise NotCachedError(f"the {what} of `{file.filename}` ({_place(file)})")

    def _metadata_file(self, file: IndexFile) -> bytes | None:
        """PEP 658's file beside the wheel; None where there is none."""
        parts = urlsplit(file.url)
        url = urlunsplit(parts._replace(path=f"{parts.path}.metadata"))
        answer = self._transport.request(url, source=_source(file))
        if answer.status != 200 or not _is_metadata(answer.body):
            return None
        if len(answer.body) > LARGEST:
            raise UnusableMetadataError(f"`{file.filename}.metadata` has {len(answer.body)} bytes, and no metadata has")
        _verify(f"{file.filename}.metadata", wanted=file.metadata_sha256, content=answer.body)
        return answer.body

    def _from_wheel(self, file: IndexFile) -> bytes:
        from provisioner.index.metadata.ranged import RangedFile

        with RangedFile(self._transport, file.url, source=_source(file), size=file.size) as stream:
            return wheel_metadata(stream, file.filename)


def _source(file: IndexFile) -> str:
    """What an address belongs to, as errors name it."""
    return f"`{file.url}`" if file.index == DIRECT_URL else f"index `{file.index}`"


def _place(file: IndexFile) -> str:
    return file.url if file.index == DIRECT_URL else f"index {file.index}"


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
