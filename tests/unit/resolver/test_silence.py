"""A release about which a family of rows is silent is taken last, and never a plain yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from provisioner.matrix.model import Family
from provisioner.resolver.joint import solve_system
from provisioner.resolver.problem import join
from tests import small
from tests.told import unverified

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.stack import Stack

TOLD = "cudnn: no row says which gpu cudnn {} goes with; `provision matrix check` lists such releases"
RULES = (
    small.rule("cudnn-8-gpus", {"cudnn": "==8.*"}, {"gpu": ">=5.0"}),
    small.rule("cudnn-9-gpus", {"cudnn": "==9.*"}, {"gpu": ">=7.0"}),
)


def matrix(**family: Any) -> Matrix:  # noqa: ANN401 - any field of a family
    made = small.matrix(
        ("cudnn", "gpu"),
        {"cudnn": {"10.0": {}, "9.1": {}, "8.9": {}, "7.6": {}}, "gpu": {"3.5": {}, "5.0": {}, "9.0": {}}},
        rules=RULES,
    )
    return replace(made, families=(Family(subject="cudnn", object="gpu", because="it is so", **family),))


def solved(gpu: str, wanted: str = "*", *, of: Matrix | None = None) -> Stack:
    host = {"gpus": [{"compute_capability": gpu}]} if gpu else {}
    return solve_system(join(of or matrix(), small.request({"cudnn": wanted}, host, runs="host", accelerator="cuda")))


def of_cudnn(stack: Stack) -> list[str]:
    return [text for text in unverified(stack) if text.startswith("cudnn: ")]


@pytest.mark.parametrize(("gpu", "expected"), [("9.0", "9.1"), ("5.0", "8.9")])
def test_a_release_that_a_row_speaks_of_comes_before_a_newer_one_without(gpu: str, expected: str) -> None:
    stack = solved(gpu)
    assert (stack.components["cudnn"], of_cudnn(stack)) == (expected, [])


@pytest.mark.parametrize(("gpu", "wanted", "expected"), [("3.5", "*", "10.0"), ("9.0", ">9.99", "10.0"), ("9.0", "7", "7.6")])
def test_one_without_is_taken_when_nothing_else_will_do_and_is_named(gpu: str, wanted: str, expected: str) -> None:
    stack = solved(gpu, wanted)
    assert (stack.components["cudnn"], of_cudnn(stack)) == (expected, [TOLD.format(expected)])


def test_silence_about_what_is_no_part_of_the_answer_is_no_doubt() -> None:
    assert of_cudnn(solved("", "7")) == []


def test_a_family_of_another_accelerator_does_not_bind() -> None:
    stack = solved("9.0", of=matrix(on=small.needs({"accelerator": "rocm"})))
    assert (stack.components["cudnn"], of_cudnn(stack)) == ("10.0", [])
