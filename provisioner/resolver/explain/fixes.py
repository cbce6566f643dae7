"""Fixes of a conflict: sets of edits to the inputs, cheapest first, each verified by solving again.

A set may contain several edits because a conflict may remain after the first.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import chain, combinations
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.components import FRAMEWORKS
from provisioner.errors import ProvisionError, UnavailableError
from provisioner.grounds.conflict import AT_ONCE, MOST_TRIED, Fix
from provisioner.grounds.edit import SetExtras, SetFact
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
    rank,
)
from provisioner.resolver.explain.elsewhere import ElsewhereSearch
from provisioner.resolver.explain.outcomes import MOST_READS_OF_ONE, Working, applied, fix_of, outcome, outcome_of, rejoined
from provisioner.resolver.explain.relaxable import Relaxable, nearest, relaxables
from provisioner.resolver.explain.values import Values, facts_beside, groups_of
from provisioner.resolver.search.instance import OutOfStepsError, ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Group
    from provisioner.request import Request
    from provisioner.resolver.explain.elsewhere import Exclude
    from provisioner.resolver.explain.outcomes import Outcome, SolveAgain
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.complete import CompleteSearch

OLDEST_PYTHON = Version.parse("3.7")
"""The oldest Python of a fix: the programs that rendered files bring along run on it, and on nothing older."""

SHOWN = 5
"""How many fixes are returned."""

MOST_UNSETTLED = 4
"""The number of values with an unsettled outcome that are skipped for a settled one; if there is none, the nearest is taken."""

MOST_ROUNDS = 3_000
"""The number of rounds of resolvelib that are spent on combinations; a fix of a large conflict takes some hundreds.

A limit in seconds would give the same conflict other fixes on another machine.
"""

MOST_READS = 1_000
"""The number of versions whose metadata may be read for all fixes of a conflict, after the proof."""

MOST_READS_OF_FURTHER = 200
"""The number of versions whose metadata may be read by resolvelib for one fix besides a known one that keeps all requests."""


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
        found = outcome_of(solve_again, instance.problem.request, (*edits, edit))
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
        given = outcome_of(solve_again, request, edits)
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
        self._values = Values(instance, search)
        self._elsewhere = ElsewhereSearch(instance, search, solve_again, costs, exclude)

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
            if any(other <= changed for other in done) or (self._values.is_further and len(some) > 1):
                continue
            if not working and len(some) > 1 and unless():
                break
            tried += 1
            self._instance.budget.allot(MOST_READS_OF_FURTHER if self._values.is_further else MOST_READS_OF_ONE)
            found = self._working(some)
            if found is not None and not _is_superset(found, working):
                working.append(found)
                if not found.gives_up:
                    self._values.is_further = self._instance.finder is not None
                    done.append(changed)
                    continue
            for further in self._further(some, is_possible=found is not None):
                if _changed(further) not in known:
                    known.add(_changed(further))
                    queue.append(further)
        return working

    def _has_more_rounds(self) -> bool:
        """Return whether resolvelib may take more rounds; that it may not is remembered."""
        has_more = self._values.rounds < MOST_ROUNDS
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
                groups = self._still_impossible(groups_of(some))
                self._instance.budget.allot(MOST_READS_OF_ONE)
                if not groups and (found := self._working(some)) is not None:
                    return found
                groups = groups or self._in_the_way(some, groups_of(some))
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
        dropped = groups_of(some)
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
            if self._values.is_further:
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
            chosen = [None] * len(some) if is_solved_whole else self._values.chosen(some, passed)
        except UnavailableError:
            # Too much would have to be read for this Python; another one may need far less.
            chosen, is_known = None, False
            self._instance.budget.allot(MOST_READS_OF_ONE)
        elsewhere = None
        if not self._values.is_further:  # each of these solves the whole problem again, with every Python
            elsewhere = self._elsewhere.nearest(some, chosen, passed, is_known=is_known)
            if elsewhere is None and chosen in (None, [None]):
                elsewhere = self._elsewhere.most_preferred(some, passed)
        if elsewhere is not None:
            chosen = [elsewhere.chosen]
        if chosen is None:
            return None
        edits, costs = self._edits(some, chosen)
        given = elsewhere.outcome if elsewhere is not None else self._given(some, chosen, edits)
        if given is None and (further := self._elsewhere.with_packages(some, chosen)) is not None:
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
        present = tuple(dict.fromkeys((*(other.key for other in some if not other.is_bound), *facts_beside(some))))
        try:
            last = self._values.first(beyond[::-1], without=groups_of(some), given=given, present=present)
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
            return outcome_of(self._solve_again, self._instance.problem.request, edits)
        pins = self._values.answered(
            without=groups_of(some), given=tuple(one for one in chosen if one is not None), present=facts_beside(some)
        )
        return None if pins is None else outcome(self._instance, pins)


def _changed(some: Sequence[Relaxable]) -> frozenset[Group]:
    """Return the groups of what a set of edits names."""
    return frozenset(one.group for one in some)
