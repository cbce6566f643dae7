"""Facts that are missing are asked for, and machines of another kind are told apart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from provisioner.host.model import Host
from provisioner.plan.judge import Aim
from provisioner.plan.machine import Machine, machines_of
from provisioner.plan.stranger import own_accelerator, stranger
from provisioner.plan.unknown import find_out, is_known_absent, missing
from provisioner.request import TargetHost
from provisioner.spec.model import Spec


def machine(**facts: Any) -> Machine:  # noqa: ANN401 - any fact of a profile
    (found,) = machines_of([TargetHost(label="node", host=convert(facts, Host), places={"gpus": "node.yaml:3"})], [1])
    return found


def aim(**spec: Any) -> Aim:  # noqa: ANN401 - any key of a spec
    return Aim(spec=Spec(**spec), platform="linux/amd64", accelerator="cuda")


def test_a_driver_that_nobody_states_is_asked_for_and_its_kernel_too() -> None:
    assert missing(machine(), {"driver": "580.1"}, (), has_gpus=True) == ("driver", "kernel")
    assert missing(machine(kernel="6.8"), {"driver": "580.1", "kernel": "6.8"}, (), has_gpus=True) == ("driver",)


def test_where_nouveau_holds_the_gpu_there_is_nothing_to_ask() -> None:
    held = machine(kernel="6.8", loaded_modules=("nouveau",))
    assert is_known_absent(held)
    assert missing(held, {**held.facts, "driver": "580.1"}, (), has_gpus=True) == ()


def test_what_the_end_rests_on_is_asked_for_and_nothing_else() -> None:
    said = (
        "container_toolkit: node does not state it",
        "gpu: gfx1030 has code in the build, but AMD does not list it as supported by ROCm 6.4",
        "kernel: driver 470.1 is documented on kernel <6.10; node states 6.14",
        "pytorch_build: pytorch 2.2.1+cu102 is compiled from source: no binary is published",
        "virtualization: node does not state it",
    )
    known = machine(kernel="6.14")
    assert missing(known, known.facts, said, has_gpus=True) == ("container_toolkit", "virtualization")
    assert missing(known, known.facts, said, has_gpus=False) == ("container_toolkit", "virtualization", "gpu")


def test_a_step_that_finds_out_changes_nothing() -> None:
    (step,) = find_out(machine(kernel="6.8"), ("driver",))
    assert (step.kind, step.before, step.after, step.is_reboot) == ("find-out", "", "", False)
    assert step.text == "find out which driver is loaded, if any: the profile does not state it (`provision inspect` there)"
    assert step.state == {"kernel": "6.8"}


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"gpus": ()}, "the host has no GPU"),
        ({"gpus": ({"gfx": "gfx942", "name": "MI300X"},)}, "the host has gpu gfx942 (MI300X)"),
        ({"driver": {"kind": "amdgpu"}}, "the host's GPU driver is amdgpu"),
    ],
)
def test_a_machine_of_another_kind(facts: dict[str, Any], text: str) -> None:
    conflict = stranger(machine(**facts), aim())
    assert conflict is not None
    assert [member.text for member in conflict.members] == [
        "the other hosts' GPUs call for accelerator cuda, and the plan is for one stack",
        text,
    ]


def test_what_is_unknown_is_no_stranger() -> None:
    assert stranger(machine(), aim()) is None
    assert stranger(machine(gpus=({"name": "anything"},)), aim()) is None


def test_who_asked_for_an_accelerator_is_told_so() -> None:
    conflict = stranger(machine(gpus=()), aim(accelerator="cuda"))
    assert conflict is not None
    assert [(member.text, member.where) for member in conflict.members] == [
        ("you ask for accelerator cuda", "the spec"),
        ("the host has no GPU", "node.yaml:3"),
    ]


@pytest.mark.parametrize(
    ("facts", "accelerator"),
    [
        ({}, "cuda"),
        ({"gpus": ()}, "cpu"),
        ({"gpus": ({"gfx": "gfx942"},)}, "rocm"),
        ({"driver": {"kind": "amdgpu"}}, "rocm"),
        ({"driver": {"kind": "amdgpu"}, "gpus": ({"name": "unknown"},)}, "rocm"),
    ],
)
def test_the_accelerator_of_a_machine_alone(facts: dict[str, Any], accelerator: str) -> None:
    assert own_accelerator(machine(**facts), aim()) == accelerator
