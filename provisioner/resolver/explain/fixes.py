"""Fixes of a conflict: sets of edits to the inputs, cheapest first, each verified by solving again.

A set may contain several edits because a conflict may remain after the first.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from provisioner.components import FRAMEWORKS
from provisioner.errors import ProvisionError, UnavailableError
from provisioner.grounds.conflict import Fix
from provisioner.grounds.edit import OpenPython, SetComponent
from provisioner.resolver.explain.edits import (
    Cost,
    Relaxable,
    cost_of,
    cuda_image,
    edit_of,
    edits_of_inputs,
    fewer_hosts,
    left_out,
    open_python,
    rank,
    relaxables,
)
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import ReleaseCandidate
from provisioner.resolver.search.instance import ProblemInstance, violations
from provisioner.resolver.search.provider import SearchReporter
from provisioner.resolver.search.provider import search as engine_search
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Group
    from provisioner.request import Request, TargetHost
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.complete import CompleteSearch

    SolveAgain = Callable[[Request], Mapping[str, str] | None]

SHOWN = 5
"""How many fixes are returned."""

AT_ONCE = 3
"""How many requests and facts one fix may change; the same fact on several hosts counts as one."""

MOST = 40
"""How many combinations of requests and facts are tried."""

MOST_ROUNDS = 3_000
"""How many rounds of resolvelib are spent on combinations; a fix of a large conflict takes some hundreds.

A limit in seconds would give the same conflict other fixes on another machine.
"""

MOST_READS, MOST_READS_OF_ONE = 1_000, 400
"""How many versions' metadata may be read for all fixes of a conflict, and for one fix, besides those that the proof read.

A fix of a large conflict takes some hundreds; one that takes thousands would keep the user waiting for too long.
"""


class Working(Fix, frozen=True, kw_only=True):
    """A fix with the cost of each edit, by which fixes are ranked."""

    costs: tuple[Cost, ...]


def fixes(
    instance: ProblemInstance, search: CompleteSearch, groups: tuple[Group, ...], *, solve_again: SolveAgain | None = None
) -> tuple[Fix, ...]:
    """Return the fixes of a conflict, cheapest first, at most `SHOWN`; empty when none is found.

    `solve_again` solves a changed request and returns the versions in its answer, None when there is no answer. If it is None,
    a system stack is solved again here, while with packages only fixes within the environment of `instance` are found.
    """
    if solve_again is None and instance.finder is None:
        solve_again = partial(_solve_system_again, instance.problem)
    instance.budget.limit(MOST_READS)
    found = _Search(instance, search, solve_again).found(groups)
    if solve_again is not None:
        tried = chain(edits_of_inputs(instance, groups), fewer_hosts(instance, search, groups))
        found.extend(_of_inputs(instance, tried, solve_again, known=found))
    found = [one for one in found if not _is_superset(one, found)]
    found.sort(key=lambda one: (rank(list(one.costs)), [(edit.change, str(edit.identity)) for edit in one.edits]))
    distinct = {one.identities: one for one in reversed(found)}
    hosts = {target.label: target for target in instance.problem.request.hosts}
    requested = frozenset(instance.problem.request.spec.requires)
    return tuple(fix_of(one.edits, one.gives, hosts, requested=requested) for one in reversed(distinct.values()))[:SHOWN]


def fix_of(
    edits: Sequence[Edit], gives: Mapping[str, str], hosts: Mapping[str, TargetHost], *, requested: frozenset[str]
) -> Fix:
    """Return edits as a fix, which names the hosts if the target has more than one."""
    names_hosts = sum(target.count for target in hosts.values()) > 1
    labels = {target.label: target.names or (target.label,) for target in hosts.values()} if names_hosts else {}
    return Fix(edits=tuple(edits), gives=gives, hosts=labels, requested=requested)


def rejoined(problem: Problem, request: Request) -> Problem:
    """Return the problem of a changed request, with the extra requirements of `problem` (a question, a lock's content)."""
    return join(problem.matrix, request).with_roots(*problem.extra)


def applied(request: Request, edits: Iterable[Edit]) -> Request:
    """Return a request after some edits."""
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


def _solve_system_again(problem: Problem, request: Request) -> Mapping[str, str] | None:
    """Return the versions in the answer to a changed request, solved without packages; None when there is no answer."""
    instance = ProblemInstance(rejoined(problem, request))
    pins = decide(instance)
    return None if pins is None else gives(instance, pins)


def _outcome_of(solve_again: SolveAgain, request: Request, edits: Sequence[Edit]) -> Mapping[str, str] | None:
    """Return the versions in the answer after some edits; None when there is no answer or an index cannot be reached."""
    try:
        return solve_again(applied(request, edits))
    except ProvisionError:
        return None


def _of_inputs(
    instance: ProblemInstance, tried: Iterable[tuple[Edit, ...]], solve_again: SolveAgain, *, known: Sequence[Working]
) -> list[Working]:
    """Return the sets of edits in `tried` that work.

    A set is left out if all edits of another set that works, here or in `known`, are in it.
    """
    request = instance.problem.request
    found: list[Working] = []
    for edits in _while_readable(tried):
        identities = {edit.identity for edit in edits}
        if any(one.identities <= identities for one in (*known, *found)):
            continue
        instance.budget.allot(MOST_READS_OF_ONE)
        given = _outcome_of(solve_again, request, edits)
        if given is not None:
            exact = tuple(_with_python(edit, given) for edit in edits)
            found.append(Working(edits=exact, costs=tuple(cost_of(edit.component) for edit in exact), gives=given))
    return found


def _while_readable(tried: Iterable[tuple[Edit, ...]]) -> Iterator[tuple[Edit, ...]]:
    """Yield edits until the read budget is exhausted or an index is out of reach."""
    try:
        yield from tried
    except UnavailableError:
        return


def _with_python(edit: Edit, given: Mapping[str, str]) -> Edit:
    """Return the edit to require the Python of the answer in place of one that opens Python; any other edit unchanged."""
    return SetComponent(name="python", value=given["python"], requests=edit.requests) if isinstance(edit, OpenPython) else edit


def _is_superset(one: Working, others: Iterable[Working]) -> bool:
    """Return whether some of the edits work without the others: dropping a request may make another edit unnecessary."""
    return any(other.identities < one.identities for other in others)


class _Search:
    """Searches for the cheapest sets of requests and facts to change so that the problem has an answer."""

    def __init__(self, instance: ProblemInstance, search: CompleteSearch, solve_again: SolveAgain | None) -> None:
        self._instance = instance
        self._search = search
        self._solve_again = solve_again
        self._rounds = 0

    def found(self, groups: tuple[Group, ...]) -> list[Working]:
        """Return the sets of edits that work, in the order tried, cheapest first; a superset of one that works is not tried."""
        working: list[Working] = []
        done: list[frozenset[Group]] = []
        queue: list[tuple[Relaxable, ...]] = [(one,) for one in relaxables(self._instance, self._search, groups)]
        known = {_groups(some) for some in queue}
        tried = 0
        while queue and tried < MOST and len(working) < SHOWN and self._rounds < MOST_ROUNDS:
            queue.sort(key=lambda some: rank([cost_of(one.name) for one in some]))
            some = queue.pop(0)
            dropped = _groups(some)
            if any(other <= dropped for other in done):
                continue
            tried += 1
            self._instance.budget.allot(MOST_READS_OF_ONE)
            found = self._working(some)
            if found is not None and not _is_superset(found, working):
                working.append(found)
                if not found.gives_up:
                    done.append(dropped)
                    continue
            for further in self._further(some, dropped):
                if _groups(further) not in known:
                    known.add(_groups(further))
                    queue.append(further)
        return working

    def _further(self, some: tuple[Relaxable, ...], dropped: frozenset[Group]) -> list[tuple[Relaxable, ...]]:
        """Return extensions of a set by one more request or fact: one that still conflicts after the changes of the set."""
        groups = self._still_impossible(dropped) or self._in_the_way(some, dropped)
        also = relaxables(self._instance, self._search, groups)
        further = [(*some, one) for one in also if one.group not in dropped]
        return [some for some in further if len({(one.name, one.is_fact) for one in some}) <= AT_ONCE]

    def _still_impossible(self, dropped: frozenset[Group]) -> tuple[Group, ...]:
        """Return the minimal conflict that remains after some groups are dropped.

        () when none remains, or when that is not known because an index cannot be reached.
        """
        try:
            return self._search.minimal(without=dropped) if self._search.find(without=dropped) is None else ()
        except UnavailableError:
            return ()

    def _in_the_way(self, some: tuple[Relaxable, ...], dropped: frozenset[Group]) -> tuple[Group, ...]:
        """Return the groups that exclude every candidate of the changed keys; () when there are none. Not minimal."""
        present = tuple(dict.fromkeys(one.key for one in some if not one.is_fact and not one.is_bound))
        found: dict[Group, None] = {}
        for keys in dict.fromkeys((present, *((key,) for key in present))):
            if keys and self._search.refutes(without=dropped, present=keys):
                found |= dict.fromkeys(self._search.core(without=dropped))
        return tuple(found)

    def _working(self, some: tuple[Relaxable, ...]) -> Working | None:
        """Return the edits that change every request and fact of a set; None when none work or an index cannot be reached."""
        is_solved_whole = self._solve_again is not None and all(one.is_bound for one in some)
        try:
            # Without a bound another Python may work, and `solve_again` tries all of them.
            chosen = [None] * len(some) if is_solved_whole else self._chosen(some)
        except UnavailableError:
            return None
        if chosen is None:
            return None
        pairs = [
            edit_of(self._instance, one, candidate) if candidate is not None else left_out(self._instance, one)
            for one, candidate in zip(some, chosen, strict=True)
        ]
        pairs = list(dict.fromkeys(pairs))
        order = {target.label: place for place, target in enumerate(self._instance.problem.request.hosts)}
        pairs.sort(key=lambda pair: (pair[1], order.get(pair[0].host_label, -1), pair[0].component))
        edits = tuple(edit for edit, _ in pairs)
        costs = [cost for _, cost in pairs]
        given = self._given(some, chosen, edits)
        for companion in (open_python(self._instance), cuda_image(self._instance)):
            # Another version may need another Python, which is another environment, or libraries that the base image lacks.
            if given is None and self._solve_again is not None and companion is not None:
                given = _outcome_of(self._solve_again, self._instance.problem.request, (*edits, companion))
                if given is not None:
                    edits, costs = (*edits, _with_python(companion, given)), [*costs, cost_of(companion.component)]
        if given is None or (any(edit.gives_up for edit in edits) and not self._is_of_use(given)):
            return None
        return Working(edits=edits, costs=tuple(costs), gives=given)

    def _is_of_use(self, given: Mapping[str, str]) -> bool:
        """Return whether an answer has any requested framework or distribution: an environment without them is no use."""
        requires = self._instance.problem.request.spec.requires
        wanted = {*(name for name in FRAMEWORKS if name in requires), *(key.name for key in self._instance.named)}
        return bool(wanted.intersection(given)) if wanted else bool(given)

    def _given(
        self, some: tuple[Relaxable, ...], chosen: Sequence[Candidate | None], edits: Sequence[Edit]
    ) -> Mapping[str, str] | None:
        if self._solve_again is not None:
            return _outcome_of(self._solve_again, self._instance.problem.request, edits)
        pins = self._answered(without=_groups(some), given=tuple(one for one in chosen if one is not None), present=())
        return None if pins is None else gives(self._instance, pins)

    def _chosen(self, some: tuple[Relaxable, ...]) -> list[Candidate | None] | None:
        """Return a candidate for each request and fact of a set; None when the set cannot work.

        For a fact it is the nearest value that works; for a request another build of the same release if one works, otherwise
        the version in an answer. An element is None for a request of which no value works, and for a bound: both have to be
        dropped.
        """
        without = _groups(some)
        asking = [one for one in some if not one.is_bound]
        present = tuple(dict.fromkeys(one.key for one in asking))
        if self._search.refutes(without=without, present=present):
            hopeless = {one.key for one in asking if self._is_hopeless(one, without)}
            present = tuple(key for key in present if key not in hopeless)
            if not hopeless or self._search.refutes(without=without, present=present):
                return None
        chosen: dict[Key, Candidate] = {}
        for one in asking:
            for candidates in one.nearest(self._instance) if one.key in present else ():
                works = self._first(candidates, without=without, given=tuple(chosen.values()), present=present)
                if works is not None:
                    chosen[one.key] = works
                    break
        if len(chosen) < len(present):
            pins = self._answered(without=without, given=tuple(chosen.values()), present=present)
            if pins is None:
                return None
            chosen = {key: chosen.get(key, pins[key]) for key in present}
        return [None if one.is_bound else chosen.get(one.key) for one in some]

    def _is_hopeless(self, one: Relaxable, without: frozenset[Group]) -> bool:
        """Return whether it is proved that no candidate of a request's key works; False for a fact."""
        return not one.is_fact and self._search.refutes(without=without, present=(one.key,))

    def _first(
        self, some: Sequence[Candidate], *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Candidate | None:
        """Return the first candidate that works, or None.

        Candidates that are already refuted are skipped by bisection; the others are solved one by one.
        """

        def may(among: Sequence[Candidate]) -> bool:
            return not self._search.refutes(without=without, given=given, present=present, among=among)

        rest = list(some)
        while rest and may(rest):
            low, high = 0, len(rest) - 1
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if may(rest[low : middle + 1]) else (middle + 1, high)
            if self._works(without=without, given=(*given, rest[low]), present=present):
                return rest[low]
            rest = rest[low + 1 :]
        return None

    def _works(self, *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]) -> bool:
        """Return whether there is any answer; finding the most wanted one would take a search for every key."""
        if self._instance.finder is not None:
            return self._answered(without=without, given=given, present=present) is not None
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        return self._search.find(without=without, given=given, present=present) is not None

    def _answered(
        self, *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Mapping[Key, Candidate] | None:
        """Return the answer without some groups and with some candidates and keys required; None when there is none.

        With packages resolvelib runs first, because it reads a third of what the complete search reads to find the most wanted
        answer. The complete search is the one of the conflict, so that it reuses its clauses. Given candidates count as
        required: otherwise the requirements of a given driver that nothing requires would not be checked.
        """
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        if self._instance.finder is not None:
            relaxed = self._instance.relaxed(without=without, given=given, present=present)
            reporter = SearchReporter()
            pins = engine_search(relaxed, reporter)
            self._rounds += reporter.rounds
            if pins is not None and not violations(relaxed, pins):
                return pins
        return self._search.best(without=without, given=given, present=present)


def _groups(some: Sequence[Relaxable]) -> frozenset[Group]:
    return frozenset(one.group for one in some)
