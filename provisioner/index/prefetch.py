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

BATCH = 16
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
        self._extras: dict[NormalizedName, set[str]] = {}
        self._started: set[NormalizedName] = set()
        self._postponed: dict[NormalizedName, None] = {}
        self._unrecorded: list[PackageRelease] = []
        self._tried: dict[NormalizedName, int] = {}
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
                    known = self._specifiers.get(name)
                    self._specifiers[name] = requirement.specifier if known is None else known & requirement.specifier
                    self._extras.setdefault(name, {""}).update(requirement.extras)
                    found.append(name)
        return [name for name in dict.fromkeys(found) if name not in COMPONENT_OF_DISTRIBUTION]

    def start(self, names: Iterable[NormalizedName]) -> None:
        """Start reading projects and the requirements of their most likely releases in the background.

        Projects whose page needs no request are only recorded until some network request has been sent.
        """
        for name in names:
            if name in self._started or name in self._postponed:
                continue
            if self._is_active or not self._is_at_hand(name):
                self._submit(name)
            else:
                self.postpone([name])

    def postpone(self, names: Iterable[NormalizedName]) -> None:
        """Record projects without reading them now."""
        self._postponed.update(dict.fromkeys(names))

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
            for name in tuple(self._postponed):
                self._submit(name)
        else:
            self._expect_of(release)
        tried = self._tried[release.name] = self._tried.get(release.name, 0) + 1
        if tried >= TRIES and (tried.bit_count() == 1 or tried % (BATCH // 2) == 0):
            self._read_older(release, tried)

    def missing(self) -> list[NotCachedError]:
        """Return an error for each item not cached that the recorded projects or their dependencies need; for offline mode."""
        self._expect_recorded()
        found: dict[str, NotCachedError] = {}
        queue = deque((*self._postponed, *sorted(self._started - self._postponed.keys())))
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
        older = (one for one in self._releases(tried.name) if one.version < tried.version and one.is_usable)
        for release in islice(filter(self._is_expected, older), min(2 * count, BATCH)):
            if _is_wheel(release):
                self._in_background(self._read_requirements, release)

    def _read_requirements(self, release: PackageRelease) -> None:
        with suppress(ProvisionError):
            if not self._is_closed:
                self._requirements(release, ("",))

    def _submit(self, name: NormalizedName) -> None:
        with self._lock:
            if self._is_closed or name in self._started:
                return
            self._started.add(name)
        self._in_background(self._read, name)

    def _in_background(self, work: Callable[[Subject], None], subject: Subject) -> None:
        # The pool refuses work once `close` was called in another thread.
        with suppress(RuntimeError):
            self.workers().submit(work, subject)

    def _read(self, name: NormalizedName) -> None:
        # The solver gets the same error, with its words, when it needs the project.
        with suppress(ProvisionError):
            for more in self._visit(name):
                self._submit(more)

    def _visit(self, name: NormalizedName) -> list[NormalizedName]:
        """Read a project and the requirements of its most likely release, and return the projects that these requirements name.

        The result is empty when no release is usable, or when the most likely one is a source distribution, which is too costly
        for a guess.
        """
        usable = [release for release in self._releases(name) if release.is_usable]
        release = next(filter(self._is_expected, usable), usable[0] if usable else None)
        # A source distribution would be read whole, or even built, on a guess.
        if release is None or self._is_closed or not _is_wheel(release):
            return []
        return self._expect_of(release)

    def _is_expected(self, release: PackageRelease) -> bool:
        """Return whether all requirements recorded so far allow the version of a release."""
        specifier = self._specifiers.get(release.name)
        return specifier is None or specifier.contains(release.version, prereleases=True)


def _is_wheel(release: PackageRelease) -> bool:
    return release.file is not None and release.file.filename.endswith(".whl")
