"""Releases of direct references, files that a requirement names by URL or path (`demo @ https://…/demo-1.0-py3-none-any.whl`)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.index.cache import NotCachedError
from provisioner.index.direct_reference import DirectReferenceError, direct_reference, require_file, shown_url
from provisioner.index.http.transport import length_in, refusal
from provisioner.index.metadata.core_metadata import CoreMetadata, unusable
from provisioner.index.metadata.reader import DirectContent, verify_stated
from provisioner.index.model import DIRECT_PATH, DIRECT_URL, IndexFile, PackageRelease
from provisioner.index.pages.filename import parse_filename, parsed_version
from provisioner.index.pages.selection import Selection

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

    from provisioner.index.cache import Cache
    from provisioner.index.direct_reference import DirectReference
    from provisioner.index.http.transport import Transport
    from provisioner.index.metadata.reader import MetadataReader
    from provisioner.index.model import Environment
    from provisioner.index.settings import IndexSettings


class _ServerState(Struct, frozen=True, kw_only=True, array_like=True):
    """The response headers that identify the content of a remote file.

    `validator` is one hash of ETag, Last-Modified and size, "" when the server sends neither ETag nor Last-Modified. `size` is
    in bytes, None when unknown.
    """

    validator: str
    size: int | None


class DirectReader:
    """Reads direct references and returns them as releases for one environment.

    The metadata of a remote file is cached with the file's HTTP validators, and read again when the validators change, because
    the file behind a URL may be replaced.
    """

    def __init__(
        self, settings: IndexSettings, environment: Environment, *, cache: Cache, transport: Transport, metadata: MetadataReader
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._cache = cache
        self._transport = transport
        self._metadata = metadata

    def release(self, name: NormalizedName, url: str) -> PackageRelease:
        """Return the release of the direct reference `name @ url`; its `why_not` is "" when the target can install the file.

        Raises `DirectReferenceError` when the file does not exist or belongs to another project, `UnavailableError` when it
        cannot be fetched, `UnusableMetadataError` when its metadata is invalid, and `HashMismatchError` when the hash of a
        local file differs from the one in the fragment of `url`.
        """
        reference = direct_reference(name, url, self._settings.direct_folder)
        file, metadata = self._local(name, reference) if reference.path else self._remote(name, reference)
        named = parse_filename(file.filename, name)
        is_wheel = file.filename.endswith(".whl")
        if canonicalize_name(metadata.name) != name or (named is None and is_wheel):
            raise DirectReferenceError(
                f"`{name} @ {shown_url(url)}` is not a file of `{name}`",
                causes=(f"the file is called `{file.filename}`, its metadata is of `{metadata.name or 'nobody'}`",),
                hints=(f"write `{metadata.name} @ {shown_url(url)}`",) if metadata.name else (),
            )
        file = replace(file, requires_python=metadata.requires_python or None)
        if named is not None and (is_wheel or named.version == parsed_version(metadata.version)):
            return self._selected(name, file)
        # The archive of a tag (`…/archive/v1.0.tar.gz`) is called after the tag; its metadata has the version.
        ending = ".zip" if file.filename.endswith(".zip") else ".tar.gz"
        found = self._selected(name, replace(file, filename=f"{name.replace('-', '_')}-{metadata.version}{ending}"))
        return found.with_file(file) if found.has_file else found

    def _selected(self, name: NormalizedName, file: IndexFile) -> PackageRelease:
        # Whoever names a file means that file: neither its age nor its kind is held against it.
        selection = Selection(environment=self._environment, allow_prerelease=True, allow_sdist=True)
        found = selection.releases(name, (file,))
        if not found:
            raise unusable(file.filename, "has no version that PEP 440 allows")
        return found[0]

    def _local(self, name: str, reference: DirectReference) -> tuple[IndexFile, CoreMetadata]:
        path = Path(reference.path)
        require_file(reference, f"{name} @ {path}")
        file = IndexFile(filename=path.name, url="", index=DIRECT_PATH, path=str(path.absolute()))
        sha256, size = self._metadata.hash_and_size(file)
        if reference.sha256:
            verify_stated(f"`{path}`", stated=reference.sha256, found=sha256)
        file = replace(file, sha256=sha256, size=size)
        return file, self._metadata.metadata(file)

    def _remote(self, name: str, reference: DirectReference) -> tuple[IndexFile, CoreMetadata]:
        state = self._state(name, reference.url)
        key = f"direct:{reference.url}:{state.validator}"
        file = IndexFile(filename=reference.filename, url=reference.url, index=DIRECT_URL, size=state.size)
        is_certain = bool(state.validator)
        metadata = self._cache.load(key, CoreMetadata) if is_certain or self._settings.offline else None
        if metadata is None or (metadata.is_built and not self._settings.allow_build):
            metadata = self._metadata.read(file)
            self._cache.store(key, metadata)
        expected = frozenset({reference.sha256} - {""})
        self._metadata.adopt(file, metadata, DirectContent(key=key, is_certain=is_certain, expected=expected))
        return file, metadata

    def _state(self, name: str, url: str) -> _ServerState:
        """Request the validators of a remote file with HEAD; in offline mode, return the cached ones.

        Raises `NotCachedError` in offline mode when none are cached, `DirectReferenceError` when the file does not exist, and
        `UnavailableError` when the server refuses access.
        """
        key = f"direct:{url}"
        if self._settings.offline:
            kept = self._cache.load(key, _ServerState)
            if kept is None:
                raise NotCachedError(f"`{name} @ {url}`")
            return kept
        answer = self._transport.request(
            url, source=f"`{name} @ {url}`", method="HEAD", headers={"Accept-Encoding": "identity"}, limit=0
        )
        if answer.status in {404, 410}:
            raise DirectReferenceError(f"`{name} @ {url}` does not exist: its server answers {answer.status}")
        if answer.status in {401, 403}:
            raise refusal(answer.status, url, source=f"`{name} @ {url}`", looked_at=answer.looked_at)
        state = _ServerState(validator="", size=None)
        if answer.status == 200:  # some servers know no HEAD; the file is then read each time
            validators = [answer.headers.get(header, "") for header in ("ETag", "Last-Modified")]
            size = length_in(answer.headers)
            known = "\0".join([*validators, "" if size is None else str(size)])
            validator = hashlib.sha256(known.encode()).hexdigest()[:32] if any(validators) else ""
            state = _ServerState(validator=validator, size=size)
        self._cache.store(key, state)
        return state
