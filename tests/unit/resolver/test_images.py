"""Which base images may be chosen, and each of them once."""

from __future__ import annotations

from typing import Any

from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key
from tests import small
from tests.shipped import shipped

A100: dict[str, Any] = {
    "driver": {"version": "470.256.02"},
    "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}],
}


def test_an_image_that_is_wanted_for_two_reasons_is_one_candidate() -> None:
    """CUDA is asked for by itself, which an image must have, and the driver runs it only through the cuda-compat of one."""
    spec: dict[str, Any] = {"policy": {"allow": ["minor-version", "forward-compat"]}}
    problem = join(shipped(), small.request({"cuda": "12.*"}, A100, **spec))
    labels = [one.label for one in problem.domains[Key("image")]]
    assert any(label.startswith("nvidia/cuda:12") for label in labels)
    assert len(labels) == len(set(labels))
