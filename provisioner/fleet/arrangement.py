"""Of covers of the smallest size, one that gives the newest stacks to the most nodes, and which signature goes where in it.

How many stacks there are is proved elsewhere. Which of the equally small covers is taken is a good choice, not proved to be the
best: signatures are placed one by one where they cost least, heavy ones first, and then moved as long as that gains something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.fleet.cover import Coverage
    from provisioner.resolver.search.sat import Members

TRIED = 4
"""How many covers are worked out in full, of those that look best by their maximal signatures."""

PASSES = 3
"""How often every signature may move."""


class Arranging:
    """Places signatures. What a group costs is how far its leading component is from the most wanted, for every node in it."""

    def __init__(self, coverage: Coverage, weights: Sequence[int]) -> None:
        self._coverage = coverage
        self._weights = weights
        self._ranks: dict[Members, int | None] = {}

    def best(self, options: Sequence[Sequence[Members]]) -> list[Members]:
        """The groups of all served signatures, from covers of the maximal signatures that are equally small."""
        started = sorted((self._placed(option) for option in options), key=self._cost)
        full = [self._filled(groups, home=home) for groups in started[:TRIED] for home in range(-1, len(groups))]
        return min(full, key=lambda groups: (self._cost(groups), [sorted(group) for group in groups]))

    def _placed(self, option: Sequence[Members]) -> list[Members]:
        """Return the maximal signatures of a cover, each in one of the sets that hold it."""
        groups = [
            frozenset(signature for signature in one if sum(signature in other for other in option) == 1) for one in option
        ]
        left = {signature for one in option for signature in one}.difference(*groups)
        for signature in self._heavy_first(left):
            places = [at for at, one in enumerate(option) if signature in one]
            groups = self._added(groups, signature, places)
        return groups

    def _filled(self, groups: list[Members], *, home: int) -> list[Members]:
        """All other served signatures placed, and every signature moved as long as that gains something.

        They are placed in the group `home` wherever it can take them, or (-1) each where it costs least: a group that becomes
        older for the first signature that joins it may still be the best place for all of them together.
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
        """The groups with one more signature, where that costs least; the first of equals."""
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
