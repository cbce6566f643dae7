"""What a change costs a person."""

from __future__ import annotations

from itertools import pairwise

import pytest

from provisioner.components import COMPONENTS, Supplier
from provisioner.grounds.edit import LEFT_OUT
from provisioner.grounds.requirement import Relation
from provisioner.resolver.explain.edits import BOUND, BUILD, NO_GPU, RELOAD, RUNS, Costs, rank
from provisioner.resolver.rules.facts import FACTS
from tests.shipped import shipped

STAIRS = (
    BUILD, "numpy", "python", "cuda", "pytorch", "policy", "image", RELOAD, "fabric_manager", "driver", "kernel", "os",
    "target", NO_GPU, LEFT_OUT, "gpu",
)  # fmt: skip


def cost_of(change: str) -> tuple[int, int, int]:
    return Costs(()).of(change)


@pytest.mark.parametrize(("cheap", "dear"), list(pairwise(STAIRS)))
def test_the_order_of_costs(cheap: str, dear: str) -> None:
    assert cost_of(cheap) < cost_of(dear)


def test_changes_of_no_component_are_of_the_effort_of_their_kind() -> None:
    assert cost_of(BOUND)[0] == cost_of("policy")[0]
    assert cost_of(RUNS)[0] == cost_of("image")[0]


def test_of_two_packages_the_one_that_the_other_rests_on_is_changed_first() -> None:
    costs = Costs((Relation("vllm", "numba"), Relation("numba", "numpy")))
    assert costs.of("numpy") < costs.of("numba") < costs.of("vllm")
    assert costs.of("vllm") < costs.of("pytorch"), "a package before the framework"


def test_what_is_no_component_is_a_package() -> None:
    assert cost_of("numpy") == cost_of("package")


def test_every_fact_that_a_conflict_may_name_has_a_cost() -> None:
    costly = {row.name for row in COMPONENTS.values() if row.effort is not None}
    known = shipped().components.keys()
    assert {name for name, row in FACTS.items() if row.key and name in known} <= costly
    of_no_matrix = {row.name for row in COMPONENTS.values() if row.supplier is Supplier.SPEC} | {"package"}
    assert costly - of_no_matrix <= {*known, "virtualization"}


def test_of_changes_of_the_same_effort_the_cheaper_one_comes_first() -> None:
    beside = ("fabric_manager", "userspace_driver", "loaded_modules", "kernel_headers")
    for names in (
        ("pytorch", "jax"),
        ("package", "cudnn"),
        ("arch_list", "cuda", "rocm", "nvcc", "gcc"),
        beside,
        ("driver_module", "cuda_driver", "driver", "jetson"),
        ("sip", "kernel"),
    ):
        costs = [cost_of(name) for name in names]
        assert costs == sorted(costs)
        assert len({level for level, _, _ in costs}) == 1


def test_of_several_changes_the_dearest_decides_and_then_how_many_they_are() -> None:
    cuda, pytorch, driver = (cost_of(name) for name in ("cuda", "pytorch", "driver"))
    assert rank([cuda]) < rank([pytorch]) < rank([cuda, pytorch]) < rank([driver])
