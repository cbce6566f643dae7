"""What keeps the newer series of a component or distribution out of an answer.

A series is the releases whose versions have the first two numbers in common.
"""

from __future__ import annotations

from msgspec import Struct

from provisioner.grounds.choice import NothingMeets, RuledOut  # noqa: TC001 - part of types that are read at run time
from provisioner.grounds.conflict import Conflict  # noqa: TC001 - as above
from provisioner.grounds.requirement import Ground  # noqa: TC001 - as above


class NewerSeries(Struct, frozen=True, kw_only=True):
    """Newer series, one after another, that the same reason keeps out of an answer.

    `releases` are the newest of each series, newest first: what is told is known of these. `conflict` is a contradiction within
    the system that the first of them would cause, None if there is none; then `excluded_by` is a requirement. Both are None if
    nothing that excludes them was found. `unreached` are indexes that cannot be reached and may have builds of the first of
    them that would do; what is told is then of its other builds.
    """

    releases: tuple[str, ...]
    conflict: Conflict | None = None
    excluded_by: NothingMeets | RuledOut | None = None
    unreached: tuple[str, ...] = ()


class Instead(Struct, frozen=True, kw_only=True):
    """The version of a component or distribution that would be chosen if `lines` of the spec about it allowed any version.

    With these lines there is no answer. `series` says what excludes each newer series, the newest first.
    """

    component: str
    chosen: str
    lines: tuple[Ground, ...]
    series: tuple[NewerSeries, ...]
