"""What is compiled against PyTorch comes from the index of the build that was chosen: real matrix, two real indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.matrix.load import load_matrix
from provisioner.solve.joint import NoStackError, solve_joint
from provisioner.solve.problem import join
from tests import small
from tests.loopback_index import LoopbackIndex

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.solve.stack import Stack

OLD_T4 = {"driver": {"version": "470.256.02"}, "gpus": [{"compute_capability": "7.5"}]}
"""Driver 470 stops at CUDA 11: of PyTorch 2.1.2 only the cu118 build runs on it."""


@pytest.fixture
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as served:
        served.add_wheel("torch", "2.1.2")
        served.add_wheel("torch", "2.1.2+cu118", index="whl/cu118")
        served.add_wheel("torchvision", "0.16.2", requires=["torch==2.1.2"])
        served.add_wheel("vllm", "0.3.3", requires=["torch==2.1.2"])
        yield served


def solve(index: LoopbackIndex, folder: Path, *packages: str) -> Stack:
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="pytorch", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=folder / "cache", fresh_seconds=0)
    wish = small.wish({"python": "==3.11", "pytorch": "==2.1.2"}, OLD_T4, packages=packages)
    return solve_joint(join(load_matrix(), wish), lambda environment: PackageIndex(settings, environment))


def test_torchvision_beside_a_cu118_build_is_the_one_of_cu118(index: LoopbackIndex, tmp_path: Path) -> None:
    index.add_wheel("torchvision", "0.16.2+cu118", requires=["torch==2.1.2"], index="whl/cu118")
    stack = solve(index, tmp_path, "torchvision")
    assert {package.name: package.version for package in stack.packages} == {
        "torch": "2.1.2+cu118",
        "torchvision": "0.16.2+cu118",
    }


def test_torchvision_of_the_default_index_does_not_go_with_a_cu118_build(index: LoopbackIndex, tmp_path: Path) -> None:
    with pytest.raises(NoStackError) as caught:
        solve(index, tmp_path, "torchvision")
    said = [member.text for member in caught.value.conflict.members if member.component == "torchvision"]
    assert said == [
        "you require torchvision",
        "torchvision 0.16.2 from the pypi index is compiled for the PyTorch build of the pypi index",
    ]


def test_a_distribution_that_no_variant_index_serves_is_not_looked_for_there(index: LoopbackIndex, tmp_path: Path) -> None:
    with pytest.raises(NoStackError):
        solve(index, tmp_path, "vllm")
    assert index.requests["/whl/cu118/vllm/"] == 0
    assert index.requests["/whl/cu118/torch/"] > 0
