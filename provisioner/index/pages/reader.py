"""Project pages of one index or another: from the cache while fresh, else asked for again, conditionally."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.index.address import is_remote, local_path, origin, project_url, public_url
from provisioner.index.cache import NotCachedError
from provisioner.index.http.transport import refusal, unpacked
from provisioner.index.metadata.reader import with_python
from provisioner.index.model import IndexFile
from provisioner.index.pages.listing import Listing

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.index.cache import Cache
    from provisioner.index.http.settings import IndexLocation, IndexSettings
    from provisioner.index.http.transport import Response, Transport

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
"""Source: PEP 691, "Content Negotiation"."""

FORBIDDEN_MEANS_ABSENT = frozenset({"download.pytorch.org"})
"""Hosts that answer 403 for a page that does not exist, as S3 buckets without a listing permission do."""

_MAX_AGE = re.compile(r"(?:^|[\s,])(?:s-maxage|max-age)=(\d+)", re.IGNORECASE)


class StoredPage(Struct, frozen=True, kw_only=True):
    """What is known of one URL: the hash of its body as it was sent ("" when there is no such page) and how to ask again.

    `fetched` is a POSIX time, `fresh` the seconds from then in which nobody needs to ask. `answered` is the URL where redirects
    ended, `encoding` the compression of the body that is kept.
    """

    url: str
    sha256: str
    etag: str = ""
    modified: str = ""
    fetched: float = 0.0
    fresh: float = 0.0
    content_type: str = ""
    answered: str = ""
    encoding: str = ""

    def is_fresh(self, now: float) -> bool:
        """Whether it may be used without asking; a clock set back makes it stale, not immortal."""
        return 0 <= now - self.fetched < self.fresh


class Page(Struct, frozen=True, kw_only=True):
    """A project page that exists: what it lists, the answer that was not read yet, or else where the cache keeps it.

    An answer is read when somebody needs what it lists, for read it takes several times its size.
    """

    location: IndexLocation
    stored: StoredPage | None = None
    listing: Listing | None = None
    answer: Response | None = None


class PageReader:
    """Reads project pages through one cache and one transport."""

    def __init__(self, settings: IndexSettings, cache: Cache, transport: Transport) -> None:
        self._settings = settings
        self._cache = cache
        self._transport = transport

    def page(self, location: IndexLocation, name: str) -> Page | None:
        """The page of a project in one index; None when that index does not know it.

        Raises `UnavailableError` when the index cannot be asked, or when it must not be (offline) and nothing is stored.
        """
        url = project_url(location.url, name)
        if not is_remote(url):
            return local_page(location, name)
        stored = self._stored(url)
        if stored is not None and (self._settings.offline or stored.is_fresh(time.time())):
            return _known(stored, location)
        self._refuse_offline(location, name)
        return self._ask(location, name, stored)

    def is_at_hand(self, location: IndexLocation, name: str) -> bool:
        """Whether reading the page would send nothing."""
        url = project_url(location.url, name)
        if self._settings.offline or not is_remote(url):
            return True
        stored = self._stored(url)
        return stored is not None and stored.is_fresh(time.time())

    def is_kept(self, location: IndexLocation, name: str) -> bool:
        """Whether the cache has a page of the project, and not that there is none."""
        stored = self._stored(project_url(location.url, name))
        return stored is not None and bool(stored.sha256)

    def listing(self, page: Page, name: str) -> Listing:
        """What a page lists, read again from the index when the cache has lost it.

        Raises `UnavailableError` for an answer that is no project page, which the cache does not keep.
        """
        if page.listing is not None:
            return page.listing
        if page.answer is not None and page.stored is not None:
            return self._read(page.answer, page.stored, page.location)
        kept = self._kept(page.stored, page.location) if page.stored is not None else None
        if kept is not None:
            return kept
        self._refuse_offline(page.location, name)
        again = self._ask(page.location, name, None)
        return self.listing(again, name) if again is not None else Listing(files=())

    def files(self, page: Page, name: str) -> tuple[IndexFile, ...]:
        """The files a page lists, each read to its end; `listing` is for choosing among them."""
        return self.listing(page, name).finished()

    def _kept(self, stored: StoredPage, location: IndexLocation) -> Listing | None:
        """What the cache has of a page; None where that is not, or not whole, what was answered."""
        content = self._cache.body(stored.url)
        if content is None or _digest(stored.content_type, stored.answered, content) != stored.sha256:
            return None
        body = unpacked(content, stored.encoding)
        if body is None:
            return None
        from provisioner.index.pages.page import read_page

        return read_page(body, content_type=stored.content_type, url=stored.answered, index=location.name)

    def _stored(self, url: str) -> StoredPage | None:
        return self._cache.load(f"page:{public_url(url)}", StoredPage)

    def _store_page(self, page: StoredPage) -> None:
        self._cache.store(f"page:{page.url}", page)

    def _refuse_offline(self, location: IndexLocation, name: str) -> None:
        if self._settings.offline:
            raise NotCachedError(f"`{name}` of index {location.name}")

    def _ask(self, location: IndexLocation, name: str, stored: StoredPage | None) -> Page | None:
        url = project_url(location.url, name)
        source = f"index `{location.name}`"
        answer = self._transport.request(url, source=source, headers=_conditions(stored))
        fetched = StoredPage(
            url=public_url(url),
            sha256="",
            etag=answer.headers.get("ETag", ""),
            modified=answer.headers.get("Last-Modified", ""),
            fetched=time.time(),
            fresh=self._freshness(answer),
        )
        if answer.status == 304 and stored is not None:
            kept = replace(stored, fetched=fetched.fetched, fresh=fetched.fresh)
            self._store_page(kept)
            return _known(kept, location)
        if answer.status in {404, 410} or (answer.status == 403 and origin(url)[1] in FORBIDDEN_MEANS_ABSENT):
            self._store_page(fetched)
            return None
        if answer.status != 200:
            raise refusal(answer.status, url, source=source, looked_at=answer.looked_at)
        return self._store(answer, location, fetched, stored)

    def _store(self, answer: Response, location: IndexLocation, fetched: StoredPage, stored: StoredPage | None) -> Page:
        content_type = answer.headers.get("Content-Type", "")
        digest = _digest(content_type, answer.url, answer.content)
        page = replace(fetched, sha256=digest, content_type=content_type, answered=answer.url, encoding=answer.encoding)
        if stored is not None and stored.sha256 == digest:
            self._store_page(page)
            return Page(location=location, stored=page)
        return Page(location=location, stored=page, answer=answer)

    def _read(self, answer: Response, page: StoredPage, location: IndexLocation) -> Listing:
        from provisioner.index.pages.page import read_page

        listing = read_page(answer.body, content_type=page.content_type, url=answer.url, index=location.name)
        self._cache.store_body(page.url, answer.content)
        self._store_page(page)
        return listing

    def _freshness(self, answer: Response) -> float:
        control = answer.headers.get("Cache-Control", "").lower()
        if "no-cache" in control or "no-store" in control:
            return 0.0
        age = _MAX_AGE.search(control)
        return float(age[1]) if age else float(self._settings.fresh_seconds)


def _digest(content_type: str, url: str, content: bytes) -> str:
    """What a page is known by: the same bytes mean other files at another address or as another type."""
    digest = hashlib.sha256(b"\0".join((content_type.encode(), url.encode(), b"")))
    digest.update(content)
    return digest.hexdigest()


def _known(stored: StoredPage, location: IndexLocation) -> Page | None:
    return Page(location=location, stored=stored) if stored.sha256 else None


def _conditions(stored: StoredPage | None) -> dict[str, str]:
    headers = {"Accept": ACCEPT}
    if stored is not None and stored.etag:
        headers["If-None-Match"] = stored.etag
    if stored is not None and stored.modified:
        headers["If-Modified-Since"] = stored.modified
    return headers


def local_root(location: IndexLocation) -> Path:
    """The directory that an index on this machine is; raises `UnavailableError` where there is none."""
    root = local_path(location.url)
    if root is None or not root.is_dir():
        raise UnavailableError(
            f"index `{location.name}` is not a directory: {public_url(location.url)}",
            hints=("correct index-url or extra-index-url in the installer's configuration",),
        )
    return root


def local_page(location: IndexLocation, name: str) -> Page | None:
    """The page of a project in a directory: its index.html, or else the files that lie there."""
    directory = local_root(location) / name
    if not directory.is_dir():
        return None
    files = tuple(with_python(file) for file in directory_files(directory, location.name))
    return Page(location=location, listing=Listing(files=files))


def directory_files(directory: Path, index: str) -> tuple[IndexFile, ...]:
    """What a directory offers: what its index.html lists, or else the files that lie in it, by name."""
    from provisioner.index.pages.page import parse_page

    listing = directory / "index.html"
    try:
        if listing.is_file():
            return parse_page(listing.read_bytes(), content_type="text/html", url=listing.absolute().as_uri(), index=index)
        found = sorted(path for path in directory.iterdir() if path.is_file())
    except OSError as error:
        raise UnavailableError(f"index `{index}` cannot be read: `{directory}`: {error.strerror}") from None
    return tuple(
        IndexFile(filename=path.name, url="", index=index, path=str(path.absolute()), size=path.stat().st_size)
        for path in found
    )
