"""The nearest values of requests and facts that work, with the environment of the problem that has no answer."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.explain.relaxable import nearest
from provisioner.resolver.search.instance import violations
from provisioner.resolver.search.provider import SearchReporter
from provisioner.resolver.search.provider import search as engine_search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.explain.relaxable import Relaxable
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.complete import CompleteSearch
    from provisioner.resolver.search.instance import ProblemInstance

MOST_NEARER = 8
"""The number of versions of a distribution that are tried, nearest first, before the most preferred one is taken."""

MOST_STEPS_OF_HALVED = 5_000
"""The most steps (`StepBudget`) that an answer may take which is looked for to find the nearest version by halving.

Measured: 1,400 to 4,300 for those of eight conflicts that were found; 11,900 to learn that no Python has one.
"""

MOST_READS_TO_DECIDE = 60
"""The number of versions whose metadata the complete search may read for one fix besides a known one that keeps all requests.

Measured on fifteen conflicts: the complete search found such fixes within 51 versions, and read up to 187 where there is none.
"""

MOST_CONFLICTS = 20
"""The number of conflicts after which resolvelib gives up a fix and the complete search decides.

Measured on five refusals: fixes that work were found after at most 13 conflicts; those that do not went on for 1,500 rounds
with up to 240 conflicts, and the complete search then decided them in milliseconds.
"""


class Values:
    """Chooses the nearest values for requests and facts, with the environment of one instance."""

    def __init__(self, instance: ProblemInstance, search: CompleteSearch) -> None:
        self._instance = instance
        self._search = search
        self._answers: dict[
            tuple[frozenset[Group], tuple[Candidate, ...], tuple[Key, ...]], Mapping[Key, Candidate] | None
        ] = {}
        """What resolvelib found without some groups, with some candidates and keys."""
        self.rounds = 0
        """The rounds that resolvelib took."""
        self.is_further = False
        """Whether a fix with packages that keeps all requests is known: others are looked for besides it with less reading."""

    def chosen(self, some: tuple[Relaxable, ...], passed: frozenset[Candidate]) -> list[Candidate | None] | None:
        """Return a candidate for each request and fact of a set; None when the set cannot give an answer.

        It is the nearest value that works; for a distribution whose `MOST_NEARER` nearest versions do not work, the version in
        an answer (`_of_an_answer`). An element is None for a request for which no value works, and for a bound: both have to be
        dropped.
        """
        without = groups_of(some)
        asking = [one for one in some if not one.is_bound]
        beside = facts_beside(some)
        present = tuple(dict.fromkeys(one.key for one in asking))
        if self._search.refutes(without=without, present=(*present, *beside)):
            hopeless = {one.key for one in asking if self._is_hopeless(one, without)}
            present = tuple(key for key in present if key not in hopeless)
            if not hopeless or self._search.refutes(without=without, present=(*present, *beside)):
                return None
        every = (*present, *beside)

        @cache
        def is_possible() -> bool:
            """Return whether any values work, so that no others are tried of a request for which none works."""
            return self._instance.finder is None or self._works(without=without, given=(), present=every)

        chosen: dict[Key, Candidate] = {}
        for one in asking:
            most = None if one.is_fact or self._instance.finder is None else MOST_NEARER
            for values in nearest(self._instance, one) if one.key in present else ():
                candidates = [value for value in values if value not in passed]
                given = tuple(chosen.values())
                works = self.first(candidates, without=without, given=given, present=every, most=most, is_possible=is_possible)
                if works is not None:
                    chosen[one.key] = works
                    break
        if len(chosen) < len(present):
            missing = [one for one in asking if one.key in present and one.key not in chosen]
            given = tuple(chosen.values())
            rest = self._of_an_answer(missing, passed, without, given=given, present=every) if is_possible() else None
            if rest is None:
                return None
            chosen |= rest
        return [None if one.is_bound else chosen.get(one.key) for one in some]

    def _of_an_answer(
        self,
        missing: Sequence[Relaxable],
        passed: frozenset[Candidate],
        without: frozenset[Group],
        *,
        given: tuple[Candidate, ...],
        present: tuple[Key, ...],
    ) -> dict[Key, Candidate] | None:
        """Return the candidates that an answer has for requests and facts; None where nobody should be offered one.

        For a single request it is the nearest of its values that works. It is found by halving: does any of the first half
        work? Where too much would have to be read for that, it is the nearest found.
        """
        pins = self.answered(without=without, given=given, present=present)
        if pins is None or any(pins[one.key].is_withheld for one in missing):
            return None  # nothing but a yanked file or a pre-release is left
        found = {one.key: pins[one.key] for one in missing}
        if len(missing) > 1 or missing[0].is_fact:
            return found
        key, values = missing[0].key, [value for value in values_of(self._instance, missing[0]) if value not in passed]
        first, last = 0, values.index(found[key]) if found[key] in values else 0
        with suppress(UnavailableError), self._instance.budget.steps.at_most(MOST_STEPS_OF_HALVED):
            while first < last:
                middle = (first + last) // 2
                nearer = self._search.find(without=without, given=given, present=present, among=(values[first : middle + 1],))
                first, last = (middle + 1, last) if nearer is None else (first, values.index(nearer[key]))
                found[key] = values[last]
        return found

    def _is_hopeless(self, one: Relaxable, without: frozenset[Group]) -> bool:
        """Return whether it is proved that no candidate of a request's key works; False for a fact."""
        return not one.is_fact and self._search.refutes(without=without, present=(one.key,))

    def first(
        self,
        some: Sequence[Candidate],
        *,
        without: frozenset[Group],
        given: tuple[Candidate, ...],
        present: tuple[Key, ...],
        most: int | None = None,
        is_possible: Callable[[], bool] = lambda: True,
    ) -> Candidate | None:
        """Return the first candidate in `some` that works; None if none does, or none of the first `most` not yet refuted.

        Candidates that are already refuted are skipped by bisection; the others are solved one by one. `is_possible` tells
        whether any candidate can work; it is not asked where resolvelib has an answer with the first.
        """

        def may(among: Sequence[Candidate]) -> bool:
            return not self._search.refutes(without=without, given=given, present=present, among=(among,))

        rest, tried = list(some), 0
        while rest and tried != most and may(rest):
            low, high = 0, len(rest) - 1
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if may(rest[low : middle + 1]) else (middle + 1, high)
            tested = (*given, rest[low])
            if not tried and self._engine_answer(without=without, given=tested, present=present) is not None:
                return rest[low]
            if not is_possible():
                return None
            if self._works(without=without, given=tested, present=present):
                return rest[low]
            rest, tried = rest[low + 1 :], tried + 1
        return None

    def _works(self, *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]) -> bool:
        """Return whether there is any answer; finding the most preferred one would take a search for every key.

        With packages resolvelib runs first: the complete search reads the metadata of versions that no answer would have.
        """
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        if self._engine_answer(without=without, given=given, present=present) is not None:
            return True
        self._limit_further()
        return self._search.find(without=without, given=given, present=present) is not None

    def answered(
        self, *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Mapping[Key, Candidate] | None:
        """Return the answer without the groups in `without` and with `given` and `present` required; None when there is none.

        With packages resolvelib runs first, because it reads a third of what the complete search reads to find the most
        preferred answer. The complete search is the one of the conflict, so that it reuses its clauses. Candidates in `given`
        are also required: otherwise the requirements of a given driver that nothing requires would not be checked.
        """
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        pins = self._engine_answer(without=without, given=given, present=present)
        if pins is not None:
            return pins
        self._limit_further()
        return self._search.best(without=without, given=given, present=present)

    def _limit_further(self) -> None:
        """Limit what the complete search may read for a fix besides a known one."""
        if self.is_further:
            self._instance.budget.allot(MOST_READS_TO_DECIDE)

    def _engine_answer(
        self, *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Mapping[Key, Candidate] | None:
        """Return the valid answer that resolvelib finds, for a problem with packages; None when it finds none."""
        if self._instance.finder is None:
            return None
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        asked = without, given, present
        if asked not in self._answers:
            relaxed = self._instance.relaxed(without=without, given=given, present=present)
            reporter = SearchReporter(most_conflicts=MOST_CONFLICTS)
            pins = engine_search(relaxed, reporter)
            self.rounds += reporter.rounds
            self._answers[asked] = pins if pins is not None and not violations(relaxed, pins) else None
        return self._answers[asked]


def values_of(instance: ProblemInstance, one: Relaxable) -> Iterator[Candidate]:
    """Yield the values to change a request or fact to, nearest first."""
    return chain.from_iterable(nearest(instance, one))


def groups_of(some: Sequence[Relaxable]) -> frozenset[Group]:
    """Return the groups of everything that a set of edits changes."""
    return frozenset(group for one in some for group in one.groups)


def facts_beside(some: Sequence[Relaxable]) -> tuple[Key, ...]:
    """Return the keys of the facts that change with those of a set: the host still has them, so that they must be chosen."""
    return tuple(dict.fromkeys(follower.key for one in some for follower in one.followers))
