"""pip's find-links: local directories, HTML files and web pages that list files of any project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.index.address import is_remote, local_path, public_url
from provisioner.index.http.transport import refusal
from provisioner.index.model import FIND_LINKS
from provisioner.index.once import OnceMap
from provisioner.index.pages.filename import parse_filename
from provisioner.index.pages.reader import directory_files

if TYPE_CHECKING:
    from provisioner.index.http.transport import Transport
    from provisioner.index.model import IndexFile
    from provisioner.index.settings import IndexSettings


class FindLinks:
    """Reads the files of every configured find-links location (a directory, HTML file or URL), each location once."""

    def __init__(self, settings: IndexSettings, transport: Transport) -> None:
        self._settings = settings
        self._transport = transport
        self._places: OnceMap[tuple[IndexFile, ...]] = OnceMap()

    def files(self, name: str, *, local_label: str = "") -> tuple[IndexFile, ...]:
        """Return the files of the project `name`, in the order of the configured locations.

        With a `local_label` (`cpu`), only files whose version has this local version label are returned. Raises
        `UnavailableError` when a location cannot be read; a local path that does not exist counts as empty.
        """
        found = []
        for place in self._settings.find_links:
            for file in self._places.get(place, lambda place=place: self._read(place)):  # type: ignore[misc]
                named = parse_filename(file.filename, name)
                if named is not None and (not local_label or named.version.local == local_label):
                    found.append(file)
        return tuple(found)

    def _read(self, place: str) -> tuple[IndexFile, ...]:
        from provisioner.index.pages.project_page import parse_project_page

        if is_remote(place):
            body, content_type, url = self._requested(place)
            return parse_project_page(body, content_type=content_type, url=url, index=FIND_LINKS).finished()
        path = local_path(place)
        if path is None or not path.exists():
            # pip only warns about a place that is not there, and CI images often configure one for all machines.
            return ()
        if path.is_dir():
            return directory_files(path, FIND_LINKS).finished()
        try:
            body = path.read_bytes()
        except OSError as error:
            raise UnavailableError(f"find-links `{path}` cannot be read: {error.strerror}") from None
        return parse_project_page(body, content_type="text/html", url=path.absolute().as_uri(), index=FIND_LINKS).finished()

    def _requested(self, place: str) -> tuple[bytes, str, str]:
        """Return the body, content type and final URL (after redirects) of a web page; raises `UnavailableError`."""
        source = f"find-links `{public_url(place)}`"
        if self._settings.offline:
            raise UnavailableError(f"offline: {source} cannot be read", hints=("run without --offline",))
        answer = self._transport.request(place, source=source)
        if answer.status != 200:
            raise refusal(answer.status, place, source=source, looked_at=answer.looked_at)
        return answer.body, answer.headers.get("Content-Type", ""), answer.url
