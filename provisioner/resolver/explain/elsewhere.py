"""Versions of a requested distribution that work with another Python than that of the environment without an answer."""

from __future__ import annotations

from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from provisioner.grounds.edit import permitting
from provisioner.grounds.requirement import FILES, Relation, RequiresDistribution
from provisioner.resolver.explain.edits import edit_of, permits_several_pythons
from provisioner.resolver.explain.outcomes import MOST_READS_OF_ONE, outcome_of
from provisioner.resolver.explain.relaxable import nearest
from provisioner.resolver.explain.values import MOST_NEARER, MOST_STEPS_OF_HALVED, groups_of, values_of
from provisioner.resolver.requirement import Key, Matching

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.explain.edits import Costs
    from provisioner.resolver.explain.outcomes import Outcome, SolveAgain
    from provisioner.resolver.explain.relaxable import Relaxable
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.complete import CompleteSearch
    from provisioner.resolver.search.instance import ProblemInstance

    Exclude = Callable[[tuple[Group, ...], str], None]
    """Told a proof that no version of a distribution goes with some groups, so that this is not proved again."""

MOST_ELSEWHERE = 3
"""The number of versions of a distribution that are tried, nearest first, of those that have files for another Python alone."""

MOST_HALVED = 7
"""The number of answers that are looked for to find the nearest version of a distribution with another Python."""

MOST_STEPS_WITH_PACKAGES = 40_000
"""The most steps that such an answer may take where the version found by the components alone has none.

Measured: over 20,000 for TensorFlow with a pin of Keras, on eight Pythons.
"""


class Elsewhere(NamedTuple):
    """The version of a requested distribution in an answer that was solved with any Python, and the outcome of that answer.

    The answer may be the most preferred one for a range: it meets a request for that version alone, too, and is the most
    preferred one of those that do.
    """

    chosen: Candidate
    outcome: Outcome


class ElsewhereSearch(Struct, frozen=True):
    """Looks for versions of requested distributions with which the whole problem has an answer, with any Python."""

    instance: ProblemInstance
    search: CompleteSearch
    solve_again: SolveAgain | None
    costs: Costs
    exclude: Exclude | None

    def nearest(
        self,
        some: tuple[Relaxable, ...],
        chosen: Sequence[Candidate | None] | None,
        passed: frozenset[Candidate],
        *,
        is_known: bool,
    ) -> Elsewhere | None:
        """Return a version of a requested distribution that is nearer than the chosen one and needs another Python.

        The spec permits several Pythons, and the nearest versions may have files for another one than that of this environment;
        `MOST_ELSEWHERE` of them are tried, within what the fix may read. If it is not known what works with this Python, they
        are those that nothing known excludes. If all are newer than what is requested, or all older, the nearest is found by
        halving. None where none of them works.
        """
        one = some[0]
        if self.solve_again is None or not self._is_open(some):
            return None
        nearer = chain.from_iterable(nearest(self.instance, one, other_pythons=True))
        taken = chosen[0] if chosen is not None else None
        others = [other for other in takewhile(lambda other: other is not taken, nearer) if other not in passed]
        lacks_files = any(other.has_no_file for other in others)
        is_untried = lacks_files or (len(others) > MOST_NEARER and self._is_for_this_python(one, others, groups_of(some)))
        if is_known and taken is not None and is_untried and self._is_in_order(others):
            return self._halved(one, others)

        def may(other: Candidate) -> bool:
            if is_known:
                return other.has_no_file
            return not self.search.refutes(without=groups_of(some), given=(other,), present=(one.key,))

        for other in islice(filter(may, others), MOST_ELSEWHERE):
            edit, _ = edit_of(self.instance, one, other, costs=self.costs)
            given = outcome_of(self.solve_again, self.instance.problem.request, [edit])
            if given is not None:
                return Elsewhere(other, given)
        return None

    def with_packages(self, some: tuple[Relaxable, ...], chosen: Sequence[Candidate | None]) -> Elsewhere | None:
        """Return a version of a requested distribution, newer than the chosen one, with which the packages have an answer.

        Where the components alone were solved, they chose the nearest version without knowing what it needs. Of the newer ones
        the nearest is found by halving. None where none of them works.
        """
        one, nearest_one = some[0], chosen[0]
        is_blind = self.instance.finder is None and self.solve_again is not None
        if not is_blind or len(some) > 1 or nearest_one is None or not isinstance(one.current.ground, RequiresDistribution):
            return None
        values = list(values_of(self.instance, one))
        beyond = values[values.index(nearest_one) + 1 :]
        newer = sorted({other for other in beyond if other.pep440 > nearest_one.pep440}, key=lambda other: other.pep440)
        return self._halved(one, newer, is_only=True) if newer else None

    def _is_for_this_python(self, one: Relaxable, others: Sequence[Candidate], without: frozenset[Group]) -> bool:
        """Return whether versions may be excluded for the Python of this environment alone.

        They are not where the proof from what was read is about neither files nor Python.
        """
        core = self.search.refutation(without=without, present=(one.key,), among=(others,))
        if core is None:
            return True
        keys = (need.key for group in core for _, need in self.search.members(group))
        is_about_files = any(isinstance(group, Relation) and group.object == FILES for group in core)
        return is_about_files or any(key == Key("python") for key in keys)

    @staticmethod
    def _is_in_order(others: Sequence[Candidate]) -> bool:
        """Return whether versions, the nearest first, only rise or only fall."""
        versions = [other.pep440 for other in others]
        return versions in (sorted(versions), sorted(versions, reverse=True))

    def _halved(self, one: Relaxable, others: Sequence[Candidate], *, is_only: bool = False) -> Elsewhere | None:
        """Return the nearest of versions that only rise, or only fall, with which there is an answer with any Python.

        It is found by halving, with `MOST_HALVED` answers at most, so that it may be one of the nearest; None if there is none.
        An answer with a Python past its end of life does not count: the version of `others` is then not the nearest change.
        It does where no other version is known, as `is_only` says, and more steps are spent.
        """
        assert self.solve_again is not None
        ground = one.current.ground
        assert isinstance(ground, RequiresDistribution)
        most_steps = MOST_STEPS_WITH_PACKAGES if is_only else MOST_STEPS_OF_HALVED
        place = {other.label: number for number, other in enumerate(others)}
        first, last = 0, len(others) - 1
        found: Elsewhere | None = None
        for _ in range(MOST_HALVED):
            middle = last if found is None else (first + last) // 2
            low, high = sorted((others[0].pep440, others[middle].pep440))
            self.instance.budget.allot(MOST_READS_OF_ONE)
            asked = permitting(self.instance.problem.request, ground.distribution, f">={low.public},<={high.public}")
            with self.instance.budget.steps.at_most(most_steps):
                given = outcome_of(self.solve_again, asked, ())
            is_of_today = given is not None and (is_only or not self._has_ended(given.gives.get("python", "")))
            number = place.get(given.gives.get(one.key.name, "")) if given is not None and is_of_today else None
            if number is None and found is None:
                return None
            if number is None or given is None:
                first = middle + 1
            else:
                last, found = number, Elsewhere(others[number], given)
            if first >= last:
                break
        return found

    def _has_ended(self, python: str) -> bool:
        """Return whether a Python is past its end of life."""
        problem = self.instance.problem
        listed = problem.domains.get(Key("python"), ())
        return any(one.label == python and problem.needs.policy.support_status.ended(one) is not None for one in listed)

    def most_preferred(self, some: tuple[Relaxable, ...], passed: frozenset[Candidate]) -> Elsewhere | None:
        """Return the version of a requested distribution that the most preferred answer without a range for it has.

        The spec permits several Pythons, and only some of the versions have files for the one of this environment. None where
        another Python changes nothing, where there is no such answer, and where its version is in `passed`.
        """
        one, instance = some[0], self.instance
        ground = one.current.ground
        if self.solve_again is None or not self._is_open(some) or not isinstance(ground, RequiresDistribution):
            return None
        core = self.search.refutation(without=groups_of(some), present=(one.key,))
        if core is not None and self.exclude is not None and not one.key.extras:
            self.exclude(core, one.key.project)
        found = outcome_of(self.solve_again, permitting(instance.problem.request, ground.distribution), ())
        if found is None:
            return None
        version = found.gives.get(one.key.name)
        chosen = next((other for other in instance.candidates(one.key) if other.label == version), None)
        return None if chosen is None or chosen in passed else Elsewhere(chosen, found)

    def _is_open(self, some: tuple[Relaxable, ...]) -> bool:
        """Return whether `some` is one range for a distribution that another Python which the spec permits may meet."""
        ground, test = some[0].current.ground, some[0].current.test
        is_range = isinstance(ground, RequiresDistribution) and isinstance(test, Matching) and bool(test.specifier)
        return len(some) == 1 and is_range and permits_several_pythons(self.instance)
