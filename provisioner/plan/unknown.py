"""What a plan lacks: facts of today that no profile states, and steps that find them instead of assuming anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS, DRIVERS, Move
from provisioner.grounds.choice import StepReason
from provisioner.grounds.requirement import LacksFact
from provisioner.host.facts import STATED, stated
from provisioner.plan.model import FIND_OUT, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provisioner.grounds.doubt import Doubt
    from provisioner.plan.machine import Machine

BUILT_FOR_KERNELS = tuple(row.name for row in COMPONENTS.values() if row.move is Move.DRIVER and row.reloads_modules)
"""Drivers that are installed for the kernel that runs."""


def is_known_absent(machine: Machine) -> bool:
    """Whether a machine is known to run without a GPU driver: something else holds the GPU."""
    has_driver = any(name in machine.facts for name in DRIVERS)
    return not has_driver and machine.facts.get("loaded_modules", "free") != "free"


def missing(machine: Machine, facts: Mapping[str, str], doubts: Iterable[Doubt], *, has_gpus: bool) -> tuple[str, ...]:
    """Facts of today that the plan needs and no profile states, from the top of the stack to the hardware.

    `doubts` are what the stack at the end rests on; `has_gpus`: every GPU is known.
    """
    known = machine.facts
    found: dict[str, None] = {}
    for name in DRIVERS:
        if name in facts and name not in known and not is_known_absent(machine):
            found[name] = None
    if any(facts.get(name) != known.get(name) for name in BUILT_FOR_KERNELS) and "kernel" not in known:
        found["kernel"] = None
    named = {doubt.component for doubt in doubts}
    for component in sorted(named):
        if component in STATED and component not in facts and stated(machine.host, component) is None:
            found[component] = None
    if not has_gpus and "gpu" in named:
        found["gpu"] = None
    return tuple(name for name in COMPONENTS if name in found)


def find_out(machine: Machine, lacking: Sequence[str]) -> tuple[Step, ...]:
    """Return one step for each missing fact; the machine stays as it is."""
    return tuple(
        Step(
            kind=FIND_OUT,
            component=name,
            before="",
            after="",
            text=f"find out {COMPONENTS[name].how_to_find or f'{name} of this host'}: "
            "the profile does not state it (`provision inspect` there)",
            why=(StepReason(ground=LacksFact(name=name, host=machine.label)),),
            state=dict(machine.facts),
        )
        for name in lacking
    )
