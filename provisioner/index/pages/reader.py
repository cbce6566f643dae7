"""Reading of project pages: from the cache while they are fresh, otherwise with a conditional HTTP request."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.index.address import is_remote, local_path, origin, public_url
from provisioner.index.cache import NotCachedError
from provisioner.index.http.transport import refusal, unpacked
from provisioner.index.model import IndexFile
from provisioner.index.pages.selection import Listing

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.index.cache import Cache
    from provisioner.index.http.transport import Response, Transport
    from provisioner.index.settings import IndexLocation, IndexSettings

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
"""The Accept header of requests for project pages, which prefers JSON. Source: PEP 691, "Content Negotiation"."""

FORBIDDEN_MEANS_ABSENT = frozenset({"download.pytorch.org"})
"""Hosts that respond with 403 for a missing page, as S3 buckets without the permission to list do."""

_MAX_AGE = re.compile(r"(?:^|[\s,])(?:s-maxage|max-age)=(\d+)", re.IGNORECASE)


class CachedPage(Struct, frozen=True, kw_only=True):
    """The cache entry of a project page's URL; the body is stored separately.

    `sha256` is the hash of content type, final URL and body as sent (see `_digest`), "" when the index has no such page.
    `fetched` is a POSIX time, `fresh` the seconds from then in which no request is needed. `final_url` is the URL after
    redirects, `encoding` the compression of the stored body ("" for none).
    """

    url: str
    sha256: str
    etag: str = ""
    last_modified: str = ""
    fetched: float = 0.0
    fresh: float = 0.0
    content_type: str = ""
    final_url: str = ""
    encoding: str = ""

    def is_fresh(self, now: float) -> bool:
        """Return whether the page may be used without a request at the POSIX time `now`; False if `now` is before `fetched`."""
        return 0 <= now - self.fetched < self.fresh


class ProjectPage(Struct, frozen=True, kw_only=True):
    """A project page that exists in an index, possibly not parsed yet.

    `listing` are its parsed files; None until they are needed, because they take several times the memory of the page.
    `answer` is a response that is not parsed yet; None when the body is in the cache. `cached` is its cache entry, None for a
    page of a local directory.
    """

    location: IndexLocation
    cached: CachedPage | None = None
    listing: Listing | None = None
    answer: Response | None = None


class PageReader:
    """Reads project pages of remote and local indexes, through the disk cache."""

    def __init__(self, settings: IndexSettings, cache: Cache, transport: Transport) -> None:
        self._settings = settings
        self._cache = cache
        self._transport = transport
        self._known: dict[str, CachedPage] = {}
        """The cache entries of this run's pages by URL: whether a page is at hand is asked before it is read."""

    def page(self, location: IndexLocation, name: str) -> ProjectPage | None:
        """Return the page of a project in one index; None when the index has none.

        Raises `UnavailableError` when the index cannot be reached, or in offline mode when the page is not cached.
        """
        url = location.page_url(name)
        if not is_remote(url):
            return local_page(location, name)
        cached = self._cached(url)
        if cached is not None and (self._settings.offline or cached.is_fresh(time.time())):
            return ProjectPage(location=location, cached=cached) if cached.sha256 else None
        self._refuse_offline(location, name)
        return self._request(location, name, cached)

    def is_at_hand(self, location: IndexLocation, name: str) -> bool:
        """Return whether `page` with these arguments would send no network request."""
        url = location.page_url(name)
        if self._settings.offline or not is_remote(url):
            return True
        cached = self._cached(url)
        return cached is not None and cached.is_fresh(time.time())

    def is_cached(self, location: IndexLocation, name: str) -> bool:
        """Return whether the project's page is cached; False also when the cache records that the index has no such page."""
        cached = self._cached(location.page_url(name))
        return cached is not None and bool(cached.sha256)

    def files(self, page: ProjectPage, name: str) -> tuple[IndexFile, ...]:
        """Return all files of a page as `IndexFile`s, which costs more than `listing`; raises the same errors as `listing`."""
        return self.listing(page, name).finished()

    def listing(self, page: ProjectPage, name: str) -> Listing:
        """Return the files of a page, parsing the response or the cached body.

        Requests the page again if the cached body is missing or damaged. Raises `UnavailableError` when the response is not a
        project page (it is then not cached) or a new request fails.
        """
        if page.listing is not None:
            return page.listing
        assert page.cached is not None, "a page without a listing is known to the cache"
        if page.answer is not None:
            found = self._parsed(page.answer.body, page.cached, page.location)
            self._cache.store_body(page.cached.url, page.answer.content)
            self._store(page.cached)
            return found
        kept = self._kept_body(page.cached)
        if kept is not None:
            return self._parsed(kept, page.cached, page.location)
        self._refuse_offline(page.location, name)
        again = self._request(page.location, name, None)
        return self.listing(again, name) if again is not None else Listing(files=())

    def _parsed(self, body: bytes, page: CachedPage, location: IndexLocation) -> Listing:
        # A run that finds everything in its cache need not load the parser.
        from provisioner.index.pages.project_page import parse_project_page

        return parse_project_page(body, content_type=page.content_type, url=page.final_url, index=location.name)

    def _kept_body(self, page: CachedPage) -> bytes | None:
        """Return the decompressed body of a page from the cache; None when it is missing or its hash is wrong."""
        content = self._cache.body(page.url)
        if content is None or _digest(page.content_type, page.final_url, content) != page.sha256:
            return None
        return unpacked(content, page.encoding)

    def _cached(self, url: str) -> CachedPage | None:
        url = public_url(url)
        found = self._known.get(url) or self._cache.load(f"page:{url}", CachedPage)
        if found is not None:
            self._known[url] = found
        return found

    def _store(self, page: CachedPage) -> None:
        self._known[page.url] = page
        self._cache.store(f"page:{page.url}", page)

    def _refuse_offline(self, location: IndexLocation, name: str) -> None:
        if self._settings.offline:
            raise NotCachedError(f"`{name}` of index {location.name}")

    def _request(self, location: IndexLocation, name: str, cached: CachedPage | None) -> ProjectPage | None:
        url = location.page_url(name)
        source = f"index `{location.name}`"
        answer = self._transport.request(url, source=source, headers=_conditions(cached))
        fetched = CachedPage(
            url=public_url(url),
            sha256="",
            etag=answer.headers.get("ETag", ""),
            last_modified=answer.headers.get("Last-Modified", ""),
            fetched=time.time(),
            fresh=self._freshness(answer),
        )
        if answer.status == 304 and cached is not None:
            kept = replace(cached, fetched=fetched.fetched, fresh=fetched.fresh)
            self._store(kept)
            return ProjectPage(location=location, cached=kept) if kept.sha256 else None
        if answer.status in {404, 410} or (answer.status == 403 and origin(url)[1] in FORBIDDEN_MEANS_ABSENT):
            self._store(fetched)
            return None
        if answer.status != 200:
            raise refusal(answer.status, url, source=source, looked_at=answer.looked_at)
        content_type = answer.headers.get("Content-Type", "")
        digest = _digest(content_type, answer.url, answer.content)
        page = replace(fetched, sha256=digest, content_type=content_type, final_url=answer.url, encoding=answer.encoding)
        if cached is not None and cached.sha256 == digest:
            self._store(page)
            return ProjectPage(location=location, cached=page)
        return ProjectPage(location=location, cached=page, answer=answer)

    def _freshness(self, answer: Response) -> float:
        control = answer.headers.get("Cache-Control", "").lower()
        if "no-cache" in control or "no-store" in control:
            return 0.0
        age = _MAX_AGE.search(control)
        return float(age[1]) if age else float(self._settings.fresh_seconds)


def _digest(content_type: str, url: str, content: bytes) -> str:
    """Return a hash of content type, final URL and body, because an equal body lists other files at another URL or type."""
    digest = hashlib.sha256(b"\0".join((content_type.encode(), url.encode(), b"")))
    digest.update(content)
    return digest.hexdigest()


def _conditions(cached: CachedPage | None) -> dict[str, str]:
    headers = {"Accept": ACCEPT}
    if cached is not None and cached.etag:
        headers["If-None-Match"] = cached.etag
    if cached is not None and cached.last_modified:
        headers["If-Modified-Since"] = cached.last_modified
    return headers


def local_root(location: IndexLocation) -> Path:
    """Return the directory of a local index; raises `UnavailableError` when it is not a directory."""
    root = local_path(location.url)
    if root is None or not root.is_dir():
        raise UnavailableError(
            f"index `{location.name}` is not a directory: {public_url(location.url)}",
            hints=("correct index-url or extra-index-url in the installer's configuration",),
        )
    return root


def local_page(location: IndexLocation, name: str) -> ProjectPage | None:
    """Return the page of a project in a local index, as read by `directory_files`; None when the index has no directory for it.

    Raises `UnavailableError` when the index is not a directory or cannot be read.
    """
    if location.is_page:
        return _local_files(location)
    directory = local_root(location) / name
    if not directory.is_dir():
        return None
    return ProjectPage(location=location, listing=Listing(files=directory_files(directory, location.name).finished()))


def _local_files(location: IndexLocation) -> ProjectPage:
    """Return the files of a folder, or of a page in a file; raises `UnavailableError` when neither can be read."""
    path = local_path(location.url)
    if path is not None and path.is_file():
        from provisioner.index.pages.project_page import parse_project_page

        body = path.read_bytes()
        found = parse_project_page(body, content_type="text/html", url=path.absolute().as_uri(), index=location.name)
    else:
        found = directory_files(local_root(location), location.name)
    return ProjectPage(location=location, listing=Listing(files=found.finished()))


def directory_files(directory: Path, index: str) -> Listing:
    """Return the files that a directory's index.html lists or, without one, all files in the directory, sorted by name.

    Raises `UnavailableError` when the directory cannot be read.
    """
    from provisioner.index.pages.project_page import parse_project_page

    page = directory / "index.html"
    try:
        if page.is_file():
            return parse_project_page(page.read_bytes(), content_type="text/html", url=page.absolute().as_uri(), index=index)
        found = sorted(path for path in directory.iterdir() if path.is_file())
    except OSError as error:
        raise UnavailableError(f"index `{index}` cannot be read: `{directory}`: {error.strerror}") from None
    files = (
        IndexFile(filename=path.name, url="", index=index, path=str(path.absolute()), size=path.stat().st_size)
        for path in found
    )
    return Listing(files=tuple(files))
