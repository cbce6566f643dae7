"""What a plan lacks: facts of today that no profile states, and steps that find them instead of assuming anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.choice import StepReason
from provisioner.grounds.requirement import LacksFact
from provisioner.plan.model import FIND_OUT, Step
from provisioner.resolver.rules.facts import FACTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provisioner.grounds.doubt import Doubt
    from provisioner.plan.machine import Machine

DRIVERS = ("driver", "amdgpu", "webdriver")

VIRTUALIZATION = "virtualization"

HOW = {
    "driver": "which driver is loaded, if any",
    "amdgpu": "which amdgpu driver is loaded, if any",
    "webdriver": "which Web Driver is installed, if any",
    "driver_module": "which flavour of kernel modules is loaded, open or proprietary",
    "kernel": "which kernel runs",
    "gpu": "which GPUs the machine has",
    "virtualization": "whether the machine is virtual, and how",
    "container_toolkit": "which NVIDIA Container Toolkit is installed, if any",
}


def is_known_absent(machine: Machine) -> bool:
    """Whether a machine is known to run without a GPU driver: something else holds the GPU."""
    has_driver = any(name in machine.facts for name in DRIVERS)
    return not has_driver and machine.facts.get("loaded_modules", "free") != "free"


def missing(machine: Machine, facts: Mapping[str, str], doubts: Iterable[Doubt], *, has_gpus: bool) -> tuple[str, ...]:
    """Facts of today that the plan needs and no profile states, in the order of the profile's keys.

    `doubts` are what the stack at the end rests on; `has_gpus`: every GPU is known.
    """
    known = machine.facts
    found: dict[str, None] = {}
    for name in DRIVERS:
        if name in facts and name not in known and not is_known_absent(machine):
            found[name] = None
    if any(facts.get(name) != known.get(name) for name in ("driver", "amdgpu", "driver_module")) and "kernel" not in known:
        found["kernel"] = None
    named = {doubt.component for doubt in doubts}
    for component in sorted(named):
        is_stated = component in known or component in facts
        is_stated = is_stated or (component == VIRTUALIZATION and machine.host.virtualization is not None)
        if component in {*FACTS, VIRTUALIZATION} and not is_stated:
            found[component] = None
    if not has_gpus and "gpu" in named:
        found["gpu"] = None
    order = [*FACTS, VIRTUALIZATION, "gpu"]
    return tuple(sorted(found, key=order.index))


def find_out(machine: Machine, lacking: Sequence[str]) -> tuple[Step, ...]:
    """One step for each missing fact; the machine stays as it is."""
    return tuple(
        Step(
            kind=FIND_OUT,
            component=name,
            before="",
            after="",
            text=f"find out {HOW.get(name, f'{name} of this host')}: the profile does not state it (`provision inspect` there)",
            why=(StepReason(ground=LacksFact(name=name, host=machine.label)),),
            state=dict(machine.facts),
        )
        for name in lacking
    )
