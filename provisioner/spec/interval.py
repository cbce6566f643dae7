"""Intervals of versions, to prove before solving that two version specifiers contradict each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from provisioner.versions import Range

Numbers = tuple[int, ...]

INTERVAL_OPERATORS = frozenset({"==", ">=", "<=", "<", "~="})
"""Operators of clauses that allow every version of their interval."""


class Interval(Struct, frozen=True):
    """The versions from `lower` (included) to `upper`, as release numbers without trailing zeros; None is unbounded.

    The interval of a specifier may be wider than the specifier (`!=`, `>`, pre-releases): an empty intersection proves a
    contradiction, a non-empty one proves nothing.
    """

    lower: Numbers | None = None
    upper: Numbers | None = None
    has_upper: bool = True
    """Whether `upper` itself is included."""

    def intersect(self, other: Interval) -> Interval:
        """Return the versions in both intervals."""
        lowers = [bound for bound in (self.lower, other.lower) if bound is not None]
        uppers = [(item.upper, item.has_upper) for item in (self, other) if item.upper is not None]
        upper, has_upper = min(uppers, default=(None, True))
        return Interval(max(lowers, default=None), upper, has_upper)

    def contains(self, other: Interval) -> bool:
        """Return whether this interval contains every version of `other`."""
        starts = self.lower is None or (other.lower is not None and other.lower >= self.lower)
        if self.upper is None or other.upper is None:
            return starts and self.upper is None
        ends = other.upper < self.upper or (other.upper == self.upper and (self.has_upper or not other.has_upper))
        return starts and ends

    @property
    def is_empty(self) -> bool:
        """Whether the interval contains no version."""
        if self.lower is None or self.upper is None:
            return False
        return self.lower > self.upper or (self.lower == self.upper and not self.has_upper)


def interval_of_range(wanted: Range) -> Interval:
    """Return the bounds of a range of the matrix, in which `==12.8` means the whole 12.8 series."""
    found = Interval()
    for clause in wanted.clauses:
        found = found.intersect(_interval(clause.operator, clause.version.release, is_series=clause.is_prefix))
    return found


def interval_of_specifier(wanted: SpecifierSet) -> Interval:
    """Return the bounds of a PEP 440 specifier, in which `==12.8` means 12.8.0 alone; epochs are left unbounded."""
    found = Interval()
    for clause in wanted:
        is_series = clause.version.endswith(".*")
        try:
            version = PackageVersion(clause.version.removesuffix(".*"))
        except InvalidVersion:
            continue  # `===` compares spellings, which have no order
        # PEP 440 keeps pre-releases of V out of `<V`, unless V is one itself: then V's numbers are still allowed.
        is_final = not version.is_prerelease
        operator = "<=" if clause.operator == "<" and not is_final else clause.operator
        if version.epoch == 0:
            found = found.intersect(_interval(operator, version.release, is_series=is_series))
    return found


def _interval(operator: str, release: Numbers, *, is_series: bool) -> Interval:
    exact = _trimmed(release)
    if operator in {"==", "==="}:
        return Interval(exact, _next(release), has_upper=False) if is_series else Interval(exact, exact)
    if operator == "~=":
        return Interval(exact, _next(release[:-1]), has_upper=False)
    if operator in {">=", ">"}:
        return Interval(lower=exact)
    if operator in {"<=", "<"}:
        return Interval(upper=exact, has_upper=operator == "<=")
    return Interval()


def _trimmed(release: Numbers) -> Numbers:
    while release and release[-1] == 0:
        release = release[:-1]
    return release


def _next(release: Numbers) -> Numbers:
    """Return the first release after a series: 2.6 -> 2.7."""
    return (*release[:-1], release[-1] + 1)
