"""`provision solve` for a GPU on one module with an Arm CPU: its name shows the platform, which nobody has to state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project


@pytest.mark.parametrize(
    "facts",
    [
        "driver: {version: '580.95.05', module: open}, gpus: [{name: GH200}]",
        "driver: {version: '580.95.05', module: open}, gpus: [{compute_capability: '12.1'}]",
        "driver: {version: '580.95.05', module: open}, gpus: [{name: GH200}, {name: H100 PCIe}]",
        "jetson: {l4t: '36.4.3'}",
    ],
)
def test_its_platform_is_that_of_the_module(project: Project, facts: str) -> None:
    project.write(f"name: trainer\ntarget: {{host: {{{facts}}}}}\nrequires: {{cuda: '*'}}\n")
    found = project.run("solve", "--stack-only", "--format", "json")
    assert found.code in {0, 3}, found.err
    assert json.loads(found.out)["stack"]["platform"] == "linux/arm64"


def test_an_image_of_another_platform_is_refused_with_what_shows_it(project: Project) -> None:
    project.write("name: trainer\ntarget: {platform: linux/amd64, host: {gpus: [{name: GB200}]}}\nrequires: {cuda: '*'}\n")
    found = project.run("solve", "--stack-only")
    assert found.code == 2
    assert "NVIDIA GB200 is on one module with a CPU of linux/arm64  (target.host)" in found.err


def test_that_an_inventory_states_a_platform_is_told_only_where_it_does(project: Project) -> None:
    project.write("name,driver.version,gpus\nnode1,580.95.05,GB200\n", name="nodes.csv")
    project.write("name: trainer\ntarget: {platform: linux/amd64, host: 'nodes.csv#node1'}\nrequires: {cuda: '*'}\n")
    found = project.run("solve", "--stack-only")
    assert found.code == 2
    assert "NVIDIA GB200 is on one module with a CPU of linux/arm64  (nodes.csv#node1)" in found.err
    project.write("name,platform,driver.version,gpus\nnode1,linux/arm64,580.95.05,L4\n", name="nodes.csv")
    found = project.run("solve", "--stack-only")
    assert found.code == 2
    assert "platform: linux/arm64  (nodes.csv#node1)" in found.err


def test_a_gpu_that_there_is_as_a_board_too_shows_no_platform(project: Project) -> None:
    """Compute capability 9.0 is that of the H100 and of the GH200."""
    project.write(
        "name: trainer\ntarget: {host: {driver: {version: '580.95.05', module: open}, gpus: [{compute_capability: '9.0'}]}}\n"
        "requires: {cuda: '*'}\n"
    )
    found = project.run("solve", "--stack-only", "--format", "json")
    assert json.loads(found.out)["stack"]["platform"] == "linux/amd64"
