"""Turn groups of signatures into stacks: solve each group, and move each signature to the most preferred stack that serves it.

A signature is the constraints that some hosts have in common (see `cover`); a group is the signatures that one stack serves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.fleet.arrangement import Arranging
from provisioner.fleet.choice import Choosing
from provisioner.resolver.problem import join
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from provisioner.fleet.choice import Rung
    from provisioner.fleet.classes import HostClass, Pool
    from provisioner.fleet.cover import Bound, Coverage
    from provisioner.fleet.local import Choice
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Candidate

ROUNDS = 8
"""The most rounds of moving signatures to better stacks; each round solves these stacks again, which may improve them more."""


_FIRST = -2
"""The sort position of the leading component: before all others, including those without a position in the order (-1)."""


class Group(Struct, frozen=True, kw_only=True):
    """The signatures that one stack serves; `maximal` are the maximal ones among these, for which the stack was solved.

    `choices` are the shared candidates of the stack, each as the name of its key and its index among the candidates of the key.
    """

    signatures: frozenset[int]
    maximal: frozenset[int]
    choices: frozenset[Choice]
    rank: tuple[tuple[int, str, int], ...]
    """A sort key, smaller for a more preferred stack: order, key name and index of each shared candidate.

    The candidate of the leading component comes first, the others in the resolver's order.
    """


class Grouping:
    """Computes the groups of one pool."""

    def __init__(self, matrix: Matrix, pool: Pool, coverage: Coverage) -> None:
        self._matrix = matrix
        self._pool = pool
        self._coverage = coverage
        self._first: dict[int, HostClass] = {}
        self._weights = [0] * len(coverage.signatures)
        for one, signature in zip(pool.classes, coverage.signature_of, strict=True):
            self._first.setdefault(signature, one)
            self._weights[signature] += one.nodes
        self._solved: dict[frozenset[int], Group | None] = {}

    def groups(self) -> tuple[list[Group], Bound]:
        """Return the fewest groups, those with the most preferred stacks first, and the bound proved for their number.

        If the hosts of a group cannot be solved together, the cover is computed again without such a group.
        """
        arranging = Arranging(self._coverage, self._weights)
        while True:
            options, bound = self._coverage.smallest()
            if not bound.found:
                return [], bound
            groups = [self._solve(group) for group in arranging.best(options)]
            solved = [group for group in groups if group is not None]
            if len(solved) == len(groups):
                return self._settled(solved), bound
            # `_solve` has recorded which signatures cannot be solved together: cover again.

    def ladder(self, most: int) -> list[Rung]:
        """Return the best use of 0 to `most` stacks in this pool; it changes when `solved` refuses a rung."""
        return Choosing(self._coverage, self._weights).ladder(most)

    def solved(self, rung: Rung) -> list[Group] | None:
        """Return the groups of a rung, those with the most preferred stacks first.

        None if the hosts of a group cannot be solved together, which the coverage then records.
        """
        groups = [self._solve(group) for group in rung.groups]
        found = [group for group in groups if group is not None]
        return self._settled(found) if len(found) == len(groups) else None

    def _solve(self, signatures: frozenset[int]) -> Group | None:
        """Return the group of some signatures, with their most preferred stack; None if no stack serves them all.

        The coverage then records this.
        """
        if signatures not in self._solved:
            self._solved[signatures] = self._decided(signatures)
        if self._solved[signatures] is None:
            self._coverage.refuse(self._smallest_refused(signatures))
        return self._solved[signatures]

    def _decided(self, signatures: Collection[int]) -> Group | None:
        maximal = self._coverage.outermost(signatures)
        targets = [self._first[signature].target for signature in maximal]
        instance = ProblemInstance(join(self._matrix, self._pool.request_for(targets)))
        pins = decide(instance)
        if pins is None:
            return None
        chosen: list[tuple[int, str, int]] = []
        for key, candidate in pins.items():
            if not key.scope:
                position = _position(instance.candidates(key), candidate)
                order = instance.problem.order.get(key, -1)
                chosen.append((_FIRST if key.name == self._coverage.lead else order, key.name, position))
        choices = frozenset((name, position) for _, name, position in chosen)
        return Group(signatures=frozenset(signatures), maximal=frozenset(maximal), choices=choices, rank=tuple(sorted(chosen)))

    def _smallest_refused(self, signatures: frozenset[int]) -> frozenset[int]:
        kept = signatures
        for signature in sorted(signatures):
            if len(kept) > 1 and self._decided(kept - {signature}) is None:
                kept -= {signature}
        return kept

    def _settled(self, groups: list[Group]) -> list[Group]:
        """Move every signature to the most preferred stack that serves it, solve each stack again, and return the groups.

        Signatures that no stack serves are left out.
        """
        served = self._coverage.served
        ordered = sorted(groups, key=_preference)
        if self._coverage.is_joint:
            return ordered
        for _ in range(ROUNDS):
            members: dict[int, list[int]] = {}
            for signature in served:
                serving = (at for at, group in enumerate(ordered) if self._coverage.serves(group.choices, signature))
                at = next(serving, None)
                if at is not None:
                    members.setdefault(at, []).append(signature)
            wanted = [frozenset(members[at]) for at in sorted(members)]
            if wanted == [group.signatures for group in ordered]:
                break
            kept = [group for at, group in enumerate(ordered) if at in members]
            better = [self._decided(signatures) for signatures in wanted]
            found = [
                new or replace(old, signatures=signatures, maximal=frozenset(self._coverage.outermost(signatures)))
                for new, old, signatures in zip(better, kept, wanted, strict=True)
            ]
            ordered = sorted(found, key=_preference)
        return ordered


def _preference(group: Group) -> tuple[tuple[tuple[int, str, int], ...], int]:
    return group.rank, min(group.signatures)


def _position(candidates: Sequence[Candidate], chosen: Candidate) -> int:
    return next(position for position, candidate in enumerate(candidates) if candidate is chosen)
