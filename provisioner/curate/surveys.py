"""Read the wheels of surveyed distributions from an index: one wheel for each release, and rows for each survey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from provisioner.curate.derive import by_version, for_platform, representative
from provisioner.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from provisioner.curate.wheel_index import Wheel, WheelIndex


class OfDistribution(Protocol):
    """A survey of the wheels of a distribution, or a row about them."""

    @property
    def distribution(self) -> str:
        """The name of the distribution."""


Survey = TypeVar("Survey", bound=OfDistribution)
Row = TypeVar("Row", bound=OfDistribution)


def one_wheel_a_release(
    index: WheelIndex,
    distribution: str,
    platform: str,
    *,
    known: Collection[tuple[str, str]],
    of_any_platform: bool = False,
) -> list[Wheel]:
    """Return the representative wheel of each release with a wheel for `platform`, the oldest release first.

    Wheels for any platform are left out, except with `of_any_platform` those of a release without others. `known` are the
    filename and hash of each wheel that was measured before. Raises `UnavailableError` if the distribution cannot be read from
    the index.
    """
    releases = reversed(by_version(index.wheels(distribution)).values())
    found = []
    for release in releases:
        compiled = [wheel for wheel in release if not wheel.tag.endswith("-any")]
        wheels = for_platform(compiled or (release if of_any_platform else []), platform)
        if wheels:
            found.append(representative(wheels, known))
    return found


def survey_rows(
    index: WheelIndex,
    surveys: Sequence[Survey],
    rows: Callable[[Survey], list[Row]],
    *,
    name: str,
    old: Sequence[Row],
    keep_going: bool,
) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Return the rows of all surveys, and messages about distributions that could not be read from the index.

    With `keep_going`, a distribution that cannot be read keeps its rows of `old`; otherwise `UnavailableError` is raised. The
    messages begin with `name`, that of the file.
    """
    unread: list[str] = []

    def rows_or_old(asked: Survey) -> list[Row]:
        try:
            return rows(asked)
        except UnavailableError as error:
            if not keep_going:
                raise
            unread.append("; ".join((f"{name}: {asked.distribution}: {error.message}", *error.causes)))
            return [row for row in old if row.distribution == asked.distribution]

    found = tuple(row for some in index.side_by_side(rows_or_old, surveys) for row in some)
    return found, tuple(sorted(unread))
