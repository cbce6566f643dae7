"""`PackageIndex`: every release of a project and what it requires, from the indexes the installer is configured for.

A project belongs to one index: the first configured one that knows it. Nothing is silently taken from a later index, for
whoever can upload a name there could then supply the files of a private project (dependency confusion).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from provisioner import __version__
from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.address import public_url
from provisioner.index.cache import Cache
from provisioner.index.compact import decode_releases, encode_releases
from provisioner.index.core_metadata import UnusableMetadataError, parsed_requirement
from provisioner.index.find_links import FindLinks
from provisioner.index.memo import Memo
from provisioner.index.metadata import MetadataReader
from provisioner.index.model import FIND_LINKS
from provisioner.index.reader import PageReader
from provisioner.index.routing import locate
from provisioner.index.selection import Selection
from provisioner.index.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import ThreadPoolExecutor

    from packaging.requirements import Requirement
    from packaging.utils import NormalizedName

    from provisioner.index.model import Environment, IndexFile, PackageRelease
    from provisioner.index.reader import Page
    from provisioner.index.routing import Route
    from provisioner.index.settings import IndexSettings

WORKERS = 16


class PackageIndex:
    """Satisfies `PackageSource`. Use as a context manager, or `close` it: reading ahead is then given up at once.

    `notes` grows with what a user should hear though it is no error.
    """

    def __init__(self, settings: IndexSettings, environment: Environment) -> None:
        self._settings = settings
        self._environment = environment
        self._cache = Cache(settings.cache_directory)
        self._transport = Transport(settings)
        self._pages = PageReader(settings, self._cache, self._transport)
        self._metadata = MetadataReader(settings, self._cache, self._transport)
        self._find_links = FindLinks(settings, self._transport)
        self._releases: Memo[tuple[PackageRelease, ...]] = Memo()
        self._requirements: Memo[tuple[Requirement, ...]] = Memo()
        self._pool: ThreadPoolExecutor | None = None
        self._considered: set[NormalizedName] = set()
        self._is_closed = False
        self._notes: dict[str, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up reading ahead and close connections and the cache."""
        self._is_closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._transport.close()
        self._cache.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over, one line each."""
        return tuple(self._notes)

    def url_of(self, index: str) -> str:
        """The base URL of an index without credentials, as a lock file states it; "" for find-links."""
        return public_url(locate(index, self._settings).locations[0].url) if index != FIND_LINKS else ""

    def hash_and_size(self, file: IndexFile) -> tuple[str, int | None]:
        """The sha256 of a file and its size in bytes, read from the file itself when its index does not say."""
        return self._metadata.hash_and_size(file)

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Every version, newest first, usable or not; an unknown project is an empty tuple.

        `index` names one index (`pytorch-cu126` fills a template); otherwise the first that knows the project is used, with
        find-links files in front. Raises `UnavailableError`, or `ProvisionError` for an index that is not configured.
        """
        return self._releases.get((name, index), lambda: self._read(name, locate(index, self._settings)))

    def requirements(self, release: PackageRelease) -> tuple[Requirement, ...]:
        """The Requires-Dist of the release's file, markers not evaluated; none for a release without a file.

        Raises `UnavailableError`, `HashMismatchError`, or `UnusableMetadataError` (this file cannot be chosen).
        """
        file = release.file
        if file is None:
            return ()
        return self._requirements.get(file.path or file.url, lambda: self._required(file))

    def prefetch(self, names: Iterable[NormalizedName]) -> None:
        """Read these projects, and the metadata of their newest usable releases, in the background; never raises."""
        if self._settings.offline or self._is_closed:
            return
        first = locate("", self._settings).locations[:1]
        for name in set(names) - self._considered:
            self._considered.add(name)
            if (name, "") in self._releases or all(self._pages.is_at_hand(location, name) for location in first):
                continue
            self._workers().submit(self._read_ahead, name)

    def _workers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="index")
        return self._pool

    def _read_ahead(self, name: NormalizedName) -> None:
        # Whoever needs the project meets the same error, with its words.
        with suppress(ProvisionError):
            newest = next((release for release in self.releases(name) if release.is_usable), None)
            if newest is not None and not self._is_closed:
                self.requirements(newest)

    def _read(self, name: NormalizedName, route: Route) -> tuple[PackageRelease, ...]:
        local = self._find_links.files(name, local_label=route.local_label) if route.takes_find_links else ()
        page = self._first_page(name, route, has_local=bool(local))
        selection = self._selection(name)
        if page is None:
            return selection.releases(name, local)
        if local or page.stored is None:
            return selection.releases(name, (*local, *self._pages.files(page, name)))
        wish = f"{__version__} {selection!r}"
        found = decode_releases(self._cache.selection(page.stored, wish), name, page.location.name)
        if found is None:
            found = selection.releases(name, self._pages.files(page, name))
            self._cache.store_selection(page.stored, wish, encode_releases(found))
        return found

    def _first_page(self, name: NormalizedName, route: Route, *, has_local: bool) -> Page | None:
        for location in route.locations:
            try:
                page = self._pages.page(location, name)
            except UnavailableError as error:
                # The files of one framework build may all lie in find-links; pip passes over the index then, too.
                if not (route.local_label and has_local):
                    raise
                self._notes[f"{error.message}; `{name}` is taken from find-links alone"] = None
                return None
            if page is not None:
                return page
        return None

    def _selection(self, name: NormalizedName) -> Selection:
        return Selection(
            environment=self._environment,
            exclude_newer=self._settings.exclude_newer,
            accepts_undated=self._settings.accepts_undated,
            allow_prerelease=self._settings.allow_prerelease or name in self._settings.prerelease_names,
            allow_sdist=self._settings.allow_sdist,
        )

    def _required(self, file: IndexFile) -> tuple[Requirement, ...]:
        try:
            return tuple(parsed_requirement(text) for text in self._metadata.requires(file))
        except UnusableMetadataError as error:
            if file.filename in error.message:
                raise
            raise UnusableMetadataError(f"`{file.filename}` cannot be used: {error.message}", hints=error.hints) from None
