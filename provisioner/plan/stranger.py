"""Machines of another kind than the stack that is planned: no GPU, or another vendor's; no change of theirs makes up for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.stack import Conflict, Reason
from provisioner.request import Request

if TYPE_CHECKING:
    from provisioner.plan.judge import Aim
    from provisioner.plan.machine import Machine

ACCELERATOR_OF_DRIVER = {"nvidia": "cuda", "amdgpu": "rocm", "webdriver": "cuda"}
ACCELERATED = ("cuda", "rocm")


def stranger(machine: Machine, aim: Aim) -> Conflict | None:
    """Why a machine has no part in a stack of this accelerator, None where it may have."""
    fact = _fact(machine, aim.accelerator) if aim.accelerator in ACCELERATED else None
    if fact is None:
        return None
    text = f"the other hosts' GPUs call for accelerator {aim.accelerator}, and the plan is for one stack"
    where = ""
    if aim.spec.accelerator is not None:
        text, where = f"you ask for accelerator {aim.accelerator}", aim.request(()).place("accelerator")
    # The build of a framework is for one accelerator, so this is the component the contract has for it.
    return Conflict(members=(Reason(component="pytorch_build", kind="request", text=text, where=where), fact))


def own_accelerator(machine: Machine, aim: Aim) -> str:
    """The accelerator a machine's own GPUs call for, or its driver where it does not state them."""
    request = Request(spec=aim.spec, hosts=(machine.target,), platform=aim.platform)
    gpus, driver = machine.host.gpus, machine.host.driver
    is_told = gpus == () or any(gpu.gfx or gpu.compute_capability for gpu in gpus or ())
    if aim.spec.accelerator is None and not is_told and driver is not None:
        return ACCELERATOR_OF_DRIVER[driver.kind]
    return request.accelerator


def _fact(machine: Machine, accelerator: str) -> Reason | None:
    host, place = machine.host, machine.target.place
    if host.gpus == ():
        return Reason(component="gpu", kind="fact", text="the host has no GPU", where=place("gpus"))
    for index, gpu in enumerate(host.gpus or ()):
        found = gpu.gfx if accelerator == "cuda" else gpu.compute_capability
        if found:
            name = f" ({gpu.name})" if gpu.name else ""
            return Reason(component="gpu", kind="fact", text=f"the host has gpu {found}{name}", where=place(f"gpus.{index}"))
    kind = host.driver.kind if host.driver is not None else None
    if kind is not None and ACCELERATOR_OF_DRIVER[kind] != accelerator:
        component = "driver" if kind == "nvidia" else kind
        return Reason(component=component, kind="fact", text=f"the host's GPU driver is {kind}", where=place("driver"))
    return None
