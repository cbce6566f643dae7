"""Ways out of a conflict: complete changes, each solved again before anyone sees it, cheapest for a person first."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from provisioner.errors import ProvisionError, UnavailableError
from provisioner.solve.explain.change import Change, changed
from provisioner.solve.explain.cost import Cost, cost_of, rank
from provisioner.solve.explain.fewer_hosts import fewer_hosts
from provisioner.solve.explain.hint_words import SHOWN, hint_of
from provisioner.solve.explain.lever import Lever, change_of, left_out, levers_of
from provisioner.solve.explain.other_ways import other_ways
from provisioner.solve.explain.way import Way, gives_up, says_more, told
from provisioner.solve.problem import join
from provisioner.solve.rules.devices import FRAMEWORKS
from provisioner.solve.search.provider import Course
from provisioner.solve.search.provider import search as engine_search
from provisioner.solve.search.resolve import decide
from provisioner.solve.search.universe import Universe, violations
from provisioner.solve.stack import AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provisioner.solve.problem import Problem
    from provisioner.solve.requirement import Candidate, Key
    from provisioner.solve.search.complete import CompleteSearch
    from provisioner.solve.stack import Hint
    from provisioner.request import Request

    Settle = Callable[[Request], Mapping[str, str] | None]

MOST = 40
"""How many combinations are tried before those found so far must do."""

MOST_ROUNDS = 3_000
"""How many rounds of the engine are spent on that; a way out of a large conflict takes some hundreds. Rounds, and not seconds
or what a cache lacks, so that the same conflict has the same hints everywhere."""


MOST_READS, MOST_READS_OF_ONE = 1_000, 400
"""How many versions' metadata all ways out of a conflict, and one of them, may read besides what its proof has read: a way out
of a large conflict takes some hundreds, and what needs thousands is nothing a person would want to wait for."""


def hints(
    universe: Universe, search: CompleteSearch, groups: tuple[str, ...], *, settle: Settle | None = None
) -> tuple[Hint, ...]:
    """The ways out of a conflict, each solved again from the inputs as they would be after the change.

    `settle` solves a request and says what its answer gives, None where there is none. Where it is left out and there are
    packages, ways out are those within one environment.
    """
    if settle is None and universe.packages is None:
        settle = partial(_settle_system, universe.problem)
    universe.patience.end_after(MOST_READS)
    found = _Ways(universe, search, settle).found(groups)
    if settle is not None:
        tried = chain(other_ways(universe, groups), fewer_hosts(universe, search, groups))
        found.extend(_others(universe, tried, settle, known=found))
    found = [way for way in found if not says_more(way, found)]
    found.sort(key=lambda way: (rank(list(way.costs)), [(change.text, change.instead) for change in way.changes]))
    hosts = {target.label: target for target in universe.problem.request.hosts}
    asked = universe.problem.request.spec.requires.keys()
    return tuple({hint.text: hint for hint in (hint_of(way.changes, way.gives, hosts, asked=asked) for way in found)}.values())[
        :SHOWN
    ]


def rejoined(problem: Problem, request: Request) -> Problem:
    """The problem of a changed request, with the same required beyond the inputs."""
    return join(problem.matrix, request).with_roots(*problem.extra)


def _settle_system(problem: Problem, request: Request) -> Mapping[str, str] | None:
    """Decided as `solve` decides it, so that a hint gives what is then answered."""
    universe = Universe(rejoined(problem, request))
    pins = decide(universe)
    return None if pins is None else gives(universe, pins)


def _settled(settle: Settle, request: Request, changes: Sequence[Change]) -> Mapping[str, str] | None:
    """What the changes give; None when they do not help, or nobody can say so because an index is out of reach."""
    try:
        return settle(changed(request, changes))
    except ProvisionError:
        return None


def _others(universe: Universe, tried: Iterable[tuple[Change, ...]], settle: Settle, *, known: Sequence[Way]) -> list[Way]:
    """Those of some changes of the inputs that help; none that does more than another, or than what is known."""
    request = universe.problem.request
    found: list[Way] = []
    for changes in _answered_in_time(tried):
        said = {told(change) for change in changes}
        if any({told(one) for one in way.changes} <= said for way in (*known, *found)):
            continue
        universe.patience.share(MOST_READS_OF_ONE)
        given = _settled(settle, request, changes)
        if given is not None:
            exact = tuple(_exact(change, given) for change in changes)
            found.append(Way(changes=exact, costs=tuple(cost_of(change.component) for change in exact), gives=given))
    return found


def _answered_in_time(ways: Iterable[tuple[Change, ...]]) -> Iterator[tuple[Change, ...]]:
    """The ways that can be named before too much was read, or an index is out of reach."""
    try:
        yield from ways
    except UnavailableError:
        return


def _exact(change: Change, given: Mapping[str, str]) -> Change:
    """A Python that was left open becomes the one that was found."""
    if change.component != "python" or change.text:
        return change
    return Change(component="python", text=f"=={given['python']}", instead=change.instead)


class _Ways:
    """Looks for the smallest sets of requests and facts whose change leaves a solution."""

    def __init__(self, universe: Universe, search: CompleteSearch, settle: Settle | None) -> None:
        self._universe = universe
        self._search = search
        self._settle = settle
        self._rounds = 0

    def found(self, groups: tuple[str, ...]) -> list[Way]:
        ways: list[Way] = []
        done: list[frozenset[str]] = []
        queue: list[tuple[Lever, ...]] = [(lever,) for lever in levers_of(self._universe, self._search, groups)]
        known = {_groups(levers) for levers in queue}
        tried = 0
        while queue and tried < MOST and len(ways) < SHOWN and self._rounds < MOST_ROUNDS:
            queue.sort(key=_cost)
            levers = queue.pop(0)
            dropped = _groups(levers)
            if any(other <= dropped for other in done):
                continue
            tried += 1
            self._universe.patience.share(MOST_READS_OF_ONE)
            way = self._way(levers)
            if way is not None and not says_more(way, ways):
                ways.append(way)
                if not gives_up(way.changes):
                    done.append(dropped)
                    continue
            for further in self._further(levers, dropped):
                if _groups(further) not in known:
                    known.add(_groups(further))
                    queue.append(further)
        return ways

    def _further(self, levers: tuple[Lever, ...], dropped: frozenset[str]) -> list[tuple[Lever, ...]]:
        """The same changes with one more: what else stands in the way once they are made."""
        groups = self._still_impossible(dropped) or self._in_the_way(levers, dropped)
        also = levers_of(self._universe, self._search, groups)
        further = [(*levers, lever) for lever in also if lever.group not in dropped]
        return [some for some in further if _count(some) <= AT_ONCE]

    def _still_impossible(self, dropped: frozenset[str]) -> tuple[str, ...]:
        """What else stands in the way once these groups are dropped; nothing when that cannot be told."""
        try:
            return self._search.minimal(without=dropped) if self._search.find(without=dropped) is None else ()
        except UnavailableError:
            return ()

    def _in_the_way(self, levers: tuple[Lever, ...], dropped: frozenset[str]) -> tuple[str, ...]:
        """Why nothing can be had of what the levers are about, though all would be well without it; not minimal."""
        present = tuple(dict.fromkeys(lever.key for lever in levers if not lever.is_fact and not lever.is_line))
        is_refuted = bool(present) and self._search.refutes(without=dropped, present=present)
        return self._search.core(without=dropped) if is_refuted else ()

    def _way(self, levers: tuple[Lever, ...]) -> Way | None:
        """Change what the levers say; None when that is still impossible, or an index it needs is out of reach."""
        is_settled_whole = self._settle is not None and all(lever.is_line for lever in levers)
        try:
            # Without some lines another Python may do: whether any does is for who tries all of them.
            chosen = [None] * len(levers) if is_settled_whole else self._chosen(levers)
        except UnavailableError:
            return None
        if chosen is None:
            return None
        pairs = [
            change_of(self._universe, lever, candidate) if candidate is not None else left_out(self._universe, lever)
            for lever, candidate in zip(levers, chosen, strict=True)
        ]
        pairs = list(dict.fromkeys(pairs))
        order = {target.label: place for place, target in enumerate(self._universe.problem.request.hosts)}
        pairs.sort(key=lambda pair: (pair[1], order.get(pair[0].host, -1), pair[0].component))
        changes = tuple(change for change, _ in pairs)
        costs = [cost for _, cost in pairs]
        given = self._given(levers, chosen, changes)
        if given is None and self._is_python_asked() and self._settle is not None:
            # Another version may need another Python, which is another environment.
            asked = self._universe.problem.request.spec.requires["python"]
            open_python = Change(component="python", text="", instead=f"`{asked}`")
            given = _settled(self._settle, self._universe.problem.request, (*changes, open_python))
            if given is not None:
                changes, costs = (*changes, _exact(open_python, given)), [*costs, cost_of("python")]
        if given is None or (gives_up(changes) and not self._is_of_use(given)):
            return None
        return Way(changes=changes, costs=tuple(costs), gives=given)

    def _is_of_use(self, given: Mapping[str, str]) -> bool:
        """Whether anything is left of what was asked for: an environment without it is no answer."""
        requires = self._universe.problem.request.spec.requires
        named = self._universe.packages.order if self._universe.packages else {}
        wanted = {*(name for name in FRAMEWORKS if name in requires), *(key.name for key in named)}
        return bool(wanted.intersection(given)) if wanted else bool(given)

    def _is_python_asked(self) -> bool:
        return self._universe.packages is not None and "python" in self._universe.problem.request.spec.requires

    def _given(
        self, levers: tuple[Lever, ...], chosen: Sequence[Candidate | None], changes: Sequence[Change]
    ) -> Mapping[str, str] | None:
        if self._settle is not None:
            return _settled(self._settle, self._universe.problem.request, changes)
        pins = self._answered(without=_groups(levers), given=tuple(one for one in chosen if one is not None), present=())
        return None if pins is None else gives(self._universe, pins)

    def _chosen(self, levers: tuple[Lever, ...]) -> list[Candidate | None] | None:
        """What each lever would say instead: of a fact the value nearest to today's, of a request what would be answered.

        None stands for a request of which no other value works either, and for a line: it would have to be left out.
        """
        without = _groups(levers)
        asking = [lever for lever in levers if not lever.is_line]
        present = tuple(dict.fromkeys(lever.key for lever in asking))
        if self._search.refutes(without=without, present=present):
            hopeless = {lever.key for lever in asking if self._is_hopeless(lever, without)}
            present = tuple(key for key in present if key not in hopeless)
            if not hopeless or self._search.refutes(without=without, present=present):
                return None
        chosen: dict[Key, Candidate] = {}
        for lever in asking:
            for some in lever.nearest(self._universe) if lever.key in present else ():
                works = self._first(some, without=without, given=tuple(chosen.values()), present=present)
                if works is not None:
                    chosen[lever.key] = works
                    break
        if len(chosen) < len(present):
            pins = self._answered(without=without, given=tuple(chosen.values()), present=present)
            if pins is None:
                return None
            chosen = {key: chosen.get(key, pins[key]) for key in present}
        return [None if lever.is_line else chosen.get(lever.key) for lever in levers]

    def _is_hopeless(self, lever: Lever, without: frozenset[str]) -> bool:
        """Whether nothing of what a request is about can be had."""
        return not lever.is_fact and self._search.refutes(without=without, present=(lever.key,))

    def _first(
        self, some: Sequence[Candidate], *, without: frozenset[str], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Candidate | None:
        """The first of some candidates that works: what may work is found by halves, and then made sure of."""

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

    def _works(self, *, without: frozenset[str], given: tuple[Candidate, ...], present: tuple[Key, ...]) -> bool:
        """Whether anything would be answered; what it is costs as much again for each key there is."""
        if self._universe.packages is not None:
            return self._answered(without=without, given=given, present=present) is not None
        present = tuple(dict.fromkeys((*present, *(candidate.key for candidate in given))))
        return self._search.find(without=without, given=given, present=present) is not None

    def _answered(
        self, *, without: frozenset[str], given: tuple[Candidate, ...], present: tuple[Key, ...]
    ) -> Mapping[Key, Candidate] | None:
        """What solving again would answer: as in `resolve.decide`, but the complete search keeps what it has learnt.

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


def _groups(levers: Sequence[Lever]) -> frozenset[str]:
    return frozenset(lever.group for lever in levers)


def _count(levers: Sequence[Lever]) -> int:
    """How many things are changed: one fact on several hosts is one."""
    return len({(lever.name, lever.is_fact) for lever in levers})


def _cost(levers: Sequence[Lever]) -> tuple[int, int, list[Cost]]:
    return rank([cost_of(lever.name) for lever in levers])


def gives(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """What the re-solved answer holds where people look first."""
    found: dict[str, str] = {}
    for key, candidate in pins.items():
        if key.name == "pytorch":
            found["pytorch"] = str(candidate.subject[0].version)
            found["pytorch_build"] = candidate.subject[1].name
        elif key.name in {"cuda", "rocm", "python", "tensorflow", "jax"}:
            found[key.name] = candidate.label
    direct = universe.packages.order if universe.packages else {}
    found.update({key.name: pins[key].label for key in direct if key in pins})
    return dict(sorted(found.items()))
