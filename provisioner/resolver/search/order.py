"""Why a release that would work was not taken: what the order of preference takes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import ComesFirst, LockKeeps, NotFirst, PolicyPrefers, StrategyIsOldest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.choice import PassedOver
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.universe import Universe

    Chosen = tuple[Universe, dict[Key, Candidate]]


def passed_over(problem: Problem, key: Key, *, chosen: Chosen, other: Chosen) -> PassedOver:
    """Return why `chosen` is preferred to `other`, which has a newer release of `key`."""
    universe, pins = chosen
    request = problem.request
    name = key.name if key.is_package else key.component
    if key in pins and request.preferred.get(name) == pins[key].label:
        return LockKeeps(name=name, label=pins[key].label)
    table = next((table for table in ("prefer", "avoid") if name in getattr(request.spec.policy, table)), "")
    if table:
        wanted = getattr(request.spec.policy, table)[name]
        return PolicyPrefers(table=table, name=name, range=wanted, place=request.place(f"policy.{table}.{name}"))
    if request.spec.policy.strategy == "oldest":
        return StrategyIsOldest(place=request.place("policy.strategy"))
    first = _first_difference(universe, key, pins, other[1])
    if first is None:
        return NotFirst()
    before, after = pins.get(first), other[1].get(first)
    return ComesFirst(
        name=first.name if first.is_package else first.component,
        before=before.label if before is not None else "",
        after=after.label if after is not None else "",
    )


def _first_difference(
    universe: Universe, key: Key, pins: Mapping[Key, Candidate], others: Mapping[Key, Candidate]
) -> Key | None:
    """The first key in the order of preference in which two answers differ."""
    direct = universe.packages.order if universe.packages else {}
    order = universe.problem.order

    def rank(one: Key) -> tuple[bool, int, bool, int, Key]:
        return one not in direct, direct.get(one, 0), one.is_package, order.get(one, 0), one

    different = [one for one in {**pins, **others} if one != key and _label(pins, one) != _label(others, one)]
    return min(different, key=rank, default=None)


def _label(pins: Mapping[Key, Candidate], key: Key) -> str:
    return pins[key].label if key in pins else ""
