"""Solve a problem with packages: one attempt for each Python, until one has an answer.

An environment has one Python, and which files and markers apply depends on it. So each attempt is the whole problem with one
Python. What contradicts itself with one Python mostly does so with the others, too: the requirements that an attempt failed by
are tried on the next one before anything else is read for it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.accelerators import RUNTIMES
from provisioner.components import FRAMEWORKS
from provisioner.errors import UnavailableError
from provisioner.grounds.requirement import FixesPython, Relation
from provisioner.host.facts import stated
from provisioner.index.model import Environment, PackageSource
from provisioner.resolver.outcome.libraries import is_lacking, lacks_toolkit, may_be_elsewhere
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.requirement import (
    PYTORCH,
    TORCH,
    Candidate,
    ImageCandidate,
    Key,
    Labelled,
    Requirement,
    build_of,
)
from provisioner.resolver.rules.images import realises_toolkit
from provisioner.resolver.search.bundled import align_bundled, misaligned
from provisioner.resolver.search.complete import CompleteSearch, every_key
from provisioner.resolver.search.components import ComponentSearch
from provisioner.resolver.search.instance import STEPS_OF_INSTANCE, AllowedOf, Pair, ProblemInstance, ReadBudget
from provisioner.resolver.search.least_change import with_least_change
from provisioner.resolver.search.provider import LOG
from provisioner.resolver.search.resolve import decide, pins_or_proof
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.finder import ReadsAhead

    SourceFor = Callable[[Environment], PackageSource]
    """Opens the package indexes for one environment."""

Chosen = tuple[ProblemInstance, dict[Key, Candidate]]
"""A problem instance and its most preferred valid assignment: a candidate for each key."""

PYTHON = Key("python")
STEPS_OF_PROOF = 5_000
"""The most steps (`StepBudget`) that are taken to prove that another Python has nothing newer.

Measured: 1,600 for a proof that saved three of four solves; one of 12,000 took as long as the solve that it saved.
"""
ASKED_FOR_FILES = 4
"""The most versions of a named distribution, for one Python, of which it is asked whether what they require has files.

One that has not ranks a Python behind those that have. Where nothing has, no Python is preferred to another by it.
"""
GLIBC_WHEN_UNKNOWN = (2, 28)
"""The glibc version that current manylinux wheels need. It is assumed, and reported as unverified, if the glibc of the base
image or of the hosts is unknown."""


class Indexes(NamedTuple):
    """The package indexes: `open` opens them for one environment, `budget` limits the metadata that is read of them.

    `reads_ahead` tells what is read in the background before it is asked for.
    """

    open: SourceFor
    budget: ReadBudget
    reads_ahead: ReadsAhead = "everything"


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt to solve the problem with one Python, such as `3.12`.

    `problem` is the whole problem with that Python required; `system` is the most preferred answer for the components of
    `problem` alone, which gives the environment its glibc and the index of the framework's build. `rank` is the place of the
    framework's release in it, 0 for the newest, and `named` has the places of the other components that the spec names.
    `allowed` is what tests allow of the components, found once for all attempts. `prereleases` are the distributions of which
    metadata was found to need pre-releases, by any attempt: the next one has them from the start and need not start again.
    """

    python: str
    problem: Problem
    system: dict[Key, Candidate]
    rank: int = 0
    named: tuple[int, ...] = ()
    allowed: AllowedOf = field(default_factory=dict)
    prereleases: set[str] = field(default_factory=set)


class Failure(Struct, frozen=True, kw_only=True, dict=True):
    """An attempt without an answer: its instance, the search that proved that there is none, and the groups that it used.

    `lacking` is an answer whose wheels lack libraries, None if there is none: the attempt failed because these are required. Of
    `pairs`, components and distributions were decided together. The groups in `without` did not have to hold.
    """

    attempt: Attempt
    instance: ProblemInstance
    search: CompleteSearch
    core: tuple[Group, ...]
    lacking: Mapping[Key, Candidate] | None = None
    pairs: frozenset[Pair] = frozenset()
    without: frozenset[Group] = frozenset()

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """A minimal set of groups that cannot hold together with the Python of the attempt."""
        return self.search.minimal(without=self.without, among=self.core)

    def involves(self, key: Key) -> bool:
        """Return whether the minimal conflict of the attempt has a requirement on a key."""
        return any(one.key == key for group in self.groups for _, one in self.search.members(group))


def attempts_of(problem: Problem) -> list[Attempt]:
    """Return an attempt for each Python with which the components have an answer, most preferred first.

    One search decides the components for all Pythons: what it learnt with one it knows with the next.
    A locked Python comes first if it is the first candidate. The others are ordered by `rank` and `named`, equal ones as
    Python's candidates.
    """
    found, allowed, prereleases = [], AllowedOf(), set[str]()
    search = CompleteSearch(ProblemInstance(system_half(problem), allowed=allowed))
    try:
        for candidate in problem.domains[PYTHON]:
            if not all(one.allows(candidate) for one in problem.roots if one.key == PYTHON):
                continue
            system = search.best(given=[candidate])
            if system is not None:
                narrowed = with_python(problem, candidate)
                narrow = Attempt(
                    python=candidate.label, problem=narrowed, system=system, allowed=allowed, prereleases=prereleases
                )
                found.append(narrow)
    finally:
        search.close()

    locked = _locked(problem)
    ranked = [
        replace(one, rank=_framework_rank(problem, one.system), named=_named_places(problem, one.system)) for one in found
    ]
    return sorted(ranked, key=lambda attempt: (attempt.python != locked, attempt.rank, attempt.named))


def _framework_rank(problem: Problem, pins: Mapping[Key, Candidate]) -> int:
    """Return the index of the chosen framework release among the framework's candidates, in the order of preference.

    Without a framework it is the index of the base image, if the spec asks for an image with CUDA, and otherwise 0. A framework
    counts where the components have it, not where packages alone need it.
    """
    leads = (*FRAMEWORKS, "image") if realises_toolkit(problem.request) else FRAMEWORKS
    lead = next((one for name in leads if (one := pins.get(Key(name))) is not None), None)
    if lead is None:
        return 0
    return next(i for i, one in enumerate(problem.domains[lead.key]) if one.version == lead.version)


def _named_places(problem: Problem, pins: Mapping[Key, Candidate]) -> tuple[int, ...]:
    """Return the place of the chosen release of each component that the spec names, in the order of the matrix.

    Frameworks are left out, and Python, and what a host provides. A component that is not chosen has the place after the last.
    """
    others = {*FRAMEWORKS, PYTHON.name}
    keys = [Key(name) for name in problem.request.spec.requires if name not in others]
    named = sorted((key for key in keys if key in problem.domains), key=lambda key: problem.order.get(key, 0))
    return tuple(
        next((i for i, one in enumerate(problem.domains[key]) if key in pins and one.version == pins[key].version), last)
        for key in named
        for last in (len(problem.domains[key]),)
    )


def _locked(problem: Problem) -> str | None:
    """Return the locked Python, if `prefer` and `avoid` of the policy leave it first among Pythons; None if there is none."""
    first = problem.domains[PYTHON][0].label
    return first if problem.request.preferred.get("python") == first else None


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
            found = _answer_of(attempt, indexes, failed)
        except UnavailableError:
            if best is None:
                raise
            break  # what more there may be is not known
        if found is not None:
            answers.append(_Answer(_standing(found, attempt, attempts.index(attempt)), found[0], attempt))
            best = found if _best(answers) is answers[-1] else best
    return best


class Standing(NamedTuple):
    """How an answer ranks among those of all attempts, lowest first, or how it ranks at best.

    Whether no components are left, the place of the framework's release, that of each other named component's, the place of
    each named distribution's version, and that of the Python.
    """

    has_no_components: bool
    framework: int
    components: tuple[int, ...]
    distributions: list[int]
    python: int


def _standing(chosen: Chosen, attempt: Attempt, number: int) -> Standing:
    """Return how the answer of an attempt, the `number`-th, ranks."""
    instance, pins = chosen
    places = []
    for key in instance.named:
        allowed = _allowed(instance, key)
        places.append(allowed.index(pins[key]) if pins.get(key) in allowed else len(allowed))
    of_components = {key: pins[key] for key in attempt.system if key in pins}
    rank, named = _framework_rank(attempt.problem, of_components), _named_places(attempt.problem, of_components)
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
    is_decided = len(attempts) < 2 or _locked(problem) is not None or "python" in problem.request.spec.policy.prefer
    if not is_decided and problem.request.spec.policy.strategy != "oldest":
        with suppress(UnavailableError):

            def is_first() -> bool:
                return not answers and not failed

            waiting = [first := _Prospect(0, attempts[0], indexes, is_first, reads_ahead="named")]
            before = first.bound
            if not any(_wants_another_python(first.instance, key) for key in first.instance.named):
                first.look_up_to(before)
                if first.bound == before:
                    waiting, rest = [], attempts[1:]
                    yield first.attempt
                    if _is_reached(before, answers):
                        return
            waiting.extend(_Prospect(number, one, indexes, is_first) for number, one in enumerate(attempts[1:], 1))
            for prospect in _in_order(waiting, answers):
                rest = [one.attempt for one in waiting]
                yield prospect.attempt
            return
    for attempt in rest:
        if answers:
            return
        yield attempt


def _in_order(waiting: list[_Prospect], answers: Sequence[_Answer]) -> Iterator[_Prospect]:
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
    attempt without an answer are (`_answer_of`).
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
                    allowed = _allowed(self._instance, key)
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
            yield key, next(i for i, one in enumerate(_allowed(self._instance, key)) if one.version == version)
        yield from zip(self._instance.named, self.standing.distributions, strict=True)

    def _may_be_told_of(self, prospect: _Prospect) -> bool:
        """Return whether what the answer was chosen by, but for what `_steps_down` is about, is the same for a prospect."""
        if prospect.bound.python < self.standing.python or self._leads != _leads(prospect.attempt):
            return False
        if prospect.bound.framework == self.standing.framework:
            return prospect.bound.components == self.standing.components
        return bool(self._leads) and not self.standing.components

    def is_better_than_all_of(self, prospect: _Prospect) -> bool:
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
                allowed = _allowed(instance, step.key)
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


def _bound(prospect: _Prospect) -> Standing:
    return prospect.bound


class _Prospect:
    """What an attempt may have at best: `bound` ranks it among the attempts, lowest first, and rises with what is read."""

    def __init__(
        self,
        number: int,
        attempt: Attempt,
        indexes: Indexes,
        is_first: Callable[[], bool],
        *,
        reads_ahead: ReadsAhead = "nothing",
    ) -> None:
        """Look at an attempt, the `number`-th; only the first reads something ahead (`reads_ahead`).

        `is_first` tells whether nothing was solved yet. After that what was solved tells of the others, for less.
        """
        self.attempt, self._number, self._indexes, self._is_first = attempt, number, indexes, is_first
        self.discoveries = Discoveries()
        self.instance = instance_of(attempt, indexes._replace(reads_ahead=reads_ahead), self.discoveries)
        self._components = ComponentSearch(self.instance)
        self._is_possible = True
        self._rank = attempt.rank
        self._places = [_first_place(self.instance, key) for key in self.instance.named]
        self._choices: dict[Requirement, tuple[Candidate, ...]] = {}
        """The first two versions with a file that meet a requirement on a distribution."""
        self._steps = self._looking()
        self.is_looked_at = False

    def instances_like(self, other: ProblemInstance) -> Iterator[ProblemInstance]:
        """Yield the instance of the attempt, and that in an image with libraries, if such an image may be taken.

        What libraries and bundles another instance requires is required, too.
        """
        answer = other.finder.answer if other.finder is not None else None
        quiet = self._indexes._replace(reads_ahead="nothing")
        for attempt in filter(None, (self.attempt, _in_image_with_libraries(self.attempt))):
            is_own = attempt is self.attempt and answer is None and not other.pairs
            yield self.instance if is_own else instance_of(attempt, quiet, self.discoveries, answer=answer, pairs=other.pairs)

    @property
    def bound(self) -> Standing:
        """How an answer of the attempt ranks at best."""
        is_first = self._rank == self.attempt.rank  # with an older framework the components may be any
        named = self.attempt.named if is_first else (0,) * len(self.attempt.named)
        return Standing(
            has_no_components=not self._is_possible,
            framework=self._rank,
            components=named,
            distributions=list(self._places),
            python=self._number,
        )

    def look_up_to(self, other: Standing | None) -> None:
        """Read versions until all are looked at that `bound` is about, or `bound` exceeds `other`, if that is given."""
        while not self.is_looked_at and (other is None or self.bound <= other):
            self.is_looked_at = next(self._steps, True)

    def _looking(self) -> Iterator[bool]:
        """Raise the bound step by step: yields False after each."""
        if PYTORCH in self.attempt.system:  # the wheels of a build may be missing; the rest of the components is decided
            self._is_possible = self._components.is_possible
            yield False
            for rank in self._ranks_of_pytorch():
                self._rank = rank
                yield False
        for position, key in enumerate(self.instance.named):
            allowed = _allowed(self.instance, key)
            asked = count(1)
            for place in range(self._places[position], len(allowed)):
                self._places[position] = place
                yield False
                if allowed[place].has_no_file or not self._may_be_chosen(allowed[place]):
                    continue
                if next(asked) > ASKED_FOR_FILES or self._has_what_it_needs(allowed[place]):
                    break
            else:
                self._places[position] = len(allowed)
                yield False

    def _ranks_of_pytorch(self) -> Iterator[int]:
        """Yield the ranks from that of the attempt to that of the newest release with a build that some choice goes with."""
        listed = self.attempt.problem.domains[PYTORCH]
        version = self.attempt.system[PYTORCH].version
        if not self._is_possible or listed[self._rank].version != version:
            return  # another framework counts before PyTorch
        for rank, build in enumerate(listed[self._rank :], self._rank):
            if build.version != version:
                version = build.version
                yield rank
            if self._components.admits(build):
                return

    def _may_be_chosen(self, candidate: Candidate) -> bool:
        """Return whether some choice of components goes with a version; of a source distribution nothing is read."""
        return not self._is_possible or candidate.is_source or self._components.admits(candidate)

    def _has_what_it_needs(self, candidate: Candidate) -> bool:
        """Return whether each distribution that a version requires has a file that the requirement allows.

        Where it allows one version with a file, this is asked of that version, too. Of all others pages alone are read. True
        when it is unknown, because an index cannot be reached, where metadata names files or pre-releases that were not
        looked for, and after an attempt was solved.
        """
        if not (self._is_possible and self._is_first()):
            return True
        waiting, seen = [candidate], {candidate}
        try:
            while waiting:
                for choices in self._with_files(waiting.pop()):
                    if not choices:
                        return self.discoveries.has_grown
                    if len(choices) == 1 and choices[0] not in seen:
                        waiting.append(choices[0])
                        seen.add(choices[0])
        except UnavailableError:
            return True
        return True

    def _with_files(self, candidate: Candidate) -> Iterator[Sequence[Candidate]]:
        """Yield, for each distribution that a version requires, the first two versions with a file that will do."""
        finder = self.instance.finder
        assert finder is not None, "a version of a distribution is from an index"
        if candidate.is_source:
            return
        needed = [one for one in self.instance.requirements(candidate) if _is_of_pages(one.key)]
        finder.look_ahead([one.key for one in needed])
        for need in needed:
            known = self._choices.get(need)
            if known is None:
                some = (one for one in self.instance.among(need, self.instance.candidates(need.key)) if not one.has_no_file)
                known = self._choices[need] = tuple(islice(some, 2))
            yield known


def _is_of_pages(key: Key) -> bool:
    """Return whether the candidates of a key are the versions on the page of a project."""
    return key.is_package and not key.is_mutex and key != TORCH


def _wants_another_python(instance: ProblemInstance, key: Key) -> bool:
    """Return whether a version that the spec allows is preferred to each that has files, and has files for another Python."""
    preferred = _allowed(instance, key)[: _first_place(instance, key)]
    return any(one.is_for_another_python for one in preferred)


def _first_place(instance: ProblemInstance, key: Key) -> int:
    """Return the place of the first version with a file among those that the spec allows; their number if none has one."""
    allowed = _allowed(instance, key)
    return next((place for place, one in enumerate(allowed) if not one.has_no_file), len(allowed))


def _allowed(instance: ProblemInstance, key: Key) -> list[Candidate]:
    roots = [root for root in instance.roots if root.key == key]
    return [one for one in instance.candidates(key) if not one.is_withheld and all(root.allows(one) for root in roots)]


def other_attempts(problem: Problem, attempts: list[Attempt]) -> Iterator[tuple[Candidate, Attempt]]:
    """Yield each Python that is none of `attempts`, because a request or the components exclude it, with an attempt for it.

    The attempt shares the environment of the first attempt, apart from the Python.
    """
    known = {attempt.python for attempt in attempts}
    system, allowed = attempts[0].system, attempts[0].allowed
    for candidate in problem.domains[PYTHON]:
        if candidate.label not in known:
            narrowed = with_python(problem, candidate)
            yield candidate, Attempt(python=candidate.label, problem=narrowed, system=system, allowed=allowed)


def with_python(problem: Problem, candidate: Candidate) -> Problem:
    """Return the problem with one Python required, by a root requirement that no conflict contains."""
    fixed = Requirement(PYTHON, Labelled(frozenset({candidate.label})), FixesPython(python=candidate.label))
    return replace(problem, roots=(*problem.roots, fixed))


def system_half(problem: Problem) -> Problem:
    """Return the problem without its root requirements on distributions, so that it can be solved without an index."""
    return replace(problem, roots=tuple(root for root in problem.roots if not root.key.is_package))


def _answer_of(attempt: Attempt, indexes: Indexes, failed: list[Failure]) -> Chosen | None:
    """Return the answer of an attempt; None if it has none, and its failure is then appended to `failed`.

    An attempt that fails by the groups of an earlier one is not decided: only what these groups are about is read for it.
    """
    LOG.info("trying python %s with %s", attempt.python, _leading(attempt))
    reasons = {one.core: one for one in reversed(failed) if _is_reason(one, attempt)}
    again = (refuted(attempt, core, indexes, like=one) for core, one in reasons.items())
    failure = next(filter(None, again), None)
    if failure is None:
        decided = _decided_in_some_image(attempt, indexes)
        if not isinstance(decided, Failure):
            return decided
        failure = decided
    LOG.info("python %s has no answer: %s", attempt.python, "; ".join(sorted(map(str, failure.core))))
    failed.append(failure)
    return None


def _leading(attempt: Attempt) -> str:
    """Return the frameworks of an attempt, or the components that it has without any, as `pytorch 2.6.0+cu124, cuda 12.4.1`."""
    leads = (*FRAMEWORKS, *RUNTIMES, "image")
    found = [f"{name} {pin.label}" for name in leads if (pin := attempt.system.get(Key(name))) is not None]
    return ", ".join(found) or "no framework"


def _is_reason(failure: Failure, attempt: Attempt) -> bool:
    """Return whether another attempt may fail by the groups that `failure` used; not if another base image may help it."""
    if failure.attempt.problem.domains is not attempt.problem.domains:
        return False  # it was decided with another base image
    return not any(map(is_about_libraries, failure.core)) or attempt.problem.in_image_with_libraries() is None


def _decided_in_some_image(attempt: Attempt, indexes: Indexes) -> Chosen | Failure:
    """Return the answer of one attempt, or its failure.

    If the spec leaves the base image open, an image that has CUDA's libraries is taken where there is no answer for lack of
    them, and where an answer would not have the CUDA or cuDNN that the spec requires.
    """
    found = _decided(attempt, indexes)
    if not (_lacks_libraries(found) if isinstance(found, Failure) else lacks_toolkit(*found)):
        return found
    other = _in_image_with_libraries(attempt)
    if other is None:
        return found
    again = _decided(other, indexes)
    if isinstance(again, Failure) and (not isinstance(found, Failure) or _lacks_libraries(again)):
        again.search.close()
        return found
    if isinstance(found, Failure):
        found.search.close()
    return again


def _in_image_with_libraries(attempt: Attempt) -> Attempt | None:
    """Return an attempt with the base images that have CUDA's libraries; None if the spec or the components exclude these."""
    problem = attempt.problem.in_image_with_libraries()
    system = decide(ProblemInstance(system_half(problem))) if problem is not None else None
    return replace(attempt, problem=problem, system=system) if problem is not None and system is not None else None


def _lacks_libraries(failure: Failure) -> bool:
    """Return whether the proof that there is no answer uses a requirement of a wheel on libraries."""
    return any(map(is_about_libraries, failure.core)) and any(map(is_about_libraries, failure.groups))


def is_about_libraries(group: Group) -> bool:
    """Return whether a group is the requirement of a wheel on CUDA libraries, which another base image may have."""
    from provisioner.resolver.python.libraries import LIBRARIES  # not for a stack without packages

    return isinstance(group, Relation) and group.object == LIBRARIES


def refuted(
    attempt: Attempt,
    groups: tuple[Group, ...],
    indexes: Indexes,
    *,
    like: Failure | None = None,
    includes: Callable[[Key], bool] = every_key,
) -> Failure | None:
    """Return the failure of an attempt by `groups` alone; None when they can hold together, or when that is unknown.

    It is unknown when an index cannot be reached. The groups are tried again whenever metadata refers to files or pre-releases
    that were no candidates before. `like` is the failure that `groups` are of; `includes` tells which keys count.
    """
    lacking, pairs = (like.lacking, like.pairs) if like is not None else (None, frozenset[Pair]())
    discoveries, quiet = Discoveries(), indexes._replace(reads_ahead="nothing")
    while True:
        discoveries.has_grown = False
        instance = instance_of(attempt, quiet, discoveries, answer=lacking, pairs=pairs)
        search = CompleteSearch(instance, includes)
        core = None
        with suppress(UnavailableError):
            core = search.refuting(groups)
        if core is not None and not discoveries.has_grown:
            return Failure(attempt=attempt, instance=instance, search=search, core=core, lacking=lacking, pairs=pairs)
        search.close()
        if not discoveries.has_grown:
            return None


def refuted_without(attempt: Attempt, without: Collection[Group], indexes: Indexes) -> Failure | None:
    """Return the failure of an attempt in which the groups in `without` need not hold; None if it has an answer, or is unknown.

    It is unknown when an index cannot be reached, and when another base image may help.
    """
    discoveries, quiet = Discoveries(attempt.prereleases), indexes._replace(reads_ahead="nothing")
    while True:
        discoveries.has_grown = False
        instance = instance_of(attempt, quiet, discoveries)
        search = CompleteSearch(instance)
        core = None
        with suppress(UnavailableError):
            core = search.refutation(without=without) if search.find(without=without) is None else None
            _discover(instance)
        if core is not None and not discoveries.has_grown:
            found = Failure(attempt=attempt, instance=instance, search=search, core=core, without=frozenset(without))
            if not _lacks_libraries(found) or attempt.problem.in_image_with_libraries() is None:
                return found
        search.close()
        if not discoveries.has_grown:
            return None


def refuted_unread(
    attempt: Attempt, without: Collection[Group], indexes: Indexes, *, includes: Callable[[Key], bool] = every_key
) -> Failure | None:
    """Return the failure of an attempt, without the groups in `without`, that is proved without reading metadata; or None."""
    instance = instance_of(attempt, indexes._replace(reads_ahead="nothing"), Discoveries())
    search = CompleteSearch(instance, includes)
    with suppress(UnavailableError):
        core = search.refutation(without=without)
        if core is not None:
            return Failure(attempt=attempt, instance=instance, search=search, core=core)
    search.close()
    return None


def instance_of(
    attempt: Attempt,
    indexes: Indexes,
    discoveries: Discoveries,
    *,
    environment: Environment | None = None,
    answer: Mapping[Key, Candidate] | None = None,
    pairs: frozenset[Pair] = frozenset(),
) -> ProblemInstance:
    """Return the instance of an attempt, by default in its own environment.

    `answer` is an earlier answer, the libraries that it lacks are then required.
    """
    from provisioner.resolver.python.finder import PackageFinder  # not for a stack without packages

    indexes.budget.steps.take(STEPS_OF_INSTANCE)
    environment = environment or environment_of(attempt)
    build = build_of(attempt.system.get(PYTORCH))
    index = build.index if build is not None else ""
    finder = PackageFinder(
        attempt.problem,
        indexes.open(environment),
        environment,
        index,
        discoveries=discoveries,
        answer=answer,
    )
    finder.read_ahead(indexes.reads_ahead)
    return ProblemInstance(attempt.problem, finder, indexes.budget, pairs=pairs, allowed=attempt.allowed)


def _decided(attempt: Attempt, indexes: Indexes) -> Chosen | Failure:
    """Return the answer of one attempt, or its failure.

    The attempt starts again whenever metadata refers to a direct URL or a pre-release that was not a candidate before. It also
    starts again when a component cannot be at the version that a chosen distribution bundles: both are then decided together,
    as a pair. And it starts again, once, when chosen wheels need libraries that nothing chosen has: these are then required. If
    no answer has them all, but a host or an image of unknown content may have the rest, the answer that lacks them is returned.
    If the libraries are in an image with an older glibc than that of `attempt.system`, files for that glibc are searched.
    """
    from provisioner.resolver.python.libraries import ProviderCandidate

    discoveries = Discoveries(attempt.prereleases)
    pairs, environment = frozenset[Pair](), environment_of(attempt)
    lacking: Chosen | None = None
    while True:
        discoveries.has_grown = False
        before = lacking[1] if lacking is not None else None
        instance = instance_of(attempt, indexes, discoveries, environment=environment, answer=before, pairs=pairs)
        found = pins_or_proof(instance)
        if isinstance(found, CompleteSearch) and not discoveries.has_grown:
            _discover(instance)
        if discoveries.has_grown:
            attempt.prereleases.update(discoveries.prereleases)
            if isinstance(found, CompleteSearch):
                found.close()
            continue
        if isinstance(found, CompleteSearch):
            if lacking is None or not may_be_elsewhere(attempt.problem, lacking[1]):
                core = found.refutation()
                assert core is not None, "the search proved that there is no answer"
                return Failure(attempt=attempt, instance=instance, search=found, core=core, lacking=before, pairs=pairs)
            found.close()  # the earlier answer is valid; it reports the libraries that it lacks
            return lacking
        pins = align_bundled(instance, with_least_change(instance, found))
        if (more := pairs | misaligned(instance, pins)) != pairs:
            pairs = more
        elif lacking is None and is_lacking(instance, pins):
            lacking = instance, pins
        elif _has_older_glibc(actual := environment_of(replace(attempt, system=pins)), environment):
            environment = actual
        else:  # ways to have libraries are nothing to install
            return instance, {key: one for key, one in pins.items() if not isinstance(one, ProviderCandidate)}


def _has_older_glibc(one: Environment, other: Environment) -> bool:
    """Return whether an environment has an older glibc than another one; False when one of them has none."""
    return one.glibc is not None and other.glibc is not None and one.glibc < other.glibc


def _discover(instance: ProblemInstance) -> None:
    """Read the metadata of the first candidate of every root requirement on a distribution, to discover direct URLs in it.

    The search may have ended before it read them. Errors of an index are ignored.
    """
    for root in instance.roots:
        if root.key.is_package:
            first = next((one for one in instance.candidates(root.key) if root.allows(one)), None)
            with suppress(UnavailableError):
                _ = instance.requirements(first) if first is not None else ()


def environment_of(attempt: Attempt) -> Environment:
    """Return the environment in which the packages must install.

    Its macOS is the oldest of the hosts; its glibc is that of the base image, or the oldest of the hosts if there is no image.
    """
    return Environment(
        platform=attempt.problem.request.platform, python=attempt.python, glibc=_glibc(attempt), macos=_macos(attempt)
    )


def _glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the newest glibc that wheels may need, `GLIBC_WHEN_UNKNOWN` when unknown; None on systems other than Linux."""
    return known_glibc(attempt) or GLIBC_WHEN_UNKNOWN if attempt.problem.request.platform.startswith("linux") else None


def known_glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the glibc version of a container's base image, otherwise the oldest of the hosts; None when unknown."""
    image = next((one for key, one in attempt.system.items() if key.name == "image"), None)
    if isinstance(image, ImageCandidate) and not image.image.glibc:
        return None
    found = [
        one.version.release for key, one in attempt.system.items() if key.name == "glibc" and isinstance(one.version, Version)
    ]
    if not found:
        stated = [target.host.glibc for target in attempt.problem.request.hosts if target.host.glibc]
        found = [Version.parse(text).release for text in stated]
    oldest = min(found, default=None)
    return None if oldest is None else (oldest[0], oldest[1])


def _macos(attempt: Attempt) -> tuple[int, int] | None:
    """Return the newest macOS version that wheels may need: the oldest that a host states; None when no host states one."""
    found = [stated(target.host, "macos") for target in attempt.problem.request.hosts]
    oldest = min((Version.parse(text).release for text in found if text is not None), default=None)
    return None if oldest is None else (oldest[0], (*oldest, 0)[1])
