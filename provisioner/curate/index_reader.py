"""Reading of the files of projects from the configured indexes, and measuring of wheels, through the disk cache.

Measurements are cached with the artefact's hash as their key, so an interrupted run continues where it stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.index.cache import Cache
from provisioner.index.http.transport import Transport
from provisioner.index.pages.reader import PageReader
from provisioner.measure.artefact import VERSION, Measurement, measure
from provisioner.measure.links import LINKS_VERSION, LinkedLibraries, LinkedLibrary, linked_libraries
from provisioner.measure.wheel import RemoteWheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings


class IndexReader:
    """The base class of the readers of wheels, a context manager; `progress` is called with a message on each read."""

    def __init__(self, settings: IndexSettings, progress: Callable[[str], None]) -> None:
        self._settings = settings
        self._progress = progress
        self._cache = Cache(settings.cache_directory)
        self._transport = Transport(settings)
        self._pages = PageReader(settings, self._cache, self._transport)
        self._open: set[RemoteWheel] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and the cache; reads in other threads end with `UnavailableError`."""
        for wheel in tuple(self._open):
            wheel.close()
        self._transport.close()
        self._cache.close()

    @property
    def fetched(self) -> int:
        """The bytes received over the network."""
        return self._transport.received

    def online(self, what: str) -> Transport:
        """Return the transport for requests that are not cached; raises `UnavailableError` naming `what` in offline mode."""
        if self._settings.offline:
            raise UnavailableError(f"offline: {what} cannot be read; run without --offline")
        return self._transport

    def report(self, text: str) -> None:
        """Call `progress` with the message that `text` is read next."""
        self._progress(text)

    def measurement(self, file: IndexFile, *, is_full: bool) -> Measurement:
        """Return the measurement of a wheel, cached or made now; with `is_full`, each of its libraries is read to its end.

        Raises `UnavailableError` and `UnreadableArtefactError`.
        """
        for depth in ("full",) if is_full else ("full", "sample"):
            kept = self._cache.load(_key(file, depth), Measurement) if file.sha256 else None
            if kept is not None:
                return kept
        self._require_online(file, f"`{file.filename}` was not measured before")
        with RemoteWheel(file, self._transport) as wheel:
            self._open.add(wheel)
            try:
                found = measure(wheel, is_full=is_full, progress=lambda path: self._progress(f"{file.filename}: {path}"))
            finally:
                self._open.discard(wheel)
        if file.sha256:
            self._cache.store(_key(file, "full" if found.is_whole else "sample"), found)
        return found

    def linked(self, file: IndexFile) -> tuple[LinkedLibrary, ...]:
        """Return the libraries of a wheel with the libraries that they link to, cached or read now.

        Raises `UnavailableError` and `UnreadableArtefactError`.
        """
        key = f"linked:{LINKS_VERSION}:{file.sha256}"
        kept = self._cache.load(key, LinkedLibraries) if file.sha256 else None
        if kept is not None:
            return kept.libraries
        with RemoteWheel(file, self.online(f"`{file.filename}`")) as wheel:
            self.report(file.filename)
            found = LinkedLibraries(libraries=tuple(linked_libraries(wheel)))
        if file.sha256:
            self._cache.store(key, found)
        return found.libraries

    def _listed(self, project: str) -> tuple[IndexFile, ...]:
        """Return the files of the first index that knows a project; empty when none does. Raises `UnavailableError`."""
        name = canonicalize_name(project)
        for location in self._settings.indexes:
            page = None if location.is_template else self._pages.page(location, name)
            if page is not None:
                return self._pages.files(page, name)
        return ()

    def _require_online(self, file: IndexFile, what: str) -> None:
        """Raise `UnavailableError` with the message `what` when a remote file has to be read in offline mode."""
        if self._settings.offline and not file.path:
            raise UnavailableError(f"offline: {what}; run once without --offline")


def _key(file: IndexFile, depth: str) -> str:
    return f"measured:{VERSION}:{depth}:{file.sha256}"
