"""Finding the artefacts (wheels) that matrix rows name on the configured indexes, and measuring each of them once."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.curate.index_reader import IndexReader
from provisioner.index.find_links import FindLinks
from provisioner.index.metadata.reader import MetadataReader
from provisioner.index.pages.filename import parse_filename
from provisioner.measure import UnreadableArtefactError
from provisioner.measure.wheel import RemoteWheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings
    from provisioner.measure.artefact import Measurement


class Artefacts(IndexReader):
    """Finds and measures wheels; threads may share it.

    With `is_full`, every library of a wheel is read to its end; otherwise large libraries are read in part.
    """

    def __init__(
        self, settings: IndexSettings, *, is_full: bool = False, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(settings, progress)
        self._is_full = is_full
        self._find_links = FindLinks(settings, self._transport)
        self._metadata = MetadataReader(settings, self._cache, self._transport)
        self._files: dict[str, tuple[IndexFile, ...]] = {}
        self._lock = Lock()

    def find(self, filename: str) -> IndexFile | None:
        """Return the file named `filename`; None when `files` of its project lacks it. Raises `UnavailableError`."""
        project = canonicalize_name(filename.partition("-")[0])
        return next((file for file in self.files(project) if file.filename == filename), None)

    def wheels(self, project: str, version: str) -> tuple[IndexFile, ...]:
        """Return the wheels of a project's release that are not yanked; raises `UnavailableError`."""
        name = canonicalize_name(project)
        return tuple(
            file
            for file in self.files(name)
            if file.yanked is None
            and (named := parse_filename(file.filename, name)) is not None
            and named.tag
            and str(named.version) == version
        )

    def files(self, project: str) -> tuple[IndexFile, ...]:
        """Return the files of a project from find-links and from the first index that knows it; raises `UnavailableError`."""
        with self._lock:
            if project not in self._files:
                found = (*self._find_links.files(project), *self._listed(project))
                self._files[project] = tuple(map(self._metadata.with_python, found))
            return self._files[project]

    def measured(self, file: IndexFile, *, is_full: bool = False) -> Measurement:
        """Return the measurement of a wheel, cached or made now; with `is_full`, each of its libraries is read to its end.

        Raises `UnavailableError` and `UnreadableArtefactError`.
        """
        return self.measurement(file, is_full=is_full or self._is_full)

    def record(self, file: IndexFile) -> str:
        """Return the RECORD of a wheel, cached or read by ranges; raises `UnavailableError` and `UnreadableArtefactError`."""
        key = f"record:{file.sha256}"
        kept = self._cache.load(key, str) if file.sha256 else None
        if kept is not None:
            return kept
        self._require_online(file, f"the RECORD of `{file.filename}` was not read before")
        with RemoteWheel(file, self._transport) as wheel:
            named = [name for name in wheel.names() if name.endswith(".dist-info/RECORD") and name.count("/") == 1]
            if not named:
                raise UnreadableArtefactError(f"`{file.filename}` cannot be measured: it has no RECORD")
            text = wheel.read(named[0]).decode("utf-8", errors="replace")
        if file.sha256:
            self._cache.store(key, text)
        return text
