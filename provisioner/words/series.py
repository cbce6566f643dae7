"""Newer series of a component or distribution, and what excludes them, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import NothingMeets
from provisioner.versions import series
from provisioner.words.conflict import conflict_lines, exclusion_words
from provisioner.words.ground import request_words, say
from provisioner.words.notation import listed, source_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.choice import RuledOut
    from provisioner.grounds.series import Instead, NewerSeries


def newer_series_words(newer: NewerSeries, name: str, chosen: str) -> str:
    """Return which series of `name` are excluded, and by what, or that nothing excludes them; `chosen` is the version taken."""
    is_one = len(newer.releases) == 1
    subject = f"{name} {newer.releases[0] if is_one else _span(newer, chosen)}"
    beyond = _unreached_words(newer.unreached)
    if newer.conflict is not None:
        return f"not {subject}: {exclusion_words(newer.conflict, plural=not is_one)}{beyond and f', except for {beyond}'}"
    if newer.excluded_by is not None:
        return f"not {subject}{_reason_words(newer.excluded_by)}{beyond and f'; there may be {beyond}'}"
    if newer.unreached:
        return f"{subject}: there may be {beyond}"
    return f"{subject}: nothing that was looked at excludes {'it' if is_one else 'them'}"


def _unreached_words(indexes: Sequence[str]) -> str:
    """Return the builds of indexes that are out of reach as a noun; "" for no indexes."""
    return f"builds of {listed(indexes)}, which {'is' if len(indexes) == 1 else 'are'} out of reach" if indexes else ""


def _span(newer: NewerSeries, chosen: str) -> str:
    last, first = (one if series(one) == series(chosen) else series(one) for one in (newer.releases[0], newer.releases[-1]))
    return f"{first} to {last}"


def _reason_words(reason: NothingMeets | RuledOut) -> str:
    source = source_words(reason.ground.source)
    cited = f"  ({source})" if source else ""
    if isinstance(reason, NothingMeets):
        return f": {say(reason.ground)}, and nothing that can be used with python {reason.python} meets that{cited}"
    has = f", and it is {reason.has}" if reason.has else ""
    return f" beside what is chosen: {say(reason.ground)}{has}{cited}"


def newer_series_lines(newer: NewerSeries, name: str, chosen: str) -> tuple[str, ...]:
    """Return the lines below `newer_series_words`: the conflict of the newest release, and which releases were looked at."""
    lines = conflict_lines(newer.conflict) if newer.conflict is not None else ()
    if len(newer.releases) == 1:
        return lines
    are_of_chosen = [series(one) == series(chosen) for one in newer.releases]
    what = "each release" if all(are_of_chosen) else "the newest release of each series"
    what = f"each release of {series(chosen)}, {what}" if any(are_of_chosen) and not all(are_of_chosen) else what
    return (*lines, f"looked at: {what}, {name} {newer.releases[-1]} to {newer.releases[0]}")


def instead_words(instead: Instead) -> str:
    """Return which version there would be without the lines of the spec that name another one."""
    lines = " and ".join(f"`{request_words(one)}`  ({source_words(one.source)})" for one in instead.lines)
    return f"without {lines}, {instead.component} {instead.chosen} would be chosen"
