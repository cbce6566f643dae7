"""Fixes of a conflict: complete changes, each solved again before anyone sees it, cheapest for a person first."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.components import FRAMEWORKS
from provisioner.errors import ProvisionError, UnavailableError
from provisioner.grounds.conflict import Fix
from provisioner.grounds.edit import OpenPython, SetComponent
from provisioner.resolver.explain.cost import Cost, cost_of, rank
from provisioner.resolver.explain.other_edits import edits_of_inputs, fewer_hosts, open_python
from provisioner.resolver.explain.relaxable import Relaxable, edit_of, left_out, relaxables
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import ReleaseCandidate
from provisioner.resolver.search.provider import Course
from provisioner.resolver.search.provider import search as engine_search
from provisioner.resolver.search.resolve import decide
from provisioner.resolver.search.universe import Universe, violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Group
    from provisioner.request import Request, TargetHost
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.complete import CompleteSearch

    Settle = Callable[[Request], Mapping[str, str] | None]

SHOWN = 5
"""How many fixes are shown."""

AT_ONCE = 3
"""How many different things one fix may change; the same thing on several hosts is one."""

MOST = 40
"""How many combinations are tried before those found so far must do."""

MOST_ROUNDS = 3_000
"""How many rounds of the engine are spent on that; a fix of a large conflict takes some hundreds. Rounds, and not seconds or
what a cache lacks, so that the same conflict has the same fixes everywhere."""

MOST_READS, MOST_READS_OF_ONE = 1_000, 400
"""How many versions' metadata all fixes of a conflict, and one of them, may read besides what its proof has read: a fix of a
large conflict takes some hundreds, and one that needs thousands is nothing a person would want to wait for."""


class Working(Struct, frozen=True, kw_only=True):
    """Edits that were solved again and work, what each costs a person, and what they give."""

    edits: tuple[Edit, ...]
    costs: tuple[Cost, ...]
    gives: Mapping[str, str]

    @property
    def gives_up(self) -> bool:
        """Whether a part of what was asked for is given up."""
        return any(edit.gives_up for edit in self.edits)

    @property
    def identities(self) -> frozenset[tuple[object, ...]]:
        """The edits, whatever they stand in the place of."""
        return frozenset(edit.identity for edit in self.edits)


def fixes(
    universe: Universe, search: CompleteSearch, groups: tuple[Group, ...], *, settle: Settle | None = None
) -> tuple[Fix, ...]:
    """Return the fixes of a conflict, each solved again from the inputs as they would be after the change.

    `settle` solves a request and returns what its answer gives, None where there is none. Where it is left out and there are
    packages, fixes are those within one environment.
    """
    if settle is None and universe.packages is None:
        settle = partial(_settle_system, universe.problem)
    universe.patience.end_after(MOST_READS)
    found = _Search(universe, search, settle).found(groups)
    if settle is not None:
        tried = chain(edits_of_inputs(universe, groups), fewer_hosts(universe, search, groups))
        found.extend(_of_inputs(universe, tried, settle, known=found))
    found = [one for one in found if not _has_less(one, found)]
    found.sort(key=lambda one: (rank(list(one.costs)), [(edit.change, str(edit.identity)) for edit in one.edits]))
    distinct = {one.identities: one for one in reversed(found)}
    hosts = {target.label: target for target in universe.problem.request.hosts}
    asked = frozenset(universe.problem.request.spec.requires)
    return tuple(fix_of(one.edits, one.gives, hosts, asked=asked) for one in reversed(distinct.values()))[:SHOWN]


def fix_of(edits: Sequence[Edit], gives: Mapping[str, str], hosts: Mapping[str, TargetHost], *, asked: frozenset[str]) -> Fix:
    """Return edits as a fix; hosts are named where the target has several."""
    names_hosts = sum(target.count for target in hosts.values()) > 1
    labels = {target.label: target.names or (target.label,) for target in hosts.values()} if names_hosts else {}
    return Fix(edits=tuple(edits), gives=gives, hosts=labels, asked=asked)


def rejoined(problem: Problem, request: Request) -> Problem:
    """Return the problem of a changed request, with the same required beyond the inputs."""
    return join(problem.matrix, request).with_roots(*problem.extra)


def applied(request: Request, edits: Iterable[Edit]) -> Request:
    """Return a request after some edits."""
    for edit in edits:
        request = edit.apply(request)
    return request


def gives(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """Return what an answer holds where people look first: frameworks, runtimes, Python, and what the spec names."""
    found: dict[str, str] = {}
    for key, candidate in pins.items():
        if key.name == "pytorch" and isinstance(candidate, ReleaseCandidate) and candidate.build is not None:
            found["pytorch"] = str(candidate.release.version)
            found["pytorch_build"] = candidate.build.name
        elif key.name in {"cuda", "rocm", "python", "tensorflow", "jax"}:
            found[key.name] = candidate.label
    direct = universe.packages.order if universe.packages else {}
    found.update({key.name: pins[key].label for key in direct if key in pins})
    return dict(sorted(found.items()))


def _settle_system(problem: Problem, request: Request) -> Mapping[str, str] | None:
    """Decide as `solve` decides, so that a fix gives what is then answered."""
    universe = Universe(rejoined(problem, request))
    pins = decide(universe)
    return None if pins is None else gives(universe, pins)


def _settled(settle: Settle, request: Request, edits: Sequence[Edit]) -> Mapping[str, str] | None:
    """Return what edits give; None when they do not help, or nobody can tell because an index is out of reach."""
    try:
        return settle(applied(request, edits))
    except ProvisionError:
        return None


def _of_inputs(
    universe: Universe, tried: Iterable[tuple[Edit, ...]], settle: Settle, *, known: Sequence[Working]
) -> list[Working]:
    """Return those of some edits of the inputs that help; none that does more than another, or than what is known."""
    request = universe.problem.request
    found: list[Working] = []
    for edits in _in_time(tried):
        identities = {edit.identity for edit in edits}
        if any(one.identities <= identities for one in (*known, *found)):
            continue
        universe.patience.share(MOST_READS_OF_ONE)
        given = _settled(settle, request, edits)
        if given is not None:
            exact = tuple(_with_python(edit, given) for edit in edits)
            found.append(Working(edits=exact, costs=tuple(cost_of(edit.component) for edit in exact), gives=given))
    return found


def _in_time(tried: Iterable[tuple[Edit, ...]]) -> Iterator[tuple[Edit, ...]]:
    """Yield the edits that can be named before too much was read, or an index is out of reach."""
    try:
        yield from tried
    except UnavailableError:
        return


def _with_python(edit: Edit, given: Mapping[str, str]) -> Edit:
    """Return an edit that leaves Python open as one that asks for the Python that was found; any other edit as it is."""
    return SetComponent(name="python", value=given["python"], asked=edit.asked) if isinstance(edit, OpenPython) else edit


def _has_less(one: Working, others: Iterable[Working]) -> bool:
    """Whether another one does with some of the edits: a request that is left out frees what was changed beside it."""
    return any(other.identities < one.identities for other in others)


class _Search:
    """Looks for the smallest sets of requests and facts whose change leaves a solution."""

    def __init__(self, universe: Universe, search: CompleteSearch, settle: Settle | None) -> None:
        self._universe = universe
        self._search = search
        self._settle = settle
        self._rounds = 0

    def found(self, groups: tuple[Group, ...]) -> list[Working]:
        """Return what works, the cheapest sets tried first; a set that contains one that works is not tried."""
        working: list[Working] = []
        done: list[frozenset[Group]] = []
        queue: list[tuple[Relaxable, ...]] = [(one,) for one in relaxables(self._universe, self._search, groups)]
        known = {_groups(some) for some in queue}
        tried = 0
        while queue and tried < MOST and len(working) < SHOWN and self._rounds < MOST_ROUNDS:
            queue.sort(key=_cost)
            some = queue.pop(0)
            dropped = _groups(some)
            if any(other <= dropped for other in done):
                continue
            tried += 1
            self._universe.patience.share(MOST_READS_OF_ONE)
            found = self._working(some)
            if found is not None and not _has_less(found, working):
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
        """Return the same with one more: what else stands in the way once these are changed."""
        groups = self._still_impossible(dropped) or self._in_the_way(some, dropped)
        also = relaxables(self._universe, self._search, groups)
        further = [(*some, one) for one in also if one.group not in dropped]
        return [one for one in further if _count(one) <= AT_ONCE]

    def _still_impossible(self, dropped: frozenset[Group]) -> tuple[Group, ...]:
        """Return what else stands in the way once these groups are dropped; () when that cannot be told."""
        try:
            return self._search.minimal(without=dropped) if self._search.find(without=dropped) is None else ()
        except UnavailableError:
            return ()

    def _in_the_way(self, some: tuple[Relaxable, ...], dropped: frozenset[Group]) -> tuple[Group, ...]:
        """Return why nothing can be had of what is changed, though all would be well without it; not minimal.

        Each is asked for alone too: a proof against all of them may name what refutes one, and nothing of the others.
        """
        present = tuple(dict.fromkeys(one.key for one in some if not one.is_fact and not one.is_bound))
        found: dict[Group, None] = {}
        for keys in dict.fromkeys((present, *((key,) for key in present))):
            if keys and self._search.refutes(without=dropped, present=keys):
                found |= dict.fromkeys(self._search.core(without=dropped))
        return tuple(found)

    def _working(self, some: tuple[Relaxable, ...]) -> Working | None:
        """Change each of them; None when that is still impossible, or an index it needs is out of reach."""
        is_settled_whole = self._settle is not None and all(one.is_bound for one in some)
        try:
            # Without some bounds another Python may do: whether any does is for who tries all of them.
            chosen = [None] * len(some) if is_settled_whole else self._chosen(some)
        except UnavailableError:
            return None
        if chosen is None:
            return None
        pairs = [
            edit_of(self._universe, one, candidate) if candidate is not None else left_out(self._universe, one)
            for one, candidate in zip(some, chosen, strict=True)
        ]
        pairs = list(dict.fromkeys(pairs))
        order = {target.label: place for place, target in enumerate(self._universe.problem.request.hosts)}
        pairs.sort(key=lambda pair: (pair[1], order.get(pair[0].host_label, -1), pair[0].component))
        edits = tuple(edit for edit, _ in pairs)
        costs = [cost for _, cost in pairs]
        given = self._given(some, chosen, edits)
        if given is None and self._settle is not None and (opened := open_python(self._universe)) is not None:
            # Another version may need another Python, which is another environment.
            given = _settled(self._settle, self._universe.problem.request, (*edits, opened))
            if given is not None:
                edits, costs = (*edits, _with_python(opened, given)), [*costs, cost_of("python")]
        if given is None or (any(edit.gives_up for edit in edits) and not self._is_of_use(given)):
            return None
        return Working(edits=edits, costs=tuple(costs), gives=given)

    def _is_of_use(self, given: Mapping[str, str]) -> bool:
        """Whether anything is left of what was asked for: an environment without it is no answer."""
        requires = self._universe.problem.request.spec.requires
        named = self._universe.packages.order if self._universe.packages else {}
        wanted = {*(name for name in FRAMEWORKS if name in requires), *(key.name for key in named)}
        return bool(wanted.intersection(given)) if wanted else bool(given)

    def _given(
        self, some: tuple[Relaxable, ...], chosen: Sequence[Candidate | None], edits: Sequence[Edit]
    ) -> Mapping[str, str] | None:
        if self._settle is not None:
            return _settled(self._settle, self._universe.problem.request, edits)
        pins = self._answered(without=_groups(some), given=tuple(one for one in chosen if one is not None), present=())
        return None if pins is None else gives(self._universe, pins)

    def _chosen(self, some: tuple[Relaxable, ...]) -> list[Candidate | None] | None:
        """Return what each would be instead: of a fact the value nearest to today's, of a request what would be answered.

        None in the list stands for a request of which no other value works either, and for a bound: it would have to go.
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
            for candidates in one.nearest(self._universe) if one.key in present else ():
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
        """Whether nothing of what a request is about can be had."""
        return not one.is_fact and self._search.refutes(without=without, present=(one.key,))

    def _first(
        self, some: Sequence[Candidate], *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Candidate | None:
        """Return the first of some candidates that works: one that may work is found by halves, and then made sure of."""

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
        """Whether anything would be answered; the optimum costs as much again for each key there is."""
        if self._universe.packages is not None:
            return self._answered(without=without, given=given, present=present) is not None
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        return self._search.find(without=without, given=given, present=present) is not None

    def _answered(
        self, *, without: frozenset[Group], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Mapping[Key, Candidate] | None:
        """Return what solving again would answer: as in `resolve.decide`, but the complete search keeps what it has learnt.

        With packages resolvelib is asked first, for it reads a third of what the complete search reads to find the optimum.
        What is given counts as required: otherwise what a driver nobody requires needs of the kernel would not be looked at.
        """
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        if self._universe.packages is not None:
            relaxed = self._universe.relaxed(without=without, given=given, present=present)
            course = Course()
            pins = engine_search(relaxed, course)
            self._rounds += course.rounds
            if pins is not None and not violations(relaxed, pins):
                return pins
        return self._search.best(without=without, given=given, present=present)


def _groups(some: Sequence[Relaxable]) -> frozenset[Group]:
    return frozenset(one.group for one in some)


def _count(some: Sequence[Relaxable]) -> int:
    """Return how many things are changed: one fact on several hosts is one."""
    return len({(one.name, one.is_fact) for one in some})


def _cost(some: Sequence[Relaxable]) -> tuple[int, int, list[Cost]]:
    return rank([cost_of(one.name) for one in some])
