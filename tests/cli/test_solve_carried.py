"""A library that a distribution carries is in the stack at the version of that distribution: one file is installed, not two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.built_files import build_wheel
from tests.project import LOCK

if TYPE_CHECKING:
    from tests.project import Project

HOST = "driver: {version: 580.95.05, module: open}\nglibc: '2.35'\ngpus: [{compute_capability: '9.0'}]\n"
LINES = ("accelerator: cuda", "target: {host: new.yaml}", "runs: host", "image: {}", "outputs: []")
TAG = "py3-none-manylinux_2_27_x86_64"


@pytest.fixture(autouse=True)
def served(project: Project) -> None:
    """A JAX whose CUDA build takes any cuDNN 9 from 9.8 on, and a host for it."""
    project.index.add_wheel("jax", "0.8.3", extras=["cuda12"], requires=["plugin==0.8.3; extra == 'cuda12'"])
    project.index.add_wheel("plugin", "0.8.3", requires=["nvidia-cudnn-cu12<10,>=9.8", "nvidia-nccl-cu12>=2.18.1"])
    for version in ("9.8.0.87", "9.9.0.52", "9.28.0.42"):
        project.index.add_wheel("nvidia-cudnn-cu12", version, tag=TAG)
    for version in ("2.26.5", "2.32.3"):
        project.index.add_wheel("nvidia-nccl-cu12", version, tag=TAG)
    project.write(HOST, name="new.yaml")


def stack(project: Project) -> dict[str, str]:
    outcome = project.run("solve", "--upgrade", "--format", "json")
    assert outcome.code == 0, outcome.err
    chosen: dict[str, str] = outcome.json["stack"]
    return {name: chosen[name] for name in ("jax", "cudnn", "nccl")}


def test_the_newest_of_both_agree(project: Project) -> None:
    project.spec("['jax[cuda12]']", *LINES)
    assert stack(project) == {"jax": "0.8.3", "cudnn": "9.28.0.42", "nccl": "2.32.3"}
    assert project.run("check").code == 0


def test_a_bound_on_the_distribution_is_one_on_what_it_carries(project: Project) -> None:
    project.spec("['jax[cuda12]']", "constraints: [nvidia-cudnn-cu12<9.10, nvidia-nccl-cu12<2.27]", *LINES)
    assert stack(project) == {"jax": "0.8.3", "cudnn": "9.9.0.52", "nccl": "2.26.5"}
    assert project.run("check").out == f"{LOCK}: yes\n"
    assert project.run("check", "--changes").out.splitlines()[:3] == [
        f"{LOCK}: yes",
        "  solving again would change nothing",
        "  solving again with --upgrade would change nothing",
    ]


def test_a_file_that_the_spec_names_carries_its_version(project: Project) -> None:
    filename, content = build_wheel("nvidia-cudnn-cu12", "9.9.0.52", tag=TAG)
    folder = project.folder / ("deep" * 25) / ("down" * 25)
    folder.mkdir(parents=True)
    (folder / filename).write_bytes(content)
    project.spec(f"['jax[cuda12]', 'nvidia-cudnn-cu12 @ {(folder / filename).as_uri()}']", *LINES)
    assert stack(project)["cudnn"] == "9.9.0.52"
    carried = "it is what nvidia-cudnn-cu12 9.9.0.52 carries; `provision explain nvidia-cudnn-cu12` says more of that"
    assert project.run("explain", "cudnn").out.splitlines()[-1] == f"not cudnn 9.28.0.42: {carried}"


def test_a_version_that_the_matrix_does_not_know_stays_a_contradiction(project: Project) -> None:
    project.index.add_wheel("nvidia-cudnn-cu12", "9.99.0.1", tag=TAG)
    project.spec("['jax[cuda12]']", *LINES)
    assert stack(project)["cudnn"] == "9.28.0.42"
    contradiction = "the stack has cudnn 9.28.0.42, the packages have nvidia-cudnn-cu12 9.99.0.1  [contradiction]"
    assert contradiction in project.run("check").out


def test_the_cuda_of_jax_beside_that_of_pytorch_has_the_one_cudnn_there_is(project: Project) -> None:
    project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64", requires=["nvidia-cudnn-cu12==9.5.1.17"])
    project.index.add_wheel("jax", "0.5.3", extras=["cuda12"], requires=["plugin==0.5.3; extra == 'cuda12'"])
    project.index.add_wheel("plugin", "0.5.3", requires=["nvidia-cudnn-cu12<10,>=9.1"])
    project.index.add_wheel("nvidia-cudnn-cu12", "9.5.1.17", tag=TAG)
    project.spec("[torch, 'jax[cuda12]']", 'requires: {pytorch: "==2.7.1+cu126"}', *LINES)
    assert project.run("solve").code == 0
    # The newest cuDNN serves no GPU before 7.5; that of both serves what JAX runs on.
    assert "arch>=5.2," in project.read(LOCK)
    assert project.run("check", "--changes").out.splitlines()[:3] == [
        f"{LOCK}: yes",
        "  solving again would change nothing",
        "  solving again with --upgrade would change nothing",
    ]
    project.spec("[torch, 'jax[cuda12]', alpha]", 'requires: {pytorch: "==2.7.1+cu126"}', *LINES)
    assert "  solving the system half again would change nothing\n" in project.run("check").out
    assert project.run("solve").code == 0
    lines = project.run("explain", "cudnn").out.splitlines()
    assert "cudnn 9.5.1.17 is chosen for jax" in lines
    carried = "it is what nvidia-cudnn-cu12 9.5.1.17 carries; `provision explain nvidia-cudnn-cu12` says more of that"
    assert lines[-1] == f"not cudnn 9.28.0.42: {carried}"
