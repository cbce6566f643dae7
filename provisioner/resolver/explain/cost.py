"""What a change costs a person: the order in which fixes of a conflict are looked for and shown."""

from __future__ import annotations

from provisioner.components import COMPONENTS, Effort

LEFT_OUT = "left out"
"""What has the cost of giving up a part of what was asked for."""

Cost = tuple[int, int]
"""How much effort, and what comes first among changes of the same effort."""

_COSTS: dict[str, Cost] = {
    **{row.name: (row.effort, place) for place, row in enumerate(COMPONENTS.values()) if row.effort is not None},
    # Changes that are none of one component: another build of the same release, and a request that is given up.
    "build": (Effort.BUILD, -1),
    "left out": (Effort.FEWER_REQUESTS, 0),
}


def cost_of(change: str) -> Cost:
    """The cost of changing a component, of another `build` or of a request `left out`; what has no row is a package."""
    return _COSTS.get(change, _COSTS["package"])


def rank(costs: list[Cost]) -> tuple[int, int, list[Cost]]:
    """What several changes cost together: the dearest decides, then how many they are."""
    return max(level for level, _ in costs), len(costs), sorted(costs)
