"""A framework that is installed as more than the spec names is told, with what would leave the rest out."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.search.resolve import decide
from provisioner.words.choice import installed_for_gpu_words
from tests.unit.resolver.test_frameworks import instance


def told(packages: list[str], **spec: Any) -> list[str]:  # noqa: ANN401 - any key of a spec
    found = instance(packages, **spec)
    pins = decide(found)
    assert pins is not None
    return list(map(installed_for_gpu_words, answer(found, pins).installed_for_gpu))


@pytest.mark.parametrize(
    ("packages", "lines"),
    [
        (
            ["tensorflow"],
            [
                (
                    "tensorflow is installed as tensorflow[and-cuda], which brings the CUDA libraries for a GPU; "
                    "`accelerator: cpu` is without"
                )
            ],
        ),
        (["tensorflow[and-cuda]"], []),
        (["tensorflow[and_cuda]"], []),
        (
            ["jax"],
            ["jax is installed as jax[cuda13], which brings the CUDA libraries for a GPU; `accelerator: cpu` is without"],
        ),
        (["torch"], []),
    ],
)
def test_extras_that_the_spec_does_not_name_are_told(packages: list[str], lines: list[str]) -> None:
    assert told(packages, accelerator="cuda") == lines


def test_nothing_is_added_on_the_cpu() -> None:
    assert told(["tensorflow"], accelerator="cpu") == []
