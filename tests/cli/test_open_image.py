"""A base image that the spec leaves open, where wheels need libraries of CUDA: `solve`, `check` and `explain` agree on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project

IMAGE = "nvidia/cuda:12.9.1-cudnn-runtime-ubuntu24.04"
HOST = "driver: {version: 580.95.05}\ngpus: [{name: NVIDIA A100-SXM4-80GB}]\n"


@pytest.fixture(autouse=True)
def solved(project: Project) -> None:
    """The lock of a package whose wheel links to cuBLAS and cuDNN, which nothing that it requires has."""
    project.index.add_wheel("onnxruntime-gpu", "1.24.4", tag="cp312-cp312-manylinux_2_28_x86_64")
    project.write(HOST, name="host.yaml")
    project.spec("[onnxruntime-gpu]", "accelerator: cuda", "target: {host: host.yaml}", "image: {}")
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err


def test_its_lock_holds(project: Project) -> None:
    assert f'reference = "{IMAGE}"' in project.read(LOCK)
    outcome = project.run("check")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, f"{LOCK}: yes")


def test_why_it_is_no_slim_image_is_told(project: Project) -> None:
    assert project.run("explain", "image").out.startswith(
        f"image {IMAGE} is chosen\n"
        "  a base image with the libraries of CUDA is chosen, for packages need them and nothing else has them  (provision.yaml"
    )
