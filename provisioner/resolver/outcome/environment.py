"""Environment variables of a stack: from rows of the matrix that apply, for GPU overrides, and for the gate of a base image.

The gate of an image is its NVIDIA_REQUIRE_CUDA, an expression with which a container runtime refuses hosts.
"""

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
    """Return the environment variables of an answer, sorted by name.

    If several rows of the matrix set one variable, the last one wins.
    """
    problem = instance.problem
    found: dict[str, str] = {}
    for row in problem.matrix.variables:
        if _applies(row, instance, pins):
            found.update(row.set)
    for override in overrides(instance, pins):
        found.update(override.set)
    return dict(sorted((found | kept_gate(instance, pins)).items()))


def overrides(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[GfxOverride]:
    """Yield the gfx overrides of the matrix with which AMD GPUs of the hosts run code compiled for another target."""
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        if (build := build_of(candidate)) is not None:
            yield from instance.problem.needs.devices.overrides(build)


def _applies(row: Variables, instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether a row applies: a chosen component is in its range, on a host where the row's guards (conditions) hold."""
    hosts = instance.problem.request.hosts or (NO_HOST,)
    held = {target.label for target in hosts if instance.problem.needs.guards.hold(row.on, target)}
    return bool(held) and any(
        key.component == row.when.component and (not key.scope or key.scope in held) and row.when.allows(candidate.version)
        for key, candidate in pins.items()
        if not key.is_package
    )
