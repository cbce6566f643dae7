"""Reduce a conflict to single requirements that cannot hold together, without reading an index.

A group is a set of requirements that a person would drop together; "cuda needs driver", for example, has a requirement for
every CUDA release. A member is here one requirement of a group, with the candidate that has it. A statement is what several
members are reported as, such as "cuda 12.4 to 12.6 needs driver >=525".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from provisioner.resolver.search.sat import at_most_one

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance


class Member(NamedTuple):
    """One requirement and the candidate that has it, `parent`; None for a root requirement."""

    parent: Candidate | None
    requirement: Requirement


class Proof:
    """The requirements of a conflict as clauses of a SAT solver.

    Each clause has a literal, its selector, that is assumed to make the requirement hold and left out to drop it. Nothing is
    read from an index.
    """

    def __init__(self, instance: ProblemInstance, members: Sequence[Member]) -> None:
        from pysat.solvers import Solver

        self._instance = instance
        self._solver = Solver(name="glucose42", incr=False)
        self._next = 0
        self._variables: dict[Candidate, int] = {}
        self._members: dict[int, Member] = {}
        for member in members:
            self._members[self._fresh()] = member
        for selector, (parent, requirement) in self._members.items():
            self._add(selector, requirement.key, instance.allowed(requirement), parent)
        self._one_for_each_key()

    def close(self) -> None:
        """Free the solver's memory."""
        self._solver.delete()

    def _add(self, selector: int, key: Key, allowed: Iterable[Candidate], parent: Candidate | None) -> None:
        """Add the clause: while `selector` holds, choosing `parent` needs one of the candidates of `key` in `allowed`."""
        clause = [-selector, *(self._variable(candidate) for candidate in _in_order(self._instance, key, allowed))]
        if parent is not None:
            clause.append(-self._variable(parent))
        self._solver.add_clause(clause)

    def minimal_members(self, statement_of: Callable[[Member], object]) -> list[Member]:
        """Return the requirements to report, from as few statements as possible, that still cannot hold together.

        `statement_of` returns the statement of a requirement. Whole statements are dropped first, those with the fewest
        requirements before others; then single requirements are dropped until none is superfluous. If a candidate has one of
        the remaining requirements, the result also has all other requirements of that candidate whose statement remains.
        """
        statements: dict[object, list[int]] = {}
        for selector, member in self._members.items():
            statements.setdefault(statement_of(member), []).append(selector)
        kept = list(self._members)
        assert self._core(kept) is not None, "the requirements of a conflict cannot hold together"
        for some in sorted(statements.values(), key=len):
            rest = [one for one in kept if one not in set(some)]
            kept = rest if self._core(rest) is not None else kept
        of_statements = list(kept)
        kept = self._core(kept) or kept
        for selector in list(kept):
            if selector in kept:
                kept = self._core([one for one in kept if one != selector]) or kept
        needed = {statement_of(self._members[selector]) for selector in kept}
        subjects = {self._members[selector].parent for selector in kept}
        found = ((selector, self._members[selector]) for selector in of_statements)
        return [
            member
            for selector, member in found
            if selector in kept or (member.parent is not None and member.parent in subjects and statement_of(member) in needed)
        ]

    def refutes(self, members: Iterable[Member], *, key: Key, allowed: Iterable[Candidate]) -> bool:
        """Return whether the conflict remains if each of `members` allows the candidates of `key` in `allowed` instead."""
        some = {id(member.requirement): member for member in members}
        extra = [self._fresh() for _ in some]
        wanted = list(allowed)
        for selector, member in zip(extra, some.values(), strict=True):
            self._add(selector, key, wanted, member.parent)
        self._one_for_each_key()  # the range may have candidates that no requirement of the conflict speaks of
        rest = [selector for selector, member in self._members.items() if id(member.requirement) not in some]
        return self._core([*rest, *extra]) is not None

    def _core(self, selectors: list[int]) -> list[int] | None:
        """Return the selectors that a proof of contradiction used, in order; None when all `selectors` can hold together."""
        if self._solver.solve(assumptions=selectors):
            return None
        used = set(self._solver.get_core() or ())
        return [one for one in selectors if one in used]

    def _one_for_each_key(self) -> None:
        """Require that at most one candidate of each key is chosen."""
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


def _in_order(instance: ProblemInstance, key: Key, allowed: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates in `allowed` in the order of the key's candidates: a proof must not depend on hashes of sets."""
    wanted = set(allowed)
    return [candidate for candidate in instance.candidates(key) if candidate in wanted]
