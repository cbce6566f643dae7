"""What a change costs a person."""

from __future__ import annotations

from itertools import pairwise

import pytest

from provisioner.matrix.load import load_matrix
from provisioner.resolver.explain.cost import ORDER, cost_of, rank
from provisioner.resolver.rules.facts import FACTS

STAIRS = ("build", "pytorch", "python", "cuda", "policy", "image", "driver", "kernel", "os", "gpu")


@pytest.mark.parametrize(("cheap", "dear"), list(pairwise(STAIRS)))
def test_the_order_of_costs(cheap: str, dear: str) -> None:
    assert cost_of(cheap) < cost_of(dear)


def test_what_is_no_component_is_a_package() -> None:
    assert cost_of("numpy") == cost_of("package")


def test_every_fact_a_host_states_has_a_place() -> None:
    known = {name for names in ORDER for name in names}
    stated = {name for name, source in FACTS.items() if source.place}
    assert stated <= known
    assert (
        known - {"build", "pytorch_build", "package", "policy", "arch_list", "left out", "gpu", "target", "accelerator"}
        <= load_matrix().components.keys()
    )


def test_of_several_changes_the_dearest_decides_and_then_how_many_they_are() -> None:
    pytorch, cuda, driver = (cost_of(name) for name in ("pytorch", "cuda", "driver"))
    assert rank([pytorch]) < rank([cuda]) < rank([pytorch, cuda]) < rank([driver])
