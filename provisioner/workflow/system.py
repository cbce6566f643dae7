"""Solve and explain the system stack alone: no packages, and no import of modules that read indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.resolver.joint import solve_system
from provisioner.resolver.problem import join

if TYPE_CHECKING:
    from provisioner.resolver.stack import Stack
    from provisioner.resolver.why import Why
    from provisioner.workflow.inputs import Inputs


def solve_stacks(inputs: Inputs) -> tuple[Stack, ...]:
    """Solve the system stack of every platform without its packages; raises `NoStackError`."""
    return tuple(solve_system(join(inputs.matrix, inputs.request(platform))) for platform in inputs.platforms)


def explain_stack(inputs: Inputs, platform: str) -> Stack:
    """Solve the system stack of one platform, with the reasons of every choice; raises `NoStackError`."""
    return solve_system(join(inputs.matrix, inputs.request(platform)))


def explain_component(inputs: Inputs, platform: str, component: str) -> tuple[Why, ...]:
    """Explain one component of the system stack, once for each host or slot with it; raises the errors of `why`."""
    from provisioner.resolver.why import why

    return why(join(inputs.matrix, inputs.request(platform)), component)
