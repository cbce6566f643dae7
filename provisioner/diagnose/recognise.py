"""Recognise the messages of a log: which failures of the matrix left them, and which facts they state."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from provisioner.diagnose.log import quoted, without_secrets
from provisioner.matrix.symptom import decoded, read_symptom

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.diagnose.log import Log
    from provisioner.matrix.model import Failure, Matrix, Statement

MOST_TRIED = 5000
"""The number of places in a log at which one message is looked for; a log with more says nothing new in the rest."""

MOST_FAILED = 20
"""How often a message is looked for in vain in one line, so that no line of megabytes holds the search up."""

MOST_QUOTED = 3
"""The number of lines of one failure that are quoted."""

_BEFORE, _AFTER = 600, 2400
_ERROR = re.compile(r"\b(?:\w*error|fatal|panic|failed|failure|\w*exception)\b", re.IGNORECASE)
"""A word that lines about errors have."""


class Reading(NamedTuple):
    """A fact that a message states: its name, its value, how it is written, and the number of the line."""

    fact: str
    value: str
    written: str
    line: int


class Quote(NamedTuple):
    """A line of a log by its number, as it may be shown."""

    line: int
    text: str


class Recognised(Struct, frozen=True, kw_only=True):
    """A failure that left messages: the first of its lines, the number of all, and the facts that they state."""

    failure: Failure
    quotes: tuple[Quote, ...]
    count: int
    readings: tuple[Reading, ...]
    spans: frozenset[tuple[int, int]] = frozenset()
    """Where the messages are: the index of each line, and the position in it."""

    @property
    def line(self) -> int:
        """The number of the first line."""
        return self.quotes[0].line


class Recognition(Struct, frozen=True, kw_only=True):
    """What a log says: its failures in the order of their first lines, the facts of its statements, and what nothing explains.

    `unexplained` are the first lines that speak of an error and that no row of the matrix knows, `unexplained_count` all.
    """

    failures: tuple[Recognised, ...]
    readings: tuple[Reading, ...]
    unexplained: tuple[Quote, ...]
    unexplained_count: int


class _Hit(NamedTuple):
    at: int
    start: int
    end: int
    readings: tuple[Reading, ...]


def recognise(log: Log, matrix: Matrix) -> Recognition:
    """Return the failures and facts in a log; a general failure only in lines that no other explains, its facts in all."""
    search = _Search(log)
    found: list[Recognised] = []
    explained: set[int] = set()
    stated: list[Reading] = []
    for failure in sorted((one for one in matrix.failures if one.kind != "silent"), key=lambda one: one.general):
        hits = search.hits_of(failure.symptoms, together=failure.together)
        if failure.general:
            stated += [reading for hit in hits if hit.at in explained for reading in hit.readings]
            hits = [hit for hit in hits if hit.at not in explained]
        if hits:
            found.append(_recognised(log, failure, hits))
            explained.update(hit.at for hit in hits)
    stated += [reading for row in matrix.statements for reading in _stated(search, row, explained)]
    unknown = [index for index, line in enumerate(log.lines) if index not in explained and _ERROR.search(line)]
    return Recognition(
        failures=tuple(sorted(found, key=lambda one: one.line)),
        readings=tuple(dict.fromkeys(stated)),
        unexplained=tuple(Quote(log.numbers[index], quoted(log.shown[index])) for index in unknown[:MOST_QUOTED]),
        unexplained_count=len(unknown),
    )


def _recognised(log: Log, failure: Failure, hits: Sequence[_Hit]) -> Recognised:
    first: dict[int, _Hit] = {}
    for hit in hits:
        first.setdefault(log.numbers[hit.at], hit)
    shown = [first[number] for number in sorted(first)[:MOST_QUOTED]]
    return Recognised(
        failure=failure,
        quotes=tuple(Quote(log.numbers[hit.at], quoted(log.shown[hit.at], hit.start, hit.end)) for hit in shown),
        count=len(first),
        readings=tuple(dict.fromkeys(reading for hit in hits for reading in hit.readings)),
        spans=frozenset((hit.at, hit.start) for hit in hits),
    )


def _stated(search: _Search, row: Statement, explained: set[int]) -> Iterator[Reading]:
    hits = search.hits_of(row.symptoms)
    for hit in hits:
        explained.add(hit.at)
        yield from hit.readings
    if hits:
        yield from (Reading(fact, value, "", search.log.numbers[hits[0].at]) for fact, value in row.states.items())


class _Search:
    """The text of a log, in which the fixed text of a message is found before its pattern is tried."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._text = "\n".join(log.lines).lower()
        self._starts = [0, *accumulate(len(line) + 1 for line in log.lines)]

    def hits_of(self, symptoms: Sequence[str], *, together: bool = False) -> list[_Hit]:
        """Return where any of some messages is; with `together` none, unless all of them are there."""
        by_symptom = [list(self._hits(template)) for template in symptoms]
        if together and not all(by_symptom):
            return []
        return [hit for hits in by_symptom for hit in hits]

    def _hits(self, template: str) -> Iterator[_Hit]:
        symptom = read_symptom(template)
        at = self._text.find(symptom.anchor)
        last = failed = 0
        for _ in range(MOST_TRIED):
            if at < 0:
                return
            index = bisect_right(self._starts, at) - 1
            line, offset = self.log.lines[index], at - self._starts[index]
            begin = max(0, offset - _BEFORE)
            match = symptom.pattern.search(line, begin, offset + _AFTER)
            if match is not None:
                yield _Hit(index, match.start(), match.end(), tuple(self._readings(template, match, index)))
            failed = failed + 1 if match is None and index == last else 0
            last = index
            after = max(at + len(symptom.anchor), self._starts[index] + (match.end() if match is not None else 0))
            if failed >= MOST_FAILED:
                after = max(after, self._starts[index + 1])
            at = self._text.find(symptom.anchor, after)

    def _readings(self, template: str, match: re.Match[str], index: int) -> Iterator[Reading]:
        for capture, text in zip(read_symptom(template).captures, match.groups(), strict=True):
            value = decoded(capture.notation, text)
            if value:
                yield Reading(capture.fact, without_secrets(value), without_secrets(text), self.log.numbers[index])
