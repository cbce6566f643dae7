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


def test_a_library_for_another_cuda_beside_it_is_not_the_frameworks(project: Project) -> None:
    project.index.add_wheel("nvidia-cudnn-cu11", "8.9.6.50", tag=TAG, requires=["nvidia-cublas-cu11"])  # as the real one does
    project.index.add_wheel("nvidia-cublas-cu11", "11.11.3.6", tag=TAG)
    project.spec("['jax[cuda12]', nvidia-cudnn-cu11]", "constraints: [nvidia-cudnn-cu12<9.10]", *LINES)
    assert stack(project)["cudnn"] == "9.9.0.52"
    assert project.run("check").out == f"{LOCK}: yes\n"


def test_a_file_that_the_spec_names_carries_its_version(project: Project) -> None:
    filename, content = build_wheel("nvidia-cudnn-cu12", "9.9.0.52", tag=TAG)
    folder = project.folder / ("deep" * 25) / ("down" * 25)
    folder.mkdir(parents=True)
    (folder / filename).write_bytes(content)
    project.spec(f"['jax[cuda12]', 'nvidia-cudnn-cu12 @ {(folder / filename).as_uri()}']", *LINES)
    assert stack(project)["cudnn"] == "9.9.0.52"
    carried = "it is what nvidia-cudnn-cu12 9.9.0.52 carries; `provision explain nvidia-cudnn-cu12` says more of that"
    assert project.run("explain", "cudnn").out.splitlines()[-1] == f"not cudnn 9.28.1.4: {carried}"


UNLISTED = "carries a release that the matrix does not list, so what it needs is not known"


def test_a_version_that_the_matrix_does_not_know_is_unverified_for_solve_and_check(project: Project) -> None:
    project.index.add_wheel("nvidia-cudnn-cu12", "9.99.0.1", tag=TAG)
    project.spec("['jax[cuda12]']", *LINES)
    assert stack(project)["cudnn"] == "9.99.0.1"
    missing = f"cudnn: nvidia-cudnn-cu12 9.99.0.1 {UNLISTED}"
    assert project.run("solve", "--format", "json").json["unverified"] == [missing]
    outcome = project.run("check")
    assert (outcome.code, outcome.out) == (3, f"{LOCK}: unverified\n  unverified: {missing}  [unverified]\n")
    changes = project.run("check", "--changes")
    assert changes.code == 3
    assert changes.out.splitlines()[1:4] == [
        f"  unverified: {missing}  [unverified]",
        "  solving again would change nothing",
        "  solving again with --upgrade would change nothing",
    ]


def test_a_version_the_gpu_does_not_run_is_not_taken_with_what_brings_it(project: Project) -> None:
    for version in ("9.10.2.21", "9.99.0.1"):
        project.index.add_wheel("nvidia-cudnn-cu12", version, tag=TAG)
    project.write(HOST.replace("open", "proprietary").replace("9.0", "7.0"), name="new.yaml")
    project.spec("['jax[cuda12]']", *LINES)
    assert stack(project) == {"jax": "0.8.3", "cudnn": "9.10.2.21", "nccl": "2.32.3"}
    assert "9.10.2.21" in project.read(LOCK)
    assert project.run("check", "--changes").out.splitlines()[:3] == [
        f"{LOCK}: yes",
        "  solving again would change nothing",
        "  solving again with --upgrade would change nothing",
    ]


def test_a_version_that_is_asked_for_and_the_gpu_does_not_run_is_a_conflict(project: Project) -> None:
    project.write(HOST.replace("open", "proprietary").replace("9.0", "7.0"), name="new.yaml")
    project.index.add_wheel("nvidia-cudnn-cu12", "9.10.2.21", tag=TAG)
    project.spec("['jax[cuda12]', 'nvidia-cudnn-cu12==9.28.0.42']", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 1
    assert outcome.err.splitlines()[1:] == [
        "  you require nvidia-cudnn-cu12==9.28.0.42  (provision.yaml:6)",
        (
            "  nvidia-cudnn-cu12 9.28.0.42 carries cudnn 9.28.0.42, which needs gpu >=7.5: cuDNN 9.11 dropped Maxwell, Pascal "
            "and Volta, in its build for CUDA 12 too  (rule cudnn-9.11-gpu-floor, matrices/cudnn_legacy.yaml:202)"
        ),
        "  the host has gpu 7.0  (new.yaml:3)",
        "  so no nvidia-cudnn-cu12==9.28.0.42 is left for this host",
        "",
        (
            "hint: nvidia-cudnn-cu12 9.10.2.21 instead of `nvidia-cudnn-cu12==9.28.0.42` would do: gives jax 0.8.3, "
            "jax[cuda12] 0.8.3, nvidia-cudnn-cu12 9.10.2.21, python 3.12"
        ),
        (
            "hint: a GPU of compute capability 7.5 (such as Tesla T10) instead of 7.0 would do: gives jax 0.8.3, jax[cuda12] "
            "0.8.3, nvidia-cudnn-cu12 9.28.0.42, python 3.12"
        ),
    ]


def test_a_version_that_a_rule_forbids_beside_the_framework_is_a_conflict_and_never_written(project: Project) -> None:
    project.index.add_wheel("jax", "0.8.2", extras=["cuda12"], requires=["plugin==0.8.2; extra == 'cuda12'"])
    project.index.add_wheel("plugin", "0.8.2", requires=["nvidia-cudnn-cu12<10,>=9.1"])
    project.index.add_wheel("nvidia-cudnn-cu12", "9.5.1.17", tag=TAG)
    project.spec("['jax[cuda12]==0.8.2']", "constraints: [nvidia-cudnn-cu12<9.8]", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 1, outcome.out
    assert outcome.err.splitlines()[1:] == [
        "  you constrain nvidia-cudnn-cu12<9.8  (provision.yaml:7)",
        "  you require jax[cuda12]==0.8.2  (provision.yaml:6)",
        "  jax[cuda12] 0.8.2 needs plugin==0.8.2  (metadata of jax[cuda12] 0.8.2)",
        "  plugin 0.8.2 needs nvidia-cudnn-cu12<10,>=9.1  (metadata of plugin 0.8.2)",
        "  nvidia-cudnn-cu12 9.5.1.17 carries cudnn 9.5.1.17  (matrices/cudnn.yaml)",
        "  jax 0.8.2 needs cudnn >=9.8,<10.0  (matrices/jax.yaml:1186)",
        "  so no jax[cuda12]==0.8.2 is left",
        "",
        (
            "hint: leaving out the constraint `nvidia-cudnn-cu12<9.8` would do: gives cuda 12.9.2, jax 0.8.2, jax[cuda12] "
            "0.8.2, python 3.12"
        ),
    ]
    project.spec("['jax[cuda12]==0.8.2']", *LINES)
    assert stack(project)["cudnn"] == "9.28.0.42"


def test_a_library_without_a_framework_needs_its_gpu_and_its_driver_all_the_same(project: Project) -> None:
    project.write(HOST.replace("open", "proprietary").replace("9.0", "7.0"), name="new.yaml")
    project.index.add_wheel("runtime", "1", requires=["nvidia-cudnn-cu12~=9.0"])
    project.spec("[runtime]", *LINES)
    outcome = project.run("solve")
    assert outcome.code == 0, outcome.err
    assert 'version = "9.9.0.52"' in project.read(LOCK)
    assert project.run("check").out == f"{LOCK}: yes\n"
    assert project.run("explain", "nvidia-cudnn-cu12").out.splitlines() == [
        "nvidia-cudnn-cu12 9.9.0.52 is chosen",
        "  runtime 1 needs nvidia-cudnn-cu12~=9.0  (metadata of runtime 1)",
        "not nvidia-cudnn-cu12 9.28.0.42: gpu 7.0 excludes it",
        (
            "  nvidia-cudnn-cu12 9.28.0.42 carries cudnn 9.28.0.42, which needs gpu >=7.5: cuDNN 9.11 dropped Maxwell, Pascal "
            "and Volta, in its build for CUDA 12 too  (rule cudnn-9.11-gpu-floor, matrices/cudnn_legacy.yaml:202)"
        ),
        "  the host has gpu 7.0  (new.yaml:3)",
        "  so nvidia-cudnn-cu12 9.28.0.42 cannot be chosen for this host",
        (
            "hint: a GPU of compute capability 7.5 (such as Tesla T10) instead of 7.0 would do: gives python 3.12, runtime 1 "
            "(unverified)"
        ),
    ]


@pytest.mark.parametrize("version", ["9.10.2.21", "9.99.0.1"])
def test_an_override_of_what_pytorch_pins_is_the_version_of_the_component(project: Project, version: str) -> None:
    project.index.add_wheel("torch", "2.7.1", tag="cp312-cp312-manylinux_2_28_x86_64", requires=["nvidia-cudnn-cu12==9.5.1.17"])
    for other in ("9.5.1.17", "9.10.2.21", "9.99.0.1"):
        project.index.add_wheel("nvidia-cudnn-cu12", other, tag=TAG)
    project.spec("[torch]", 'requires: {pytorch: "==2.7.1+cu126"}', f"overrides: [nvidia-cudnn-cu12=={version}]", *LINES)
    outcome = project.run("solve", "--format", "json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["stack"]["cudnn"] == version
    missing = [f"cudnn: nvidia-cudnn-cu12 9.99.0.1 {UNLISTED}"] if version == "9.99.0.1" else []
    assert outcome.json["unverified"] == missing
    checked = project.run("check", "--changes")
    assert checked.code == (3 if missing else 0)
    assert checked.out.splitlines()[1 + len(missing) : 3 + len(missing)] == [
        "  solving again would change nothing",
        "  solving again with --upgrade would change nothing",
    ]


@pytest.mark.slow
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
    assert lines[-1] == f"not cudnn 9.28.1.4: {carried}"
