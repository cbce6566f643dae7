"""Facts that are missing are asked for, and machines of another kind are told apart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from provisioner.grounds.doubt import FromSource, UndocumentedKernel, Unstated, UnsupportedGpu
from provisioner.grounds.requirement import Subject
from provisioner.host.model import Host
from provisioner.places import Place
from provisioner.plan.exclusion import accelerator_conflict, own_accelerator
from provisioner.plan.machine import Machine, machines_of
from provisioner.plan.state import StackSpec
from provisioner.plan.steps import find_out_steps, is_known_without_driver, missing_facts
from provisioner.request import TargetHost
from provisioner.spec.model import Spec
from provisioner.versions import Range
from provisioner.words.conflict import member_words
from provisioner.words.notation import sources_words
from provisioner.words.step import action_words


def machine(**facts: Any) -> Machine:  # noqa: ANN401 - any fact of a profile
    (found,) = machines_of([TargetHost(label="node", host=convert(facts, Host), places={"gpus": Place("node.yaml", 3)})], [1])
    return found


def stack_spec(**spec: Any) -> StackSpec:  # noqa: ANN401 - any key of a spec
    return StackSpec(spec=Spec(**spec), platform="linux/amd64", accelerator="cuda")


def test_a_driver_that_nobody_states_is_asked_for_and_its_kernel_too() -> None:
    assert missing_facts(machine(), {"driver": "580.1"}, (), has_gpus=True) == ("driver", "kernel")
    assert missing_facts(machine(kernel="6.8"), {"driver": "580.1", "kernel": "6.8"}, (), has_gpus=True) == ("driver",)


def test_where_nouveau_holds_the_gpu_there_is_nothing_to_ask() -> None:
    held = machine(kernel="6.8", loaded_modules=("nouveau",))
    assert is_known_without_driver(held)
    assert missing_facts(held, {**held.facts, "driver": "580.1"}, (), has_gpus=True) == ()


def test_what_the_end_rests_on_is_asked_for_and_nothing_else() -> None:
    said = (
        Unstated(fact="container_toolkit", host="node"),
        UnsupportedGpu(device="gfx1030", rocm="6.4"),
        UndocumentedKernel(host="node", driver="470.1", kernel="6.14", documented=Range.parse("<6.10")),
        FromSource(part="pytorch_build", subject=Subject("pytorch", "2.2.1+cu102")),
        Unstated(fact="virtualization", host="node"),
    )
    known = machine(kernel="6.14")
    assert missing_facts(known, known.facts, said, has_gpus=True) == ("container_toolkit", "virtualization")
    assert missing_facts(known, known.facts, said, has_gpus=False) == ("container_toolkit", "virtualization", "gpu")


def test_a_step_that_finds_out_changes_nothing() -> None:
    (step,) = find_out_steps(machine(kernel="6.8"), ("driver",))
    assert (step.kind, step.before, step.after, step.is_reboot) == ("find-out", "", "", False)
    assert (
        action_words(step.action)
        == "find out which driver is loaded, if any: the profile does not state it (`provision inspect` there)"
    )
    assert step.state == {"kernel": "6.8"}


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"gpus": ()}, "the host has no GPU"),
        ({"gpus": ({"gfx": "gfx942", "name": "MI300X"},)}, "the host has gpu gfx942 (MI300X)"),
        ({"driver": {"kind": "amdgpu"}}, "the host's GPU driver is amdgpu"),
    ],
)
def test_a_machine_without_the_accelerator_is_excluded(facts: dict[str, Any], text: str) -> None:
    conflict = accelerator_conflict(machine(**facts), stack_spec())
    assert conflict is not None
    assert [member_words(member) for member in conflict.members] == [
        "the other hosts' GPUs call for accelerator cuda, and the plan is for one stack",
        text,
    ]


def test_a_machine_of_unknown_gpus_is_not_excluded() -> None:
    assert accelerator_conflict(machine(), stack_spec()) is None
    assert accelerator_conflict(machine(gpus=({"name": "anything"},)), stack_spec()) is None


def test_who_asked_for_an_accelerator_is_told_so() -> None:
    conflict = accelerator_conflict(machine(gpus=()), stack_spec(accelerator="cuda"))
    assert conflict is not None
    assert [(member_words(member), sources_words(member.sources)) for member in conflict.members] == [
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
    assert own_accelerator(machine(**facts), stack_spec()) == accelerator
