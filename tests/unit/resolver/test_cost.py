"""What a change costs a person."""

from __future__ import annotations

from itertools import pairwise

import pytest

from provisioner.components import COMPONENTS, Supplier
from provisioner.resolver.explain.edits import cost_of, rank
from provisioner.resolver.rules.facts import FACTS
from tests.shipped import shipped

STAIRS = ("build", "pytorch", "python", "cuda", "policy", "image", "driver", "kernel", "os", "gpu")


@pytest.mark.parametrize(("cheap", "dear"), list(pairwise(STAIRS)))
def test_the_order_of_costs(cheap: str, dear: str) -> None:
    assert cost_of(cheap) < cost_of(dear)


def test_what_is_no_component_is_a_package() -> None:
    assert cost_of("numpy") == cost_of("package")


def test_every_fact_that_a_conflict_may_name_has_a_cost() -> None:
    costly = {row.name for row in COMPONENTS.values() if row.effort is not None}
    known = shipped().components.keys()
    assert {name for name, row in FACTS.items() if row.key and name in known} <= costly
    of_no_matrix = {row.name for row in COMPONENTS.values() if row.supplier is Supplier.SPEC} | {"package"}
    assert costly - of_no_matrix <= known


def test_of_changes_of_the_same_effort_the_cheaper_one_comes_first() -> None:
    beside = ("fabric_manager", "loaded_modules", "kernel_headers", "driver_module", "cuda_driver", "driver", "jetson")
    for names in (
        ("pytorch", "jax", "package", "cudnn"),
        ("arch_list", "cuda", "rocm", "nvcc", "gcc"),
        beside,
        ("sip", "kernel"),
    ):
        costs = [cost_of(name) for name in names]
        assert costs == sorted(costs)
        assert len({level for level, _ in costs}) == 1


def test_of_several_changes_the_dearest_decides_and_then_how_many_they_are() -> None:
    pytorch, cuda, driver = (cost_of(name) for name in ("pytorch", "cuda", "driver"))
    assert rank([pytorch]) < rank([cuda]) < rank([pytorch, cuda]) < rank([driver])
