"""`provision solve` for a host whose driver is of another vendor than its GPUs, or leaves its vendor to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.project import Project


@pytest.mark.parametrize("gpu", ["name: MI250X", "gfx: gfx90a"])
def test_a_driver_without_a_kind_is_that_of_the_gpus(project: Project, gpu: str) -> None:
    """AMD's driver 6.3 has ROCm up to 7.0: taken for none of AMD's, it was a yes with ROCm 7.14."""
    host = f"{{os: {{id: ubuntu, version: '22.04'}}, driver: {{version: '6.3.4'}}, gpus: [{{{gpu}}}]}}"
    project.write(f"name: trainer\ntarget: {{host: {host}}}\nrequires: {{pytorch: '*'}}\n")
    stack = json.loads(project.run("solve", "--stack-only", "--format", "json").out)["stack"]
    assert stack["amdgpu"] == "6.3.4"
    assert stack["rocm"].startswith("7.0.")


def test_a_driver_of_another_vendor_runs_no_gpu(project: Project) -> None:
    project.write(
        "name: trainer\ntarget: {host: {driver: {kind: amdgpu, version: '6.3.4'}, gpus: [{name: A100}]}}\n"
        "requires: {pytorch: '*'}\n"
    )
    found = project.run("solve", "--stack-only")
    assert "once driver " in found.out.splitlines()[0]
    assert "is installed" in found.out.splitlines()[0]
