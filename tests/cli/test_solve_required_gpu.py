"""`requires: {gpu: …}`: the GPU of a host that states none, and what other hosts are held to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.project import Project


def told(project: Project, spec: str) -> dict[str, Any]:
    project.write(spec)
    return dict(json.loads(project.run("solve", "--stack-only", "--dry-run", "--format", "json").out))


def test_a_required_gpu_is_that_of_a_host_which_states_none(project: Project) -> None:
    """A Volta was given PyTorch for CUDA 13, which has no code for it, and AMD's GPU a PyTorch for CUDA."""
    found = told(project, "name: trainer\nrequires: {pytorch: '>=2.6', gpu: '7.0'}\n")
    assert (found["verdict"], found["stack"]["gpu"], found["stack"]["pytorch_build"]) == ("yes", "7.0", "cu126")
    found = told(project, "name: trainer\nrequires: {pytorch: '>=2.6', gpu: gfx942}\n")
    assert found["stack"]["gpu"] == "gfx942"
    assert found["stack"]["pytorch_build"].startswith("rocm")


def test_a_range_of_gpus_with_an_end_is_decided_for_all_gpus_in_it(project: Project) -> None:
    """A Kepler alone was *unverified* with a PyTorch that has no code for any of them, and so was Ampere, which runs it."""
    found = told(project, "name: trainer\nrequires: {pytorch: '==2.14.1+cu130', gpu: '>=8.0,<9'}\n")
    assert (found["verdict"], found["stack"]["gpu"]) == ("yes", "8.0, 8.6, 8.9")
    found = told(project, "name: trainer\nrequires: {pytorch: '==2.14.1+cu130', gpu: '>=3.0,<3.6'}\n")
    assert found["status"] == "no-stack"


def test_a_range_of_gpus_of_which_one_runs_nothing_of_it_is_a_no_for_that_gpu(project: Project) -> None:
    found = told(project, "name: trainer\nrequires: {pytorch: '==2.14.1+cu130', gpu: '7.*'}\n")
    members = [(one["component"], one["kind"], one["where"]) for one in found["conflict"]["members"]]
    assert members[0] == ("pytorch", "request", "provision.yaml:2")
    assert members[-1] == ("gpu", "fact", "provision.yaml:2")
    changed = [{change["component"]: change["change"] for change in hint["changes"]} for hint in found["conflict"]["hints"]]
    assert {"pytorch": "==2.14.1+cu126"} in changed


def test_a_range_that_newer_gpus_may_be_in_names_none(project: Project) -> None:
    found = told(project, "name: trainer\nrequires: {pytorch: '>=2.6', gpu: '>=8.0'}\n")
    assert (found["verdict"], "gpu" in found["stack"]) == ("unverified", False)
    assert [text.partition(":")[0] for text in found["unverified"]] == ["gpu"]


def test_a_required_gpu_that_a_host_lacks_is_a_no_with_both_lines(project: Project) -> None:
    found = told(
        project,
        "name: trainer\ntarget: {host: {driver: {version: 580.95.05}, gpus: [{name: H100}]}}\n"
        "requires: {pytorch: '>=2.6', gpu: '8.0'}\n",
    )
    members = [(one["component"], one["kind"], one["where"]) for one in found["conflict"]["members"]]
    assert members == [("gpu", "request", "provision.yaml:3"), ("gpu", "fact", "provision.yaml:2")]
