"""Lifecycle of releases, driver branches and images on one day: end of life, prerelease, recent release, support.

The day is `exclude-newer` of the policy, otherwise the newest day on which a source of the matrix was read. It is never that of
the machine's clock, with which the same spec would have another answer tomorrow.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.grounds.predicate import Ended, IsOfBranch, IsPrerelease, IsRecent
from provisioner.grounds.source import Documents
from provisioner.places import Place
from provisioner.resolver.requirement import ImageCandidate, NewerCandidate, release_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.source import Source
    from provisioner.matrix.model import DriverBranch, ImageFacts, Matrix, Release
    from provisioner.resolver.requirement import Candidate

SUPPORTED = frozenset({"Production Branch", "Long Term Support Branch"})
"""Designations of driver branches that NVIDIA supports in production; New Feature Branches are not among them."""

WEEK = timedelta(days=7)

DISTRIBUTED = frozenset({"gcc", "clang"})
"""Compilers that come with a Linux distribution, which supports them longer than the compiler's own project does."""

_PRERELEASE = re.compile(r"v?\d+(?:\.\d+)*[.-]?(?:a|alpha|b|beta|c|rc|pre|preview|dev)\.?\d*(?:\+.*)?")


class Fact(Struct, frozen=True, kw_only=True):
    """A lifecycle property of a candidate; `word` is the entry of a policy's `forbid` or `allow` for candidates with it."""

    word: str
    predicate: Ended | IsOfBranch | IsPrerelease | IsRecent
    source: Source


class SupportStatus:
    """The support status of candidates of a matrix on one day; `until` is the policy's `exclude-newer`."""

    def __init__(self, matrix: Matrix, until: str | None) -> None:
        self._matrix = matrix
        self._until = until
        self._branches = {branch.branch: branch for branch in matrix.branches}

    @cached_property
    def day(self) -> date | None:
        """The day for which the status is determined (see `policy_day`); None when the matrix has no citations."""
        return policy_day(self._matrix, self._until)

    def facts(self, candidate: Candidate) -> Iterator[Fact]:
        """Yield the lifecycle facts of a candidate."""
        found = (self.prerelease(candidate), self.ended(candidate), self.unsupported(candidate), self.recent(candidate))
        yield from (one for one in found if one is not None)

    def ended(self, candidate: Candidate) -> Fact | None:
        """Return the fact that a release, its driver branch or an image is past its end of life; None when it is not.

        Linux distributions support kernels and compilers longer than the projects that make them. So compilers are not judged,
        and a kernel only if its version is kernel.org's (`6.8.12`, not `6.8.0-45-generic`).
        """
        component, label = candidate.key.component, candidate.label
        if component == "driver":
            branch = self._branch(candidate)
            return self._over(candidate, branch.end_of_life, branch.branch) if branch else None
        if component in DISTRIBUTED or (component == "kernel" and not re.fullmatch(r"[\d.]+", label)):
            return None
        image = _image(candidate)
        if image is not None:
            return self._over(candidate, image.end_of_life, "")
        release = self._release(candidate)
        return self._over(candidate, release.end_of_life, "") if release is not None else None

    def _over(self, candidate: Candidate, end: str, branch: str) -> Fact | None:
        if not has_ended(end, self.day):
            return None
        return Fact(word="end-of-life", predicate=Ended(end, branch), source=self._source(candidate))

    def unsupported(self, candidate: Candidate) -> Fact | None:
        """Return the fact that a driver's branch is not supported in production.

        None when the branch is supported, and for other components than the driver. A branch counts as not supported if the
        matrix has no designation or no row for it.
        """
        if candidate.key.component != "driver" or not candidate.version.release:
            return None
        branch = self._branch(candidate)
        designation = branch.designation if branch is not None else ""
        if designation in SUPPORTED:
            return None
        predicate = IsOfBranch(candidate.label.partition(".")[0], designation)
        return Fact(word="feature-branch", predicate=predicate, source=self._source(candidate))

    def is_designated(self, candidate: Candidate) -> bool:
        """Return whether the matrix has a designation of a driver's branch, such as `Production Branch`."""
        branch = self._branch(candidate)
        return branch is not None and bool(branch.designation)

    def recent(self, candidate: Candidate) -> Fact | None:
        """Return the fact that a release came out less than a week before the policy's day, or after it.

        None when the release is older or has no date.
        """
        release = self._release(candidate)
        if release is None or not release.released or self.day is None or last_day(release.released) <= self.day - WEEK:
            return None
        predicate = IsRecent(release.released, str(self.day), is_after=last_day(release.released) > self.day)
        return Fact(word="recent", predicate=predicate, source=self._source(candidate))

    def is_undated(self, candidate: Candidate) -> bool:
        """Return whether the age of a release is unknown.

        That is so if the release has no date and no newer release of its major version is known to be at least a week old.
        """
        release = self._release(candidate)
        if release is None or release.released or self.day is None or not release.version.release:
            return False
        newer = (
            one.released
            for one in self._matrix.components[candidate.key.component].releases
            if one.released and one.version.release[:1] == release.version.release[:1] and one.version > release.version
        )
        return all(last_day(text) > self.day - WEEK for text in newer)

    def prerelease(self, candidate: Candidate) -> Fact | None:
        """Return the fact that a release is a prerelease, by its version or its row in the matrix; None when it is not."""
        release = self._release(candidate)
        if release is None or not is_prerelease(release):
            return None
        return Fact(word="prerelease", predicate=IsPrerelease(release.prerelease or ""), source=self._source(candidate))

    def _branch(self, candidate: Candidate) -> DriverBranch | None:
        return self._branches.get(candidate.label.partition(".")[0])

    def _release(self, candidate: Candidate) -> Release | None:
        """Return the release of the matrix for a candidate; None when the matrix has none, as for a version newer than all.

        For a version that a host states, it is the release that names the version's series most exactly: `6.8` for `6.8.12`.
        """
        if (found := release_of(candidate)) is not None:
            return found
        component = self._matrix.components.get(candidate.key.component)
        numbers = () if isinstance(candidate, NewerCandidate) else candidate.version.release
        series = [
            one
            for one in (component.releases if component is not None and numbers else ())
            if one.version.release == numbers[: len(one.version.release)] and one.version.release
        ]
        return max(series, key=lambda one: len(one.version.release), default=None)

    def _source(self, candidate: Candidate) -> Source:
        image = _image(candidate)
        if image is not None:
            return Documents(
                tuple(str(self._matrix.citations[key]) for key in image.source[-1:] if key in self._matrix.citations)
            )
        name = candidate.key.component
        release = self._release(candidate)
        place = self._matrix.positions.get(f"{name}=={release.version}") if release is not None else None
        return place or Place(f"matrices/{name}.yaml")


def is_prerelease(release: Release) -> bool:
    """Return whether a release is a prerelease, by its row in the matrix or by its version."""
    return bool(release.prerelease) or bool(release.version.release and _is_beta(release.version.text))


@cache
def _is_beta(text: str) -> bool:
    """Return whether the text of a version is that of a prerelease.

    The result is cached, because every host of a fleet tests every release.
    """
    return _PRERELEASE.fullmatch(text) is not None


def _image(candidate: Candidate) -> ImageFacts | None:
    return candidate.image if isinstance(candidate, ImageCandidate) else None


def policy_day(matrix: Matrix, until: str | None) -> date | None:
    """Return the day for which lifecycles are determined; None when the matrix has no citations.

    It is `until`, the policy's `exclude-newer`, or without it the newest day on which a source of the matrix was read.
    """
    if until is not None:
        return day_of(until)
    newest = max((one.read for one in matrix.citations.values()), default="")
    return last_day(newest) if newest else None


def has_ended(end: str, day: date | None) -> bool:
    """Return whether an end of life, written as in the matrix, is before a day; False when `end` is "" or `day` is None."""
    return bool(end) and day is not None and day > last_day(end)


def last_day(text: str) -> date:
    """Return the last day of a date of the matrix, `2026-06-03` or `2026-06` (the last day of the month)."""
    year, month, *day = (int(part) for part in text.split("-"))
    if day:
        return date(year, month, day[0])
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def day_of(text: str) -> date:
    """Return the date of `exclude-newer`, a date or a time (converted to UTC); raises `ValueError` for any other text."""
    moment = datetime.fromisoformat(text.strip())
    return (moment.astimezone(UTC) if moment.tzinfo is not None else moment).date()
