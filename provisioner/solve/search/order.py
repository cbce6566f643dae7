"""Why a release that would work was not taken: what the order of preference takes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.solve.problem import Problem
    from provisioner.solve.requirement import Candidate, Key
    from provisioner.solve.search.universe import Universe

    Chosen = tuple[Universe, dict[Key, Candidate]]


def passed_over(problem: Problem, key: Key, *, chosen: Chosen, other: Chosen) -> str:
    """Say why `chosen` is preferred to `other`, which has a newer release of `key`."""
    universe, pins = chosen
    request = problem.request
    name = key.name if key.is_package else key.component
    if key in pins and request.preferred.get(name) == pins[key].label:
        return f"it would work, but the lock has {name} {pins[key].label}; --upgrade-package {name} lets it move"
    table = next((table for table in ("prefer", "avoid") if name in getattr(request.spec.policy, table)), "")
    if table:
        text = getattr(request.spec.policy, table)[name]
        return f"it would work, but policy.{table} says {name} {text}  ({request.place(f'policy.{table}.{name}')})"
    if request.spec.policy.strategy == "oldest":
        return f"it would work, but policy.strategy is oldest  ({request.place('policy.strategy')})"
    first = _first_difference(universe, key, pins, other[1])
    if first is None:
        return "it would work, but is not what the order of preference takes first"
    before, after = pins.get(first), other[1].get(first)
    named = first.name if first.is_package else first.component
    instead = f" instead of {before.label}" if before is not None else ""
    value = after.label if after is not None else "left out"
    return f"it would work, but with {named} {value}{instead}, and {named} comes first in the order of preference"


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
