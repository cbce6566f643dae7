"""Fixes of a conflict: sets of edits to the inputs, cheapest first, each verified by solving again.

A set may contain several edits because a conflict may remain after the first.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache, partial
from itertools import chain, combinations, islice, takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.components import FRAMEWORKS, Effort
from provisioner.errors import ProvisionError, UnavailableError
from provisioner.grounds.conflict import AT_ONCE, MOST_TRIED, Fix
from provisioner.grounds.edit import SetExtras, SetFact, permitting
from provisioner.grounds.patch import patch_of
from provisioner.grounds.requirement import FILES, Relation, RequiresDistribution
from provisioner.names import pep508
from provisioner.resolver.explain.edits import (
    RANGES,
    Cost,
    Costs,
    cuda_images,
    edit_of,
    edits_of_inputs,
    fewer_hosts,
    for_the_cpu,
    from_source,
    is_python_in,
    left_out,
    other_pythons,
    permits_several_pythons,
    rank,
)
from provisioner.resolver.explain.relaxable import Relaxable, nearest, relaxables
from provisioner.resolver.outcome.answer import doubts_of
from provisioner.resolver.outcome.cautions import unknown_extras
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key, Matching, ReleaseCandidate
from provisioner.resolver.search.instance import OutOfStepsError, ProblemInstance, violations
from provisioner.resolver.search.provider import SearchReporter
from provisioner.resolver.search.provider import search as engine_search
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.grounds.choice import UnknownExtra
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Group
    from provisioner.request import Request
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.complete import CompleteSearch

    SolveAgain = Callable[[Request], "Outcome | None"]
    Exclude = Callable[[tuple[Group, ...], str], None]
    """Told a proof that no version of a distribution goes with some groups, so that this is not proved again."""


class Outcome(NamedTuple):
    """The answer to a changed request: the versions in it, by name, its doubts, and the requested extras that it lacks.

    `is_whole` is False for an answer that leaves out the frameworks whose builds are on an index out of reach.
    """

    gives: Mapping[str, str]
    doubts: tuple[Doubt, ...]
    unknown_extras: tuple[UnknownExtra, ...] = ()
    is_whole: bool = True

    @property
    def is_measured(self) -> bool:
        """Whether no doubt is about the chosen versions themselves, such as that nobody measured their GPU code."""
        return not any(one.is_of_choice for one in self.doubts)

    @property
    def told(self) -> Mapping[str, str]:
        """The versions to tell: without the frameworks that are left out, which Python the answer has says nothing."""
        return self.gives if self.is_whole else {name: version for name, version in self.gives.items() if name != "python"}

    @property
    def is_settled(self) -> bool:
        """Whether the chosen versions are measured, and none is left out for want of its index."""
        return self.is_whole and self.is_measured


OLDEST_PYTHON = Version.parse("3.7")
"""The oldest Python of a fix: the programs that rendered files bring along run on it, and on nothing older."""

SHOWN = 5
"""How many fixes are returned."""

MOST_NEARER = 8
"""The number of versions of a distribution that are tried, nearest first, before the most preferred one is taken."""

MOST_ELSEWHERE = 3
"""The number of versions of a distribution that are tried, nearest first, of those that have files for another Python alone."""

MOST_HALVED = 7
"""The number of answers that are looked for to find the nearest version of a distribution with another Python."""

MOST_STEPS_OF_HALVED = 5_000
"""The most steps (`StepBudget`) that each of these answers may take.

Measured: 1,400 to 4,300 for those of eight conflicts that were found; 11,900 to learn that no Python has one.
"""

MOST_STEPS_WITH_PACKAGES = 40_000
"""The most steps that each of these answers may take where the version found by the components alone has none.

Measured: over 20,000 for TensorFlow with a pin of Keras, on eight Pythons.
"""

MOST_UNSETTLED = 4
"""The number of values with an unsettled outcome that are skipped for a settled one; if there is none, the nearest is taken."""

MOST_ROUNDS = 3_000
"""The number of rounds of resolvelib that are spent on combinations; a fix of a large conflict takes some hundreds.

A limit in seconds would give the same conflict other fixes on another machine.
"""

MOST_CONFLICTS = 20
"""The number of conflicts after which resolvelib gives up a fix and the complete search decides.

Measured on five refusals: fixes that work were found after at most 13 conflicts; those that do not went on for 1,500 rounds
with up to 240 conflicts, and the complete search then decided them in milliseconds.
"""

MOST_READS, MOST_READS_OF_ONE = 1_000, 400
"""The numbers of versions whose metadata may be read for all fixes of a conflict, and for one fix, after the proof.

A fix of a large conflict takes some hundreds; one that takes thousands would keep the user waiting for too long.
"""

MOST_READS_OF_FURTHER, MOST_READS_TO_DECIDE = 200, 60
"""The numbers of versions whose metadata may be read for one fix besides a known one that keeps all requests: by resolvelib,
and by the complete search where resolvelib gives up.

Measured on fifteen conflicts: the complete search found such fixes within 51 versions, and read up to 187 where there is none.
"""


class Working(Struct, frozen=True, kw_only=True):
    """A set of edits verified to give an answer, with their costs and outcome, by which fixes are ranked.

    `chosen` are the candidates that the edits change requests and facts to; empty when the edits are of other inputs.
    `is_least`: no part of the edits gives an answer. `place` is the place of edits of other inputs among those that were tried,
    the nearest first; 0 for edits of requests and facts.
    """

    edits: tuple[Edit, ...]
    costs: tuple[Cost, ...]
    outcome: Outcome
    chosen: frozenset[Candidate] = frozenset()
    is_least: bool = True
    place: int = 0

    @property
    def identities(self) -> frozenset[tuple[object, ...]]:
        """The identities of the edits."""
        return frozenset(edit.identity for edit in self.edits)

    @property
    def gives_up(self) -> bool:
        """Whether one of the edits drops a request."""
        return any(edit.gives_up for edit in self.edits)

    @property
    def is_last_resort(self) -> bool:
        """Whether the edits give up the GPU or a request, or change hardware."""
        return max(self.costs)[0] >= Effort.NO_GPU

    @property
    def rank(self) -> tuple[object, ...]:
        """The rank among fixes, lowest first: fixes with measured choices, those with unmeasured ones, then last resorts."""
        told = [(edit.change, str(edit.identity)) for edit in self.edits]
        return self.is_last_resort, not self.outcome.is_measured, rank(list(self.costs)), self.place, told


def never() -> bool:
    """Return False: nothing ends the search for fixes before its budget does."""
    return False


def fixes(
    instance: ProblemInstance,
    search: CompleteSearch,
    groups: tuple[Group, ...],
    *,
    solve_again: SolveAgain | None = None,
    exclude: Exclude | None = None,
    unless: Callable[[], bool] = never,
) -> tuple[Fix, ...]:
    """Return the fixes of a conflict, at most `SHOWN`, ordered by `Working.rank`; () when none is found.

    `unless` is asked once no change of a single request or fact of the conflict gives an answer: if it returns True, for other
    conflicts remain whatever is changed here, nothing more is tried.

    `groups` are the conflict's groups. `solve_again` solves a changed request and returns its outcome, None when there is no
    answer; `exclude` is told of what it need not solve. If `solve_again` is None, a system stack is solved again here, while
    with packages only fixes within the environment of `instance` are found.
    """
    if solve_again is None and instance.finder is None:
        solve_again = partial(_solve_system_again, instance.problem)
    instance.budget.limit(MOST_READS, reads_sources="build" not in instance.problem.request.spec.policy.permitted)
    costs = Costs(groups)
    among_members = _Search(instance, search, solve_again, costs, exclude)
    found = among_members.found(groups, unless)
    if not found and unless():
        return ()
    if solve_again is not None:
        pythons = other_pythons(instance) if is_python_in(instance, groups) else ()
        if (working := _with_one_of(pythons, instance, solve_again, costs=costs)) is not None:
            found.append(working)
        tried = chain(edits_of_inputs(instance, groups), fewer_hosts(instance, search, groups))
        found.extend(_of_inputs(instance, tried, solve_again, known=found, costs=costs))
        found.extend(_compiled(instance, groups, costs))
        if all(one.is_last_resort or len(one.edits) > 1 for one in found):
            found.extend(_of_inputs(instance, for_the_cpu(instance, groups), solve_again, known=found, costs=costs))
    if not any(len(one.edits) == 1 for one in found):
        found.extend(among_members.without_one(groups))
    if not found and (last := among_members.smallest(groups)) is not None:
        found.append(last)
    found = [one for one in found if not _needs_dated_python(one, instance)]
    found = [*map(among_members.least_part, found)]
    found = [one for one in found if not _is_superset(one, found)]
    # What was solved without a framework is told only where nothing was solved whole.
    found = [one for one in found if one.outcome.is_whole] or found
    found.sort(key=lambda one: one.rank)
    distinct = {one.identities: one for one in reversed(found)}
    return tuple(
        replace(
            fix_of(one.edits, one.outcome.told, instance.problem.request),
            is_unverified=bool(one.outcome.doubts) or not one.outcome.is_whole,
            is_least=one.is_least,
        )
        for one in reversed(distinct.values())
    )[:SHOWN]


def _needs_dated_python(working: Working, instance: ProblemInstance) -> bool:
    """Return whether what edits give is for a Python that nobody wants to go back to; the one of a Jetson is what it has."""
    python = working.outcome.gives.get("python")
    is_on_jetson = any(target.host.jetson is not None for target in instance.problem.request.hosts)
    return python is not None and Version.parse(python) < OLDEST_PYTHON and not is_on_jetson


def fix_of(edits: Sequence[Edit], gives: Mapping[str, str], request: Request) -> Fix:
    """Return edits of a request as a fix, which names the hosts if the request has more than one machine.

    `gives` are the versions of the answer, by name.
    """
    names_hosts = sum(target.count for target in request.hosts) > 1
    labels = {target.label: target.names or (target.label,) for target in request.hosts} if names_hosts else {}
    requested = frozenset(request.spec.requires)
    return Fix(edits=tuple(edits), gives=gives, hosts=labels, requested=requested, patch=patch_of(request, edits))


def rejoined(problem: Problem, request: Request) -> Problem:
    """Return the problem of a changed request, with the extra requirements of `problem`, such as a question or a lock."""
    return join(problem.matrix, request).with_roots(*problem.extra)


def applied(request: Request, edits: Iterable[Edit]) -> Request:
    """Return a request after the edits were applied in order."""
    for edit in edits:
        request = edit.apply(request)
    return request


def gives(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """Return the versions of an answer that a fix shows, by name, sorted.

    They are those of frameworks, CUDA, ROCm, Python and the distributions of the spec.
    """
    found: dict[str, str] = {}
    for key, candidate in pins.items():
        if key.name == "pytorch" and isinstance(candidate, ReleaseCandidate) and candidate.build is not None:
            found["pytorch"] = str(candidate.release.version)
            found["pytorch_build"] = candidate.build.name
        elif key.name in {"cuda", "rocm", "python", "tensorflow", "jax"}:
            found[key.name] = candidate.label
    found.update({key.name: pins[key].label for key in instance.named if key in pins})
    return dict(sorted(found.items()))


def outcome(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Outcome:
    """Return the outcome of an answer."""
    return Outcome(gives(instance, pins), doubts_of(instance, pins), tuple(unknown_extras(instance, pins)))


def _solve_system_again(problem: Problem, request: Request) -> Outcome | None:
    """Return the outcome of a changed request, solved without packages; None when there is no answer."""
    instance = ProblemInstance(rejoined(problem, request))
    pins = decide(instance)
    return None if pins is None else outcome(instance, pins)


def _compiled(instance: ProblemInstance, groups: tuple[Group, ...], costs: Costs) -> Iterator[Working]:
    """Yield the edit that compiles a framework on the host, if the system alone has an answer with it."""
    edit = from_source(instance, groups)
    if edit is not None and (found := _solve_system_again(instance.problem, edit.apply(instance.problem.request))) is not None:
        yield Working(edits=(edit,), costs=(costs.of_edit(edit),), outcome=found)


def _outcome_of(solve_again: SolveAgain, request: Request, edits: Sequence[Edit]) -> Outcome | None:
    """Return the outcome of a request after some edits; None when there is no answer or an index cannot be reached."""
    try:
        return solve_again(applied(request, edits))
    except ProvisionError:
        return None


def _with_one_of(
    others: Iterable[Edit],
    instance: ProblemInstance,
    solve_again: SolveAgain,
    *,
    edits: tuple[Edit, ...] = (),
    paid: tuple[Cost, ...] = (),
    costs: Costs,
) -> Working | None:
    """Return the given edits with the first of `others` that gives an answer with them; None when none does.

    `paid` are the costs of `edits`.
    """
    for edit in others:
        instance.budget.allot(MOST_READS_OF_ONE)
        found = _outcome_of(solve_again, instance.problem.request, (*edits, edit))
        if found is not None:
            return Working(edits=(*edits, edit), costs=(*paid, costs.of(edit.component)), outcome=found)
    return None


def _of_inputs(
    instance: ProblemInstance,
    tried: Iterable[tuple[Edit, ...]],
    solve_again: SolveAgain,
    *,
    known: Sequence[Working],
    costs: Costs,
) -> list[Working]:
    """Return the sets of edits in `tried` that give an answer.

    A set is left out if it contains all edits of another set that gives an answer, found here or in `known`.
    """
    request = instance.problem.request
    found: list[Working] = []
    for place, edits in enumerate(_while_readable(tried), start=1):
        identities = {edit.identity for edit in edits}
        if any(one.identities <= identities for one in (*known, *found)):
            continue
        instance.budget.allot(MOST_READS_OF_ONE)
        given = _outcome_of(solve_again, request, edits)
        if given is not None and not _asks_in_vain(edits, given):
            paid = tuple(costs.of_edit(edit) for edit in edits)
            found.append(Working(edits=edits, costs=paid, outcome=given, place=place))
    return found


def _asks_in_vain(edits: Sequence[Edit], given: Outcome) -> bool:
    """Return whether an edit asks for an extra that the version in the answer lacks, for which nothing would be installed."""
    names = {edit.distribution for edit in edits if isinstance(edit, SetExtras)}
    return any(one.name in names for one in given.unknown_extras)


def _while_readable(tried: Iterable[tuple[Edit, ...]]) -> Iterator[tuple[Edit, ...]]:
    """Yield sets of edits until the read budget is exhausted or an index cannot be reached."""
    try:
        yield from tried
    except UnavailableError:
        return


def _is_superset(one: Working, others: Iterable[Working]) -> bool:
    """Return whether the edits of one of `others`, which give an answer, are only a part of the edits of `one`.

    Dropping a request, for example, may make another edit unnecessary.
    """
    return any(other.identities < one.identities for other in others)


class _Elsewhere(NamedTuple):
    """The version of a requested distribution in an answer that was solved with any Python, and the outcome of that answer.

    The answer may be the most preferred one for a range: it meets a request for that version alone, too, and is the most
    preferred one of those that do.
    """

    chosen: Candidate
    outcome: Outcome


class _Search:
    """A search for the cheapest sets of requests and facts to change so that the problem has an answer."""

    def __init__(
        self,
        instance: ProblemInstance,
        search: CompleteSearch,
        solve_again: SolveAgain | None,
        costs: Costs,
        exclude: Exclude | None,
    ) -> None:
        self._instance = instance
        self._search = search
        self._solve_again = solve_again
        self._costs = costs
        self._exclude = exclude
        self._answers: dict[
            tuple[frozenset[Group], tuple[Candidate, ...], tuple[Key, ...]], Mapping[Key, Candidate] | None
        ] = {}
        """What resolvelib found without some groups, with some candidates and keys."""
        self._rounds = 0
        self._is_further = False
        """Whether a fix with packages that keeps all requests is known: others are looked for besides it with less reading."""

    def found(self, groups: tuple[Group, ...], unless: Callable[[], bool]) -> list[Working]:
        """Return the sets of edits that give an answer, in the order tried, cheapest first.

        `groups` are the conflict's groups, `unless` is that of `fixes`. A superset of such a set is tried only if the set drops
        a request, and no set of several changes besides a fix of one change with packages.
        """
        working: list[Working] = []
        done: list[frozenset[Group]] = []
        queue: list[tuple[Relaxable, ...]] = [(one,) for one in relaxables(self._instance, self._search, groups)]
        known = {_changed(some) for some in queue}
        tried = 0
        steps = self._instance.budget.steps
        while queue and tried < MOST_TRIED and len(working) < SHOWN and self._has_more_rounds() and steps.has_more():
            queue.sort(key=lambda some: rank([self._costs.of(one.name) for one in some]))
            some = queue.pop(0)
            changed = _changed(some)
            if any(other <= changed for other in done) or (self._is_further and len(some) > 1):
                continue
            if not working and len(some) > 1 and unless():
                break
            tried += 1
            self._instance.budget.allot(MOST_READS_OF_FURTHER if self._is_further else MOST_READS_OF_ONE)
            found = self._working(some)
            if found is not None and not _is_superset(found, working):
                working.append(found)
                if not found.gives_up:
                    self._is_further = self._instance.finder is not None
                    done.append(changed)
                    continue
            for further in self._further(some, is_possible=found is not None):
                if _changed(further) not in known:
                    known.add(_changed(further))
                    queue.append(further)
        return working

    def _has_more_rounds(self) -> bool:
        """Return whether resolvelib may take more rounds; that it may not is remembered."""
        has_more = self._rounds < MOST_ROUNDS
        self._instance.budget.steps.was_short |= not has_more
        return has_more

    def smallest(self, groups: tuple[Group, ...]) -> Working | None:
        """Return the edits of the smallest set of requests and facts whose changes give an answer; None when there is none.

        Every conflict that remains has to be hit by the set, so a smallest set that hits all conflicts found so far is tried,
        and the next conflict is found, until none remains.
        """
        from pysat.examples.hitman import Hitman  # loaded only when there is no small fix

        by_group: dict[Group, Relaxable] = {}
        hit: tuple[Group, ...] = ()
        with Hitman(htype="sorted") as hitman:
            for _ in range(MOST_TRIED):
                also = [one for one in relaxables(self._instance, self._search, groups) if one.group not in hit]
                if not also:
                    return None
                by_group |= {one.group: one for one in also}
                hitman.hit([one.group for one in also])
                hit = tuple(hitman.get() or ())
                some = tuple(by_group[group] for group in hit)
                groups = self._still_impossible(_groups(some))
                self._instance.budget.allot(MOST_READS_OF_ONE)
                if not groups and (found := self._working(some)) is not None:
                    return found
                groups = groups or self._in_the_way(some, _groups(some))
        return None

    def least_part(self, working: Working) -> Working:
        """Return the smallest part of edits that gives an answer, the cheapest of equal size; the edits themselves for none.

        The edits were found with one Python, while another may need fewer. Of more edits than `AT_ONCE` those are left out, one
        after another, that are not needed beside the rest. `is_least` is False if it is unknown whether a part gives an answer.
        """
        if self._solve_again is None or len(working.edits) == 1:
            return working
        rest, is_known = list(zip(working.edits, working.costs, strict=True)), True
        for pair in rest if len(rest) > AT_ONCE else ():
            part = [other for other in rest if other is not pair]
            found = self._of_part(part)
            is_known = is_known and found is not False
            working, rest = (found, part) if found else (working, rest)
        sizes = range(1, len(rest)) if len(rest) <= AT_ONCE else ()
        parts = chain.from_iterable(map(list, combinations(rest, size)) for size in sizes)
        for part in sorted(parts, key=lambda pairs: (len(pairs), rank([cost for _, cost in pairs]))):
            found = self._of_part(part)
            is_known = is_known and found is not False
            if found:
                return replace(found, is_least=is_known)
        return replace(working, is_least=is_known)

    def without_one(self, groups: tuple[Group, ...]) -> list[Working]:
        """Return the single requests of the conflict without which there is an answer, with any Python."""
        if self._solve_again is None:
            return []
        requests = (one for one in relaxables(self._instance, self._search, groups) if not one.is_fact)
        found = (self._of_part([left_out(self._instance, one, self._costs)]) for one in requests)
        return [one for one in found if one]

    def _of_part(self, pairs: Sequence[tuple[Edit, Cost]]) -> Working | Literal[False] | None:
        """Return a part of verified edits, given with their costs, if it gives an answer; False when that is unknown."""
        assert self._solve_again is not None
        edits = tuple(edit for edit, _ in pairs)
        self._instance.budget.allot(MOST_READS_OF_ONE)
        try:
            given = self._solve_again(applied(self._instance.problem.request, edits))
        except ProvisionError as error:
            return False if isinstance(error, UnavailableError) else None
        if given is None or (any(edit.gives_up for edit in edits) and not self._is_of_use(given.gives)):
            return None
        return Working(edits=edits, costs=tuple(cost for _, cost in pairs), outcome=given)

    def _further(self, some: tuple[Relaxable, ...], *, is_possible: bool) -> list[tuple[Relaxable, ...]]:
        """Return the extensions of `some` by one more request or fact that is still in conflict after `some` are changed.

        `is_possible`: there is an answer without `some`. No extension changes more than `AT_ONCE` requests and facts.
        """
        dropped = _groups(some)
        groups = () if is_possible else self._still_impossible(dropped)
        groups = groups or self._in_the_way(some, dropped)
        also = relaxables(self._instance, self._search, groups)
        further = [(*some, one) for one in also if one.group not in dropped]
        return [some for some in further if len({(one.name, one.is_fact) for one in some}) <= AT_ONCE]

    def _still_impossible(self, dropped: frozenset[Group]) -> tuple[Group, ...]:
        """Return the minimal conflict that remains without the groups in `dropped`.

        () when none remains, or when that is unknown because an index cannot be reached. Besides a known fix the conflict is
        one that needs no metadata to be read, and not always minimal.
        """
        try:
            if self._is_further:
                return self._search.refutation(without=dropped) or ()
            return self._search.minimal(without=dropped) if self._search.find(without=dropped) is None else ()
        except UnavailableError:
            return ()

    def _in_the_way(self, some: tuple[Relaxable, ...], dropped: frozenset[Group]) -> tuple[Group, ...]:
        """Return the groups, not always a minimal set, that exclude every candidate of the changed keys; () for none."""
        present = tuple(dict.fromkeys(one.key for one in some if not one.is_fact and not one.is_bound))
        found: dict[Group, None] = {}
        for keys in dict.fromkeys((present, *((key,) for key in present))):
            with suppress(OutOfStepsError):
                core = self._search.refutation(without=dropped, present=keys) if keys else None
                found |= dict.fromkeys(core or ())
        return tuple(found)

    def _working(self, some: tuple[Relaxable, ...]) -> Working | None:
        """Return the edits that change every request and fact of a set; None when none work or an index cannot be reached.

        If the outcome of the nearest value is not settled, up to `MOST_UNSETTLED` others are tried; the nearest settled one is
        taken.
        """
        found = first = self._nearest_working(some, frozenset())
        passed: frozenset[Candidate] = frozenset()
        is_one_request = len(some) == 1 and not some[0].is_fact and not some[0].is_bound
        while found is not None and not found.outcome.is_settled and is_one_request and len(passed) < MOST_UNSETTLED:
            if not found.chosen - passed:
                break  # no value is taken, so there is no other one to try
            passed |= found.chosen
            found = self._nearest_working(some, passed)
        return found if found is not None and found.outcome.is_settled else first

    def _nearest_working(self, some: tuple[Relaxable, ...], passed: frozenset[Candidate]) -> Working | None:
        """Return the edits that change a set's requests and facts to the nearest values that give an answer, except `passed`.

        None when no values do, when an index cannot be reached or no steps are left, or when the answer would have nothing that
        was requested.
        """
        with suppress(OutOfStepsError):
            return self._with_nearest_values(some, passed)
        return None

    def _with_nearest_values(self, some: tuple[Relaxable, ...], passed: frozenset[Candidate]) -> Working | None:
        is_solved_whole = self._solve_again is not None and all(one.is_bound for one in some)
        is_known = True
        chosen: Sequence[Candidate | None] | None
        try:
            # Without a bound another Python may work, and `solve_again` tries all of them.
            chosen = [None] * len(some) if is_solved_whole else self._chosen(some, passed)
        except UnavailableError:
            # Too much would have to be read for this Python; another one may need far less.
            chosen, is_known = None, False
            self._instance.budget.allot(MOST_READS_OF_ONE)
        elsewhere = None
        if not self._is_further:  # each of these solves the whole problem again, with every Python
            elsewhere = self._nearest_elsewhere(some, chosen, passed, is_known=is_known)
            if elsewhere is None and chosen in (None, [None]):
                elsewhere = self._chosen_elsewhere(some, passed)
        if elsewhere is not None:
            chosen = [elsewhere.chosen]
        if chosen is None:
            return None
        edits, costs = self._edits(some, chosen)
        given = elsewhere.outcome if elsewhere is not None else self._given(some, chosen, edits)
        if given is None and (further := self._nearest_with_packages(some, chosen)) is not None:
            chosen, given = [further.chosen], further.outcome
            edits, costs = self._edits(some, chosen)
        found = None
        if given is not None:
            edits, costs = self._edits(some, chosen, has_ends=True)
            found = Working(edits=edits, costs=costs, outcome=given, chosen=frozenset(filter(None, chosen)))
        elif self._solve_again is not None:
            # Another version may need another Python, which is another environment, or libraries that the base image lacks.
            others = (*other_pythons(self._instance), *cuda_images(self._instance))
            found = _with_one_of(others, self._instance, self._solve_again, edits=edits, paid=costs, costs=self._costs)
        is_useless = found is not None and found.gives_up and not self._is_of_use(found.outcome.gives)
        return None if is_useless else found

    def _edits(
        self, some: tuple[Relaxable, ...], chosen: Sequence[Candidate | None], *, has_ends: bool = False
    ) -> tuple[tuple[Edit, ...], tuple[Cost, ...]]:
        """Return the edits to the chosen values with their costs.

        `chosen` has a value for each of `some`; None means that the request is dropped. With `has_ends`, the edits of facts
        state the range of values that works.
        """
        pairs = []
        for one, candidate in zip(some, chosen, strict=True):
            if candidate is None:
                pairs.append(left_out(self._instance, one, self._costs))
                continue
            edit, cost = edit_of(self._instance, one, candidate, costs=self._costs)
            if has_ends and isinstance(edit, SetFact) and one.name in RANGES and not edit.shown_by:
                edit = self._to_its_end(edit, one, candidate, some, chosen)
            pairs.append((edit, cost))
        pairs = list(dict.fromkeys(pairs))
        order = {target.label: place for place, target in enumerate(self._instance.problem.request.hosts)}
        pairs.sort(key=lambda pair: (pair[1], order.get(pair[0].host_label, -1), pair[0].component))
        return tuple(edit for edit, _ in pairs), tuple(cost for _, cost in pairs)

    def _to_its_end(
        self,
        edit: SetFact,
        one: Relaxable,
        candidate: Candidate,
        some: tuple[Relaxable, ...],
        chosen: Sequence[Candidate | None],
    ) -> SetFact:
        """Return the edit of a fact with the range from the nearest value that works to the last one beyond it that works."""
        beyond = next((list(values) for values in nearest(self._instance, one) if candidate in values), [])
        beyond = beyond[beyond.index(candidate) + 1 :] if candidate in beyond else []
        given = tuple(value for value in chosen if value is not None and value is not candidate)
        present = tuple(dict.fromkeys((*(other.key for other in some if not other.is_bound), *_beside(some))))
        try:
            last = self._first(beyond[::-1], without=_groups(some), given=given, present=present)
        except UnavailableError:
            return edit
        if last is None:
            return edit
        return replace(
            edit,
            sign=">=" if last.version > candidate.version else "<=",
            last="" if last is beyond[-1] else last.label,
        )

    def _is_of_use(self, given: Mapping[str, str]) -> bool:
        """Return whether an answer has a requested framework or distribution: without any, the environment has no use."""
        spec = self._instance.problem.request.spec
        in_packages = (canonicalize_name(pep508(text).name) for text in spec.packages)
        wanted = {*(name for name in FRAMEWORKS if name in spec.requires), *in_packages}
        return bool(wanted.intersection(given)) if wanted else bool(given)

    def _given(self, some: tuple[Relaxable, ...], chosen: Sequence[Candidate | None], edits: Sequence[Edit]) -> Outcome | None:
        if self._solve_again is not None:
            return _outcome_of(self._solve_again, self._instance.problem.request, edits)
        pins = self._answered(
            without=_groups(some), given=tuple(one for one in chosen if one is not None), present=_beside(some)
        )
        return None if pins is None else outcome(self._instance, pins)

    def _chosen(self, some: tuple[Relaxable, ...], passed: frozenset[Candidate]) -> list[Candidate | None] | None:
        """Return a candidate for each request and fact of a set; None when the set cannot give an answer.

        It is the nearest value that works; for a distribution whose `MOST_NEARER` nearest versions do not work, the version in
        an answer (`_of_an_answer`). An element is None for a request for which no value works, and for a bound: both have to be
        dropped.
        """
        without = _groups(some)
        asking = [one for one in some if not one.is_bound]
        beside = _beside(some)
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
                works = self._first(candidates, without=without, given=given, present=every, most=most, is_possible=is_possible)
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
        pins = self._answered(without=without, given=given, present=present)
        if pins is None or any(pins[one.key].is_withheld for one in missing):
            return None  # nothing but a yanked file or a pre-release is left
        found = {one.key: pins[one.key] for one in missing}
        if len(missing) > 1 or missing[0].is_fact:
            return found
        key, values = missing[0].key, [value for value in _values(self._instance, missing[0]) if value not in passed]
        first, last = 0, values.index(found[key]) if found[key] in values else 0
        with suppress(UnavailableError), self._instance.budget.steps.at_most(MOST_STEPS_OF_HALVED):
            while first < last:
                middle = (first + last) // 2
                nearer = self._search.find(without=without, given=given, present=present, among=(values[first : middle + 1],))
                first, last = (middle + 1, last) if nearer is None else (first, values.index(nearer[key]))
                found[key] = values[last]
        return found

    def _nearest_elsewhere(
        self,
        some: tuple[Relaxable, ...],
        chosen: Sequence[Candidate | None] | None,
        passed: frozenset[Candidate],
        *,
        is_known: bool,
    ) -> _Elsewhere | None:
        """Return a version of a requested distribution that is nearer than the chosen one and needs another Python.

        The spec permits several Pythons, and the nearest versions may have files for another one than that of this environment;
        `MOST_ELSEWHERE` of them are tried, within what the fix may read. If it is not known what works with this Python, they
        are those that nothing known excludes. If all are newer than what is requested, or all older, the nearest is found by
        halving. None where none of them works.
        """
        one = some[0]
        if self._solve_again is None or not self._is_open(some):
            return None
        nearer = chain.from_iterable(nearest(self._instance, one, other_pythons=True))
        taken = chosen[0] if chosen is not None else None
        others = [other for other in takewhile(lambda other: other is not taken, nearer) if other not in passed]
        lacks_files = any(other.has_no_file for other in others)
        is_untried = lacks_files or (len(others) > MOST_NEARER and self._is_for_this_python(one, others, _groups(some)))
        if is_known and taken is not None and is_untried and self._is_in_order(others):
            return self._halved(one, others)

        def may(other: Candidate) -> bool:
            if is_known:
                return other.has_no_file
            return not self._search.refutes(without=_groups(some), given=(other,), present=(one.key,))

        for other in islice(filter(may, others), MOST_ELSEWHERE):
            edits, _ = self._edits(some, [other])
            given = _outcome_of(self._solve_again, self._instance.problem.request, edits)
            if given is not None:
                return _Elsewhere(other, given)
        return None

    def _nearest_with_packages(self, some: tuple[Relaxable, ...], chosen: Sequence[Candidate | None]) -> _Elsewhere | None:
        """Return a version of a requested distribution, newer than the chosen one, with which the packages have an answer.

        Where the components alone were solved, they chose the nearest version without knowing what it needs. Of the newer ones
        the nearest is found by halving. None where none of them works.
        """
        one, nearest_one = some[0], chosen[0]
        is_blind = self._instance.finder is None and self._solve_again is not None
        if not is_blind or len(some) > 1 or nearest_one is None or not isinstance(one.current.ground, RequiresDistribution):
            return None
        values = list(_values(self._instance, one))
        beyond = values[values.index(nearest_one) + 1 :]
        newer = sorted({other for other in beyond if other.pep440 > nearest_one.pep440}, key=lambda other: other.pep440)
        return self._halved(one, newer, is_only=True) if newer else None

    def _is_for_this_python(self, one: Relaxable, others: Sequence[Candidate], without: frozenset[Group]) -> bool:
        """Return whether versions may be excluded for the Python of this environment alone.

        They are not where the proof from what was read is about neither files nor Python.
        """
        core = self._search.refutation(without=without, present=(one.key,), among=(others,))
        if core is None:
            return True
        keys = (need.key for group in core for _, need in self._search.members(group))
        is_about_files = any(isinstance(group, Relation) and group.object == FILES for group in core)
        return is_about_files or any(key == Key("python") for key in keys)

    @staticmethod
    def _is_in_order(others: Sequence[Candidate]) -> bool:
        """Return whether versions, the nearest first, only rise or only fall."""
        versions = [other.pep440 for other in others]
        return versions in (sorted(versions), sorted(versions, reverse=True))

    def _halved(self, one: Relaxable, others: Sequence[Candidate], *, is_only: bool = False) -> _Elsewhere | None:
        """Return the nearest of versions that only rise, or only fall, with which there is an answer with any Python.

        It is found by halving, with `MOST_HALVED` answers at most, so that it may be one of the nearest; None if there is none.
        An answer with a Python past its end of life does not count: the version of `others` is then not the nearest change.
        It does where no other version is known, as `is_only` says, and more steps are spent.
        """
        assert self._solve_again is not None
        ground = one.current.ground
        assert isinstance(ground, RequiresDistribution)
        most_steps = MOST_STEPS_WITH_PACKAGES if is_only else MOST_STEPS_OF_HALVED
        place = {other.label: number for number, other in enumerate(others)}
        first, last = 0, len(others) - 1
        found: _Elsewhere | None = None
        for _ in range(MOST_HALVED):
            middle = last if found is None else (first + last) // 2
            low, high = sorted((others[0].pep440, others[middle].pep440))
            self._instance.budget.allot(MOST_READS_OF_ONE)
            asked = permitting(self._instance.problem.request, ground.distribution, f">={low.public},<={high.public}")
            with self._instance.budget.steps.at_most(most_steps):
                given = _outcome_of(self._solve_again, asked, ())
            is_of_today = given is not None and (is_only or not self._has_ended(given.gives.get("python", "")))
            number = place.get(given.gives.get(one.key.name, "")) if given is not None and is_of_today else None
            if number is None and found is None:
                return None
            if number is None or given is None:
                first = middle + 1
            else:
                last, found = number, _Elsewhere(others[number], given)
            if first >= last:
                break
        return found

    def _has_ended(self, python: str) -> bool:
        """Return whether a Python is past its end of life."""
        problem = self._instance.problem
        listed = problem.domains.get(Key("python"), ())
        return any(one.label == python and problem.needs.policy.support_status.ended(one) is not None for one in listed)

    def _chosen_elsewhere(self, some: tuple[Relaxable, ...], passed: frozenset[Candidate]) -> _Elsewhere | None:
        """Return the version of a requested distribution that the most preferred answer without a range for it has.

        The spec permits several Pythons, and only some of the versions have files for the one of this environment. None where
        another Python changes nothing, where there is no such answer, and where its version is in `passed`.
        """
        one, instance = some[0], self._instance
        ground = one.current.ground
        if self._solve_again is None or not self._is_open(some) or not isinstance(ground, RequiresDistribution):
            return None
        core = self._search.refutation(without=_groups(some), present=(one.key,))
        if core is not None and self._exclude is not None and not one.key.extras:
            self._exclude(core, one.key.project)
        found = _outcome_of(self._solve_again, permitting(instance.problem.request, ground.distribution), ())
        if found is None:
            return None
        version = found.gives.get(one.key.name)
        chosen = next((other for other in instance.candidates(one.key) if other.label == version), None)
        return None if chosen is None or chosen in passed else _Elsewhere(chosen, found)

    def _is_open(self, some: tuple[Relaxable, ...]) -> bool:
        """Return whether `some` is one range for a distribution that another Python which the spec permits may meet."""
        ground, test = some[0].current.ground, some[0].current.test
        is_range = isinstance(ground, RequiresDistribution) and isinstance(test, Matching) and bool(test.specifier)
        return len(some) == 1 and is_range and permits_several_pythons(self._instance)

    def _is_hopeless(self, one: Relaxable, without: frozenset[Group]) -> bool:
        """Return whether it is proved that no candidate of a request's key works; False for a fact."""
        return not one.is_fact and self._search.refutes(without=without, present=(one.key,))

    def _first(
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

    def _answered(
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
        if self._is_further:
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
            self._rounds += reporter.rounds
            self._answers[asked] = pins if pins is not None and not violations(relaxed, pins) else None
        return self._answers[asked]


def _values(instance: ProblemInstance, one: Relaxable) -> Iterator[Candidate]:
    """Yield the values to change a request or fact to, nearest first."""
    return chain.from_iterable(nearest(instance, one))


def _changed(some: Sequence[Relaxable]) -> frozenset[Group]:
    """Return the groups of what a set of edits names."""
    return frozenset(one.group for one in some)


def _groups(some: Sequence[Relaxable]) -> frozenset[Group]:
    """Return the groups of everything that a set of edits changes."""
    return frozenset(group for one in some for group in one.groups)


def _beside(some: Sequence[Relaxable]) -> tuple[Key, ...]:
    """Return the keys of the facts that change with those of a set: the host still has them, so that they must be chosen."""
    return tuple(dict.fromkeys(follower.key for one in some for follower in one.followers))
