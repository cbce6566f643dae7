"""`provision solve` for a host that states no platform: a GPU on one module with an Arm CPU, the system, the kernel show it."""

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
    assert "NVIDIA GB200 shows that it is linux/arm64  (target.host)" in found.err


def test_that_an_inventory_states_a_platform_is_told_only_where_it_does(project: Project) -> None:
    project.write("name,driver.version,gpus\nnode1,580.95.05,GB200\n", name="nodes.csv")
    project.write("name: trainer\ntarget: {platform: linux/amd64, host: 'nodes.csv#node1'}\nrequires: {cuda: '*'}\n")
    found = project.run("solve", "--stack-only")
    assert found.code == 2
    assert "NVIDIA GB200 shows that it is linux/arm64  (nodes.csv#node1)" in found.err
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


@pytest.mark.parametrize(
    ("facts", "platform"),
    [
        ("os: {id: macos, version: 10.13.6}", "macos/x86_64"),
        ("os: {id: macos, version: '14.5'}, gpus: [{name: AMD Radeon Pro 5500M, gfx: gfx1012}]", "macos/x86_64"),
        ("driver: {kind: webdriver, version: 387.10.10.10.40.140}, gpus: [{name: GeForce GTX 1080 Ti}]", "macos/x86_64"),
        ("kernel: 5.14.0-503.el9.aarch64, gpus: []", "linux/arm64"),
        ("kernel: 6.1.0-40-cloud-arm64, gpus: []", "linux/arm64"),
        ("kernel: 6.1.0-40-amd64, gpus: []", "linux/amd64"),
    ],
)
def test_the_system_and_the_kernel_show_the_platform(project: Project, facts: str, platform: str) -> None:
    project.write(f"name: trainer\ntarget: {{host: {{{facts}}}}}\nrequires: {{python: '*'}}\n")
    found = project.run("solve", "--stack-only", "--format", "json")
    assert json.loads(found.out)["stack"]["platform"] == platform, found.err


@pytest.mark.parametrize(
    ("facts", "has", "hint"),
    [
        ("os: {id: macos, version: '14.5'}", "has macos", "set target.platform to macos/x86_64 or macos/arm64"),
        ("os: {id: windows, version: '11'}, gpus: [{name: RTX 4090}]", "is windows", "describe the Linux in its WSL 2"),
        ("os: {id: freebsd, version: '14.1'}, gpus: [{name: RTX 4090}]", "has freebsd", "locks are for Linux and macOS"),
    ],
)
def test_a_system_that_is_not_that_of_the_platform_is_refused(project: Project, facts: str, has: str, hint: str) -> None:
    project.write(f"name: trainer\ntarget: {{host: {{{facts}}}}}\nrequires: {{cuda: '*'}}\n")
    found = project.run("solve", "--stack-only")
    assert found.code == 2
    assert f"host `target.host` {has}, but the spec locks linux/amd64" in found.err
    assert hint in found.err


def test_nodes_of_windows_are_served_by_no_stack(project: Project) -> None:
    info = {"architecture": "amd64", "operatingSystem": "windows", "osImage": "Windows Server 2022 Datacenter"}
    nodes = [
        {"kind": "Node", "metadata": {"name": "w", "labels": {"kubernetes.io/os": "windows"}}, "status": {"nodeInfo": info}},
        {"kind": "Node", "metadata": {"name": "l", "labels": {}}, "status": {"nodeInfo": info | {"operatingSystem": "linux"}}},
    ]
    project.write("name: trainer\nrequires: {python: '*'}\n")
    (project.folder / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))
    found = project.run("fleet", "--hosts", "nodes.json")
    assert found.code == 1
    assert "no stack for 1 host: w" in found.out
    assert "the host has platform windows  (nodes.json: items[0])" in found.out


def test_a_plan_is_not_made_for_a_host_of_another_system(project: Project) -> None:
    """A Mac of an inventory, which states no platform, got a plan for linux/amd64."""
    project.write("name: trainer\nrequires: {python: '*'}\n")
    project.write("m1 provision_os='macos 14.5'\n", name="inventory.ini")
    found = project.run("plan", "--hosts", "inventory.ini", "--to", "python>=3.12")
    assert found.code == 2
    assert "host `m1` is macos, but the spec is for linux/amd64" in found.err
