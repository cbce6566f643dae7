"""Files that requirements name by URL or path: found, read, and read again when they change."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.index.http.transport import length_in, refusal
from provisioner.index.metadata.core_metadata import CoreMetadata, UnusableMetadataError
from provisioner.index.metadata.metadata import is_certain, verify_stated
from provisioner.index.model import DIRECT_PATH, DIRECT_URL, IndexFile, PackageRelease
from provisioner.index.offline import NotCachedError
from provisioner.index.pages.filename import parse_filename, parsed_version
from provisioner.index.pages.selection import Selection
from provisioner.index.places.direct_reference import DirectReferenceError, direct_reference, shown_url

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

    from provisioner.index.http.settings import IndexSettings
    from provisioner.index.http.transport import Transport
    from provisioner.index.metadata.metadata import MetadataReader
    from provisioner.index.model import Environment
    from provisioner.index.places.direct_reference import DirectReference
    from provisioner.index.store.cache import Cache


class _Read(Struct, frozen=True, kw_only=True):
    """What was read of one direct reference: the file, its own metadata, and under which key more of it is kept."""

    file: IndexFile
    core: CoreMetadata
    key: str = ""


class DirectReader:
    """Makes releases of direct references, for one environment.

    What is read of a remote file is kept with its validators (ETag, Last-Modified), and read again when they change: nobody
    promises that the file behind a URL stays the same.
    """

    def __init__(
        self, settings: IndexSettings, environment: Environment, *, cache: Cache, transport: Transport, metadata: MetadataReader
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._cache = cache
        self._transport = transport
        self._metadata = metadata
        self._read: dict[str, _Read] = {}

    def release(self, name: NormalizedName, url: str) -> PackageRelease:
        """The release that a direct reference is; `why_not` says what is in the way on the target.

        Raises `DirectReferenceError`, `UnavailableError`, `UnusableMetadataError` or `HashMismatchError`.
        """
        reference = direct_reference(name, url, self._settings.direct_folder)
        read = self._local(name, reference) if reference.path else self._remote(name, reference)
        file, core = read.file, read.core
        named = parse_filename(file.filename, name)
        if canonicalize_name(core.name) != name or (named is None and file.filename.endswith(".whl")):
            raise DirectReferenceError(
                f"`{name} @ {shown_url(url)}` is not a file of `{name}`",
                causes=(f"the file is called `{file.filename}`, its metadata is of `{core.name or 'nobody'}`",),
            )
        self._metadata.adopt(file, core, key=read.key, sha256=reference.sha256)
        self._read[file.url] = read
        dated = replace(file, requires_python=core.requires_python or None)
        if named is not None and (file.filename.endswith(".whl") or named.version == parsed_version(core.version)):
            return self._selected(name, dated)
        # The archive of a tag (`…/archive/v1.0.tar.gz`) is called after the tag; what it holds says what it is.
        ending = ".zip" if file.filename.endswith(".zip") else ".tar.gz"
        found = self._selected(name, replace(dated, filename=f"{name.replace('-', '_')}-{core.version}{ending}"))
        return replace(found, file=dated if found.file is not None else None)

    def _selected(self, name: NormalizedName, file: IndexFile) -> PackageRelease:
        # Whoever names a file means that file: neither its age nor its kind is held against it.
        selection = Selection(environment=self._environment, allow_prerelease=True, allow_sdist=True)
        found = selection.releases(name, (file,))
        if not found:
            raise UnusableMetadataError(f"`{file.filename}` has no version that PEP 440 allows")
        return found[0]

    def _local(self, name: str, reference: DirectReference) -> _Read:
        path = Path(reference.path)
        if not reference.is_file:
            raise DirectReferenceError(f"`{name} @ {path}` {reference.what_is_there}")
        file = IndexFile(filename=path.name, url="", index=DIRECT_PATH, path=str(path.absolute()))
        sha256, size = self._metadata.hash_and_size(file)
        if reference.sha256:
            verify_stated(f"`{path}`", stated=reference.sha256, found=sha256)
        file = replace(file, sha256=sha256, size=size)
        return _Read(file=file, core=self._metadata.core(file))

    def _remote(self, name: str, reference: DirectReference) -> _Read:
        if reference.url in self._read:
            return self._read[reference.url]
        validator, size = self._state(name, reference.url)
        key = f"direct:{reference.url}:{validator}"
        file = IndexFile(filename=reference.filename, url=reference.url, index=DIRECT_URL, size=size)
        stored = self._cache.record(key) if is_certain(key) or self._settings.offline else None
        core = CoreMetadata.of_record(stored)
        if core is None or (core.is_built and not self._settings.allow_build):
            core = self._metadata.core(file)
            self._cache.store_record(key, core.record())
        return _Read(file=file, core=core, key=key)

    def _state(self, name: str, url: str) -> tuple[str, int | None]:
        """What the server says of a file now, its validators as one text and its size; offline what it said last."""
        key = f"direct:{url}"
        if self._settings.offline:
            kept = self._cache.record(key)
            if not (isinstance(kept, list) and len(kept) == 2):
                raise NotCachedError(f"`{name} @ {url}`")
            return str(kept[0]), kept[1]
        answer = self._transport.request(
            url, source=f"`{name} @ {url}`", method="HEAD", headers={"Accept-Encoding": "identity"}, limit=0
        )
        if answer.status in {404, 410}:
            raise DirectReferenceError(f"`{name} @ {url}` does not exist: its server answers {answer.status}")
        if answer.status in {401, 403}:
            raise refusal(answer.status, url, source=f"`{name} @ {url}`", looked_at=answer.looked_at)
        # Some servers know no HEAD; they say nothing of the file, which is then read each time.
        marks = [answer.headers.get(header, "") for header in ("ETag", "Last-Modified")] if answer.status == 200 else [""]
        size = length_in(answer.headers) if answer.status == 200 else None
        known = "\0".join([*marks, "" if size is None else str(size)])
        validator = hashlib.sha256(known.encode()).hexdigest()[:32] if any(marks) else ""
        self._cache.store_record(key, [validator, size])
        return validator, size
