"""Machines of another kind than the stack that is planned: no GPU, or another vendor's; no change of theirs makes up for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS
from provisioner.components import COMPONENTS, DRIVERS
from provisioner.grounds.conflict import Conflict, member_of
from provisioner.grounds.requirement import AsksAccelerator, HostGpu, NoGpu, OnePlanOneStack, OtherDriver
from provisioner.request import Request

if TYPE_CHECKING:
    from provisioner.grounds.requirement import Ground
    from provisioner.plan.judge import Aim
    from provisioner.plan.machine import Machine

ACCELERATOR_OF_DRIVER = {
    COMPONENTS[driver].driver_kind: row.name for row in GPU_ACCELERATORS for driver in row.drivers if driver in DRIVERS
}
"""The accelerator whose GPUs a kind of driver runs."""


def stranger(machine: Machine, aim: Aim) -> Conflict | None:
    """Why a machine has no part in a stack of this accelerator, None where it may have."""
    fact = _fact(machine, aim.accelerator) if ACCELERATORS[aim.accelerator] in GPU_ACCELERATORS else None
    if fact is None:
        return None
    asked: Ground = OnePlanOneStack(accelerator=aim.accelerator)
    if aim.spec.accelerator is not None:
        asked = AsksAccelerator(accelerator=aim.accelerator, place=aim.request(()).place("accelerator"))
    return Conflict(members=(member_of(asked), member_of(fact)))


def own_accelerator(machine: Machine, aim: Aim) -> str:
    """The accelerator a machine's own GPUs call for, or its driver where it does not state them."""
    request = Request(spec=aim.spec, hosts=(machine.target,), platform=aim.platform)
    gpus, driver = machine.host.gpus, machine.host.driver
    is_stated = gpus == () or any(gpu.target for gpu in gpus or ())
    if aim.spec.accelerator is None and not is_stated and driver is not None:
        return ACCELERATOR_OF_DRIVER[driver.kind]
    return request.accelerator


def _fact(machine: Machine, accelerator: str) -> Ground | None:
    host, place, label = machine.host, machine.target.place, machine.label
    if host.gpus == ():
        return NoGpu(host="the host", place=place("gpus"))
    for index, gpu in enumerate(host.gpus or ()):
        if gpu.target and gpu.accelerator not in {None, accelerator}:
            return HostGpu(device=gpu.target, product=gpu.name or "", host=label, place=place(f"gpus.{index}"))
    kind = host.driver.kind if host.driver is not None else None
    if kind is not None and ACCELERATOR_OF_DRIVER[kind] != accelerator:
        component = next(row.name for row in COMPONENTS.values() if row.driver_kind == kind)
        return OtherDriver(name=component, driver=kind, place=place("driver"))
    return None
