"""Which single requirements a conflict rests on: a group such as "cuda needs driver" speaks of every release there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from provisioner.resolver.search.ladder import at_most_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.universe import Universe


class Member(NamedTuple):
    """One requirement, and the candidate that has it; None: it is required from the start."""

    parent: Candidate | None
    requirement: Requirement


class Proof:
    """The requirements of a conflict as clauses that can each be left out. Nothing is read of an index."""

    def __init__(self, universe: Universe, members: Sequence[Member]) -> None:
        from pysat.solvers import Solver

        self._universe = universe
        self._solver = Solver(name="glucose42", incr=False)
        self._next = 0
        self._variables: dict[Candidate, int] = {}
        self._members: dict[int, Member] = {}
        for member in members:
            self._members[self._fresh()] = member
        for selector, (parent, requirement) in self._members.items():
            self._add(selector, requirement.key, universe.allowed(requirement), parent)
        self._one_for_each_key()

    def close(self) -> None:
        """Free the solver's memory."""
        self._solver.delete()

    def _add(self, selector: int, key: Key, allowed: Iterable[Candidate], parent: Candidate | None) -> None:
        """While `selector` holds, choosing `parent` needs one of the candidates of `key` in `allowed`."""
        clause = [-selector, *(self._variable(candidate) for candidate in _in_order(self._universe, key, allowed))]
        if parent is not None:
            clause.append(-self._variable(parent))
        self._solver.add_clause(clause)

    def needed(self, rank: Callable[[Member], object]) -> list[Member]:
        """The requirements to tell: whole sayings, as few as still cannot hold together, about the subjects that matter.

        Requirements of one rank, which people would say in one breath, are dropped together, the rarest sayings before the
        common ones. What then is left of them is made minimal one by one: this says which subjects matter.
        """
        sayings: dict[object, list[int]] = {}
        for selector, member in self._members.items():
            sayings.setdefault(rank(member), []).append(selector)
        kept = list(self._members)
        assert self._core(kept) is not None, "the requirements of a conflict cannot hold together"
        for some in sorted(sayings.values(), key=len):
            rest = [one for one in kept if one not in set(some)]
            kept = rest if self._core(rest) is not None else kept
        told = list(kept)
        kept = self._core(kept) or kept
        for selector in list(kept):
            if selector in kept:
                kept = self._core([one for one in kept if one != selector]) or kept
        ranks = {rank(self._members[selector]) for selector in kept}
        subjects = {self._members[selector].parent for selector in kept}
        found = ((selector, self._members[selector]) for selector in told)
        return [
            member
            for selector, member in found
            if selector in kept or (member.parent is not None and member.parent in subjects and rank(member) in ranks)
        ]

    def refutes(self, members: Iterable[Member], *, key: Key, allowed: Iterable[Candidate]) -> bool:
        """Whether the conflict stands when some members say no more than that `key` must be in `allowed`."""
        some = {id(member.requirement): member for member in members}
        extra = [self._fresh() for _ in some]
        wanted = list(allowed)
        for selector, member in zip(extra, some.values(), strict=True):
            self._add(selector, key, wanted, member.parent)
        rest = [selector for selector, member in self._members.items() if id(member.requirement) not in some]
        return self._core([*rest, *extra]) is not None

    def _core(self, selectors: list[int]) -> list[int] | None:
        """Those of some requirements that a proof used, in order; None where they can hold together."""
        if self._solver.solve(assumptions=selectors):
            return None
        used = set(self._solver.get_core() or ())
        return [one for one in selectors if one in used]

    def _one_for_each_key(self) -> None:
        """Of each key at most one candidate is chosen, as a ladder: "chosen here or before"."""
        chosen: dict[Key, list[int]] = {}
        for candidate, variable in self._variables.items():
            chosen.setdefault(candidate.key, []).append(variable)
        for variables in chosen.values():
            for clause in at_most_one(variables, self._fresh):
                self._solver.add_clause(clause)

    def _variable(self, candidate: Candidate) -> int:
        if candidate not in self._variables:
            self._variables[candidate] = self._fresh()
        return self._variables[candidate]

    def _fresh(self) -> int:
        self._next += 1
        return self._next


def _in_order(universe: Universe, key: Key, allowed: Iterable[Candidate]) -> list[Candidate]:
    """A set of candidates in the order of their domain: what is proved must not depend on how sets are hashed."""
    wanted = set(allowed)
    return [candidate for candidate in universe.candidates(key) if candidate in wanted]
