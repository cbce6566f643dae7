"""The details of chosen files for a lock: hash, size, who attests them; of the index, or of the lock before."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.index.model import DIRECT_PATH, DIRECT_URL, FIND_LINKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.index.client import PackageIndex
    from provisioner.index.metadata.details import FileDetails
    from provisioner.index.model import IndexFile
    from provisioner.lock.model import Lock
    from provisioner.lock.origin import Identities, Origins

_WORDS = {"size": "size", "attestations": "attestation identities"}


class Describing:
    """One run's knowledge of the files it locks. `earlier` is what an index out of reach cannot take away."""

    def __init__(self, earlier: Lock | None, *, is_offline: bool, is_refreshed: bool) -> None:
        from provisioner.lock.origin import earlier_details

        self._earlier = earlier_details(earlier)
        self._is_offline = is_offline
        self._is_refreshed = is_refreshed
        self._missing: Counter[str] = Counter()
        self._urls: dict[str, str] = {}
        self._identities: dict[str, Identities] = {}

    def files(self, files: Sequence[IndexFile], source: PackageIndex) -> list[IndexFile]:
        """The files with what was found out about them, in their order; raises `UnavailableError` for a hash."""
        for name in {file.index for file in files} - {"", FIND_LINKS, DIRECT_PATH, DIRECT_URL} - self._urls.keys():
            self._urls[name] = source.url_of(name)
        details = source.details(files, is_refreshed=self._is_refreshed)
        return [self._described(file, found) for file, found in zip(files, details, strict=True)]

    def _described(self, file: IndexFile, found: FileDetails) -> IndexFile:
        size = found.size
        identities: Identities = found.identities
        known_size, known_identities = self._earlier.get(found.sha256, (None, ()))
        if "size" in found.missing:
            size = known_size
        if "attestations" in found.missing and not identities:
            identities = known_identities
        self._missing["size"] += "size" in found.missing and size is None
        self._missing["attestations"] += "attestations" in found.missing and not identities
        self._identities[found.sha256] = identities
        return replace(file, sha256=found.sha256, size=size, requires_python=found.requires_python)

    @property
    def origins(self) -> Origins:
        """Where the indexes are, and who attests the files described so far."""
        from provisioner.lock.origin import Origins

        return Origins(urls=self._urls, identities=self._identities)

    def notes(self) -> Iterator[str]:
        """What a lock goes without, one line a kind."""
        for kind, word in _WORDS.items():
            if number := self._missing[kind]:
                files = "1 file" if number == 1 else f"{number} files"
                why = "offline, and not in the cache" if self._is_offline else "their server does not tell"
                yield f"the lock goes without the {word} of {files}: {why}"
