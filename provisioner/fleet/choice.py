"""Choose which hosts a limited number of stacks serve: as many machines as possible, and with the newest stacks.

A signature is the constraints that some hosts have in common (see `cover`). A rung is the best use of some number of stacks in
one pool; the rungs from none to the limit are the ladder of the pool. Up to `EXACT` signatures every partition of every subset
is weighed (dynamic programming over subsets), so that the rung is proved. With more signatures, groups are merged one pair
after the other where that costs least, which proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.fleet.cover import Coverage
    from provisioner.resolver.search.sat import Members

EXACT = 10
"""The most signatures of a pool for which the best choice is proved."""


class Rung(Struct, frozen=True, kw_only=True):
    """The groups of signatures that some number of stacks serve, best first, and what they are worth.

    `served` is the number of machines with a stack. `cost` is the sum over these of how many releases of the leading component
    are preferred to that of their stack. `is_proved` is whether no other choice is better.
    """

    groups: tuple[Members, ...] = ()
    served: int = 0
    cost: int = 0
    is_proved: bool = True

    @property
    def worth(self) -> tuple[int, int]:
        """A sort key: larger for a better choice."""
        return self.served, -self.cost


class Choosing:
    """Computes the ladder of a pool; `weights` has the number of machines with each signature."""

    def __init__(self, coverage: Coverage, weights: Sequence[int]) -> None:
        self._coverage = coverage
        self._weights = weights
        labels = [label.partition("+")[0] for label in coverage.lead_labels]
        places = {label: index for index, label in enumerate(dict.fromkeys(labels))}
        self._releases = [places[label] for label in labels]
        """For each position of the leading component, the number of releases that are preferred to its own."""
        self._ranks: dict[Members, int | None] = {frozenset(): 0}

    def ladder(self, most: int) -> list[Rung]:
        """Return the rungs of 0 to `most` stacks; a rung uses fewer stacks than it may where one more would buy nothing."""
        served = self._coverage.served
        rungs = [Rung()]
        found = self._exact(served, most) if len(served) <= EXACT else self._merged(served, most)
        for rung in found:
            rungs.append(rung if rung.worth > rungs[-1].worth else rungs[-1])
        return [*rungs, *[rungs[-1]] * (most + 1 - len(rungs))]

    def _exact(self, served: Sequence[int], most: int) -> Iterator[Rung]:
        """Yield the best rung of 1, 2, … stacks among all of them."""
        count = len(served)
        members = [frozenset(served[bit] for bit in range(count) if mask >> bit & 1) for mask in range(1 << count)]
        weight = [sum(self._weights[one] for one in some) for some in members]
        cost: list[int | None] = [self._cost(some) for some in members]
        best: list[tuple[int, tuple[int, ...]] | None] = [(0, ()), *[None] * (len(members) - 1)]
        for _ in range(min(most, count)):
            grown = list(best)
            for mask in range(1, len(members)):
                lowest = mask & -mask
                part = mask
                while part:
                    own = cost[part]
                    rest = best[mask ^ part]
                    if part & lowest and own is not None and rest is not None:
                        total = (rest[0] + own, (*rest[1], part))
                        known = grown[mask]
                        if known is None or total < known:
                            grown[mask] = total
                    part = (part - 1) & mask
            best = grown
            options = [(weight[mask], -one[0], -len(one[1]), mask) for mask, one in enumerate(best) if one is not None]
            *_, mask = max(options)
            chosen = best[mask]
            assert chosen is not None, "only sets that stacks serve are options"
            groups = tuple(members[part] for part in chosen[1])
            yield Rung(groups=groups, served=weight[mask], cost=chosen[0])

    def _merged(self, served: Sequence[int], most: int) -> Iterator[Rung]:
        """Yield a good rung of 1, 2, … stacks: one group for each signature, merged until few are left."""
        groups = [frozenset({signature}) for signature in served]
        rungs: dict[int, Rung] = {}
        while groups:
            if len(groups) <= most:
                cost = sum(self._cost(group) or 0 for group in groups)
                served_here = sum(self._weights[one] for group in groups for one in group)
                rungs[len(groups)] = Rung(groups=tuple(groups), served=served_here, cost=cost, is_proved=False)
            pairs = []
            for at, one in enumerate(groups):
                for other in groups[at + 1 :]:
                    joint = self._cost(one | other)
                    if joint is not None:
                        more = joint - (self._cost(one) or 0) - (self._cost(other) or 0)
                        pairs.append((more, -len(one | other), sorted(one | other), one, other))
            if pairs:
                *_, one, other = min(pairs, key=lambda pair: pair[:3])
                groups = [group for group in groups if group not in {one, other}]
                groups.append(one | other)
            else:
                light = min(groups, key=lambda group: (sum(self._weights[one] for one in group), sorted(group)))
                groups = [group for group in groups if group != light]
        for count in range(1, min(most, len(served)) + 1):
            yield max((rungs[one] for one in rungs if one <= count), key=lambda rung: rung.worth)

    def _cost(self, group: Members) -> int | None:
        """Return the cost of one stack for a group; None if there is none."""
        rank = self._rank(frozenset(self._coverage.outermost(group)))
        return None if rank is None else self._releases[rank] * sum(self._weights[one] for one in group) if group else 0

    def _rank(self, group: Members) -> int | None:
        """Return the rank of the most preferred stack for a group, which is no better than that of any part of it."""
        if group not in self._ranks:
            parts = [self._ranks[part] for one in group if (part := group - {one}) in self._ranks]
            known = [rank for rank in parts if rank is not None]
            is_refused = len(known) < len(parts)
            self._ranks[group] = None if is_refused else self._coverage.rank(group, at_least=max(known, default=0))
        return self._ranks[group]


def allotted(ladders: Sequence[Sequence[Rung]], most: int) -> tuple[int, ...]:
    """Return how many stacks each pool gets so that at most `most` stacks serve most machines, with the newest stacks.

    Each ladder has a rung for every number up to `most`. Of equal choices, the one with the fewest stacks is returned, and then
    the one that favours earlier pools.
    """
    best: dict[int, tuple[tuple[int, int], tuple[int, ...]]] = {0: ((0, 0), ())}
    for ladder in ladders:
        grown: dict[int, tuple[tuple[int, int], tuple[int, ...]]] = {}
        for used, ((served, newness), counts) in best.items():
            for count in range(most - used + 1):
                rung = ladder[count]
                worth = (served + rung.served, newness - rung.cost)
                total = used + len(rung.groups)
                if total not in grown or worth >= grown[total][0]:
                    grown[total] = (worth, (*counts, count))
        best = grown
    return max(best.items(), key=lambda item: (item[1][0], -item[0]))[1][1]
