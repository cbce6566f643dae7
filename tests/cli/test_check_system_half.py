"""`provision check` of a stale lock: what solving its system half again would change, beside the packages that stay."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project

HOST = "driver: {version: 580.95.05, module: open}\nglibc: '2.35'\ngpus: [{compute_capability: '9.0'}]\n"
LINES = (
    "accelerator: cuda",
    "target: {host: new.yaml}",
    "runs: host",
    "image: {}",
    "outputs: []",
    'requires: {pytorch: "==2.7.1+cu126"}',
    "policy: {accept: [cupy-cuda13x]}",
)
ASK_INDEXES = "  `provision check --changes` asks the indexes which packages would move\n"
NEXT = "  next: provision solve\n"
MISSING = "  no: `alpha` is not locked: you require alpha  (provision.yaml:4)  [missing-package]\n"
NOTHING = "  solving the system half again would change nothing\n"

GATE_OF_13 = "driver>=580.65.06,arch>=7.5,arch<10.0,arch!=8.7"
GATE_OF_12 = "driver>=525.60.13,arch>=5.0,arch<10.0,arch!=5.3,arch!=6.2,arch!=7.2,arch!=8.7"
BRINGS = (
    "cupy-cuda13x 14.0 brings CUDA 13, which needs driver >=580.65.06 (minor-version compatibility): "
    "its libraries link libcublas.so.13"
)
COMPILED = "cupy-cuda13x 14.0 is compiled for sm_75 sm_80 sm_86 sm_89 sm_90 sm_100f sm_120f compute_120"
LACKS = (
    "cupy-cuda13x: 14.0 needs libcublas.so.13, libcufft.so.12, libcusolver.so.12 and libnvrtc.so.13, which nothing in the lock "
    "is known to have, unless the host has it; add nvidia-cublas, nvidia-cuda-nvrtc, nvidia-cufft and nvidia-cusolver "
    "to `packages`"
)


@pytest.fixture(autouse=True)
def served(project: Project) -> None:
    """A host and what is published for it: a PyTorch for CUDA 12, and `pack`, which brings CUDA 13 along."""
    tag = "cp312-cp312-manylinux_2_28_x86_64"
    project.index.add_wheel("torch", "2.7.1", tag=tag)
    project.index.add_wheel("cupy-cuda13x", "14.0", tag=tag)
    project.index.add_wheel("pack", "1.0", requires=["cupy-cuda13x"])
    project.index.add_wheel("vllm", "0.10.0", tag="cp38-abi3-manylinux1_x86_64", requires=["torch==2.7.1"])
    project.write(HOST, name="new.yaml")


def solved(project: Project, packages: str) -> None:
    project.spec(packages, *LINES)
    assert project.run("solve").code == 0


def unnumbered(text: str) -> str:
    """What was said, without the lines of the matrix, which move."""
    return re.sub(r"(matrices/\w+\.yaml):\d+", r"\1", text)


def test_a_cuda_that_a_package_brings_stays_with_the_package(project: Project) -> None:
    solved(project, "[torch, pack]")
    project.spec("[torch, pack, alpha]", *LINES)
    outcome = project.run("check")
    assert (outcome.code, outcome.out) == (1, f"{LOCK}: no\n{MISSING}{NOTHING}{ASK_INDEXES}{NEXT}")


def test_a_cuda_that_goes_with_its_package_is_what_changes_the_driver(project: Project) -> None:
    solved(project, "[torch, pack]")
    project.spec("[torch, alpha]", *LINES)
    gpus = (
        "    GPUs of compute capability 5.0, 5.2, 6.0, 6.1 and 7.0 fit now\n"
        f"      because {COMPILED}, and cupy-cuda13x is gone  (matrices/wheels.yaml)\n"
    )
    changes = (
        "    driver `>=580.65.06` became `>=525.60.13`: more hosts fit now\n"
        f"      because {BRINGS}, and cupy-cuda13x is gone  (matrices/distributions.yaml)\n"
        f"    NVIDIA_REQUIRE_CUDA `{GATE_OF_13}` -> `{GATE_OF_12}`\n"
        "      because it comes with cupy-cuda13x: 14.0 before, none now\n"
        "    no longer relaxed: mixed-cuda (cuda)\n"
        f"    no longer accepted: {LACKS}\n"
    )
    outcome = project.run("check")
    assert outcome.code == 1
    system = f"  solving the system half again would change 5 things:\n{gpus}{changes}"
    assert unnumbered(outcome.out) == f"{LOCK}: no\n{MISSING}{system}{ASK_INDEXES}{NEXT}"
    asked = project.run("check", "--changes")
    assert asked.code == 1
    assert f"  solving again would change 9 things:\n{gpus}{changes}" in unnumbered(asked.out)


def test_a_cuda_that_comes_with_a_package_is_what_changes_the_driver(project: Project) -> None:
    solved(project, "[torch]")
    project.spec("[torch, pack]", *LINES)
    outcome = project.run("check", "--changes")
    assert outcome.code == 1
    assert (
        "  solving again would change 7 things:\n"
        "    GPUs of compute capability 5.0, 5.2, 6.0, 6.1 and 7.0 fall out\n"
        f"      because {COMPILED}  (matrices/wheels.yaml)\n"
        "    driver `>=525.60.13` became `>=580.65.06`: hosts with driver below 580.65.06 fall out\n"
        f"      because {BRINGS}  (matrices/distributions.yaml)\n"
        f"    NVIDIA_REQUIRE_CUDA `{GATE_OF_12}` -> `{GATE_OF_13}`\n"
        "      because it comes with cupy-cuda13x: none before, 14.0 now\n"
        "    relaxed now: mixed-cuda (cuda)\n"
    ) in unnumbered(outcome.out)


def test_a_driver_too_old_for_the_cuda_of_a_locked_package_leaves_other_packages_to_solve_for(project: Project) -> None:
    solved(project, "[torch, pack]")
    project.write(HOST.replace("580.95.05", "570.86.15"), name="new.yaml")
    outcome = project.run("check")
    assert outcome.code == 1
    assert "the locked stack does not satisfy the spec, the matrix and the hosts  [stale-stack]" in outcome.out
    assert "solving the system half again" not in outcome.out
    others = (
        "  with other versions of its packages the system half has an answer: `provision check --changes` asks the indexes\n"
    )
    assert outcome.out.endswith(others + NEXT)
    assert json.loads(project.run("check", "--format", "json").out)["locks"][0]["changes"] == {"system": None}
    assert "%0Aprovision solve" in project.run("check", "--format", "github").out


def test_a_driver_too_old_for_every_release_of_the_framework_leaves_nothing_to_solve_for(project: Project) -> None:
    solved(project, "[torch, pack]")
    project.write(HOST.replace("580.95.05", "418.126.02"), name="new.yaml")
    outcome = project.run("check")
    assert outcome.code == 1
    assert "the system half has an answer" not in outcome.out
    assert NEXT not in outcome.out


def test_a_glibc_that_a_package_needs_stays_with_the_package(project: Project) -> None:
    solved(project, "[vllm]")
    assert 'glibc = ">=2.29"' in project.read(LOCK)
    project.spec("[vllm, alpha]", *LINES)
    outcome = project.run("check")
    assert (outcome.code, outcome.out) == (1, f"{LOCK}: no\n{MISSING}{NOTHING}{ASK_INDEXES}{NEXT}")
