"""What a plan lacks: facts of today that no profile states, and steps that find them instead of assuming anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS, DRIVERS, Move
from provisioner.host.facts import STATED, stated
from provisioner.plan.model import FIND_OUT, Step
from provisioner.solve.stack import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provisioner.plan.machine import Machine

BUILT_FOR_KERNELS = tuple(row.name for row in COMPONENTS.values() if row.move is Move.DRIVER and row.reloads_modules)
"""Drivers that are installed for the kernel that runs."""


def is_known_absent(machine: Machine) -> bool:
    """Whether a machine is known to run without a GPU driver: something else holds the GPU."""
    has_driver = any(name in machine.facts for name in DRIVERS)
    return not has_driver and machine.facts.get("loaded_modules", "free") != "free"


def missing(machine: Machine, facts: Mapping[str, str], unverified: Iterable[str], *, has_gpus: bool) -> tuple[str, ...]:
    """Facts of today that the plan needs and no profile states, from the top of the stack to the hardware.

    `unverified` is what the stack at the end rests on; `has_gpus`: every GPU is known.
    """
    known = machine.facts
    found: dict[str, None] = {}
    for name in DRIVERS:
        if name in facts and name not in known and not is_known_absent(machine):
            found[name] = None
    if any(facts.get(name) != known.get(name) for name in BUILT_FOR_KERNELS) and "kernel" not in known:
        found["kernel"] = None
    for text in unverified:
        component = text.partition(":")[0]
        if component in STATED and component not in facts and stated(machine.host, component) is None:
            found[component] = None
    if not has_gpus and any(text.startswith("gpu:") for text in unverified):
        found["gpu"] = None
    return tuple(name for name in COMPONENTS if name in found)


def find_out(machine: Machine, lacking: Sequence[str]) -> tuple[Step, ...]:
    """Return one step for each missing fact; the machine stays as it is."""
    return tuple(_question(machine, name) for name in lacking)


def _question(machine: Machine, component: str) -> Step:
    wanted = COMPONENTS[component].how_to_find or f"{component} of this host"
    return Step(
        kind=FIND_OUT,
        component=component,
        before="",
        after="",
        text=f"find out {wanted}: the profile does not state it (`provision inspect` there)",
        why=(
            Reason(component=component, kind="fact", text=f"{machine.label} does not state {component}", where=machine.label),
        ),
        state=dict(machine.facts),
    )
