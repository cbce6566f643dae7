"""What a solve will most likely ask for next: for each project the newest release that fits, and what that release requires.

A guess, and nothing depends on it: one that is right saves a wait, one that is wrong costs a request.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from packaging.utils import canonicalize_name

from provisioner.errors import ProvisionError
from provisioner.index.http.transport import THREADS
from provisioner.index.markers import marker_environment
from provisioner.index.offline import NotCachedError
from provisioner.names import COMPONENT_OF_DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import ThreadPoolExecutor

    from packaging.markers import Marker
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet
    from packaging.utils import NormalizedName

    from provisioner.index.model import Environment, PackageRelease

PATIENCE = 4
"""Versions of one project that a search tries before more of them are read at once: twice as many as were tried, then."""

MOST_AT_ONCE = 16
"""Versions of one project that are read at once; when half of them were tried, the next are."""

Subject = TypeVar("Subject")


class Expectations:
    """Which release of each project is likely chosen, and which projects its release then asks for."""

    def __init__(self, environment: Environment) -> None:
        self._variables = marker_environment(environment)
        self._specifiers: dict[NormalizedName, SpecifierSet] = {}
        self._extras: dict[NormalizedName, set[str]] = {}
        self._holds: dict[tuple[int, str], tuple[Marker, bool]] = {}

    def expect(self, requirements: Iterable[Requirement], *, extras: Iterable[str] = ("",)) -> list[NormalizedName]:
        """Take note of requirements that are made with some extras; the projects of those that hold, in their order."""
        wanted = tuple(extras)
        found = []
        for requirement in requirements:
            if requirement.url is not None or not self._is_wanted(requirement, wanted):
                continue
            name = canonicalize_name(requirement.name)
            known = self._specifiers.get(name)
            self._specifiers[name] = requirement.specifier if known is None else known & requirement.specifier
            self._extras.setdefault(name, {""}).update(requirement.extras)
            found.append(name)
        return found

    def choice(self, name: NormalizedName, releases: Iterable[PackageRelease]) -> PackageRelease | None:
        """The newest usable release that everything seen so far allows; the newest usable one when nothing is."""
        usable = [release for release in releases if release.is_usable]
        fitting = usable if name not in self._specifiers else filter(self.allows, usable)
        return next(iter(fitting), usable[0] if usable else None)

    def allows(self, release: PackageRelease) -> bool:
        """Whether everything seen so far allows a release."""
        specifier = self._specifiers.get(release.name)
        return specifier is None or specifier.contains(release.version, prereleases=True)

    def next(self, name: NormalizedName, requirements: Iterable[Requirement]) -> list[NormalizedName]:
        """The projects that the requirements of a chosen release lead to.

        Frameworks are left out: which index their builds come from is for the solve to say.
        """
        found = self.expect(requirements, extras=tuple(sorted(self._extras.get(name, {""}))))
        return [one for one in dict.fromkeys(found) if one not in COMPONENT_OF_DISTRIBUTION]

    def _is_wanted(self, requirement: Requirement, extras: tuple[str, ...]) -> bool:
        marker = requirement.marker
        return marker is None or any(self._evaluated(marker, extra) for extra in extras)

    def _evaluated(self, marker: Marker, extra: str) -> bool:
        known = self._holds.get((id(marker), extra))
        if known is None:
            # The marker is kept with its answer, so that its identity stays its own.
            known = self._holds[id(marker), extra] = (marker, marker.evaluate({**self._variables, "extra": extra}))
        return known[1]


class ReadAhead:
    """Reads what is expected in the background, a bounded number of projects at once."""

    def __init__(
        self,
        environment: Environment,
        *,
        releases: Callable[[NormalizedName], tuple[PackageRelease, ...]],
        requirements: Callable[[PackageRelease], tuple[Requirement, ...]],
        is_at_hand: Callable[[NormalizedName], bool],
    ) -> None:
        self._releases = releases
        self._requirements = requirements
        self._is_at_hand = is_at_hand
        self._expectations = Expectations(environment)
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._started: set[NormalizedName] = set()
        self._skipped: dict[NormalizedName, None] = {}
        self._read_before: list[tuple[NormalizedName, tuple[Requirement, ...]]] = []
        self._tried: dict[NormalizedName, int] = {}
        self._is_closed = False
        self._is_eager = False

    @property
    def names(self) -> tuple[NormalizedName, ...]:
        """Every project that was asked for so far."""
        with self._lock:
            return (*self._skipped, *sorted(self._started - self._skipped.keys()))

    def expect(self, requirements: Iterable[Requirement]) -> None:
        """Take note of requirements that are made whatever is chosen."""
        with self._lock:
            self._expectations.expect(requirements)

    def start(self, names: Iterable[NormalizedName]) -> None:
        """Read projects, and what their likely releases require; those at hand only once something had to be asked for."""
        for name in names:
            with self._lock:
                is_new = name not in self._started and name not in self._skipped and not self._is_closed
            if is_new and not self._is_eager and self._is_at_hand(name):
                self._skipped[name] = None
            elif is_new:
                self._submit(name)

    def note(self, names: Iterable[NormalizedName]) -> None:
        """Remember projects without reading them."""
        self._skipped.update(dict.fromkeys(names))

    def look(self, release: PackageRelease, requirements: tuple[Requirement, ...], *, was_asked: bool) -> None:
        """Take note of what was read of a release that is being tried.

        `was_asked`: whether an index had to be asked for anything so far. Until then nothing is done with it, for a run that
        finds everything in the cache should not do the work of guessing.
        """
        if not (self._is_eager or was_asked):
            self._read_before.append((release.name, requirements))
            return
        self._note(release.name, requirements)
        if not self._is_eager:
            self._hurry()
        tried = self._tried[release.name] = self._tried.get(release.name, 0) + 1
        if tried >= PATIENCE and (tried.bit_count() == 1 or tried % (MOST_AT_ONCE // 2) == 0):
            self._read_older(release, tried)

    def missing(self) -> list[NotCachedError]:
        """Everything that is not in the cache of what the projects asked for so far lead to."""
        self._note_earlier()
        found: dict[str, NotCachedError] = {}
        queue = deque(self.names)
        seen = set(queue)
        while queue:
            try:
                more = self._visit(queue.popleft())
            except NotCachedError as error:
                found[error.what] = error
            except ProvisionError:  # a file that cannot be used: whoever chooses it meets that
                continue
            else:
                queue.extend(one for one in more if one not in seen)
                seen.update(more)
        return list(found.values())

    def workers(self) -> ThreadPoolExecutor:
        """The threads that read."""
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

    def _hurry(self) -> None:
        """Something was missing, so more may be: read what seemed to be at hand as well."""
        self._is_eager = True
        self._note_earlier()
        for name in tuple(self._skipped):
            self._submit(name)

    def _read_older(self, tried: PackageRelease, count: int) -> None:
        """A search that went through several versions will look at more of them: read the next ones at once."""
        older = (one for one in self._releases(tried.name) if one.version < tried.version and one.is_usable)
        with self._lock:
            fitting = list(islice(filter(self._expectations.allows, older), min(2 * count, MOST_AT_ONCE)))
        for release in fitting:
            if release.file is not None and release.file.filename.endswith(".whl"):
                self._in_background(self._read_release, release)

    def _read_release(self, release: PackageRelease) -> None:
        with suppress(ProvisionError):
            if not self._is_closed:
                self._requirements(release)

    def _note_earlier(self) -> None:
        for name, requirements in self._read_before:
            self._note(name, requirements)
        self._read_before.clear()

    def _note(self, name: NormalizedName, requirements: tuple[Requirement, ...]) -> None:
        with self._lock:
            self._expectations.next(name, requirements)

    def _submit(self, name: NormalizedName) -> None:
        with self._lock:
            if self._is_closed or name in self._started:
                return
            self._started.add(name)
        self._in_background(self._read, name)

    def _in_background(self, work: Callable[[Subject], None], subject: Subject) -> None:
        # Whoever closes while this runs wants nothing read any more.
        with suppress(RuntimeError):
            self.workers().submit(work, subject)

    def _read(self, name: NormalizedName) -> None:
        # Whoever needs the project meets the same error, with its words.
        with suppress(ProvisionError):
            for more in self._visit(name):
                self._submit(more)

    def _visit(self, name: NormalizedName) -> list[NormalizedName]:
        release = self._chosen(name)
        # A source distribution would be read whole, or even built, on a guess.
        if release is None or release.file is None or not release.file.filename.endswith(".whl") or self._is_closed:
            return []
        requirements = self._requirements(release)
        with self._lock:
            return self._expectations.next(name, requirements)

    def _chosen(self, name: NormalizedName) -> PackageRelease | None:
        releases = self._releases(name)
        with self._lock:
            return self._expectations.choice(name, releases)
