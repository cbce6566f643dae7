"""Rows by their names, and what a source speaks for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from provisioner.browse.rows import citing_index, row_named
from provisioner.errors import UsageError
from provisioner.matrix.model import Failure, Gpu, Matrix, Rule
from tests.small import build, matrix, need, needs, release


def small() -> Matrix:
    rule = Rule(
        name="cuda-floor", when=need("cuda", ">=12"), require=needs({"gpu": ">=5.0"}), because="dropped", source=("invented",)
    )
    made = matrix(
        ["pytorch", "cuda", "gpu"],
        {"cuda": {"12.1.0": {}}},
        rules=(rule,),
        releases={"pytorch": [release("2.1.0", {}, builds=(build("cu121", {}),))]},
    )
    failure = Failure(
        name="no-kernel-image", layer="gpu", symptoms=("no kernel image",), cause="sm", remedy="newer", source=("invented",)
    )
    gpus = (Gpu(name="NVIDIA A100", architecture="", compute_capability="8.0", source=("invented",)),)
    return replace(made, failures=(failure,), gpus=gpus)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("cuda-floor", "rule"), ("invented", "source"), ("a100", "gpu"), ("no-kernel-image", "failure"), ("CUDA-Floor", "rule")],
)
def test_a_row_of_any_kind(name: str, kind: str) -> None:
    assert row_named(small(), name).kind == kind


def test_a_rule_says_what_it_says() -> None:
    data = row_named(small(), "cuda-floor").data
    assert data == {
        "name": "cuda-floor",
        "when": {"cuda": ">=12"},
        "require": {"gpu": ">=5.0"},
        "because": "dropped",
        "sources": ("invented",),
    }


def test_a_source_knows_every_row_it_speaks_for() -> None:
    assert citing_index(small())["invented"] == (
        "pytorch==2.1.0",
        "pytorch==2.1.0+cu121",
        "cuda==12.1.0",
        "cuda-floor",
        "NVIDIA A100",
        "no-kernel-image",
    )


def test_a_typo_gets_the_nearest_name() -> None:
    with pytest.raises(UsageError) as refused:
        row_named(small(), "cuda-flor")
    assert refused.value.message == "`cuda-flor` is no component, rule, source or product of the matrix"
    assert refused.value.hints[0] == "did you mean `cuda-floor`?"
