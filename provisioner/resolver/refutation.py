"""Decide a problem: its most preferred answer, or the refutation, which can be explained.

A problem may have several conflicts that have no request in common. Who removes the first finds the next one, so all are looked
for: the requests of those found are dropped, and what remains is decided again. Where the spec asks for something that nobody
can have, nothing else is asked of an index: that is told at once, with all else that is known from the same pages.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import cache, cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import FRAMEWORKS
from provisioner.errors import ProvisionError, UnavailableError
from provisioner.grounds.edit import SetTwin
from provisioner.grounds.patch import patch_of
from provisioner.grounds.requirement import EXPECTATION, WHEEL, Ground, HostFact, Relation, RequiresComponent, Row
from provisioner.index.model import Environment
from provisioner.resolver.attempts import (
    PYTHON,
    Failure,
    Indexes,
    attempts_of,
    system_half,
)
from provisioner.resolver.changed import (
    ChangedRequests,
    KnownFailures,
    choose_or_none,
    close,
    groups_about_builds,
    unreached_index,
)
from provisioner.resolver.outcome.held_back import left_out_with_pytorch
from provisioner.resolver.pythons import best_answer
from provisioner.resolver.refuting import refuted, refuted_without
from provisioner.resolver.requirement import PYTORCH
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import OutOfStepsError, ProblemInstance, ReadBudget, StepBudget
from provisioner.resolver.search.resolve import pins_or_proof
from provisioner.words.choice import held_back_words
from provisioner.words.conflict import conflict_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from provisioner.grounds.conflict import Conflict, Fix, Newest, Published, Unlisted
    from provisioner.grounds.requirement import Group
    from provisioner.resolver.attempts import Attempt, Chosen, SourceFor
    from provisioner.resolver.explain.joined import JointConflict
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key

MOST_CONFLICTS = 5
"""The number of independent conflicts that are told at once."""

MOST_STEPS = 100_000
"""The number of steps of searches, with and beside the fixes, that are spent once a conflict is proved."""

PART_OF_OTHERS = 0.5
"""The part of the steps that are left which looking for one more conflict may take."""

MOST_FIXES_OF_ONE = 2
"""The number of fixes that each of several conflicts has."""


def _never() -> bool:
    return False


class Refutation:
    """The proof that a problem has no answer.

    `unlisted` are, by component, the releases that the conflict asks for and the matrix does not know. `beside` are
    refutations of the same problem that were found with this one and have no request in common with it.
    """

    beside: tuple[Refutation, ...] = ()
    is_beyond_help = False
    """Whether the spec asks for something of which no version can be had, so that nothing is tried."""
    published: tuple[Published, ...] = ()
    """The wheels outside package indexes of what no version can be had of."""
    of_gpus: Conflict | None = None
    """The conflict about what no version can be had of, if GPUs of the target refuse versions in any file; else None."""

    def __init__(
        self, problem: Problem, unlisted: Mapping[str, Unlisted | Newest], steps: StepBudget, known: KnownFailures
    ) -> None:
        self.problem = problem
        self.unlisted = unlisted
        self.steps = steps
        self.known = known
        """What is known to fail: all that is looked for beside this refutation asks it, and adds to it."""

    @cached_property
    def conflict(self) -> Conflict:
        """The conflict, without fixes."""
        raise NotImplementedError

    def fixes(self, unless: Callable[[], bool]) -> tuple[Fix, ...]:
        """Return the fixes of the conflict, the cheapest first; `unless` ends the search for them (see `explain.fixes`)."""
        raise NotImplementedError

    @property
    def unreached(self) -> str:
        """The index out of reach without which changes could not be solved; "" when there was none."""
        return ""

    def explained(self, unless: Callable[[], bool] = _never) -> Conflict:
        """Return the conflict with its fixes, which are looked for within `MOST_STEPS`."""
        self.limit_fixes()
        found = self.untried() if self.is_beyond_help else replace(self.conflict, fixes=self.fixes(unless))
        return self.cut_short(found)

    def limit_fixes(self) -> None:
        """Limit the steps from here on; the conflicts that are proved take what they need before."""
        for one in (self, *self.beside):
            _ = one.conflict
        self.steps.limit(MOST_STEPS)

    def cut_short(self, conflict: Conflict) -> Conflict:
        """Return a conflict of the problem, with its fixes, with why more is unknown: no steps left, no index in reach."""
        is_cut_short = self.steps.was_short and not conflict.is_beyond_help
        return replace(conflict, is_cut_short=is_cut_short, unreached=self.unreached)

    def untried(self) -> Conflict:
        """Return the conflict without fixes, as one beside which nothing else of the spec was solved, if there is anything."""
        told = {ground for one in (self, *self.beside) for ground in one.requests}
        rest = _without(self.problem, told).request.spec
        is_all = not rest.packages and not any(name in rest.requires for name in FRAMEWORKS)
        return replace(self.conflict, is_rest_unsolved=not is_all)

    def close(self) -> None:
        """Free what the searches hold."""
        raise NotImplementedError

    @cached_property
    def requests(self) -> tuple[Ground, ...]:
        """The requests in the conflict, as far as a line of the spec can be dropped."""
        from provisioner.resolver.explain.edits import request_left_out

        clauses = (clause for member in self.conflict.members for clause in member.clauses)
        requests = (clause for clause in clauses if isinstance(clause, Ground) and clause.is_request)
        return tuple(dict.fromkeys(one for one in requests if request_left_out(one) is not None))

    @property
    def dropped(self) -> tuple[Ground, ...]:
        """The requests without which the conflict is none: that on Python stays beside others, for it is for all packages."""
        others = tuple(one for one in self.requests if not (isinstance(one, RequiresComponent) and one.name == PYTHON.name))
        return others or self.requests


class _OfComponents(Refutation):
    """The refutation of a problem by its components alone: `groups` are those of the minimal conflict that `search` found."""

    def __init__(
        self,
        instance: ProblemInstance,
        search: CompleteSearch,
        groups: tuple[Group, ...],
        *,
        problem: Problem,
        unlisted: Mapping[str, Unlisted | Newest],
        read: SourceFor | None,
    ) -> None:
        super().__init__(problem, unlisted, instance.budget.steps, KnownFailures())
        self._instance, self._search, self._groups, self._read = instance, search, groups, read

    @cached_property
    def conflict(self) -> Conflict:
        from provisioner.resolver.explain.conflict import described

        return described(self._instance, self._search, self._groups)

    def fixes(self, unless: Callable[[], bool]) -> tuple[Fix, ...]:
        from provisioner.resolver.explain.fixes import fixes

        found = partial(fixes, self._instance, self._search, self._groups, unless=unless)
        if self._read is None or not self.problem.packages:
            return found()
        indexes = Indexes(self._read, self._instance.budget)
        whole = found(solve_again=ChangedRequests(self.problem, indexes, self.known).outcome)
        if whole or unless():
            return whole
        # What the packages would say to them is not known, or they say no: then there is more to change.
        return self._with_more(found())

    def _with_more(self, alone: Sequence[Fix]) -> tuple[Fix, ...]:
        """Return fixes that the components alone have, each with the first fix of what the packages say no to then.

        If there is none of the kind, those that the packages are not known to refuse are returned as unverified: one is known
        whose next step takes it back.
        """
        from provisioner.resolver.explain.outcomes import fix_of

        whole, left = [], []
        for index, one in enumerate(alone):
            more = _fixes(_with_fixes(self.problem, [one]), self._read, self)[:1] if index < MOST_FIXES_OF_ONE else ()
            replaced = {edit.name for edit in one.edits if isinstance(edit, SetTwin)}
            if not more:
                left.append(replace(one, is_unverified=True))
            for other in more:
                if not any(isinstance(edit, SetTwin) and edit.twin in replaced for edit in other.edits):
                    fix = fix_of((*one.edits, *other.edits), other.gives, self.problem.request)
                    whole.append(replace(fix, is_unverified=one.is_unverified or other.is_unverified))
        return tuple(whole or left)

    def close(self) -> None:
        self._search.close()


class _OfAttempts(Refutation):
    """The refutation of a problem with packages, by the failures of all its attempts."""

    def __init__(
        self,
        joint: JointConflict,
        known: KnownFailures,
        problem: Problem,
        unlisted: Mapping[str, Unlisted | Newest],
        searches: ExitStack,
        *,
        indexes: Indexes,
    ) -> None:
        super().__init__(problem, unlisted, indexes.budget.steps, known)
        self._joint, self._searches = joint, searches
        self._changed = ChangedRequests(problem, indexes, known)

    @cached_property
    def conflict(self) -> Conflict:
        conflict = self.of_gpus or self._joint.conflict
        return replace(conflict, is_beyond_help=self.is_beyond_help, published=self.published)

    def fixes(self, unless: Callable[[], bool]) -> tuple[Fix, ...]:
        return self._joint.fixes(self._changed.outcome, unless, exclude=self._changed.exclude)

    @property
    def unreached(self) -> str:
        return self.known.unreached

    def close(self) -> None:
        self._searches.close()
        for other in self.beside:
            other.close()


def decided(
    problem: Problem, read: SourceFor | None, steps: StepBudget | None = None, *, known: KnownFailures | None = None
) -> Chosen | Refutation:
    """Return a problem instance and its most preferred answer, or the refutation, which the caller must close.

    Without `read`, which opens indexes, only the components are decided. `steps` are those that the searches take, `known` what
    is known to fail of problems that are like it. Raises `UnavailableError` when there might be an answer with an index that
    cannot be reached.
    """
    known = known if known is not None else KnownFailures()
    attempts = attempts_of(problem) if read is not None else []
    if read is None or not attempts:
        return _of_components(problem, read, steps or StepBudget())
    indexes = Indexes(read, ReadBudget(steps))
    return _of_pages(problem, attempts, indexes, known=known) or _of_attempts(problem, attempts, indexes, known=known)


def _of_pages(problem: Problem, attempts: Sequence[Attempt], indexes: Indexes, *, known: KnownFailures) -> Refutation | None:
    """Return the refutation by the pages of the named projects alone; None where more has to be read.

    What cannot be had at all comes first, then the rest in the order of the spec. None for a problem with requirements of a
    caller, such as a question, which has to be in what is told.
    """
    from provisioner.resolver.published import published_wheels
    from provisioner.resolver.unobtainable import is_beyond_help, requests_of, unobtainable

    found = unobtainable(attempts, indexes) if not problem.extra else []
    if any(unreached_index(failed) is not None for failed in found):
        close([one for failed in found for one in failed])
        return None
    if not found:
        return None
    from provisioner.resolver.explain.edits import for_other_cuda  # loaded only when there is no answer
    from provisioner.resolver.explain.joined import JointConflict
    from provisioner.resolver.explain.unserved_gpus import refused_by_gpus

    refutations = []
    for failed in found:
        with ExitStack() as searches:
            searches.callback(close, failed)
            joint = JointConflict(problem, failed, indexes)
            searches.callback(joint.close)
            requests = requests_of(failed[0])
            has_twin = any(for_other_cuda(problem.matrix, one.key.project) for one in requests)
            lost = is_beyond_help(failed, joint.groups) and not has_twin
            known.add(failed)
            whole = _OfAttempts(joint, known, problem, {}, searches.pop_all(), indexes=indexes)
            whole.is_beyond_help = lost
            whole.published = published_wheels(attempts, requests) if lost else ()
            whole.of_gpus = refused_by_gpus(failed[0], requests[0]) if lost else None
            refutations.append(whole)
    first, *others = sorted(refutations, key=lambda one: not one.is_beyond_help)
    first.beside = tuple(others)
    return first


def _of_components(problem: Problem, read: SourceFor | None, steps: StepBudget) -> Chosen | Refutation:
    instance = ProblemInstance(system_half(problem), budget=ReadBudget(steps))
    found = pins_or_proof(instance)
    if not isinstance(found, CompleteSearch):
        return instance, found
    groups = found.minimal()
    if any(map(_is_expectation, groups)):
        found.close()
        return decided(problem.lenient(), read, steps)
    unlisted = _unlisted(instance, found, groups, read)
    return _OfComponents(instance, found, groups, problem=problem, unlisted=unlisted, read=read)


def _of_attempts(problem: Problem, attempts: list[Attempt], indexes: Indexes, *, known: KnownFailures) -> Chosen | Refutation:
    whole: list[Failure] = []
    failed = whole
    with ExitStack() as searches:
        searches.callback(close, whole)
        chosen = best_answer(problem, attempts, indexes, failed=whole)
        if chosen is not None:
            _require_framework(*chosen)
            return chosen
        if any(any(map(_is_expectation, one.core)) and any(map(_is_expectation, one.groups)) for one in whole):
            return decided(problem.lenient(), indexes.open, indexes.budget.steps)
        from provisioner.resolver.explain.joined import JointConflict, most_telling  # loaded only when there is no answer

        unreached = unreached_index(whole)
        if unreached is not None:
            # The index out of reach might have the answer, unless the same environments are impossible whatever it has.
            failed = []
            searches.callback(close, failed)
            if not all(_is_impossible_with_any_build(attempt, indexes, failed) for attempt in attempts):
                raise _with_conflict(unreached.error, JointConflict(problem, whole).conflict)
        told = most_telling(failed)
        unlisted = _unlisted(told.instance, told.search, told.groups, indexes.open)
        joint = JointConflict(problem, failed, indexes)
        searches.callback(joint.close)
        known.add(failed)
        return _OfAttempts(joint, known, problem, unlisted, searches.pop_all(), indexes=indexes)


def _is_impossible_with_any_build(attempt: Attempt, indexes: Indexes, failed: list[Failure]) -> bool:
    """Return whether an attempt has no answer whatever the indexes of builds have; its failure is then appended to `failed`.

    What an earlier attempt in `failed` failed by is tried first. A proof that rests on what such indexes have is set aside, and
    another one looked for, until there is one that does not, or none at all.
    """
    for core in dict.fromkeys(one.core for one in failed):
        again = refuted(attempt, core, indexes)
        if again is not None:
            failed.append(again)
            return True
    without: set[Group] = {Relation(PYTORCH.name, WHEEL)}
    while (found := refuted_without(attempt, without, indexes)) is not None:
        resting = groups_about_builds(found)
        if not resting:
            failed.append(found)
            return True
        found.search.close()
        without |= resting
    return False


def every_conflict(found: Refutation, read: SourceFor | None) -> list[Conflict]:
    """Return the conflict of a refutation with its fixes, and all others that have no request in common with it.

    A fix that changes no more than requests of the conflict leaves nothing else in the way. So the fixes come first, and others
    are looked for where none of them is such a one: the problem without the requests is then solved once less.
    """
    found.limit_fixes()
    with ExitStack() as searches:

        @cache
        def others() -> list[Refutation]:
            refutations = _independent(found, read)
            for other in refutations[len(found.beside) :]:
                searches.callback(other.close)
            return refutations

        if not found.beside:
            conflict = found.explained(lambda: bool(others()))
            is_all = found.is_beyond_help or any(_is_among(fix, found.requests) for fix in conflict.fixes)
            if is_all or not others():
                return [found.cut_short(conflict)]
        return [found.cut_short(one) for one in _alone(found, others(), read)]


def _is_among(fix: Fix, requests: Sequence[Ground]) -> bool:
    """Return whether a fix changes nothing but some of `requests`."""
    lines = (getattr(edit, "requests", None) for edit in fix.edits)
    return all(some and set(some) <= set(requests) for some in lines)


def _independent(found: Refutation, read: SourceFor | None) -> list[Refutation]:
    """Return the refutations, beside `found`, that have no request in common with it or with each other.

    Each is that of the problem without the requests of those before it. [] for a problem with requirements of a caller, such as
    a question, and when an index that would tell cannot be reached. Beside what cannot be had at all nothing is solved: only
    what is known from the pages of the named projects is told.
    """
    refutations = [found, *found.beside]
    while not found.problem.extra and not found.is_beyond_help and len(refutations) < MOST_CONFLICTS:
        rest = _without(found.problem, [ground for one in refutations for ground in one.dropped])
        if not refutations[-1].requests or not (rest.request.spec.requires or rest.request.spec.packages):
            break
        with suppress(ProvisionError):
            again = _another(rest, read, found)
            if again is not None:
                refutations.append(again)
                continue
        break
    return refutations[1:]


def _another(rest: Problem, read: SourceFor | None, found: Refutation) -> Refutation | None:
    """Return the refutation of what remains of a refuted problem; None when there is none to tell, or when that is unknown.

    The conflict is found here: where the steps end before that, it may not be minimal, and is not told.
    """
    steps = found.steps
    with steps.share(PART_OF_OTHERS), ExitStack() as closing:
        again = decided(rest, read, steps, known=found.known)
        if isinstance(again, Refutation):
            closing.callback(again.close)
            _ = again.conflict
            if not again.unlisted and steps.has_more():
                closing.pop_all()
                return again
    return None


def _alone(found: Refutation, others: Sequence[Refutation], read: SourceFor | None) -> list[Conflict]:
    """Return the conflict of each refutation with the fixes that it needs where the requests of the others are dropped.

    The first fixes of all conflicts work together, and so does each further one with the first of the others. A change of what
    all conflicts share, which mends them all at once, comes before them. If there are no fixes that work together, the first
    conflict has those of the whole problem instead, and the others have none.
    """
    if found.is_beyond_help:
        return [found.untried(), *(other.conflict for other in others)]
    every = [found, *others]
    fixes = _fixes_together(every, read)
    if not fixes:
        return [found.explained(), *(other.conflict for other in others)]
    first = [some[0] for some in fixes]
    at_once = _mending_all(every, chain.from_iterable(fixes), read)
    of_all = () if at_once is None else (at_once,)
    conflicts = []
    for number, (one, some) in enumerate(zip(every, fixes, strict=True)):
        beside = [*first[:number], *first[number + 1 :]]
        further = [fix for fix in some[1:MOST_FIXES_OF_ONE] if _work(found, [fix, *beside], read)]
        kept = [fix for fix in (some[0], *further) if at_once is None or fix.identities != at_once.identities]
        # They were found where requests are dropped, and are applied where none is.
        whole = [replace(fix, patch=patch_of(found.problem.request, fix.edits)) for fix in (*of_all, *kept)]
        conflicts.append(replace(one.conflict, fixes=tuple(whole)))
    return conflicts


def _mending_all(every: Sequence[Refutation], fixes: Iterable[Fix], read: SourceFor | None) -> Fix | None:
    """Return the first fix that changes nothing but requests which all refutations have, such as Python, and mends them all."""
    from provisioner.resolver.explain.outcomes import fix_of, outcome

    problem = every[0].problem
    shared = [one for one in every[0].requests if all(one in other.requests for other in every)]
    tried = {fix.identities: fix for fix in fixes if not fix.gives_up and _is_among(fix, shared)}
    for fix in tried.values():
        with suppress(ProvisionError, OutOfStepsError):
            chosen = _answer_after(every[0], [fix], read)
            if chosen is not None:
                given = outcome(*chosen)
                return replace(fix_of(fix.edits, given.told, problem.request), is_unverified=bool(given.doubts))
    return None


def _fixes_together(every: Sequence[Refutation], read: SourceFor | None) -> list[tuple[Fix, ...]]:
    """Return the fixes of each refutation, of which the first of all work together; [] when there are no such fixes.

    Those that each needs alone come first. If they do not go with each other, as where one needs a newer Python than the other
    asks for, or give up a request because they keep a Python that another conflict is about, each is looked for after those
    before it, in one order and, if that gives up a request, in the other.
    """

    def work(fixes: Sequence[tuple[Fix, ...]]) -> bool:
        return all(fixes) and _work(every[0], [some[0] for some in fixes], read)

    def gives_up(fixes: Sequence[tuple[Fix, ...]]) -> bool:
        return any(some[0].gives_up for some in fixes)

    alone = _fixes_of_each(every, read)
    if not all(alone):
        return []
    keeps_python = any(one.dropped != one.requests for one in every)
    working = [alone] if work(alone) else []
    if working and not (keeps_python and gives_up(alone)):
        return alone
    in_turn = _fixes_in_turn(every[0].problem, every, read)
    if work(in_turn):
        working.append(in_turn)
        if not gives_up(in_turn):
            return in_turn
    other_way = _fixes_in_turn(every[0].problem, every[::-1], read)[::-1]
    if work(other_way):
        working.append(other_way)
        if not gives_up(other_way):
            return other_way
    return working[0] if working else []


def _fixes_of_each(every: Sequence[Refutation], read: SourceFor | None) -> list[tuple[Fix, ...]]:
    """Return the fixes of each refutation where the requests of the others are dropped; () when that is unknown.

    If a single one has none, because nothing would be left of the spec, the first fixes of the others are applied instead.
    Where a second one has none, no fixes work together, and those of the rest are not looked for. The last refutation was
    found without the requests of all others, unless it is of the same problem as the first.
    """
    problem, steps = every[0].problem, every[0].steps
    found: list[tuple[Fix, ...]] = []
    for number, one in enumerate(every):
        if found.count(()) > 1:
            return found
        requests = [request for other in every if other is not one for request in other.dropped]
        with steps.share(1 / (len(every) - number + 1)):
            is_of_rest = one is every[-1] and one.problem is not problem
            found.append(one.fixes(_never) if is_of_rest else _fixes(_without(problem, requests), read, one))
    if found.count(()) == 1:
        with steps.share(1 / 2):
            found[found.index(())] = _fixes(_with_fixes(problem, [some[0] for some in found if some]), read, every[0])
    return found


def _fixes_in_turn(problem: Problem, every: Sequence[Refutation], read: SourceFor | None) -> list[tuple[Fix, ...]]:
    """Return the fixes of each refutation of a problem after the first of those before it, without the requests of the later.

    Each changes something of its conflict, and nothing that a first fix before it has changed. Once one has none, those after
    it have none either.
    """
    found: list[tuple[Fix, ...]] = []
    for number, one in enumerate(every):
        requests = [request for later in every[number + 1 :] for request in later.requests]
        before = [some[0] for some in found]
        changed = {edit.component for fix in before for edit in fix.edits}
        with one.steps.share(1 / (len(every) - number + 1)):
            fixes = _fixes(_without(_with_fixes(problem, before), requests), read, one)
        own = {member.component for member in one.conflict.members}
        names = [(fix, {edit.component for edit in fix.edits}) for fix in fixes]
        found.append(tuple(fix for fix, some in names if changed.isdisjoint(some) and not own.isdisjoint(some)))
        if not found[-1]:
            break
    return [*found, *[()] * (len(every) - len(found))]


def _fixes(problem: Problem, read: SourceFor | None, like: Refutation) -> tuple[Fix, ...]:
    """Return the fixes of a problem like one that is refuted; () when it has an answer, or when that is unknown."""
    with suppress(ProvisionError):
        found = decided(problem, read, like.steps, known=like.known)
        if isinstance(found, Refutation):
            try:
                return found.fixes(_never)
            finally:
                found.close()
    return ()


def _without(problem: Problem, grounds: Collection[Ground]) -> Problem:
    """Return the problem without some lines of the spec, given their grounds, in its requirements and in its request."""
    from provisioner.resolver.explain.edits import request_left_out

    request = problem.request
    for edit in filter(None, map(request_left_out, grounds)):
        request = edit.apply(request)
    return replace(problem.dropping({ground.group for ground in grounds}), request=request)


def _work(found: Refutation, fixes: Sequence[Fix], read: SourceFor | None) -> bool:
    """Return whether the refuted problem has an answer after the edits of all fixes; True when an index cannot tell.

    False when no steps are left to find out.
    """
    try:
        return _answer_after(found, fixes, read) is not None
    except OutOfStepsError:
        return False
    except ProvisionError:
        return True


def _answer_after(found: Refutation, fixes: Sequence[Fix], read: SourceFor | None) -> Chosen | None:
    """Return the answer of the refuted problem after the edits of all fixes; None when there is none.

    Raises `OutOfStepsError`, and `ProvisionError` when an index cannot tell.
    """
    indexes = Indexes(read, ReadBudget(found.steps)) if read is not None else None
    return choose_or_none(_with_fixes(found.problem, fixes), indexes, found.known)


def _with_fixes(problem: Problem, fixes: Sequence[Fix]) -> Problem:
    """Return the problem after the edits of all fixes."""
    from provisioner.resolver.explain.outcomes import applied, rejoined

    return rejoined(problem, applied(problem.request, [edit for fix in fixes for edit in fix.edits]))


def _is_expectation(group: Group) -> bool:
    return isinstance(group, Row) and group.table == EXPECTATION


def _unlisted(
    instance: ProblemInstance, search: CompleteSearch, groups: Collection[Group], source_for: SourceFor | None
) -> dict[str, Unlisted | Newest]:
    """Return, by component, the releases that a requirement of the conflict asks for and the matrix does not know.

    They are those that an index has, and where no index tells, or without `source_for`, all newer ones that the spec requests.
    Beside requirements of a caller, such as a lock, which name what the matrix knows, newer ones do not matter. `groups` are
    those of the conflict.
    Raises `UnavailableError` when the index that may have such a release cannot be reached.
    """
    from provisioner.resolver.python.unlisted import newest_known, unlisted_releases

    problem = instance.problem
    wanted = (one for group in groups for _, one in search.members(group))
    unmet = dict.fromkeys(one for one in wanted if not one.key.is_package and not instance.allowed(one))
    if not unmet:
        return {}
    found: dict[str, Unlisted | Newest] = {}
    stated = {root.key for root in instance.roots if isinstance(root.ground, HostFact)}
    until, is_asked = problem.request.spec.policy.exclude_newer, source_for is not None
    for one in unmet if not problem.extra else ():
        if not one.ground.is_request or one.key in stated:  # a host states the release that it has
            continue
        newest = newest_known(problem.matrix, one, until, is_asked=is_asked)
        found |= {newest.name: newest} if newest is not None else {}
    if source_for is None:
        return found
    platform, python = problem.request.platform, problem.domains[PYTHON][0].label
    environment = instance.finder.environment if instance.finder else Environment(platform=platform, python=python)
    return found | {one.name: one for one in unlisted_releases(problem.matrix, source_for(environment), unmet)}


def _require_framework(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> None:
    """Raise `UnavailableError` for an answer that is without PyTorch only because no build of it is within reach.

    Packages that need PyTorch would then be those of years ago that did not, and not what anybody wants.
    """
    held = left_out_with_pytorch(instance, pins)
    if held is not None and instance.finder is not None:
        error = next(iter(instance.finder.variant_indexes.unreached.values()))
        error.add(causes=("without what it has the answer would be one without PyTorch:", f"  {held_back_words(held)}"))
        raise error


def _with_conflict(error: UnavailableError, conflict: Conflict) -> UnavailableError:
    """Add the conflict found without an unreachable index to the causes of the `error` of that index, and return the error."""
    error.add(causes=("without what it has there is no answer:", *(f"  {line}" for line in conflict_lines(conflict))))
    return error
