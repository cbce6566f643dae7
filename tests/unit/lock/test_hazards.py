"""A lock is no solution any longer when the matrix has learnt of a hazard among its packages."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from provisioner.lock.fresh import stack_findings
from provisioner.lock.hazards import hazard_findings
from provisioner.lock.model import Lock, LockedPackage
from provisioner.matrix.load import load_matrix
from provisioner.resolver.problem import join
from tests import small
from tests.lock_examples import cuda_stack, lock_of

MATRIX = load_matrix()
TWO_NCCL = (
    "nvidia-nccl-cu12 2.27.5 and nvidia-nccl-cu13 2.32.3 write files such as nvidia/nccl/lib/libnccl.so.2: each is built "
    "for another CUDA major, and the file name is the same for all"
)
OLD_PYTORCH = (
    "pytorch 2.1.2 needs numpy <2, and numpy 2.3.5 is locked: PyTorch before 2.3 was compiled against NumPy 1, and beside "
    "NumPy 2 tensors and arrays do not convert"
)


def lock_with(**versions: str) -> Lock:
    """A lock of one platform with just these packages; an underscore in a name stands for a hyphen."""
    packages = [
        LockedPackage(name=name.replace("_", "-"), version=version, platforms=("linux/amd64",))
        for name, version in versions.items()
    ]
    return replace(lock_of(cuda_stack()), packages=tuple(packages))


def told(lock: Lock, *forbid: str) -> list[str]:
    policy: dict[str, Any] = {"policy": {"forbid": list(forbid)}} if forbid else {}
    problem = join(MATRIX, small.request({"python": "==3.12"}, packages=["numpy"], **policy))
    return [finding.text.partition("  (")[0] for finding in hazard_findings(lock, problem, where="pylock.toml")]


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        (
            lock_with(nvidia_nccl_cu12="2.27.5", nvidia_nccl_cu13="2.32.3"),
            TWO_NCCL,
        ),
        (
            lock_with(pandas="2.0.3", numpy="2.3.5"),
            "pandas 2.0.3 needs numpy <2, and numpy 2.3.5 is locked: it was compiled against NumPy 1",
        ),
        (
            lock_with(librosa="0.10.1"),
            "librosa 0.10.1 needs setuptools <82, and no setuptools is locked: it imports pkg_resources",
        ),
    ],
    ids=["shared file", "too new", "missing"],
)
def test_a_hazard_is_told_with_its_reason(lock: Lock, expected: str) -> None:
    assert told(lock) == [expected]


def test_packages_without_a_hazard_say_nothing() -> None:
    assert told(lock_with(nvidia_nccl_cu12="2.27.5", pandas="2.2.2", numpy="2.3.5", tensorboard="2.21.0")) == []


def test_what_is_only_named_is_told_where_the_policy_forbids_it() -> None:
    lock = lock_with(opencv_python="5.0.0.93", opencv_python_headless="5.0.0.93")
    assert told(lock) == []
    assert [text.partition(" write ")[0] for text in told(lock, "shared-files")] == [
        "opencv-python 5.0.0.93 and opencv-python-headless 5.0.0.93"
    ]


def test_a_limit_of_the_locked_framework_is_told() -> None:
    lock = lock_with(numpy="2.3.5")
    (stack,) = lock.stacks
    old = replace(lock, stacks=(replace(stack, components={**stack.components, "pytorch": "2.1.2"}),))
    assert told(old) == [OLD_PYTORCH]


def test_a_lock_whose_package_brings_another_cuda_is_held_against_that_one_too() -> None:
    host = {"driver": {"version": "535.104.05"}, "gpus": [{"compute_capability": "8.0"}], "container_toolkit": "1.17.4"}
    problem = join(MATRIX, small.request({"python": "==3.12", "pytorch": "==2.7.1"}, host, packages=["numpy"]))
    (stack,) = lock_of(cuda_stack()).stacks
    chosen = {name: stack.components[name] for name in ("pytorch", "pytorch_build", "cuda", "python")}

    def refusals(lock: Lock) -> list[str]:
        bare = replace(lock, stacks=(replace(stack, components=chosen),))
        found = [one for one in stack_findings(bare, problem, where="pylock.toml") if one.code == "stale-stack"]
        return [line.partition(",")[0] for one in found for line in one.details if "brings" in line]

    assert refusals(lock_with(numpy="2.3.5")) == []
    assert refusals(lock_with(cupy_cuda12x="14.2.0")) == []
    assert refusals(lock_with(cupy_cuda13x="14.2.0")) == ["cupy-cuda13x 14.2.0 brings CUDA 13"]


@pytest.mark.parametrize(
    ("build", "torchcodec", "expected"),
    [
        (
            "cu126",
            "0.2.1",
            ["torchcodec 0.2.1 needs a build of the old C++ ABI of PyTorch, and 2.6.0+cu126 is locked"],
        ),
        ("cu124", "0.2.1", []),
        # From the variant index: of the ABI of that build.
        ("cu126", "0.2.1+cu126", []),
    ],
    ids=["other", "same", "own"],
)
def test_a_wheel_of_another_c_plus_plus_abi_than_the_locked_build_is_told(
    build: str, torchcodec: str, expected: list[str]
) -> None:
    lock = lock_with(torchcodec=torchcodec)
    (stack,) = lock.stacks
    components = {**stack.components, "pytorch": "2.6.0", "pytorch_build": build}
    assert told(replace(lock, stacks=(replace(stack, components=components),))) == expected
