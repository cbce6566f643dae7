"""Reading ahead of the solver: for each project the newest release that fits, and what that release requires.

A guess on which nothing depends: one that is right saves a wait, one that is wrong costs a request.
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
"""Versions of one project that a search tries before more of them are read at once: twice as many as were tried, then."""

BATCH = 16
"""Versions of one project that are read at once; when half of them were tried, the next are."""

Subject = TypeVar("Subject")


class Prefetcher:
    """Reads projects and metadata in the background. Threads of its own share it with the solver's.

    While the cache answers everything, projects are only noted: a run without requests should not do the work of guessing.
    """

    def __init__(
        self,
        *,
        releases: Callable[[NormalizedName], tuple[PackageRelease, ...]],
        requirements: Callable[[PackageRelease, tuple[str, ...]], tuple[Requirement, ...]],
        is_at_hand: Callable[[NormalizedName], bool],
    ) -> None:
        """`is_at_hand` says of a project whether its page can be read without a request."""
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
        """Take note of requirements that hold; returns the projects they name, but for frameworks.

        Which index the builds of a framework come from is for the solve to say.
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
        """Read projects, and what their likely releases require; those at hand only once a request had to be sent."""
        for name in names:
            if name in self._started or name in self._postponed:
                continue
            if self._is_active or not self._is_at_hand(name):
                self._submit(name)
            else:
                self.postpone([name])

    def postpone(self, names: Iterable[NormalizedName]) -> None:
        """Take note of projects without reading them."""
        self._postponed.update(dict.fromkeys(names))

    def record(self, release: PackageRelease, *, has_sent: bool) -> None:
        """Take note of a release whose requirements the solver has read; `has_sent`: some request was needed so far."""
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
        """Return what the cache lacks of everything that the projects noted so far lead to."""
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
        """Return the threads that read."""
        with self._lock:
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="index")
            return self._pool

    def close(self) -> None:
        """Give up what was only read ahead; requests under way are waited for."""
        self._is_closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _expect_recorded(self) -> None:
        for release in self._unrecorded:
            self._expect_of(release)
        self._unrecorded.clear()

    def _expect_of(self, release: PackageRelease) -> list[NormalizedName]:
        """Take note of what a release requires with all extras that are wanted of it; returns the projects."""
        with self._lock:
            extras = tuple(sorted(self._extras.get(release.name, {""})))
        return self.expect(self._requirements(release, extras))

    def _read_older(self, tried: PackageRelease, count: int) -> None:
        """Read the next older versions of a project: a search that tried several of them will try more."""
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
        """Read a project and the requirements of its likely release; returns the projects these lead to."""
        usable = [release for release in self._releases(name) if release.is_usable]
        release = next(filter(self._is_expected, usable), usable[0] if usable else None)
        # A source distribution would be read whole, or even built, on a guess.
        if release is None or self._is_closed or not _is_wheel(release):
            return []
        return self._expect_of(release)

    def _is_expected(self, release: PackageRelease) -> bool:
        """Whether all requirements seen so far allow a release."""
        specifier = self._specifiers.get(release.name)
        return specifier is None or specifier.contains(release.version, prereleases=True)


def _is_wheel(release: PackageRelease) -> bool:
    return release.file is not None and release.file.filename.endswith(".whl")
