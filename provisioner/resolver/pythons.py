"""Choose among the attempts, of which each has another Python: the answer with the newest versions of what the spec names.

What may have the best answer is solved first, and what is proved to have none that is better is not solved at all.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from provisioner.components import FRAMEWORKS
from provisioner.errors import UnavailableError
from provisioner.resolver.answers import answer_of
from provisioner.resolver.attempts import framework_rank, locked_python, named_places
from provisioner.resolver.prospects import Prospect, Standing, allowed_by_spec, wants_another_python
from provisioner.resolver.requirement import Key
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.provider import LOG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.attempts import Attempt, Chosen, Failure, Indexes
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance

STEPS_OF_PROOF = 5_000
"""The most steps (`StepBudget`) that are taken to prove that another Python has nothing newer.

Measured: 1,600 for a proof that saved three of four solves; one of 12,000 took as long as the solve that it saved.
"""


def best_answer(problem: Problem, attempts: list[Attempt], indexes: Indexes, *, failed: list[Failure]) -> Chosen | None:
    """Return the answer with the newest versions of what the spec names, of all attempts; None when no attempt has one.

    Frameworks count before the other components that it names, and these before distributions, which count in the order in
    which they are named; the order of the Pythons counts last.
    Attempts are solved in the order of what they may have at best, and none that cannot have anything better than the best
    answer so far: where the first has the newest versions that any may have, it is the only one. The answer is that of the
    first Python that has one where a Python is locked or preferred by the policy, with the strategy `oldest`, and where an
    index cannot be reached that would tell what an attempt may have.

    The failed attempts, each with the search that proved it impossible, are appended to `failed`. Raises `UnavailableError`
    when an index cannot be reached or the budget of metadata reads is exhausted.
    """
    best: Chosen | None = None
    answers: list[_Answer] = []
    for attempt in _best_first(problem, attempts, indexes, answers, failed):
        try:
            found = answer_of(attempt, indexes, failed)
        except UnavailableError:
            if best is None:
                raise
            break  # what more there may be is not known
        if found is not None:
            answers.append(_Answer(_standing(found, attempt, attempts.index(attempt)), found[0], attempt))
            best = found if _best(answers) is answers[-1] else best
    return best


def _standing(chosen: Chosen, attempt: Attempt, number: int) -> Standing:
    """Return how the answer of an attempt, the `number`-th, ranks."""
    instance, pins = chosen
    places = []
    for key in instance.named:
        allowed = allowed_by_spec(instance, key)
        places.append(allowed.index(pins[key]) if pins.get(key) in allowed else len(allowed))
    of_components = {key: pins[key] for key in attempt.system if key in pins}
    rank, named = framework_rank(attempt.problem, of_components), named_places(attempt.problem, of_components)
    return Standing(has_no_components=False, framework=rank, components=named, distributions=places, python=number)


def _best_first(
    problem: Problem, attempts: list[Attempt], indexes: Indexes, answers: Sequence[_Answer], failed: Sequence[Failure]
) -> Iterator[Attempt]:
    """Yield the attempts ordered by what they may have at best, without those that cannot be better than the best answer.

    `answers` and `failed` are those so far, which the caller adds.

    The newest Python may have files of years-old versions alone, or of a framework that the hosts cannot run, so that only
    years-old versions go with it. An attempt without any choice of components comes after all others.

    Little is read for it: the pages of the projects, and of a version's metadata only what an attempt has to read that may be
    the next one. Those for other Pythons are read only where the first attempt cannot have the newest versions, or does not.
    """
    rest = attempts
    is_decided = len(attempts) < 2 or locked_python(problem) is not None or "python" in problem.request.spec.policy.prefer
    if not is_decided and problem.request.spec.policy.strategy != "oldest":
        with suppress(UnavailableError):

            def is_first() -> bool:
                return not answers and not failed

            waiting = [first := Prospect(0, attempts[0], indexes, is_first, reads_ahead="named")]
            before = first.bound
            if not any(wants_another_python(first.instance, key) for key in first.instance.named):
                first.look_up_to(before)
                if first.bound == before:
                    waiting, rest = [], attempts[1:]
                    yield first.attempt
                    if _is_reached(before, answers):
                        return
            waiting.extend(Prospect(number, one, indexes, is_first) for number, one in enumerate(attempts[1:], 1))
            for prospect in _in_order(waiting, answers):
                rest = [one.attempt for one in waiting]
                yield prospect.attempt
            return
    for attempt in rest:
        if answers:
            return
        yield attempt


def _in_order(waiting: list[Prospect], answers: Sequence[_Answer]) -> Iterator[Prospect]:
    """Yield prospects, the best first, while one may be better than the best answer; each is removed from `waiting`."""
    while waiting:
        least = min(waiting, key=_bound)
        others = [one.bound for one in waiting if one is not least]
        least.look_up_to(min([*others, *(one.standing for one in answers)], default=None))
        if _is_reached(min(map(_bound, waiting)), answers):
            return
        if least.is_looked_at and least is min(waiting, key=_bound):
            waiting.remove(least)
            if not (answers and _best(answers).is_better_than_all_of(least)):
                yield least


def _is_reached(bound: Standing, answers: Sequence[_Answer]) -> bool:
    """Return whether one of the answers so far is as good as `bound`."""
    return any(one.standing <= bound for one in answers)


def _best(answers: Sequence[_Answer]) -> _Answer:
    return min(answers, key=lambda one: one.standing)


class _Answer:
    """How the answer of an attempt ranks, and why the attempt has none with newer versions of what the spec names.

    The reasons mostly hold with the other Pythons, too. There they are tried before such an attempt is solved, as those of an
    attempt without an answer are (`answer_of`).
    """

    def __init__(self, standing: Standing, instance: ProblemInstance, attempt: Attempt) -> None:
        self.standing = standing
        self._instance = instance
        self._leads = _leads(attempt)

    @cached_property
    def _steps_down(self) -> list[_StepDown] | None:
        """The framework and the named distributions, each with the groups that exclude the versions before that in the answer.

        None where a proof takes too many steps, or where there would be a better answer.
        """
        found: list[_StepDown] = []
        given: list[Sequence[Candidate]] = []
        search = CompleteSearch(self._instance)
        try:
            with self._instance.budget.steps.at_most(STEPS_OF_PROOF):
                for key, place in self._places():
                    allowed = allowed_by_spec(self._instance, key)
                    if place == len(allowed):
                        return None
                    better, chosen = allowed[:place], _of_one_version(allowed, place)
                    core = _excluding(search, given, better)
                    if core is None:
                        return None
                    found.append(_StepDown(key, [one.label for one in chosen], core))
                    given.append(chosen)
        except UnavailableError:
            return None
        finally:
            search.close()
        return found

    def _places(self) -> Iterator[tuple[Key, int]]:
        """Yield the framework and the named distributions, each with the place of the chosen version among those allowed."""
        for key in self._leads:
            version = self._instance.problem.domains[key][self.standing.framework].version
            yield key, next(i for i, one in enumerate(allowed_by_spec(self._instance, key)) if one.version == version)
        yield from zip(self._instance.named, self.standing.distributions, strict=True)

    def _may_be_told_of(self, prospect: Prospect) -> bool:
        """Return whether what the answer was chosen by, but for what `_steps_down` is about, is the same for a prospect."""
        if prospect.bound.python < self.standing.python or self._leads != _leads(prospect.attempt):
            return False
        if prospect.bound.framework == self.standing.framework:
            return prospect.bound.components == self.standing.components
        return bool(self._leads) and not self.standing.components

    def is_better_than_all_of(self, prospect: Prospect) -> bool:
        """Return whether it is proved that the attempt of a prospect has no better answer; False when that is unknown."""
        if not self._may_be_told_of(prospect) or self._steps_down is None:
            return False
        if not all(map(self._is_best_in, prospect.instances_like(self._instance))) or prospect.discoveries.has_grown:
            return False
        LOG.info("python %s has nothing newer of what is named", prospect.attempt.python)
        return True

    def _is_best_in(self, instance: ProblemInstance) -> bool:
        """Return whether what excludes newer versions beside the answer does so in another instance."""
        given: list[Sequence[Candidate]] = []
        asked: list[tuple[_StepDown, list[Sequence[Candidate]]]] = []
        search = CompleteSearch(instance)
        try:
            for step in self._steps_down or ():
                allowed = allowed_by_spec(instance, step.key)
                place = next((i for i, one in enumerate(allowed) if one.label in step.chosen), len(allowed))
                chosen = _of_one_version(allowed, place)
                if [one.label for one in chosen] != step.chosen:
                    return False
                better = [one for one in allowed[:place] if not one.has_no_file]
                if better:
                    asked.append((step, [*given, better]))
                if all(one.has_no_file for one in chosen):
                    break
                given.append(chosen)
            with instance.budget.steps.at_most(STEPS_OF_PROOF):
                return all(
                    search.refuting(step.core, among=among) is not None or search.find(among=among) is None
                    for step, among in asked
                )
        except UnavailableError:
            return False
        finally:
            search.close()


class _StepDown(NamedTuple):
    """What an answer has of a framework or a named distribution, and what excludes the allowed versions before it.

    `chosen` are the builds of the version in the answer; a distribution has one.
    """

    key: Key
    chosen: list[str]
    core: tuple[Group, ...]


def _leads(attempt: Attempt) -> tuple[Key, ...]:
    """Return the framework by which answers of an attempt are ranked, if the spec requires it; () otherwise."""
    first = next((key for name in FRAMEWORKS if (key := Key(name)) in attempt.system), None)
    return (first,) if first is not None and any(root.key == first for root in attempt.problem.roots) else ()


def _of_one_version(allowed: Sequence[Candidate], place: int) -> list[Candidate]:
    """Return the candidate at a place and the other builds of its version; [] after the last place."""
    some = allowed[place : place + 1]
    if not some or some[0].key.is_package:
        return list(some)
    return [one for one in allowed if one.version == some[0].version]


def _excluding(
    search: CompleteSearch, given: Sequence[Sequence[Candidate]], better: Sequence[Candidate]
) -> tuple[Group, ...] | None:
    """Return the groups that exclude all of some candidates beside one of each of `given`; None when nothing excludes them."""
    if not better:
        return ()
    among = [*given, better]
    return search.refutation(among=among) if search.find(among=among) is None else None


def _bound(prospect: Prospect) -> Standing:
    return prospect.bound
