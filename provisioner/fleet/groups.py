"""Groups of kinds become stacks: solved together, verified on every class, and each class moved to the best that serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.fleet.arrangement import Arranging
from provisioner.resolver.problem import join
from provisioner.resolver.search.resolve import decide
from provisioner.resolver.search.universe import Universe

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from provisioner.fleet.classes import HostClass, Pool
    from provisioner.fleet.cover import Bound, Coverage
    from provisioner.fleet.local import Choice
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Candidate

ROUNDS = 8
"""How often classes may move to better stacks, each of which may then be better still."""


_FIRST = -2
"""Before every component, and before names, which have no place in the order."""


class Group(Struct, frozen=True, kw_only=True):
    """Kinds served by one stack, the chiefs among them, and the stack: the places of what was chosen among the candidates."""

    kinds: frozenset[int]
    chiefs: frozenset[int]
    choices: frozenset[Choice]
    rank: tuple[tuple[int, str, int], ...]
    """Smaller is more wanted: the places of what was chosen, the leading component's first, then down the order."""


class Grouping:
    """The groups of one pool."""

    def __init__(self, matrix: Matrix, pool: Pool, coverage: Coverage) -> None:
        self._matrix = matrix
        self._pool = pool
        self._coverage = coverage
        self._first: dict[int, HostClass] = {}
        self._weights = [0] * len(coverage.kinds)
        for one, kind in zip(pool.classes, coverage.kind_of, strict=True):
            self._first.setdefault(kind, one)
            self._weights[kind] += one.nodes
        self._solved: dict[frozenset[int], Group | None] = {}

    def groups(self) -> tuple[list[Group], Bound]:
        """The fewest groups, most wanted stacks first, and what is proved about their number."""
        arranging = Arranging(self._coverage, self._weights)
        while True:
            options, bound = self._coverage.smallest()
            if not bound.found:
                return [], bound
            groups = [self._solve(group) for group in arranging.best(options)]
            solved = [group for group in groups if group is not None]
            if len(solved) == len(groups):
                return self._settled(solved), bound
            # Solving the hosts together has the last word: what it refused is learnt, and the cover looked for again.

    def _solve(self, kinds: frozenset[int]) -> Group | None:
        """The most wanted stack for some kinds together; None where there is none, which is learnt then."""
        if kinds not in self._solved:
            self._solved[kinds] = self._decided(kinds)
        if self._solved[kinds] is None:
            self._coverage.refuse(self._smallest_refused(kinds))
        return self._solved[kinds]

    def _decided(self, kinds: Collection[int]) -> Group | None:
        chiefs = self._coverage.outermost(kinds)
        targets = [self._first[kind].target for kind in chiefs]
        universe = Universe(join(self._matrix, self._pool.request_for(targets)))
        pins = decide(universe)
        if pins is None:
            return None
        chosen: list[tuple[int, str, int]] = []
        for key, candidate in pins.items():
            if not key.scope:
                place = _place(universe.candidates(key), candidate)
                order = universe.problem.order.get(key, -1)
                chosen.append((_FIRST if key.name == self._coverage.lead else order, key.name, place))
        choices = frozenset((name, place) for _, name, place in chosen)
        return Group(kinds=frozenset(kinds), chiefs=frozenset(chiefs), choices=choices, rank=tuple(sorted(chosen)))

    def _smallest_refused(self, kinds: frozenset[int]) -> frozenset[int]:
        kept = kinds
        for kind in sorted(kinds):
            if len(kept) > 1 and self._decided(kept - {kind}) is None:
                kept -= {kind}
        return kept

    def _settled(self, groups: list[Group]) -> list[Group]:
        """Every kind at the most wanted stack that serves it, and every stack the most wanted for its kinds."""
        served = self._coverage.served
        ordered = sorted(groups, key=_preference)
        if self._coverage.is_joint:
            return ordered
        for _ in range(ROUNDS):
            places: dict[int, list[int]] = {}
            for kind in served:
                at = next(at for at, group in enumerate(ordered) if self._coverage.serves(group.choices, kind))
                places.setdefault(at, []).append(kind)
            wanted = [frozenset(places[at]) for at in sorted(places)]
            if wanted == [group.kinds for group in ordered]:
                break
            kept = [group for at, group in enumerate(ordered) if at in places]
            better = [self._decided(kinds) for kinds in wanted]
            found = [
                new or replace(old, kinds=kinds, chiefs=frozenset(self._coverage.outermost(kinds)))
                for new, old, kinds in zip(better, kept, wanted, strict=True)
            ]
            ordered = sorted(found, key=_preference)
        return ordered


def _preference(group: Group) -> tuple[tuple[tuple[int, str, int], ...], int]:
    return group.rank, min(group.kinds)


def _place(candidates: Sequence[Candidate], chosen: Candidate) -> int:
    return next(place for place, candidate in enumerate(candidates) if candidate is chosen)
