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


def test_a_range_of_gpus_names_none(project: Project) -> None:
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
