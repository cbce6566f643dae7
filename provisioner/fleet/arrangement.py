"""Choose among the smallest covers of a pool, and place every signature, so that most machines get the newest stacks.

A signature is the constraints that some hosts have in common, a group is the signatures that one stack serves, and a cover is a
list of groups that together hold all maximal signatures (see `cover`). `cover` proves how few stacks suffice. The choice among
equally small covers is a heuristic: signatures are placed one by one where they cost least, those with the most machines first,
and are then moved as long as the cost falls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.fleet.cover import Coverage
    from provisioner.resolver.search.sat import Members

TRIED = 4
"""The number of covers for which all signatures are placed: those whose maximal signatures alone cost least."""

PASSES = 3
"""The most passes over all signatures, in each of which a signature may move to another group."""


class Arranging:
    """Places signatures in groups at a low cost; `weights` has the number of machines with each signature.

    The cost of a group is the number of its machines times the rank of its stack (`Coverage.rank`, 0 for the most preferred).
    """

    def __init__(self, coverage: Coverage, weights: Sequence[int]) -> None:
        self._coverage = coverage
        self._weights = weights
        self._ranks: dict[Members, int | None] = {}

    def best(self, options: Sequence[Sequence[Members]]) -> list[Members]:
        """Return the groups of all served signatures; `options` are equally small covers of the maximal signatures."""
        started = sorted((self._placed(option) for option in options), key=self._cost)
        full = [self._filled(groups, home=home) for groups in started[:TRIED] for home in range(-1, len(groups))]
        return min(full, key=lambda groups: (self._cost(groups), [sorted(group) for group in groups]))

    def _placed(self, option: Sequence[Members]) -> list[Members]:
        """Return the sets of a cover, with each maximal signature left only in the set where it costs least."""
        groups = [
            frozenset(signature for signature in one if sum(signature in other for other in option) == 1) for one in option
        ]
        left = {signature for one in option for signature in one}.difference(*groups)
        for signature in self._heavy_first(left):
            places = [at for at, one in enumerate(option) if signature in one]
            groups = self._added(groups, signature, places)
        return groups

    def _filled(self, groups: list[Members], *, home: int) -> list[Members]:
        """Return the groups with all other served signatures placed, and signatures moved as long as the cost falls.

        Signatures are placed in the group at the index `home` if its stack can serve them, too, else where they cost least; -1
        means no such group. The first signature that joins a group may make its stack older, so that this step alone looks
        expensive, although the group is the best place for all of the signatures together.
        """
        everywhere = range(len(groups))
        placed = frozenset[int]().union(*groups)
        for signature in self._heavy_first(set(self._coverage.served) - placed):
            can_join = home >= 0 and self._rank(groups[home] | {signature}, known=groups[home]) is not None
            groups = self._added(groups, signature, [home] if can_join else everywhere)
        for _ in range(PASSES if len(groups) > 1 else 0):
            before = groups
            for signature in self._heavy_first(set(self._coverage.served)):
                without = [group - {signature} for group in groups]
                if all(without):
                    moved = self._added(without, signature, everywhere)
                    groups = moved if self._cost(moved) < self._cost(groups) else groups
            if groups == before:
                break
        return groups

    def _added(self, groups: list[Members], signature: int, places: Sequence[int]) -> list[Members]:
        """Return the groups with `signature` added to one of those at the indexes `places`, the one where it costs least."""
        tries = []
        for at in places:
            grown = groups[at] | {signature}
            if self._rank(grown, known=groups[at]) is not None:
                found = [*groups[:at], grown, *groups[at + 1 :]]
                tries.append((self._cost(found), at, found))
        assert tries, "a signature whose maximal signature is in a group can join it"
        return min(tries, key=lambda one: one[:2])[2]

    def _heavy_first(self, signatures: set[int]) -> list[int]:
        return sorted(signatures, key=lambda signature: (-self._weights[signature], signature))

    def _cost(self, groups: Sequence[Members]) -> int:
        return sum((self._rank(group) or 0) * sum(self._weights[signature] for signature in group) for group in groups if group)

    def _rank(self, group: Members, *, known: Members = frozenset()) -> int | None:
        if group not in self._ranks:
            self._ranks[group] = self._coverage.rank(group, at_least=self._ranks.get(known) or 0)
        return self._ranks[group]
