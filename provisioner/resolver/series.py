"""Explain, series by series, what keeps the newer releases of a component or distribution out of an answer.

A series is the releases whose versions have the first two numbers in common. Its newest release is looked at, and no other:
nothing is told of a release whose metadata was not read. Of the series that the chosen version is of each newer release is
looked at: some distributions have had no other for years (0.5.2, 0.5.23). What the system excludes (a driver, a GPU, Python, an
image) is found with one search of the components alone for each Python, so it is known before what packages exclude, and costs
no solve.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.grounds.choice import NothingMeets, RuledOut
from provisioner.grounds.predicate import Needs, NeedsDriver, NoFile
from provisioner.grounds.requirement import PYTHON_ATTEMPT, WHEEL, AsksWhyNot, Entails, Relation
from provisioner.grounds.series import NewerSeries
from provisioner.resolver.attempts import PYTHON, Failure, Indexes, attempts_of, instance_of, system_half
from provisioner.resolver.explain.conflict import described, needed_members
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.requirement import PYTORCH, TORCH, Labelled, Requirement, build_of
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance, ReadBudget
from provisioner.resolver.search.least_change import unmet_need
from provisioner.versions import Version, series, without_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.requirement import Group
    from provisioner.resolver.attempts import Attempt, Chosen, SourceFor
    from provisioner.resolver.explain.conflict import Groups
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key

PYTORCH_WHEEL = Relation(PYTORCH.name, WHEEL)

MOST_SERIES = 40
"""The number of newer series, and of releases of the chosen one's, that are looked at, the newest first."""


def newer_series(
    problem: Problem, chosen: Chosen, newer: Sequence[Candidate], *, source_for: SourceFor | None
) -> tuple[NewerSeries, ...]:
    """Return what keeps the newer series of a component or distribution out of an answer, newest first.

    Series of which no reason is found are left out. The parameters and errors are those of `every_newer_series`.
    """
    found = every_newer_series(problem, chosen, newer, source_for=source_for)
    return tuple(one for one in found if one.conflict is not None or one.excluded_by is not None or one.unreached)


def every_newer_series(
    problem: Problem, chosen: Chosen, newer: Sequence[Candidate], *, source_for: SourceFor | None
) -> tuple[NewerSeries, ...]:
    """Return the newer series of a component or distribution with what keeps each out of an answer, newest first.

    `newer` are its candidates that are newer than the `chosen` one, newest first. Neighbouring series with the same reason, or
    of which no reason is found, become one. Raises `UnavailableError` when an index cannot be reached.
    """
    candidates = _looked_at(newer, chosen[1])
    if not candidates:
        return ()
    questions = [question_about(some) for some in candidates]
    found: list[tuple[object, NewerSeries]] = []
    with ExitStack() as searches:
        system = searches.enter_context(closing(_System(problem, questions, source_for)))
        for asked, some in zip(questions, candidates, strict=True):
            refusal, rest = system.refusal(asked), some
            unreached: tuple[str, ...] = ()
            if refusal is None:
                rest, unreached = _in_reach(problem, chosen[0], some)
            if unreached and rest:
                narrower = question_about(rest)
                refusal = searches.enter_context(closing(_System(problem, [narrower], source_for))).refusal(narrower)
            reason = None if refusal is not None or not rest else _reason(chosen, rest)
            same = refusal.identity if refusal is not None else _identity(reason), unreached
            if found and found[-1][0] == same:
                before = found.pop()[1]
                one = replace(before, releases=(*before.releases, release(some[0])))
            else:
                conflict = refusal.describe() if refusal is not None else None
                one = NewerSeries(releases=(release(some[0]),), conflict=conflict, excluded_by=reason, unreached=unreached)
            found.append((same, one))
    return tuple(one for _, one in found)


def _in_reach(
    problem: Problem, instance: ProblemInstance, some: Sequence[Candidate]
) -> tuple[list[Candidate], tuple[str, ...]]:
    """Return the builds of a release on indexes in reach, and the indexes out of reach with builds that the system allows.

    Where one index of a kind cannot be reached, the others of this kind are not tried, as in the search.
    """
    missed = instance.finder.variant_indexes.unreached if instance.finder is not None else {}
    kinds = {one.partition("-")[0] for one in missed}
    built = ((one, build_of(one)) for one in some)
    lost = {one: build.index for one, build in built if build is not None and build.index.partition("-")[0] in kinds}
    unreached: set[str] = set()
    for one, index in lost.items():
        asked = question_about([one])
        with closing(_System(problem, [asked], None)) as alone:
            unreached |= set() if alone.refusal(asked) is not None else {index}
    return [one for one in some if one not in lost], tuple(sorted(unreached))


def question_about(some: Sequence[Candidate]) -> Requirement:
    """Return the requirement of one of the candidates of a release, about which the user asks why it was not chosen."""
    key = some[0].key
    ground = AsksWhyNot(name=key.shown_name, release=release(some[0]))
    return Requirement(key, Labelled(frozenset(one.label for one in some)), ground)


def release(candidate: Candidate) -> str:
    """Return the version of a candidate, without the build of a component."""
    return candidate.label if candidate.key.is_package else without_local(candidate.label)


def _looked_at(newer: Sequence[Candidate], pins: Mapping[Key, Candidate]) -> list[list[Candidate]]:
    """Return the candidates of each release that is looked at, newest first, of at most `MOST_SERIES` releases.

    That is the newest of each series, and each of the series that the chosen version is of.
    """
    own = series(release(pins[newer[0].key])) if newer and newer[0].key in pins else ""
    found: dict[str, list[Candidate]] = {}
    for one in newer:
        of = series(release(one))
        some = found.setdefault(release(one) if of == own else of, [])
        if not some or release(some[0]) == release(one):
            some.append(one)
    return list(found.values())[:MOST_SERIES]


class _Refusal(NamedTuple):
    """Why the system excludes a release: `describe` returns the conflict; equal identities are the same reason."""

    identity: object
    describe: Callable[[], Conflict]


class _System:
    """The components of a problem, searched on their own, and asked about one release of a distribution or component at a time.

    For a distribution there is a search for each Python with which the components have an answer. Lines of the spec about what
    is asked for do not count: they exclude a release on whatever system.
    """

    def __init__(self, problem: Problem, questions: Sequence[Requirement], source_for: SourceFor | None) -> None:
        self._key = questions[0].key
        self._questions = frozenset(one.ground.group for one in questions)
        # What releases are only expected to need excludes none: there is an answer without it, which is unverified.
        self._problem = problem.dropping(self._own_lines(problem.roots)).lenient()
        # A component is known from the matrix: no index is asked about it, nor Python by Python.
        self._indexes: Indexes | None = None
        if source_for is not None and self._key.is_package:
            self._indexes = Indexes(cache(source_for), ReadBudget())
        self._searches: list[tuple[Attempt | None, ProblemInstance, CompleteSearch]] = []
        if self._indexes is None:
            instance = ProblemInstance(system_half(self._problem).with_roots(*questions))
            self._searches.append((None, instance, CompleteSearch(instance)))
            return
        for attempt in attempts_of(self._problem):
            asked = replace(attempt, problem=attempt.problem.with_roots(*questions))
            instance = instance_of(asked, self._indexes, Discoveries())
            self._searches.append((asked, instance, CompleteSearch(instance, includes=self._is_included)))

    def close(self) -> None:
        """Free what the searches hold."""
        for _, _, search in self._searches:
            search.close()

    def refusal(self, asked: Requirement) -> _Refusal | None:
        """Return why no choice of components goes with a release; None if one does, or if that is unknown."""
        failed = []
        for attempt, instance, search in self._searches:
            without = self._without(instance, asked)
            core = self._core(instance, search, without)
            if core is None:
                return None
            if attempt is None:
                groups = search.minimal(without=without, among=core)
                identity = _identity_of(needed_members(instance, search, groups))
                return _Refusal(identity, partial(described, instance, search, groups))
            failed.append(Failure(attempt=attempt, instance=instance, search=search, core=core, without=without))
        return self._joint(failed, asked) if failed else None

    def _without(self, instance: ProblemInstance, asked: Requirement) -> frozenset[Group]:
        """Return the groups that need not hold for a question: lines on what is asked about, and the other questions."""
        bounds = (one for candidate in instance.allowed(asked) for one in instance.bounds.about(candidate))
        return self._own_lines((*instance.roots, *bounds)) | self._questions - {asked.ground.group}

    @staticmethod
    def _core(instance: ProblemInstance, search: CompleteSearch, without: frozenset[Group]) -> tuple[Group, ...] | None:
        core = None
        with suppress(UnavailableError):
            core = search.refutation(without=without) if search.find(without=without) is None else None
        is_unreached = instance.finder is not None and bool(instance.finder.variant_indexes.unreached)
        return None if core is not None and is_unreached and PYTORCH_WHEEL in core else core

    def _joint(self, failed: Sequence[Failure], asked: Requirement) -> _Refusal:
        from provisioner.resolver.explain.joined import JointConflict, most_telling  # not for a stack without packages

        told = most_telling(failed)

        def describe() -> Conflict:
            # Where it is not for Python alone, Pythons that the spec excludes are not looked at.
            indexes = self._indexes if told.involves(PYTHON) else None
            whole = self._problem.with_roots(asked)
            with closing(JointConflict(whole, failed, indexes, includes=self._is_included)) as joint:
                return joint.conflict

        return _Refusal(_identity_of(needed_members(told.instance, told.search, told.groups)), describe)

    def _own_lines(self, requirements: Iterable[Requirement]) -> frozenset[Group]:
        """Return the groups of those requirements that are on what is asked for, except the questions."""
        return frozenset(one.ground.group for one in requirements if self._is_own(one.key)) - self._questions

    def _is_own(self, key: Key) -> bool:
        return key == self._key or (key.is_package and self._key.is_package and key.distribution == self._key.name)

    def _is_included(self, key: Key) -> bool:
        return not key.is_package or key in (TORCH, self._key)


def _identity_of(members: Groups) -> object:
    """Return what two conflicts have in common that are the same reason: their requests and facts, and what is needed of these.

    A driver excludes two series for the same reason if the oldest driver that would do is the same.
    """
    roots = [one for some in members.values() for one in some if one.parent is None]
    stated = {one.requirement.key for one in roots if not isinstance(one.requirement.ground, AsksWhyNot)}
    needs = [one.requirement for some in members.values() for one in some if one.parent is not None]
    needed = [one.ground.predicate for one in needs if one.key in {PYTHON, *stated} and isinstance(one.ground, Entails)]
    drivers = [bound.minor_version or bound.native for one in needed if isinstance(one, NeedsDriver) for bound in one.bounds]
    return (
        frozenset(one.requirement.ground.group for one in roots if one.requirement.key in stated),
        frozenset(one if isinstance(one, Needs | NoFile) else type(one) for one in needed),
        min((Version.parse(one) for one in drivers if one), default=None),
    )


def _identity(reason: NothingMeets | RuledOut | None) -> object:
    """Return what two requirements have in common that say the same, whatever version has them."""
    ground = reason.ground if reason is not None else None
    return type(reason), ground.predicate if isinstance(ground, Entails) else ground


def _reason(chosen: Chosen, some: Sequence[Candidate]) -> NothingMeets | RuledOut | None:
    """Return a requirement that excludes the candidates of a release beside the rest of an answer; None when there is none.

    First one that nothing meets, then one that the answer has of the release, then one that the release has of the answer.
    """
    instance, pins = chosen
    first = some[0]
    if first.key == PYTHON and any(root.ground.group == PYTHON_ATTEMPT for root in instance.roots):
        return None  # what is chosen was chosen for its Python
    with suppress(UnavailableError):
        need = next(_needs_without_file(instance, first), None)
        if need is not None:
            return NothingMeets(ground=need.ground, python=pins[PYTHON].label)
        for need in instance.requirements_on(pins):
            if (
                need.key == first.key
                and need.ground.group != PYTHON_ATTEMPT
                and not any(instance.accepts(need, one) for one in some)
            ):
                return RuledOut(ground=need.ground)
        # A release of a component is excluded by its own needs only if each of its builds is.
        unmet = [unmet_need(instance, pins, one) for one in (some if not first.key.is_package else some[:1])]
        return unmet[0] if None not in unmet else None
    return None


def _needs_without_file(instance: ProblemInstance, candidate: Candidate) -> Iterator[Requirement]:
    """Yield the requirements on distributions of which no version that they allow has a file for the Python of the instance.

    They are those of a version, and of what it requires if only one version of that will do, and so on. None is yielded where
    an index that has to be asked cannot be reached.
    """
    waiting, seen = [candidate], {candidate}
    with suppress(UnavailableError):
        while waiting:
            one = waiting.pop()
            for need in instance.requirements(one) if one.key.is_package else ():
                if not need.key.is_package:
                    continue
                usable = [other for other in instance.candidates(need.key) if _has_file(instance, need, other)]
                if not usable:
                    yield need
                elif len(usable) == 1 and usable[0] not in seen:
                    seen.add(usable[0])
                    waiting.append(usable[0])


def _has_file(instance: ProblemInstance, need: Requirement, candidate: Candidate) -> bool:
    return not candidate.has_no_file and not instance.is_known_unusable(candidate) and instance.accepts(need, candidate)
