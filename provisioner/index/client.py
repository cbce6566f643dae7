"""`PackageIndex`: reads releases and their requirements from the configured package indexes.

All files of a project come from one index: the first configured one that has a page for it. No file is silently taken from a
later index, because whoever may upload there could otherwise supply the files of a private project (dependency confusion).
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.index.address import public_url
from provisioner.index.cache import Cache, NotCachedError, all_missing
from provisioner.index.dependency_confusion import PageComparison, confusion_notices, unpinned
from provisioner.index.direct import DirectReader
from provisioner.index.find_links import FindLinks
from provisioner.index.http.reach import Reach
from provisioner.index.http.transport import Transport
from provisioner.index.markers import Markers, marker_environment
from provisioner.index.metadata.build import FailedBuilds
from provisioner.index.metadata.core_metadata import UnusableMetadataError, parse_requirement, unusable
from provisioner.index.metadata.details import DetailReader
from provisioner.index.metadata.reader import MetadataReader
from provisioner.index.model import EXPLICIT_ONLY, FIND_LINKS, PackageRelease
from provisioner.index.notice import IndexSkipped
from provisioner.index.once import OnceMap
from provisioner.index.pages.filename import parsed_version, split_filename
from provisioner.index.pages.reader import PageReader
from provisioner.index.pages.selection import SELECTION_RULES, Listing, Selection, takes_python
from provisioner.index.prefetch import Prefetcher
from provisioner.index.pruning import prune_if_due
from provisioner.index.read_limit import ReadLimit
from provisioner.index.routing import locate, route

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from packaging.requirements import Requirement
    from packaging.utils import NormalizedName

    from provisioner.index.activity import Activity
    from provisioner.index.metadata.core_metadata import CoreMetadata
    from provisioner.index.metadata.details import FileDetails
    from provisioner.index.model import Environment, IndexFile
    from provisioner.index.notice import ConfusionNotice
    from provisioner.index.pages.reader import ProjectPage
    from provisioner.index.routing import Route
    from provisioner.index.settings import IndexLocation, IndexSettings


class SelectedReleases(Struct, frozen=True, kw_only=True):
    """A cache entry: the releases that were selected from a project page whose hash is `page` (`CachedPage.sha256`)."""

    page: str
    releases: tuple[PackageRelease, ...]


class Shared:
    """What the clients of one run share, each of which reads for another environment.

    `limit` is what the run may read, `failed_builds` are the builds that failed, `reach` the servers that cannot be
    reached, `metadata` that of the files that were read, by path or URL, and `alike` the releases of each page that the first
    client selected from it.
    """

    def __init__(self, limit: ReadLimit) -> None:
        self.limit = limit
        self.failed_builds = FailedBuilds()
        self.reach = Reach()
        self.metadata: OnceMap[CoreMetadata] = OnceMap()
        self.alike: dict[str, tuple[PackageRelease, ...]] = {}


class PackageIndex:
    """Client of package indexes for one environment; implements `PackageSource`, `PrereleaseSource` and `FileSource`.

    Use it as a context manager, or call `close`; either cancels the reads that the background threads have not begun.
    """

    def __init__(self, settings: IndexSettings, environment: Environment, *, shared: Shared | None = None) -> None:
        """Read as `settings` say; `shared` is what the clients of a run share, None for a run of this one alone."""
        shared = shared or Shared(ReadLimit(settings.read_limit))
        self._settings = settings
        self._environment = environment
        self._markers = Markers(marker_environment(environment))
        self._cache = Cache(settings.cache_directory)
        self._transport = Transport(settings, limit=shared.limit, reach=shared.reach)
        self._pages = PageReader(settings, self._cache, self._transport)
        self._metadata = MetadataReader(
            settings, self._cache, self._transport, failed_builds=shared.failed_builds, known=shared.metadata
        )
        self._details = DetailReader(settings, self._cache, self._transport, self._metadata)
        self._find_links = FindLinks(settings, self._transport)
        self._direct_files = DirectReader(
            settings, environment, cache=self._cache, transport=self._transport, metadata=self._metadata
        )
        self._prefetcher = Prefetcher(releases=self._listed, requirements=self._applicable, is_at_hand=self._is_at_hand)
        self._alike = shared.alike
        self._releases: OnceMap[tuple[PackageRelease, ...]] = OnceMap()
        self._prereleases: OnceMap[tuple[PackageRelease, ...]] = OnceMap()
        self._direct: OnceMap[PackageRelease] = OnceMap()
        self._requires: OnceMap[tuple[str, ...]] = OnceMap()
        self._requirements: OnceMap[tuple[Requirement, ...]] = OnceMap()
        self._applying: dict[tuple[str, ...], dict[str, Requirement | None]] = {}
        """For the extras of an installation, each Requires-Dist text: parsed, or None when it does not apply.

        The versions of a project repeat most texts.
        """
        # One page at a time is parsed: more threads would not be faster, and a parsed page has several times its size.
        self._parsing = threading.Lock()
        self._pages_found: dict[tuple[NormalizedName, str], ProjectPage] = {}
        self._skipped: dict[IndexSkipped, None] = {}
        self.passed_over: list[UnavailableError] = []
        """Errors of unreachable indexes for which find-links files were used instead.

        If there is such an error, the solver must not report an unsolvable request as proved: the index may have had a
        solution.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancel background reads, close connections and the cache, and prune the cache if `prune_if_due` finds it due."""
        self._prefetcher.close()
        self._transport.close()
        self._cache.close()
        if not self._settings.offline:
            prune_if_due(self._settings.cache_directory)

    @property
    def environment(self) -> Environment:
        """The environment that files are selected for."""
        return self._environment

    @property
    def activity(self) -> Activity:
        """The counters of what this client has read so far, and the URLs of its requests in flight."""
        return self._transport.activity

    @property
    def skipped(self) -> tuple[IndexSkipped, ...]:
        """Notices, one for each package whose files are taken from find-links alone because its index was unreachable."""
        return tuple(self._skipped)

    def url_of(self, index: str) -> str:
        """Return the base URL of an index without credentials, as written to lock files; "" when `index` is `find-links`."""
        return public_url(locate(index, self._settings).locations[0].url) if index != FIND_LINKS else ""

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        """Return every version of a project, newest first, usable or not; empty when no index knows the project.

        `index` is the name of the index to read; `pytorch-cu126` fills the URL template of the index `pytorch`. With "", the
        first index that knows the project is read. Files from find-links are listed before those of the index. Raises
        `UnavailableError` when an index cannot be reached, and `ProvisionError` when `index` is not configured.
        """
        try:
            return self._listed(name, index)
        except NotCachedError as error:
            raise self._with_others(error) from None

    def prereleases(self, name: NormalizedName) -> tuple[PackageRelease, ...]:
        """Return the usable pre-releases that `releases` omits, newest first; raises the same errors as `releases`."""
        known = {one.version for one in self.releases(name)}
        selection = replace(self._selection(name), allow_prerelease=True)
        found = self._prereleases.get(name, lambda: self._read(name, route(name, "", self._settings), selection))
        return tuple(
            replace(one, why_not=EXPLICIT_ONLY, is_explicit_only=True)
            for one in found
            if one.is_usable and one.version not in known
        )

    def direct(self, name: NormalizedName, url: str) -> PackageRelease:
        """Return the release of a direct reference (`name @ url`); its `why_not` is "" when the target can install the file.

        Raises `DirectReferenceError`, `UnavailableError`, `UnusableMetadataError` or `HashMismatchError`.
        """
        return self._direct.get((name, url), lambda: self._direct_files.release(name, url))

    def named_files(self, name: NormalizedName, filenames: Collection[str], *, index: str = "") -> tuple[IndexFile, ...]:
        """Return the files of a project, for any platform, that are named in `filenames`; raises as `releases` does."""
        way = route(name, index, self._settings)
        local = self._find_links.files(name, local_label=way.local_label) if way.takes_find_links else ()
        page = self._first_page(name, way, has_local=bool(local))
        listing = self._pages.listing(page, name) if page is not None else Listing(files=())
        listed = (listing.finish(file) for file in listing.files if file.filename in filenames)
        found = (*(file for file in local if file.filename in filenames), *listed)
        return tuple(map(self._metadata.with_python, found))

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        """Return the requirements of the release's file that apply in the environment with at least one of `extras`.

        The extra "" stands for an installation without extras. The result is empty for a release without a file. Raises
        `UnavailableError`, `HashMismatchError`, or `UnusableMetadataError` when the metadata is invalid.
        """
        try:
            found = self._applicable(release, extras)
        except NotCachedError as error:
            raise self._with_others(error) from None
        self._prefetcher.record(release, has_sent=self._transport.has_sent)
        return found

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        """Return the normalized extras that a release's file declares; raises as `requirements` does.

        For a release without a file for the target, a wheel for another Python or platform is read. The result is empty for a
        release without any wheel.
        """
        file = release.file or self._wheel_for_others(release)
        if file is None:
            return ()
        return tuple(canonicalize_name(name) for name in self._metadata.metadata(file).provides_extra)

    def _wheel_for_others(self, release: PackageRelease) -> IndexFile | None:
        """Return a wheel of a version for any environment, the first on its page that was not yanked; None if there is none.

        The wheels of one version declare the same extras, so any of them will do.
        """
        way = route(release.name, "", self._settings)
        local = self._find_links.files(release.name, local_label=way.local_label) if way.takes_find_links else ()
        page = self._first_page(release.name, way, has_local=bool(local))
        listings = [Listing(files=local), *([self._pages.listing(page, release.name)] if page is not None else [])]
        for listing in listings:
            for file in listing.files:
                split = split_filename(file.filename, release.name)
                if split is None or not split[1] or file.yanked is not None:
                    continue
                if parsed_version(split[0]) == release.version:
                    return listing.finish(file)
        return None

    def is_built(self, file: IndexFile) -> bool:
        """Return whether the requirements of a source distribution were found by building it on this machine."""
        return self._metadata.is_built(file)

    def is_packed(self, file: IndexFile) -> bool:
        """Return whether the requirements of a source distribution are those it was packed with, and left to a build."""
        return self._metadata.is_packed(file)

    def hash_and_size(self, file: IndexFile) -> tuple[str, int | None]:
        """Return the sha256 of a file and its size in bytes, read from the file itself when its index does not state them."""
        return self._metadata.hash_and_size(file)

    def details(self, files: Sequence[IndexFile], *, is_refreshed: bool = False) -> tuple[FileDetails, ...]:
        """Return the hash, size, Requires-Python and attestations that a lock file records for each of `files`, in order.

        With `is_refreshed`, attestations cached for longer than a project page stays fresh are requested again. Raises
        `UnavailableError` when the hash of a file is neither listed by its index nor can be computed.
        """
        known = [self._details.stored(file, is_refreshed=is_refreshed) for file in files]
        absent = [file for file, found in zip(files, known, strict=True) if found is None]
        read = partial(self._details.read, is_refreshed=is_refreshed)
        rest = iter(self._prefetcher.workers().map(read, absent) if len(absent) > 1 else map(read, absent))
        return tuple(next(rest) if found is None else found for found in known)

    def expect(self, requirements: Iterable[Requirement]) -> None:
        """Record requirements that every solution must meet, so that background reads begin with releases they allow."""
        self._prefetcher.expect(one for one in requirements if self._markers.hold(one.marker))

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        """Read projects and the requirements of their most likely releases in background threads; never raises.

        With `follows`, the projects that these requirements name are read likewise. In offline mode the projects are only
        recorded, so that an error message can list everything that is not cached.
        """
        if self._settings.offline:
            self._prefetcher.postpone(names, follows=follows)
        else:
            self._prefetcher.start(names, follows=follows)

    def unpinned(self, files: Mapping[NormalizedName, IndexFile]) -> dict[NormalizedName, IndexLocation]:
        """Return the projects in `files` that may come from any configured index, each with the index of its file.

        Left out are projects that a pattern under `indexes[].packages` pins to an index, and those requested from an index by
        name.
        """
        requested = {name for name, file in files.items() if (name, file.index) in self._releases}
        return unpinned({name: file.index for name, file in files.items() if name not in requested}, self._settings)

    def confusion_notices(
        self, chosen: Mapping[NormalizedName, IndexLocation], *, reported: Collection[str] = ()
    ) -> tuple[ConfusionNotice, ...]:
        """Return notices about possible dependency confusion, requesting the pages of `chosen` in other indexes than theirs.

        `chosen` are unpinned projects, each with the index that its file is from. A project in `reported` gets no notice that
        its index is not the default one, because that notice was given before, but still one about different files in other
        indexes.
        """
        comparison = PageComparison(self._pages, self._cache, self._parsing)

        def has_other_files(index: IndexLocation, name: NormalizedName) -> bool:
            return comparison.has_other_files(index, name, self._pages_found[name, chosen[name].name])

        workers = self._prefetcher.workers
        return confusion_notices(chosen, self._settings, has_other_files, workers=workers, reported=reported)

    def _listed(self, name: NormalizedName, index: str = "") -> tuple[PackageRelease, ...]:
        return self._releases.get(
            (name, index), lambda: self._read(name, route(name, index, self._settings), self._selection(name))
        )

    def _selection(self, name: NormalizedName) -> Selection:
        return Selection(
            environment=self._environment,
            exclude_newer=self._settings.exclude_newer,
            accepts_undated=self._settings.accepts_undated,
            allow_prerelease=self._settings.allow_prerelease or name in self._settings.prerelease_names,
            allow_sdist=self._settings.allow_sdist,
        )

    def _read(self, name: NormalizedName, route: Route, selection: Selection) -> tuple[PackageRelease, ...]:
        """Select the releases of a project, or return the cached selection when the project page is unchanged."""
        local = self._find_links.files(name, local_label=route.local_label) if route.takes_find_links else ()
        page = self._first_page(name, route, has_local=bool(local))
        self.activity.count(projects=1)
        if local or page is None or page.cached is None:
            listed = self._pages.files(page, name) if page is not None else ()
            return selection.releases(name, tuple(map(self._metadata.with_python, (*local, *listed))))
        project = f" {name}" if page.location.is_page else ""  # one page for many projects
        key = f"releases {SELECTION_RULES}:{page.cached.url} {page.location.name}{project} {selection!r}"
        kept = self._cache.load(key, SelectedReleases)
        if kept is not None and kept.page == page.cached.sha256:
            return self._shared(f"{page.cached.url}{project}", kept.releases)
        with self._parsing:
            listing = self._pages.listing(page, name)
            found = selection.releases(name, listing.files, listing.finish)
        self._cache.store(key, SelectedReleases(page=page.cached.sha256, releases=found))
        return self._shared(f"{page.cached.url}{project}", found)

    def _shared(self, page: str, releases: tuple[PackageRelease, ...]) -> tuple[PackageRelease, ...]:
        """Return the releases selected from a page, with those of another environment in place of equal ones.

        Most files are for every Python, and a run may look at ten: each with files of its own took most of the memory.
        """
        first = self._alike.setdefault(page, releases)
        if first is releases or len(first) != len(releases):
            return releases
        # The text of a file is a view of the whole entry, of which these few would keep all.
        return tuple(
            other if other == one else replace(one, file_text=one.file_text.copy())
            for other, one in zip(first, releases, strict=True)
        )

    def _first_page(self, name: NormalizedName, route: Route, *, has_local: bool) -> ProjectPage | None:
        """Return the project page of the first index on the route that has one; None when no index does.

        `has_local` is True when find-links have files of the project; the page's files are then parsed at once. The result is
        also None when an index is unreachable, but the route has a `local_label` and `has_local` is True: the find-links files
        are then used alone.
        """
        for location in route.locations:
            try:
                page = self._pages.page(location, name)
                if page is not None and has_local:
                    page = replace(page, listing=self._pages.listing(page, name))
            except UnavailableError as error:
                # The files of one framework build may all lie in find-links; pip passes over the index then, too.
                if not (route.local_label and has_local):
                    raise
                self._skipped[IndexSkipped(package=name, problem=error.message)] = None
                self.passed_over.append(error)
                return None
            if page is not None:
                self._pages_found[name, location.name] = replace(page, answer=None)  # an answer is as long as its page
                return page
        return None

    def _applicable(self, release: PackageRelease, extras: tuple[str, ...]) -> tuple[Requirement, ...]:
        file = release.file
        if file is None:
            return ()
        identity = file.path or file.url
        requires = self._requires.get(identity, lambda: self._usable_requires(file))
        return self._requirements.get((identity, extras), lambda: self._parsed(requires, extras))

    def _usable_requires(self, file: IndexFile) -> tuple[str, ...]:
        """Return the Requires-Dist texts of a file.

        Raises `UnusableMetadataError` when one of them is invalid, or the metadata's Requires-Python excludes the target's
        Python.
        """
        metadata = self._metadata.metadata(file)
        if metadata.invalid:
            try:
                parse_requirement(metadata.invalid)
            except UnusableMetadataError as error:
                raise unusable(file.filename, f"cannot be used: {error.message}") from None
        # PEP 503: a page may state the Python that a file needs, and need not.
        python = metadata.requires_python if file.requires_python is None else ""
        if not takes_python(python, self._environment.python):
            raise unusable(file.filename, f"cannot be used: it needs python {python}")
        self.activity.count(metadata=1)
        return metadata.requires

    def _parsed(self, requires: tuple[str, ...], extras: tuple[str, ...]) -> tuple[Requirement, ...]:
        """Return the requirements that apply with at least one of `extras`; those for other extras are not even parsed."""
        known = self._applying.setdefault(extras, {})
        for text in requires:
            if text not in known:
                known[text] = parse_requirement(text) if self._applies(text, extras) else None
        return tuple([one for text in requires if (one := known[text]) is not None])

    def _applies(self, text: str, extras: tuple[str, ...]) -> bool:
        head, _, marker = text.partition(";")
        if "@" in head:  # a URL may have semicolons of its own
            return self._markers.hold(parse_requirement(text).marker, extras)
        return self._markers.hold_text(marker.strip(), extras)

    def _with_others(self, error: NotCachedError) -> UnavailableError:
        """Return an error that lists everything known to be missing in the cache, not only the subject of `error`."""
        others = [other for other in self._prefetcher.missing() if other.what != error.what]
        return all_missing([error, *others])

    def _is_at_hand(self, name: NormalizedName) -> bool:
        """Return whether the releases of a project can be read without a network request.

        The result is also True when the project is pinned to two indexes, which is an error: the solver raises it when it needs
        the project.
        """
        try:
            locations = route(name, "", self._settings).locations
        except ProvisionError:  # the solver gets the error when it needs the project
            return True
        for location in locations[:-1]:
            if not self._pages.is_at_hand(location, name):
                return False
            if self._settings.offline or self._pages.is_cached(location, name):
                return True
        return all(self._pages.is_at_hand(location, name) for location in locations[-1:])
