"""Orders: each state works, ties go the way people go, and what cannot be done singly is done together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.step import ReturnToLock
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.places import Place
from provisioner.plan.model import PlanRequest
from provisioner.plan.planner import make_plan
from provisioner.plan.state import StackSpec
from provisioner.request import TargetHost
from provisioner.spec.model import Spec
from provisioner.words.choice import step_reason_words
from provisioner.words.step import action_words
from tests import small

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.matrix.model import Matrix
    from provisioner.plan.model import Step

    Components = dict[str, Mapping[str, Mapping[str, str | Sequence[str]]]]


def matrix(drivers: Mapping[str, str], *, second_cuda: str = ">=1") -> Matrix:
    """Two CUDAs, of which the second needs its own drivers; each driver builds on some kernels."""
    components: Components = {
        "cuda": {"1.0": {"driver": ">=1"}, "2.0": {"driver": second_cuda}},
        "driver": {version: {"kernel": kernels} for version, kernels in drivers.items()},
        "kernel": {"1.0": {}, "2.0": {}, "3.0": {}},
    }
    return small.matrix(tuple(components), components)


def steps(found: Matrix, to: Mapping[str, str], *, keep: frozenset[str] = frozenset()) -> tuple[Step, ...]:
    """The steps from CUDA 1, driver 1 and kernel 1 to what is asked."""
    host = Host(
        platform="linux/amd64",
        kernel="1.0",
        driver=Driver(version="1.0"),
        gpus=(HostGpu(compute_capability="8.0"),),
        container_toolkit="1.17.4",
    )

    def stack_spec(requires: Mapping[str, str], **fixed: str) -> StackSpec:
        spec = Spec(requires=dict(requires))
        return StackSpec(spec=spec, platform="linux/amd64", accelerator="cuda", locked=fixed, locked_in=Place("the lock"))

    question = PlanRequest(
        hosts=(TargetHost(label="node", host=host),),
        counts=(1,),
        current=stack_spec({}, cuda="1.0"),
        base=stack_spec({"cuda": "*"}),
        wanted=stack_spec({"cuda": "*", **to}),
        keep=keep,
    )
    (plan,) = make_plan(found, question).hosts
    assert plan.exclusion is None
    return plan.steps


def moves(found: tuple[Step, ...]) -> list[str]:
    return [f"{step.component} {step.before} -> {step.after}" for step in found]


def test_the_kernel_goes_first_where_either_order_works() -> None:
    found = matrix({"2.0": ">=1,<4", "1.0": ">=1,<4"})
    assert moves(steps(found, {"kernel": "==2.0", "driver": "==2.0"})) == ["kernel 1.0 -> 2.0", "driver 1.0 -> 2.0"]


def test_the_driver_goes_first_where_the_old_one_does_not_build_on_the_new_kernel() -> None:
    found = steps(matrix({"2.0": ">=1,<4", "1.0": ">=1,<2"}), {"kernel": "==2.0"})
    assert moves(found) == ["driver 1.0 -> 2.0", "kernel 1.0 -> 2.0"]
    assert [step_reason_words(reason) for reason in found[0].why] == [
        "driver 1.0 builds on kernel >=1,<2",
        "with the kernel changed first this would not hold: driver 1.0 builds on kernel >=1,<2",
    ]


def test_a_driver_in_between_where_neither_order_works() -> None:
    found = steps(matrix({"3.0": ">=3,<4", "2.0": ">=1,<4", "1.0": ">=1,<2"}), {"kernel": "==3.0", "driver": "==3.0"})
    assert moves(found) == ["driver 1.0 -> 2.0", "kernel 1.0 -> 3.0", "driver 2.0 -> 3.0"]
    assert step_reason_words(found[0].why[0]) == "a stop on the way: driver 3.0 builds on kernel >=3,<4"


def test_a_kernel_in_between_where_no_driver_helps() -> None:
    found = steps(matrix({"3.0": ">=2,<4", "1.0": ">=1,<3"}), {"kernel": "==3.0", "driver": "==3.0"})
    assert moves(found) == ["kernel 1.0 -> 2.0", "driver 1.0 -> 3.0", "kernel 2.0 -> 3.0"]


def test_what_nothing_in_between_helps_is_done_together() -> None:
    found = steps(matrix({"2.0": ">=3,<4", "1.0": ">=1,<2"}), {"kernel": "==3.0"})
    assert [step.is_together for step in found] == [True]
    assert action_words(found[0].action) == (
        "drain the node, then do together: boot a kernel of the 3.0 series in place of 1.0; "
        "install driver 2.0 with the open kernel modules in place of 1.0"
    )
    assert found[0].is_reboot
    assert {name for name, _, _ in found[0].changes} == {"kernel", "driver", "driver_module"}


def test_the_software_waits_for_the_driver_it_needs() -> None:
    found = steps(matrix({"2.0": ">=1,<4", "1.0": ">=1,<4"}, second_cuda=">=2"), {"cuda": "==2.0"})
    assert moves(found) == ["driver 1.0 -> 2.0", "image cuda 1.0 -> cuda 2.0"]
    assert [step.is_reboot for step in found] == [True, False]
    assert isinstance(found[1].undo, ReturnToLock)


def test_the_software_goes_first_where_the_new_driver_does_not_run_the_old() -> None:
    components: Components = {
        "cuda": {"1.0": {"driver": "<2"}, "2.0": {"driver": ">=1"}},
        "driver": {"2.0": {"kernel": ">=1,<4"}, "1.0": {"kernel": ">=1,<4"}},
        "kernel": {"1.0": {}},
    }
    found = steps(small.matrix(tuple(components), components), {"driver": "==2.0", "cuda": "==2.0"})
    assert moves(found) == ["image cuda 1.0 -> cuda 2.0", "driver 1.0 -> 2.0"]


def test_what_is_kept_is_no_stop_either() -> None:
    found = matrix({"3.0": ">=1,<4", "1.0": ">=1,<4"}, second_cuda=">=2")
    assert moves(steps(found, {"cuda": "==2.0"}, keep=frozenset({"kernel"}))) == [
        "driver 1.0 -> 3.0",
        "image cuda 1.0 -> cuda 2.0",
    ]
