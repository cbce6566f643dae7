"""Prefetching: reads, in background threads, the releases and requirements that the solver will probably need.

For each project it guesses that the solver chooses the newest release that all requirements seen so far allow, reads the
requirements of that release, and goes on with the projects that these name. The solution does not depend on the guesses: a
wrong one only costs a request.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError
from provisioner.index.cache import NotCachedError
from provisioner.index.http.transport import THREADS
from provisioner.names import COMPONENT_OF_DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import ThreadPoolExecutor

    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet
    from packaging.utils import NormalizedName

    from provisioner.index.model import PackageRelease

TRIES = 4
"""The number of versions of a project that the solver has tried when prefetching of older versions begins.

Twice as many versions are prefetched as were tried so far, but at most `BATCH`.
"""

BATCH = 8
"""The most versions of one project that are prefetched together, again whenever half as many more have been tried."""

Subject = TypeVar("Subject")


class Prefetcher:
    """Reads project pages and metadata in a pool of background threads; thread-safe.

    Until the first network request, projects whose page can be read without one are only recorded: a run that finds everything
    in its cache should not spend time on guesses.
    """

    def __init__(
        self,
        *,
        releases: Callable[[NormalizedName], tuple[PackageRelease, ...]],
        requirements: Callable[[PackageRelease, tuple[str, ...]], tuple[Requirement, ...]],
        is_at_hand: Callable[[NormalizedName], bool],
    ) -> None:
        """Use `releases` and `requirements` to read; `is_at_hand` returns whether a project's page needs no network request."""
        self._releases = releases
        self._requirements = requirements
        self._is_at_hand = is_at_hand
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._specifiers: dict[NormalizedName, SpecifierSet] = {}
        self._bounds: dict[NormalizedName, set[str]] = {}
        """The bounds of each project that are in its specifier: versions that were tried one after another say the same."""
        self._extras: dict[NormalizedName, set[str]] = {}
        self._started: dict[NormalizedName, bool] = {}
        self._postponed: dict[NormalizedName, bool] = {}
        """Both map a project to whether the projects that its most likely release requires are read, too."""
        self._unrecorded: list[PackageRelease] = []
        self._tried: dict[NormalizedName, set[str]] = {}
        self._is_active = False
        self._is_closed = False

    def expect(self, requirements: Iterable[Requirement]) -> list[NormalizedName]:
        """Record requirements whose markers are true, and return the projects they name that can be prefetched.

        Frameworks (`COMPONENT_OF_DISTRIBUTION`) and direct references are left out; the solver chooses a framework's index.
        """
        found = []
        with self._lock:
            for requirement in requirements:
                if requirement.url is None:
                    name = canonicalize_name(requirement.name)
                    bounds, known = str(requirement.specifier), self._specifiers.get(name)
                    if known is None:
                        self._specifiers[name], self._bounds[name] = requirement.specifier, {bounds}
                    elif bounds not in self._bounds[name]:
                        self._specifiers[name] = known & requirement.specifier
                        self._bounds[name].add(bounds)
                    self._extras.setdefault(name, {""}).update(requirement.extras)
                    found.append(name)
        return [name for name in dict.fromkeys(found) if name not in COMPONENT_OF_DISTRIBUTION]

    def start(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        """Start reading projects and the requirements of their most likely releases in the background.

        With `follows`, the projects that these requirements name are read likewise. Projects whose page needs no request are
        only recorded until some network request has been sent.
        """
        for name in names:
            if self._started.get(name, not follows) >= follows or self._postponed.get(name, not follows) >= follows:
                continue
            if self._is_active or not self._is_at_hand(name):
                self._submit(name, follows=follows)
            else:
                self.postpone([name], follows=follows)

    def postpone(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        """Record projects without reading them now."""
        for name in names:
            self._postponed[name] = follows or self._postponed.get(name, False)

    def record(self, release: PackageRelease, *, has_sent: bool) -> None:
        """Record a release whose requirements the solver has read, and prefetch older versions if it has tried several.

        `has_sent` is True when the run has sent a network request; the first call with True starts reading the recorded
        projects.
        """
        if not self._is_active:
            self._unrecorded.append(release)
            if not has_sent:
                return
            # Something was missing, so more may be: read what seemed to be at hand as well.
            self._is_active = True
            self._expect_recorded()
            for name, follows in tuple(self._postponed.items()):
                self._submit(name, follows=follows)
        else:
            self._expect_of(release)
        known = self._tried.setdefault(release.name, set())
        if release.version_text in known:
            return
        known.add(release.version_text)
        tried = len(known)
        if tried >= TRIES and (tried.bit_count() == 1 or tried % (BATCH // 2) == 0):
            self._read_older(release, tried)

    def missing(self) -> list[NotCachedError]:
        """Return an error for each item not cached that the recorded projects or their dependencies need; for offline mode."""
        self._expect_recorded()
        found: dict[str, NotCachedError] = {}
        queue = deque((*self._postponed, *sorted(self._started.keys() - self._postponed.keys())))
        seen = set(queue)
        while queue:
            try:
                more = self._visit(queue.popleft())
            except NotCachedError as error:
                found[error.what] = error
            except ProvisionError:  # a file that cannot be used: the solver gets the error if it chooses it
                continue
            else:
                queue.extend(name for name in more if name not in seen)
                seen.update(more)
        return list(found.values())

    def workers(self) -> ThreadPoolExecutor:
        """Return the thread pool, created by the first call."""
        with self._lock:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="index")
            return self._pool

    def close(self) -> None:
        """Cancel the reads that have not begun, and wait for the others."""
        self._is_closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _expect_recorded(self) -> None:
        for release in self._unrecorded:
            self._expect_of(release)
        self._unrecorded.clear()

    def _expect_of(self, release: PackageRelease) -> list[NormalizedName]:
        """Record a release's requirements with all extras requested so far; returns the projects to prefetch among these."""
        with self._lock:
            extras = tuple(sorted(self._extras.get(release.name, {""})))
        return self.expect(self._requirements(release, extras))

    def _read_older(self, tried: PackageRelease, count: int) -> None:
        """Prefetch the requirements of versions older than `tried`, `count` being the number of versions tried so far."""
        older = (one for one in self._releases(tried.name) if one.is_usable and one.version < tried.version)
        specifier = self._specifiers.get(tried.name)
        expected = older if specifier is None else specifier.filter(older, prereleases=True, key=attrgetter("version"))
        for release in islice(expected, min(2 * count, BATCH)):
            if release.is_wheel:
                self._in_background(self._read_requirements, release)

    def _read_requirements(self, release: PackageRelease) -> None:
        with suppress(ProvisionError):
            if not self._is_closed:
                self._requirements(release, ("",))

    def _submit(self, name: NormalizedName, *, follows: bool = True) -> None:
        with self._lock:
            if self._is_closed or self._started.get(name, not follows) >= follows:
                return
            self._started[name] = follows
        self._in_background(self._read_and_follow if follows else self._read, name)

    def _in_background(self, work: Callable[[Subject], None], subject: Subject) -> None:
        # The pool refuses work once `close` was called in another thread.
        with suppress(RuntimeError):
            self.workers().submit(work, subject)

    def _read(self, name: NormalizedName) -> None:
        # The solver gets the same error, with its words, when it needs the project.
        with suppress(ProvisionError):
            self._visit(name)

    def _read_and_follow(self, name: NormalizedName) -> None:
        with suppress(ProvisionError):
            for more in self._visit(name):
                self._submit(more)

    def _visit(self, name: NormalizedName) -> list[NormalizedName]:
        """Read a project and the requirements of its most likely release, and return the projects that these requirements name.

        The result is empty when no usable release is allowed by all requirements seen so far, which are of versions that were
        tried one after another, and when the most likely one is a source distribution, which is too costly for a guess.
        """
        release = next((one for one in self._releases(name) if one.is_usable and self._is_expected(one)), None)
        # A source distribution would be read whole, or even built, on a guess.
        if release is None or self._is_closed or not release.is_wheel:
            return []
        return self._expect_of(release)

    def _is_expected(self, release: PackageRelease) -> bool:
        """Return whether all requirements recorded so far allow the version of a release."""
        specifier = self._specifiers.get(release.name)
        return specifier is None or specifier.contains(release.version, prereleases=True)
