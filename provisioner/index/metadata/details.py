"""File details that a lock file records but a project page may omit: hash, size and attestation identities; cached.

Sources: PyPA specifications, "Index hosted attestations" (PEP 740), and "pylock.toml", `packages.wheels.size` (which asks
for the Content-Length of a HEAD request) and `packages.attestation-identities`; read 2026-11-21.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from provisioner.errors import UnavailableError
from provisioner.index.http.transport import length_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.index.cache import Cache
    from provisioner.index.http.transport import Transport
    from provisioner.index.metadata.reader import MetadataReader
    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings

PROVENANCE_TYPES = "application/vnd.pypi.integrity.v1+json, application/json;q=0.9"
LARGEST_PROVENANCE = 8 * 1024 * 1024
"""The largest provenance object in bytes; an attestation has about 5,000 bytes, and a file has few attestations."""

DEEPEST = 8
"""The deepest nesting of a publisher's claims that is accepted; readers of lock files may fail on deeper TOML."""

Identity = Mapping[str, Any]


class FileDetails(Struct, frozen=True, kw_only=True):
    """The details of one file that a lock file records.

    `size` is in bytes, None when unknown. `identities` are the publishers in the file's attestations as the index lists them;
    their signatures are not verified. `licenses` are those of its metadata, if that was read. `missing` names the details
    that could not be read: `size`, `attestations`.
    """

    sha256: str
    size: int | None = None
    requires_python: str | None = None
    identities: tuple[Identity, ...] = ()
    licenses: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class _Attestations(Struct, frozen=True, kw_only=True):
    """A cache entry: the publishers in a file's attestations, and the POSIX time at which they were requested (`asked`)."""

    asked: float
    identities: tuple[dict[str, Any], ...]


class DetailReader:
    """Reads the details of files, through the disk cache; threads may share it."""

    def __init__(self, settings: IndexSettings, cache: Cache, transport: Transport, metadata: MetadataReader) -> None:
        self._settings = settings
        self._cache = cache
        self._transport = transport
        self._metadata = metadata

    def stored(self, file: IndexFile, *, is_refreshed: bool = False) -> FileDetails | None:
        """Return the details of a file; None when a network request is needed for them.

        With `is_refreshed`, cached attestations that are no longer fresh need a request, too.
        """
        if not file.sha256:
            return None
        size = self._stored_size(file)
        identities = self._stored_identities(file, is_refreshed=is_refreshed)
        if (size is None and not file.path) or identities is None:
            return None
        return FileDetails(
            sha256=file.sha256,
            size=size,
            requires_python=self._metadata.with_python(file).requires_python,
            identities=identities,
            licenses=self._metadata.licenses(file),
        )

    def read(self, file: IndexFile, *, is_refreshed: bool = False) -> FileDetails:
        """Return the details of a file, requesting those that are not cached.

        With `is_refreshed`, attestations that are no longer fresh are requested again. Raises `UnavailableError` only when the
        hash cannot be read; an unavailable size or attestation is named in `FileDetails.missing`.
        """
        sha256, size = self._metadata.hash_and_size(file)
        missing = []
        if size is None and not file.path:
            size = self._size(file)
            missing += ["size"] if size is None else []
        identities = self._stored_identities(file, is_refreshed=is_refreshed)
        if identities is None:
            identities = self._requested_identities(file)
            missing += ["attestations"] if identities is None else []
        if identities is None:
            identities = self._stored_identities(file) or ()
        return FileDetails(
            sha256=sha256,
            size=size,
            requires_python=self._metadata.with_python(file).requires_python,
            identities=identities,
            licenses=self._metadata.licenses(file),
            missing=tuple(missing),
        )

    def _stored_size(self, file: IndexFile) -> int | None:
        if file.size is not None or file.path:
            return file.size
        return self._cache.load(f"size:{file.sha256 or file.url}", int)

    def _size(self, file: IndexFile) -> int | None:
        """Return the size of a remote file from a HEAD request; None when the server does not state it or in offline mode."""
        known = self._stored_size(file)
        if known is not None or self._settings.offline:
            return known
        try:
            answer = self._transport.request(
                file.url, source=f"index `{file.index}`", method="HEAD", headers={"Accept-Encoding": "identity"}
            )
        except UnavailableError:
            return None
        length = length_in(answer.headers)
        is_whole = answer.headers.get("Content-Encoding", "identity") == "identity"
        # Some servers answer HEAD with a length of 0; no wheel has it, and installers refuse a file of another size.
        if answer.status != 200 or not is_whole or not length:
            return None
        self._cache.store(f"size:{file.sha256 or file.url}", length)
        return length

    def _stored_identities(self, file: IndexFile, *, is_refreshed: bool = False) -> tuple[Identity, ...] | None:
        """Return the cached attestation identities of a file; empty when its index publishes no attestations.

        None when they are not cached, or with `is_refreshed` when they were requested longer ago than `fresh_seconds`.
        """
        if not file.provenance:
            return ()
        stored = self._cache.load(f"provenance:{file.provenance}", _Attestations)
        if stored is None:
            return None
        is_old = not 0 <= time.time() - stored.asked < self._settings.fresh_seconds
        if is_refreshed and is_old and not self._settings.offline:
            return None
        return tuple(_frozen(identity) for identity in stored.identities)

    def _requested_identities(self, file: IndexFile) -> tuple[Identity, ...] | None:
        """Request the provenance object (PEP 740) of a file and return its publishers; None when it cannot be read."""
        if self._settings.offline:
            return None
        try:
            answer = self._transport.request(
                file.provenance, source=f"index `{file.index}`", headers={"Accept": PROVENANCE_TYPES}
            )
        except UnavailableError:
            return None
        if answer.status != 200 or len(answer.body) > LARGEST_PROVENANCE:
            return None
        found = identities_in(answer.body)
        if found is not None:
            kept = _Attestations(asked=time.time(), identities=tuple(map(dict, found)))
            self._cache.store(f"provenance:{file.provenance}", kept)
        return found


def identities_in(body: bytes) -> tuple[Identity, ...] | None:
    """Return the distinct publishers of a provenance object, sorted; None when `body` is not a valid one.

    All fields of a publisher are copied, except null values, which TOML does not have. Source: "Index hosted attestations",
    section Provenance objects; "pylock.toml", `packages.attestation-identities`.
    """
    try:
        provenance = json.loads(body)
        if provenance["version"] != 1:
            return None
        publishers = [_publisher(bundle["publisher"]) for bundle in provenance["attestation_bundles"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if any(publisher is None for publisher in publishers):
        return None
    return in_order([publisher for publisher in publishers if publisher is not None])


def in_order(identities: Iterable[Identity]) -> tuple[Identity, ...]:
    """Return the distinct identities, sorted by the JSON text of each."""
    found = {json.dumps(identity, sort_keys=True): identity for identity in identities}
    return tuple(found[text] for text in sorted(found))


def _publisher(said: Mapping[str, Any]) -> Identity | None:
    """Return a publisher without null values; None when it has no `kind`, or holds values that TOML cannot represent."""
    if not isinstance(said, dict) or not isinstance(said.get("kind"), str) or not said["kind"] or not _is_plain(said):
        return None
    publisher: Identity = _frozen(said)
    return publisher


def _is_plain(value: object, depth: int = 0) -> bool:
    """Return whether JSON data can be written to TOML: no lone surrogates, no numbers out of range, no deep nesting."""
    if isinstance(value, dict):
        return depth < DEEPEST and all(_is_plain(key) and _is_plain(below, depth + 1) for key, below in value.items())
    if isinstance(value, list):
        return depth < DEEPEST and all(below is not None and _is_plain(below, depth + 1) for below in value)
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _frozen(value: Any) -> Any:  # noqa: ANN401 - plain JSON data
    """Return JSON data without nulls, with sorted keys, and tuples in place of lists, equal to data read from a lock file."""
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in sorted(value.items()) if one is not None}
    if isinstance(value, list):
        return tuple(_frozen(one) for one in value)
    return value
