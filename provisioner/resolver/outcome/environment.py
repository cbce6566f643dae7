"""Environment variables of a stack: the matrix's whose conditions hold, GPU overrides, and the kept gate of a base image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import FRAMEWORKS
from provisioner.resolver.outcome.image_gate import kept_gate
from provisioner.resolver.requirement import Key, build_of
from provisioner.resolver.rules.needs import NO_HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import GfxOverride, Variables
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance


def environment(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """Return the variables of an answer, sorted by name; of two rows about one variable the later in the matrix holds."""
    problem = instance.problem
    found: dict[str, str] = {}
    for row in problem.matrix.variables:
        if _applies(row, instance, pins):
            found.update(row.set)
    for override in overrides(instance, pins):
        found.update(override.set)
    return dict(sorted((found | kept_gate(instance, pins)).items()))


def overrides(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[GfxOverride]:
    """Yield the rows by which GPUs of the hosts run code for another target."""
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        if (build := build_of(candidate)) is not None:
            yield from instance.problem.needs.devices.overrides(build)


def _applies(row: Variables, instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Whether a chosen candidate is in the row's range on a host where its guards hold."""
    hosts = instance.problem.request.hosts or (NO_HOST,)
    held = {target.label for target in hosts if instance.problem.needs.guards.hold(row.on, target)}
    return bool(held) and any(
        key.component == row.when.component and (not key.scope or key.scope in held) and row.when.allows(candidate.version)
        for key, candidate in pins.items()
        if not key.is_package
    )
