"""The complete search: finds the most preferred answer if resolvelib fails, or groups that cannot hold together.

A group is a set of requirements that a person could drop together, such as a line of the spec or "cuda needs driver". The
problem is encoded as clauses for a SAT solver (Glucose, through python-sat), with one variable for each candidate and one for
each group. A model is an assignment of the variables that satisfies the clauses.

The requirements of a candidate are read only when a model chooses it, so an index is read only as far as a proof needs. The
search is complete because unread requirements only leave a candidate less constrained: a contradiction without them remains one
with them.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple

from provisioner.components import NEVER_ALONE
from provisioner.errors import UnavailableError
from provisioner.grounds.requirement import PYTHON_ATTEMPT, RequiresComponent, RequiresDistribution
from provisioner.resolver.requirement import WheelCandidate, build_of
from provisioner.resolver.search.instance import STEPS_OF_CALL
from provisioner.resolver.search.sat import at_most_one

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

MAX_READS = 3000
"""The number of versions of distributions whose metadata one search may read before it gives up; the matrix costs nothing to
read."""


def _is_follower(requirement: Requirement) -> bool:
    """Return whether a requirement is the fact of a host about what is installed with another component."""
    return requirement.ground.kind == "fact" and requirement.key.component in NEVER_ALONE


def _is_alike(candidate: Candidate, instance: ProblemInstance, other: Candidate) -> bool:
    """Return whether another candidate of a key costs nothing to read, as `candidate` does not.

    Of a distribution only versions without a file are free; whether a wheel of PyTorch has one is known for the same index.
    """
    if not isinstance(candidate, WheelCandidate) or not isinstance(other, WheelCandidate):
        return not candidate.key.is_package
    indexes = {build.index for one in (candidate.build, other.build) if (build := build_of(one)) is not None}
    return len(indexes) == 1 and instance.lacks_file(other)


def every_key(key: Key) -> bool:
    """Return True: a search has every key unless it is told otherwise."""
    del key
    return True


class Blame(NamedTuple):
    """What a proof uses of what was asked for: the positions of those of `among`, and whether what the condition requires."""

    among: list[int]
    is_of_condition: bool


class CompleteSearch:
    """A search of one problem instance in one SAT solver, which reuses clauses that it learnt in earlier calls.

    The Python of the instance's environment is no group: every assignment has it, and no conflict contains it. `includes` tells
    whether a key belongs to the search; requirements on other keys are left out. By default all keys do.
    """

    def __init__(self, instance: ProblemInstance, includes: Callable[[Key], bool] = every_key) -> None:
        from pysat.solvers import Solver

        self._instance = instance
        self._includes = includes
        self._solver = Solver(name="glucose42", incr=False)
        self._next = 0
        self._variables: dict[Candidate, int] = {}
        self._candidate_of: dict[int, Candidate] = {}
        self._domains: dict[Key, list[int]] = {}
        self._groups: dict[Group, int] = {}
        self._group_of: dict[int, Group] = {}
        self._members: dict[Group, list[tuple[Candidate | None, Requirement]]] = {}
        self._expanded: set[Candidate] = set()
        self._chosen_before: dict[Key, int] = {}
        self._in_question: dict[Key, list[Candidate]] = {}
        """The candidates of a key that the requirements on it from the start allow."""
        self._index_reads = 0
        self._allowed: dict[int, tuple[frozenset[Candidate], list[int]]] = {}
        """The variables of each set of allowed candidates, which the instance returns again for the same test."""
        self._present: dict[Key, int] = {}
        self._kept_present: tuple[Key, ...] = ()
        self._required_under: dict[int, dict[Key, None]] = {}
        """The keys of which something is required under each condition."""
        self._asked: frozenset[Key] = frozenset()
        """The keys that the latest search is about, whose candidates are read before those of others."""
        self._unread: list[Candidate] = []
        """The candidates beside those that were read last: what was read made it needless to read them, too."""
        self._numbers = count()
        self._wanted: Collection[Group] | None = None
        """The groups whose requirements are encoded; None for all."""
        self._deferred: dict[int, tuple[Candidate | None, Requirement]] = {}
        """The requirements of other groups, numbered as they were read, each with the candidate that has it, as `members`."""
        for requirement in instance.roots:
            if requirement.ground.group == PYTHON_ATTEMPT:
                self._domain(requirement.key)
                self._solver.add_clause([self._variable(one) for one in instance.allowed(requirement)])
            else:
                self._deferred[next(self._numbers)] = None, requirement

    def close(self) -> None:
        """Free the solver's memory."""
        self._solver.delete()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of the requirements read so far, in the order read."""
        return tuple(self._groups)

    def members(self, group: Group) -> list[tuple[Candidate | None, Requirement]]:
        """Return the requirements of a group read so far, each with the candidate that has it (None: a root requirement).

        Empty when no requirement of the group was read.
        """
        return self._members.get(group, [])

    def find(
        self,
        *,
        without: Collection[Group] = (),
        given: Collection[Candidate] = (),
        present: Collection[Key] = (),
        among: Collection[Sequence[Candidate]] = (),
    ) -> dict[Key, Candidate] | None:
        """Return any assignment that satisfies all groups but those in `without`; None when there is none.

        The assignment has every candidate in `given`, a candidate for every key in `present`, and one of each of `among`.
        Raises `UnavailableError` when an index cannot be reached, or when the metadata of more than `MAX_READS`
        versions, or of more than the `ReadBudget` allows, would have to be read.
        """
        self._want(None)
        chosen = self._chosen(given, present, among)
        return self._search(lambda: self._all_but(without), lambda: without, chosen)

    def refutes(
        self,
        *,
        without: Collection[Group] = (),
        given: Collection[Candidate] = (),
        present: Collection[Key] = (),
        among: Collection[Sequence[Candidate]] = (),
    ) -> bool:
        """Return whether what was read so far proves that `find` returns None; the arguments are those of `find`."""
        return self.refutation(without=without, given=given, present=present, among=among) is not None

    def refutation(
        self,
        *,
        without: Collection[Group] = (),
        given: Collection[Candidate] = (),
        present: Collection[Key] = (),
        among: Collection[Sequence[Candidate]] = (),
    ) -> tuple[Group, ...] | None:
        """Return the groups used by a proof that `find` returns None, not always a minimal set; None if there is no proof.

        Nothing more is read from an index: the proof uses the matrix and the metadata of versions that the search has read. The
        arguments are those of `find`.
        """
        self._want(None)
        chosen = self._chosen(given, present, among)
        pins = self._search(lambda: self._all_but(without), lambda: without, chosen, is_reading=False)
        return None if pins is not None else self._core(without)

    def condition(self) -> int:
        """Return a new literal: what is required under it (`require_under`) holds in the searches that are told so."""
        condition = self._fresh()
        self._required_under[condition] = {}
        return condition

    def require_under(self, condition: int, parent: Candidate | None, *, key: Key, allowed: Collection[Candidate]) -> None:
        """Require, under a condition, that one of `allowed` is chosen for a key; with a `parent` only where that is chosen."""
        self._domain(key)
        self._required_under[condition][key] = None
        clause = [-condition] if parent is None else [-condition, -self._variable(parent)]
        self._solver.add_clause([*clause, *sorted(map(self._variable, allowed))])

    def find_under(self, condition: int, among: Sequence[Sequence[Candidate]]) -> dict[Key, Candidate] | Blame:
        """Return any assignment that satisfies all groups and what is required under a condition, or why there is none.

        The assignment has one of each of `among`. Raises `UnavailableError` as `find` does.
        """
        self._want(None)
        self._asked = frozenset()
        keys = [one.key for some in among for one in some[:1]]
        for key in keys:
            self._domain(key)
        self._kept_present = (*self._required_under[condition], *keys)
        chosen = [self._any_of([self._variable(one) for one in some]) for some in among]
        found = self._search(lambda: self._all_but(()), lambda: (), [*chosen, condition])
        if found is not None:
            return found
        used = self._solver.get_core() or []
        positions = [position for position, literal in enumerate(chosen) if literal in used]
        return Blame(among=positions, is_of_condition=condition in used)

    def _chosen(
        self, given: Collection[Candidate], present: Collection[Key], among: Collection[Sequence[Candidate]]
    ) -> list[int]:
        self._kept_present = tuple(present)
        self._asked = frozenset(one.key for some in (given, *among) for one in some)
        chosen = [self._variable(candidate) for candidate in given] + [self._presence(key) for key in present]
        return [*chosen, *(self._any_of([self._variable(one) for one in some]) for some in among)]

    def _all_but(self, without: Collection[Group]) -> list[int]:
        return [variable for group, variable in self._groups.items() if group not in without]

    def _presence(self, key: Key) -> int:
        """Return a literal that, when assumed, makes the solver choose a candidate for a key even if nothing requires one."""
        if key not in self._present:
            self._present[key] = self._any_of(self._domain(key))
        return self._present[key]

    def _any_of(self, variables: Sequence[int]) -> int:
        """Return a literal that, when assumed, makes the solver choose at least one of the candidates of `variables`."""
        if len(variables) == 1:
            return variables[0]
        literal = self._fresh()
        self._solver.add_clause([-literal, *variables])
        return literal

    def _core(self, without: Collection[Group] = ()) -> tuple[Group, ...]:
        """Return the groups used by the proof of the latest search, which found no assignment with the same `without`."""
        used = self._solver.get_core() or []
        return tuple(self._group_of[literal] for literal in used if literal in self._group_of and literal not in without)

    def minimal(self, *, without: Collection[Group] = (), among: Collection[Group] = ()) -> tuple[Group, ...]:
        """Return a minimal set of groups that cannot hold together: without any one of them there is a solution.

        Groups are deleted one by one, and each step is a complete search over the same clauses. A group stays in the set when
        the search without it fails because an index cannot be reached: the set then still cannot hold together, but may not be
        minimal. `among` are groups that are known to be impossible together, with which the search begins; () for all groups. A
        request is left out where rules that were read say the same, and rules near to the requests are preferred (`_nearest`).
        """
        if not among:
            decided = self.find(without=without)
            assert decided is None, "only an impossible problem has a conflict"
        # They may say the same as a request. One whose index cannot be reached says nothing.
        with suppress(UnavailableError):
            for candidate in self._unread:
                self._expand(candidate)
        kept = self._nearest(list(self._start(without, among or self._core(without))), without)
        for group in tuple(kept):
            rest = [other for other in kept if other != group]
            if group in kept and self._is_refuted(rest):
                proof = set(self._core())
                kept = [other for other in rest if other in proof]
        return tuple(kept)

    def _start(self, without: Collection[Group], first: Collection[Group]) -> Collection[Group]:
        """Return groups that cannot hold together, for `minimal` to reduce: `first`, or better ones.

        Better are groups without any request of the user, if facts and rules alone cannot hold together, and groups without
        facts that follow another one: of a driver and the libraries that are installed with it, the driver is told.
        """
        known = {group: self._members[group][0][1] for group in self._groups if group not in without}
        followers = {group for group, one in known.items() if _is_follower(one)}
        facts = [group for group, one in known.items() if not one.ground.is_request]
        for some in ([group for group in facts if group not in followers], facts) if followers else (facts,):
            if self._is_refuted(some):
                return self._core(without)
        is_better = not followers.isdisjoint(first) and self._is_refuted([group for group in known if group not in followers])
        return self._core(without) if is_better else first

    def _nearest(self, groups: list[Group], without: Collection[Group]) -> list[Group]:
        """Return groups that cannot hold together, given some: with as few of their requests, and with rules as near to those.

        A rule may say what a request does: a distribution needs the very release of the framework that is requested besides.
        Rules on what is requested come before those on what these need, and so on: the shortest proof tells most. Nothing is
        read from an index for it.
        """
        known = {group: self._members[group][0][1].ground for group in self._groups if group not in without}
        rules = [group for group, ground in known.items() if not ground.is_request]
        requests = [group for group in groups if group not in rules]
        found = groups
        for request in tuple(requests):
            is_line = request in requests and isinstance(known[request], RequiresComponent | RequiresDistribution)
            proof = self._proof([*(one for one in requests if one != request), *rules]) if is_line else None
            if proof is not None:
                found, requests = proof, [one for one in requests if one in proof]
        for near in self._by_distance(requests, rules):
            if set(found) <= {*requests, *near}:
                break
            if (proof := self._proof([*requests, *near])) is not None:
                return proof
        return found

    def _proof(self, groups: Collection[Group]) -> list[Group] | None:
        """Return those of `groups` that a proof from what was read uses that they cannot hold together; None without one."""
        self._kept_present, self._asked = (), frozenset()
        assumed = [self._groups[group] for group in groups if group in self._groups]
        others = self._groups.keys() - set(groups)
        found = self._search(lambda: assumed, lambda: others, is_reading=False)
        return list(self._core()) if found is None else None

    def _by_distance(self, requests: Collection[Group], rules: Sequence[Group]) -> Iterator[list[Group]]:
        """Yield facts and the rules on what is requested, then with these those on what such rules require, and so on."""
        keys = {one.key for group in requests for _, one in self._members.get(group, ())}
        near: list[Group] = []
        while True:
            reached = [group for group in rules if any(p is None or p.key in keys for p, _ in self._members[group])]
            if len(reached) == len(near):
                return
            near = reached
            yield near
            keys |= {one.key for group in near for _, one in self._members[group]}

    def _is_refuted(self, kept: Collection[Group]) -> bool:
        try:
            return self._within(kept) is None
        except UnavailableError:
            return False

    def holds(self, groups: Collection[Group]) -> bool:
        """Return whether `groups` alone can hold together; raises `UnavailableError` as `find` does.

        No project is read but those that `groups` are about.
        """
        return self.refuting(groups) is None

    def refuting(
        self, groups: Collection[Group], *, given: Collection[Candidate] = (), among: Collection[Sequence[Candidate]] = ()
    ) -> tuple[Group, ...] | None:
        """Return those of `groups` that a proof uses that they cannot hold together; None when they can (see `holds`).

        `given` and `among` are those of `find`.
        """
        return self._core() if self._within(groups, given=given, among=among) is None else None

    def _within(
        self, kept: Collection[Group], *, given: Collection[Candidate] = (), among: Collection[Sequence[Candidate]] = ()
    ) -> dict[Key, Candidate] | None:
        """Return an assignment that satisfies the groups in `kept`; None when there is none.

        Groups whose requirements are first read during the search need not hold, except for those in `kept`.
        """
        self._want(kept)
        chosen = self._chosen(given, dict.fromkeys(one.key for some in (given, *among) for one in some), among)
        return self._search(
            lambda: [self._groups[group] for group in kept if group in self._groups],
            lambda: self._groups.keys() - set(kept),
            chosen,
        )

    def _search(
        self,
        assume: Callable[[], list[int]],
        dropped: Callable[[], Collection[Group]],
        chosen: Collection[int] = (),
        *,
        is_reading: bool = True,
    ) -> dict[Key, Candidate] | None:
        """Return an assignment of candidates whose requirements have all been read; None when there is none.

        The solver is called, the requirements of the candidates in its model are read, and so on until none is unread. `assume`
        returns the variables of the groups that must hold, `dropped` the groups that need not, and `chosen` are further
        literals to assume. With `is_reading` false nothing is read from an index, so distributions in the assignment may have
        unread requirements.
        """
        while True:
            self._instance.budget.steps.take(STEPS_OF_CALL)
            if not self._solver.solve(assumptions=[*assume(), *chosen]):
                return None
            pins = self._reached(self._solver.get_model() or [], dropped())
            fresh = [candidate for candidate in pins.values() if candidate not in self._expanded]
            # The matrix costs nothing to read, an index does: what the matrix excludes is never read from an index. Nor is the
            # metadata of a version without a file for the target read: its project page lists none.
            free = [candidate for candidate in fresh if not candidate.key.is_package]
            free = free or [candidate for candidate in fresh if self._instance.lacks_file(candidate)]
            if not (free or (fresh and is_reading)):
                return pins
            asked = [candidate for candidate in fresh if candidate.key in self._asked]
            named = [candidate for candidate in fresh if candidate.key in self._instance.named]
            self._unread = [] if free else [one for one in fresh if one not in (asked or named or fresh)]
            for candidate in free or asked or named or fresh:
                if candidate not in self._expanded:
                    self._expand(candidate)
                for other in self._likely_next(candidate) if free else ():
                    self._expand(other)

    def _likely_next(self, candidate: Candidate) -> list[Candidate]:
        """Return candidates of the same key that cost nothing to read and that models will choose if this one is excluded.

        They are as many as of the key were chosen before: where the newest hundred builds are excluded, the solver would
        otherwise be called for each of them.
        """
        key = candidate.key
        tried = self._chosen_before[key] = self._chosen_before.get(key, 0) + 1
        if tried == 1:
            return []
        if key not in self._in_question:
            roots = [root for root in self._instance.roots if root.key == key]
            listed = self._instance.candidates(key)
            self._in_question[key] = [one for one in listed if all(one in self._instance.allowed(root) for root in roots)]
        unread = (one for one in self._in_question[key] if one not in self._expanded)
        return list(islice(filter(partial(_is_alike, candidate, self._instance), unread), tried))

    def best(
        self, *, without: Collection[Group] = (), given: Collection[Candidate] = (), present: Collection[Key] = ()
    ) -> dict[Key, Candidate] | None:
        """Return the most preferred assignment; None when there is none.

        Keys are decided in the order of `decision_rank`, each with the first candidate that works; distributions that the spec
        does not name after what requires them. In a system stack a key is decided after some choice requires it, as in
        resolvelib: an image is chosen before a component that only the image bundles. `without`, `given` and `present` are
        those of `find`. Raises `UnavailableError` as `find` does.
        """
        pins = self.find(without=without, given=given, present=present)
        if pins is None:
            return None
        fixed: dict[Key, Candidate] = {candidate.key: candidate for candidate in given}
        bounds: dict[Key, list[Requirement]] = {}
        """What the roots and the candidates that are fixed require of each key."""
        for one in (*self._instance.roots, *(one for candidate in given for one in self._instance.requirements(candidate))):
            if one.ground.group not in without:
                bounds.setdefault(one.key, []).append(one)
        required = {*bounds, *present}
        order = self._dependents_first(pins)
        while (key := self._next_key(order, fixed, required)) is not None:
            candidates = self._instance.candidates(key)
            wanted: Sequence[Candidate] = candidates[: candidates.index(pins[key])]
            for bound in bounds.get(key, ()):  # what a fact or a choice excludes needs no search
                wanted = [one for one in wanted if one in self._instance.allowed(bound)]
            decided = [*fixed.values()] if wanted else []
            for candidate in self._working(wanted, without=without, given=decided, present=present):
                better = self.find(without=without, given=[*decided, candidate], present=present)
                if better is not None and better.get(key) == candidate:
                    pins, fixed[key] = better, candidate
                    order = self._dependents_first(pins)
                    break
            fixed[key] = pins[key]
            for one in self._instance.requirements(pins[key]):
                if one.ground.group not in without:
                    bounds.setdefault(one.key, []).append(one)
                    required.add(one.key)
        return pins

    def _working(
        self,
        wanted: Sequence[Candidate],
        *,
        without: Collection[Group],
        given: Collection[Candidate],
        present: Collection[Key],
    ) -> Iterator[Candidate]:
        """Yield the candidates in `wanted` that may have an assignment, in order.

        Most candidates have none, so they are tested in batches: all candidates of a batch are yielded if one of them has an
        assignment. The first batch is a single candidate and each batch is twice the size of the one before, because the
        metadata of a candidate that is tried has to be read from an index.
        """
        start, size = 0, 1
        while start < len(wanted):
            some = wanted[start : start + size]
            if self.find(without=without, given=given, present=present, among=(some,)) is not None:
                yield from some
            start, size = start + size, size * 2

    def _next_key(self, order: Sequence[Key], fixed: Collection[Key], required: Collection[Key]) -> Key | None:
        """Return the key to decide next; None when all are decided. `order` is that of `_dependents_first`.

        In a system stack, keys that a choice requires come before all others.
        """
        left = [key for key in order if key not in fixed]
        if self._instance.finder is None:
            left = [key for key in left if key in required] or left
            return min(left, key=self._instance.decision_rank, default=None)
        return min(left, key=lambda key: self._instance.decision_rank(key)[:-1], default=None)

    def _dependents_first(self, pins: Mapping[Key, Candidate]) -> list[Key]:
        """Return the keys of an assignment, each before those that its candidate requires, as far as these form no cycle.

        What requires a distribution is nearer to what the user named: its version counts first, and once it is decided, its
        requirement excludes versions that otherwise a search would exclude, which reads metadata.
        """
        done: dict[Key, None] = {}
        entered: set[Key] = set()
        waiting = [(key, False) for key in (*pins, *(root.key for root in self._instance.roots))]
        while waiting:
            key, is_done = waiting.pop()
            if is_done:
                done[key] = None
            elif key in pins and key not in entered:
                entered.add(key)
                waiting.append((key, True))
                waiting.extend((one.key, False) for one in self._instance.requirements(pins[key]))
        return [*reversed(done)]

    def _reached(self, model: Sequence[int], without: Collection[Group]) -> dict[Key, Candidate]:
        """Return the candidates of a model that the root requirements need, directly or through other candidates, by key.

        `model` lists every variable of the solver, negated when it is false. Requirements of the groups in `without` do not
        count.
        """
        pins: dict[Key, Candidate] = {}
        known = self._groups.keys() - set(without)
        queue = [r.key for r in self._instance.roots if r.ground.group in known or r.ground.group == PYTHON_ATTEMPT]
        queue.extend(self._kept_present)
        while queue:
            key = queue.pop()
            if key in pins:
                continue
            for variable in self._domains.get(key, ()):
                if model[variable - 1] > 0:
                    break
            else:
                continue
            pins[key] = candidate = self._candidate_of[variable]
            if candidate in self._expanded:
                queue.extend(r.key for r in self._instance.requirements(candidate) if r.ground.group in known)
        return pins

    def _expand(self, candidate: Candidate) -> None:
        self._index_reads += candidate.key.is_package
        if self._index_reads > MAX_READS:
            raise UnavailableError(
                f"the problem was not decided after reading {MAX_READS} candidates",
                hints=("narrow `requires:` or `packages:` with lower bounds, so that fewer versions are in question",),
            )
        known = self._instance.known_requirements(candidate)
        for requirement in self._instance.requirements(candidate):
            if requirement not in known:
                self._require(requirement, candidate)
        self._expanded.add(candidate)  # not earlier: if the index cannot be reached, its requirements are still unread

    def _want(self, groups: Collection[Group] | None) -> None:
        """Encode the requirements of `groups` and no others, by default those of all; pages of their projects are read."""
        self._wanted = groups
        for number, (parent, requirement) in tuple(self._deferred.items()):
            if groups is None or requirement.ground.group in groups:
                self._require(requirement, parent)
                del self._deferred[number]

    def _require(self, requirement: Requirement, parent: Candidate | None) -> None:
        """Add the clause of a requirement: if its group holds and `parent` is chosen, one of the allowed candidates is chosen.

        `parent` is the candidate that has the requirement; None for a root requirement.
        """
        if not self._includes(requirement.key):
            return
        group = requirement.ground.group
        if self._wanted is not None and group not in self._wanted:
            self._deferred[next(self._numbers)] = parent, requirement
            return
        self._members.setdefault(group, []).append((parent, requirement))
        self._domain(requirement.key)
        clause = [-self._group(group)]
        if parent is not None:
            clause.append(-self._variable(parent))
        self._solver.add_clause([*sorted(clause), *self._allowed_variables(requirement)])

    def _allowed_variables(self, requirement: Requirement) -> list[int]:
        """Return the variables of the candidates that a requirement allows, sorted; many requirements have the same test."""
        allowed = self._instance.allowed(requirement)
        known = self._allowed.get(id(allowed))
        if known is None or known[0] is not allowed:
            known = self._allowed[id(allowed)] = allowed, sorted(map(self._variable, allowed))
        return known[1]

    def _domain(self, key: Key) -> list[int]:
        """Return the variables of a key's candidates, most preferred first.

        The first call for a key also adds the clauses that allow at most one of its candidates, and those of the requirements
        that are known without metadata.
        """
        if key not in self._domains:
            variables = self._domains[key] = [self._variable(one) for one in self._instance.candidates(key)]
            for clause in at_most_one(variables, self._fresh):
                self._solver.add_clause(clause)
            for candidate in self._instance.candidates(key):  # so that no metadata is read to exclude them
                known = self._instance.known_requirements(candidate)
                for requirement in known:
                    self._require(requirement, candidate)
                # Each value of a follower goes with one value of its leader, and the pairs would otherwise be tried one by one.
                is_follower = key.component in NEVER_ALONE
                if is_follower or candidate.has_no_file or self._instance.is_known_unusable(candidate):
                    for requirement in self._instance.requirements(candidate):
                        if requirement not in known:
                            self._require(requirement, candidate)
                    self._expanded.add(candidate)
        return self._domains[key]

    def _variable(self, candidate: Candidate) -> int:
        if candidate not in self._variables:
            variable = self._variables[candidate] = self._fresh()
            self._candidate_of[variable] = candidate
            # "Chosen" is tried first, and variables are numbered most preferred first: models prefer new releases to old ones.
            self._solver.set_phases([variable])
        return self._variables[candidate]

    def _group(self, group: Group) -> int:
        if group not in self._groups:
            variable = self._groups[group] = self._fresh()
            self._group_of[variable] = group
        return self._groups[group]

    def _fresh(self) -> int:
        self._next += 1
        return self._next
