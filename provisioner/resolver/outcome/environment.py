"""Environment variables a stack needs.

Those of the matrix whose condition holds, those that let a GPU pass for another, and the gate of a base image that is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.resolver.outcome.gate_answer import kept_gate
from provisioner.resolver.requirement import Key, build_of
from provisioner.resolver.rules.devices import FRAMEWORKS
from provisioner.resolver.rules.needs import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import GfxOverride, Variables
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.universe import Universe


def environment(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """The variables of an answer, sorted by name; of two rows about one variable the later in the matrix holds."""
    problem = universe.problem
    found: dict[str, str] = {}
    for row in problem.matrix.variables:
        if _applies(row, universe, pins):
            found.update(row.variables)
    for override in overrides(universe, pins):
        found.update(override.variables)
    return dict(sorted((found | kept_gate(universe, pins)).items()))


def overrides(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[GfxOverride]:
    """The rows through which GPUs of the target run code of another target."""
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        if (build := build_of(candidate)) is not None:
            yield from universe.problem.needs.devices.overrides(build)


def _applies(row: Variables, universe: Universe, pins: Mapping[Key, Candidate]) -> bool:
    """Whether something chosen is in the row's range on a host where its guards hold."""
    hosts = universe.problem.request.hosts or (NOBODY,)
    held = {target.label for target in hosts if universe.problem.needs.guards.hold(row.guards, target)}
    return bool(held) and any(
        key.component == row.when.component and (not key.scope or key.scope in held) and row.when.allows(candidate.version)
        for key, candidate in pins.items()
        if not key.is_package
    )
