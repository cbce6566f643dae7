"""Satisfiability of clauses: an encoding, maximal sets of literals that can hold together, and covers of elements by sets.

The functions know nothing of hosts or stacks. A literal is a variable's number, negative for its negation. A request is a
literal that should hold if possible; a set in `covers` and `fewest` is a set of integers, its elements. The SAT solver is
Glucose, through python-sat.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


Members = frozenset[int]


def at_most_one(literals: Sequence[int], fresh: Callable[[], int]) -> Iterator[tuple[int, ...]]:
    """Yield clauses that let at most one literal hold; their number grows linearly (sequential-counter encoding).

    `fresh` returns a new variable; each new variable means "this literal or an earlier one holds". Source: Sinz, "Towards an
    Optimal CNF Encoding of Boolean Cardinality Constraints", 2005.
    """
    before = 0
    for literal in literals:
        so_far = fresh()
        yield -literal, so_far
        if before:
            yield -before, so_far
            yield -before, -literal
        before = so_far


class Clauses:
    """A growing set of clauses in one SAT solver, which reuses clauses that it learnt in earlier calls."""

    def __init__(self) -> None:
        from pysat.solvers import Solver

        self._solver = Solver(name="glucose42")
        self._next = 0
        self._limits: list[int] = []

    def close(self) -> None:
        """Free the solver's memory."""
        self._solver.delete()

    def variable(self) -> int:
        """Return a new variable as a literal; the solver tries the value "true" for it first."""
        self._next += 1
        self._solver.set_phases([self._next])
        return self._next

    def add(self, clause: Collection[int]) -> None:
        """Require that at least one literal of a clause holds."""
        self._solver.add_clause(sorted(clause))

    def at_most_one(self, literals: Sequence[int]) -> None:
        """Require that no two of some literals hold."""
        for clause in at_most_one(literals, self._fresh):
            self.add(clause)

    def _fresh(self) -> int:
        """Return a new auxiliary variable, for which the solver prefers no value."""
        self._next += 1
        return self._next

    def model(self, assumed: Collection[int] = ()) -> frozenset[int] | None:
        """Return the positive literals of an assignment in which all of `assumed` hold; None when no assignment exists."""
        if not self._solver.solve(assumptions=list(assumed)):
            return None
        return frozenset(literal for literal in self._solver.get_model() or () if literal > 0)

    def core(self) -> Members:
        """Return assumed literals that cannot hold together, not always a minimal set; valid after `model` returned None."""
        return frozenset(self._solver.get_core() or ())

    def grown(self, kept: Collection[int], requests: Sequence[int]) -> Members | None:
        """Return a maximal set of `requests` that can hold together with the literals in `kept`; None when `kept` cannot hold.

        No further request can be added to a maximal set, but there may be a larger set.
        """
        model = self.model(kept)
        if model is None:
            return None
        fixed, chosen = tuple(kept), set(model.intersection(requests))
        for request in requests:
            if request in chosen:
                continue
            better = self.model((*fixed, *chosen, request))
            if better is not None:
                chosen.update(better.intersection(requests))
        return frozenset(chosen)

    def maximal(self, requests: Sequence[int], *, most: int) -> Iterator[Members]:
        """Yield every maximal set of requests that can hold at once, at most `most` of them.

        Each set is required to have a request outside every earlier set. When that is not satisfiable, all sets have been
        found.
        """
        self._next += 1
        asking = self._next
        for _ in range(most):
            found = self.grown((asking,), requests)
            if found is None:
                break
            yield found
            self.add((-asking, *(request for request in requests if request not in found)))
        self.add((-asking,))


def fewest(sets: Sequence[Members], elements: Collection[int]) -> tuple[int, ...]:
    """Return the indexes of the fewest sets in `sets` that together contain every element (exact; core-guided MaxSAT, RC2).

    Every element must be in some set.
    """
    from pysat.examples.rc2 import RC2
    from pysat.formula import WCNF

    formula = WCNF()
    for element in sorted(elements):
        formula.append([index + 1 for index, members in enumerate(sets) if element in members])
    for index in range(len(sets)):
        formula.append([-index - 1], weight=1)
    with RC2(formula) as solver:
        model = solver.compute()
    assert model is not None, "every element is in some set"
    return tuple(literal - 1 for literal in model if 0 < literal <= len(sets))


STEPS = 20_000
"""The largest number of partial covers that `covers` visits; a small problem has fewer, so that its result is complete."""


def covers(sets: Sequence[Members], elements: Collection[int], *, size: int, most: int) -> list[tuple[int, ...]]:
    """Return covers: choices of at most `size` of `sets`, by index, that together contain every element, in a fixed order.

    At most `most` covers are returned; the search ends after `STEPS` partial covers, so there may be more.
    """
    found: list[tuple[int, ...]] = []
    steps = 0
    holders = {element: [index for index, members in enumerate(sets) if element in members] for element in elements}

    def extend(chosen: tuple[int, ...], left: Members) -> None:
        nonlocal steps
        steps += 1
        if len(found) >= most or steps > STEPS:
            return
        if not left:
            found.append(tuple(sorted(chosen)))
            return
        largest = max(len(members & left) for members in sets)
        if len(left) > largest * (size - len(chosen)):
            return
        scarce = min(left, key=lambda element: (len(holders[element]), element))
        for index in holders[scarce]:
            extend((*chosen, index), left - sets[index])

    extend((), frozenset(elements))
    return list(dict.fromkeys(found))


def independent(elements: Sequence[int], together: Mapping[int, Members]) -> tuple[int, ...]:
    """Return elements of which no two are in the same set; no cover has fewer sets than the result has elements.

    `together` maps each element to the elements that share a set with it. The choice is greedy from every start, elements with
    the fewest companions first: large, but not always the largest.
    """
    ranked = sorted(elements, key=lambda element: (len(together[element]), element))
    best: tuple[int, ...] = ()
    for start in ranked:
        chosen = [start]
        for element in ranked:
            if element != start and not any(element in together[other] for other in chosen):
                chosen.append(element)
        best = max(best, tuple(sorted(chosen)), key=len)
    assert all(second not in together[first] for first, second in combinations(best, 2))
    return best
