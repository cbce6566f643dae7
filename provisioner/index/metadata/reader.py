"""Reading of core metadata: from the cache, a `.metadata` file (PEP 658), ranges of a remote wheel, or the file itself."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import ProvisionError, RefusedError, UnavailableError
from provisioner.index.address import origin
from provisioner.index.cache import NotCachedError
from provisioner.index.metadata.build import FailedBuilds, MetadataBuilder
from provisioner.index.metadata.core_metadata import (
    LARGEST_METADATA,
    CoreMetadata,
    UnusableMetadataError,
    parse_metadata,
    require_same_release,
    sdist_project,
    unusable,
    wheel_metadata,
)
from provisioner.index.metadata.download import Download, SearchedInVainError
from provisioner.index.metadata.source_distribution import is_static, is_too_old, require_static, source_metadata
from provisioner.index.model import DIRECT_PATH, DIRECT_URL
from provisioner.index.once import OnceMap

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import stat_result

    from provisioner.index.cache import Cache
    from provisioner.index.http.transport import Transport
    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings


PIECE = 32 * 1024
"""The bytes of a source distribution that are fetched at a time while its metadata is looked for."""

HANDFUL = 5
"""The number of source distributions of one project that leave their requirements to a build, after which no other is read."""

LARGEST_SOURCE = 512 * 1024 * 1024
"""The largest source distribution in bytes that is downloaded whole, to be built."""

LARGE = 64 * 1024 * 1024
"""The size in bytes above which a wheel's ranges are the last resort, because a mirror may fetch the whole wheel first."""

MISSES = 3
"""The number of `.metadata` files missing on a host after which ranges of the wheel are requested first."""


class HashMismatchError(RefusedError):
    """A file has another hash than its index or a requirement states."""

    code = "hash-mismatch"


class DirectContent(Struct, frozen=True, kw_only=True):
    """The identity of the content behind a direct reference, a URL or path in a requirement.

    `key` is its cache key. `is_certain` is False when the key identifies only the URL, whose content may change. `expected` are
    the sha256 hashes that requirements state for the file.
    """

    key: str
    is_certain: bool
    expected: frozenset[str] = frozenset()


class MetadataReader:
    """Reads the core metadata and hashes of files, through the disk cache; threads may share it."""

    def __init__(
        self,
        settings: IndexSettings,
        cache: Cache,
        transport: Transport,
        *,
        failed_builds: FailedBuilds | None = None,
        known: OnceMap[CoreMetadata] | None = None,
    ) -> None:
        """Read as `settings` say; the readers of a run share the other arguments, None for those of this reader alone.

        `known` is the metadata of the files that were read, by path or URL: no file has another for another environment.
        """
        self._settings = settings
        self._cache = cache
        self._transport = transport
        self._builder = MetadataBuilder(
            settings, cache, activity=transport.activity, login_for=transport.login_for, failed=failed_builds
        )
        self._metadata = known if known is not None else OnceMap[CoreMetadata]()
        self._direct: dict[str, DirectContent] = {}
        self._absent: Counter[tuple[str, str]] = Counter()
        self._present: Counter[tuple[str, str]] = Counter()
        """`_absent` and `_present` count, for each host, unannounced `.metadata` files that were missing and found."""
        self._undecided: defaultdict[str, set[str]] = defaultdict(set)
        """The source distributions of each project whose requirements are left to a build, by filename."""

    def metadata(self, file: IndexFile) -> CoreMetadata:
        """Return the metadata of a file, read once per run and cached on disk if a hash or URL identifies the file.

        Raises `UnavailableError` when the file cannot be fetched, `HashMismatchError` when its hash is not the announced one,
        and `UnusableMetadataError` when its metadata is missing or invalid, or a build would be needed and is not allowed.
        """
        return self._metadata.get(file.path or file.url, lambda: self._cached(file))

    def _cached(self, file: IndexFile) -> CoreMetadata:
        identity = file.sha256 or file.url or self._identity_of_local(file)
        kept = self._cache.load(f"metadata:{identity}", CoreMetadata) if identity else None
        if kept is not None:
            return kept
        found = self.read(file)
        if identity and not found.is_built:
            self._cache.store(f"metadata:{identity}", found)
        return found

    def _identity_of_local(self, file: IndexFile) -> str:
        """Return a cache key for a local wheel; "" for an unreadable one, and for a source distribution, which may be built."""
        with suppress(OSError):
            path = Path(file.path)
            return _key_of_local(path, path.stat()) if file.filename.endswith(".whl") else ""
        return ""

    def with_python(self, file: IndexFile) -> IndexFile:
        """Return a file with its Requires-Python filled in from its metadata, if the index lists none and it is a local wheel.

        A wheel that cannot be read is returned unchanged; the error is raised when its metadata is needed.
        """
        if file.requires_python is not None or not file.path or not file.filename.endswith(".whl"):
            return file
        with suppress(ProvisionError):
            return replace(file, requires_python=self.metadata(file).requires_python or None)
        return file

    def read(self, file: IndexFile) -> CoreMetadata:
        """Read the metadata of a file, or of the `.metadata` file beside it, without the cache; raises as `metadata` does."""
        found = self._local(file) if file.path else self._remote(file)
        require_same_release(file.filename, found, is_direct=file.index in {DIRECT_PATH, DIRECT_URL})
        return found

    def is_built(self, file: IndexFile) -> bool:
        """Return whether the metadata of a file, as far as read in this run, was found by building it on this machine."""
        known = self._metadata.known(file.path or file.url)
        return known is not None and known.is_built

    def licenses(self, file: IndexFile) -> tuple[str, ...]:
        """Return the licences in the metadata of a file, as far as read in this run."""
        known = self._metadata.known(file.path or file.url)
        return known.licenses if known is not None else ()

    def is_packed(self, file: IndexFile) -> bool:
        """Return whether the metadata of a file, as far as read in this run, is what a build may change."""
        known = self._metadata.known(file.path or file.url)
        return known is not None and known.is_packed

    def adopt(self, file: IndexFile, metadata: CoreMetadata, content: DirectContent) -> None:
        """Record the metadata of a direct reference and the identity of its content (`content`), both read by the caller."""
        identity = file.path or file.url
        self._metadata.get(identity, lambda: metadata)
        known = self._direct.get(identity)
        expected = content.expected | known.expected if known is not None else content.expected
        self._direct[identity] = replace(content, expected=expected)

    def hash_and_size(self, file: IndexFile) -> tuple[str, int | None]:
        """Return the sha256 of a file and its size in bytes (None when unknown).

        When the index lists no hash, the hash is computed from the file; a remote file is downloaded for that once, and the
        result cached. Raises `UnavailableError`, or `HashMismatchError` when a requirement states another hash.
        """
        if file.sha256:
            return file.sha256, file.size
        if file.path:
            return self._local_hash(Path(file.path))
        direct = self._direct.get(file.url, DirectContent(key=file.url, is_certain=True))
        key = f"hash:{direct.key}"
        is_valid = direct.is_certain or self._settings.offline
        found = self._cache.load(key, tuple[str, int]) if is_valid else None
        if found is None:
            found = self._streamed_hash(file)
            self._cache.store(key, found)
        for expected in sorted(direct.expected):
            verify_stated(f"`{file.url}`", stated=expected, found=found[0])
        return found

    def _streamed_hash(self, file: IndexFile) -> tuple[str, int]:
        """Download a remote file without storing it, and return its sha256 and size; raises `NotCachedError` if offline."""
        self._refuse_offline(file, "hash")
        digest, size = hashlib.sha256(), 0
        for chunk in self._transport.chunks(file.url, source=_source(file), is_limited=False):
            digest.update(chunk)
            size += len(chunk)
        return digest.hexdigest(), size

    def _local_hash(self, path: Path) -> tuple[str, int]:
        try:
            status = path.stat()
            key = f"hash:{_key_of_local(path, status)}"
            digest = self._cache.load(key, str)
            if digest is None:
                with path.open("rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                self._cache.store(key, digest)
        except OSError as error:
            raise UnavailableError(f"`{path}` cannot be read: {error.strerror}") from None
        return digest, status.st_size

    def _local(self, file: IndexFile) -> CoreMetadata:
        path = Path(file.path)
        try:
            with path.open("rb") as stream:
                if file.filename.endswith(".whl"):
                    return wheel_metadata(stream, file.filename)
                stated = source_metadata(stream, file.filename)
            return self._of_source(file, stated, lambda _: path)
        except OSError as error:
            raise UnavailableError(f"`{file.path}` cannot be read: {error.strerror}") from None

    def _remote(self, file: IndexFile) -> CoreMetadata:
        if file.filename.endswith(".whl"):
            self._refuse_offline(file, "metadata")
            return self._of_wheel(file)
        self._refuse_beyond_handful(file)
        built = self._builder.kept(file)
        if built is not None:
            self._undecided[sdist_project(file.filename)].add(file.filename)
            return built
        return self._of_source(file, self._stated(file), partial(self._save, file))

    def _stated(self, file: IndexFile) -> CoreMetadata:
        """Return what a remote source distribution states of itself, read from the start of its archive or from the cache.

        Nothing is read of a file older than static metadata. A file that was read to its end is compared with its hash.
        """
        if is_too_old(file):
            return CoreMetadata()
        key = f"source:{file.sha256}" if file.sha256 else ""
        kept = self._cache.load(key, CoreMetadata) if key else None
        if kept is not None:
            return kept
        self._refuse_offline(file, "metadata")
        found = self._ranged(file) if file.filename.endswith(".zip") else self._streamed(file)
        if key and not is_static(found):  # static metadata is cached like that of a wheel
            self._cache.store(key, found)
        return found

    def _ranged(self, file: IndexFile) -> CoreMetadata:
        from provisioner.index.metadata.ranged import RangedFile

        with RangedFile(self._transport, file.url, source=_source(file), size=file.size) as stream:
            return source_metadata(stream, file.filename)

    def _streamed(self, file: IndexFile) -> CoreMetadata:
        with closing(self._transport.chunks(file.url, source=_source(file), size=PIECE)) as pieces:
            download = Download(pieces)
            verify = partial(_verify, file.filename, wanted=file.sha256)
            try:
                found = source_metadata(download, file.filename)
                download.verify_if_short(verify)
            except UnusableMetadataError:
                download.verify_if_short(verify)
                raise
            except SearchedInVainError:
                return CoreMetadata()
            return found

    def _refuse_beyond_handful(self, file: IndexFile) -> None:
        """Raise `UnusableMetadataError` if `HANDFUL` other source distributions of the project leave requirements to a build.

        Those before them would, too: the one format of metadata that makes a promise is the newest.
        """
        known = self._undecided[sdist_project(file.filename)]
        if len(known) >= HANDFUL and file.filename not in known and file.index != DIRECT_URL:
            raise unusable(file.filename, f"was not read: {HANDFUL} other versions of it leave what they require to a build")

    def _of_wheel(self, file: IndexFile) -> CoreMetadata:
        """Read the METADATA of a remote wheel with as few requests as possible.

        Many mirrors have `.metadata` files without announcing them, so such a file is requested first. If most unannounced ones
        requested from this host were missing, ranges of a small wheel (at most `LARGE`) are requested first, and the
        `.metadata` file only if that fails.
        """
        host = origin(file.url)
        is_small = file.size is not None and file.size <= LARGE
        if not file.has_metadata and is_small and self._absent[host] >= max(MISSES, self._present[host]):
            with suppress(ProvisionError):
                return self._from_wheel(file)
        beside = self._metadata_file(file)
        if not file.has_metadata:
            (self._absent if beside is None else self._present)[host] += 1
        return self._from_wheel(file) if beside is None else parse_metadata(beside)

    def _metadata_file(self, file: IndexFile) -> bytes | None:
        """Return the content of the `.metadata` file (PEP 658) of a wheel; None when the server has none.

        Raises `HashMismatchError` when its hash is another than announced.
        """
        parts = urlsplit(file.url)
        url = urlunsplit(parts._replace(path=f"{parts.path}.metadata"))
        answer = self._transport.request(url, source=_source(file))
        # Single-page sites answer every address with 200 and a page of their own.
        if answer.status != 200 or b"metadata-version:" not in answer.body[:4096].lower():
            return None
        name = f"{file.filename}.metadata"
        if len(answer.body) > LARGEST_METADATA:
            raise unusable(name, f"has {len(answer.body)} bytes, and no metadata has")
        _verify(name, wanted=file.metadata_sha256, content=answer.body)
        return answer.body

    def _from_wheel(self, file: IndexFile) -> CoreMetadata:
        from provisioner.index.metadata.ranged import RangedFile

        with RangedFile(self._transport, file.url, source=_source(file), size=file.size) as stream:
            return wheel_metadata(stream, file.filename)

    def _save(self, file: IndexFile, path: Path) -> Path:
        """Download a remote source distribution to `path` and return it; raises `UnusableMetadataError` above `LARGEST_SOURCE`.

        Raises `HashMismatchError` when its hash is another than announced.
        """
        self._refuse_offline(file, "metadata")
        digest, size = hashlib.sha256(), 0
        with path.open("wb") as saved:
            for chunk in self._transport.chunks(file.url, source=_source(file)):
                digest.update(chunk)
                size += len(chunk)
                if size > LARGEST_SOURCE:
                    raise unusable(file.filename, f"has more than {LARGEST_SOURCE >> 20} MiB, and is not read")
                saved.write(chunk)
        _require_hash(file.filename, wanted=file.sha256, found=digest.hexdigest())
        return path

    def _of_source(self, file: IndexFile, stated: CoreMetadata, saved: Callable[[Path], Path]) -> CoreMetadata:
        """Return the metadata of a source distribution; builds it if `stated` is not static and policy allows builds.

        `saved` returns the path of the archive, and may write the archive to the path that it is given.
        """
        try:
            return require_static(stated, file.filename, uploaded=file.upload_time if is_too_old(file) else None)
        except UnusableMetadataError:
            self._undecided[sdist_project(file.filename)].add(file.filename)
            if not self._settings.allow_build:
                raise
            return self._builder.metadata(file, saved)

    def _refuse_offline(self, file: IndexFile, what: str) -> None:
        if self._settings.offline:
            place = file.url if file.index == DIRECT_URL else f"index {file.index}"
            raise NotCachedError(f"the {what} of `{file.filename}` ({place})")


def _key_of_local(path: Path, status: stat_result) -> str:
    """Return a cache key for the content of a local file: path, device, inode number, size, and times of its last change.

    Programs can set the mtime to any value (`cp -p`, `rsync -t`), but not the inode number and the ctime.
    """
    times = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    return f"{path.absolute()}:{status.st_dev}:{status.st_ino}:{status.st_size}:{times}"


def verify_stated(where: str, *, stated: str, found: str) -> None:
    """Raise `HashMismatchError` unless `found`, the hash of a file, equals the hash `stated` in a requirement."""
    if stated != found:
        raise HashMismatchError(
            f"{where} is not the file that the requirement states",
            causes=(f"wanted sha256 {stated}", f"found sha256 {found}"),
            hints=("do not use it before you know why; then correct the `#sha256=` of the requirement",),
        )


def _verify(filename: str, *, wanted: str, content: bytes | bytearray) -> None:
    """Raise `HashMismatchError` unless `content` has the sha256 `wanted`, as announced by the index; "" accepts anything."""
    _require_hash(filename, wanted=wanted, found=hashlib.sha256(content).hexdigest())


def _require_hash(filename: str, *, wanted: str, found: str) -> None:
    if wanted and found != wanted:
        raise HashMismatchError(
            f"`{filename}` is not the file its index announced",
            causes=(f"wanted sha256 {wanted}", f"found sha256 {found}"),
            hints=("do not use it; tell the operator of the index, and remove what proxies may have cached",),
        )


def _source(file: IndexFile) -> str:
    """Return the source of a file as error messages name it: its index, or its URL for a direct reference."""
    return f"`{file.url}`" if file.index == DIRECT_URL else f"index `{file.index}`"
