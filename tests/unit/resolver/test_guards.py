"""Guards of rules: which facts of a host and of the request they see, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.matrix.model import Gpu
from provisioner.resolver.rules.guards import Guards
from tests import small

MATRIX = small.matrix(
    ("driver", "kernel", "os", "secure_boot", "gpu", "python_arch"),
    {},
    gpus=(
        Gpu(name="T4", compute_capability="7.5", kind="datacenter"),
        Gpu(name="RTX 4090", compute_capability="8.9", kind="geforce"),
        Gpu(name="RX 6700", compute_capability="", gfx="gfx1031", kind="radeon"),
    ),
)


def judged(guards: dict[str, Any], facts: dict[str, Any], **spec: Any) -> str:  # noqa: ANN401 - any key of a spec
    request = small.request({}, facts, **spec)
    needs = small.rule("r", {"driver": "*"}, {"kernel": "*"}, on=guards).guards
    found = Guards(MATRIX, request)
    target = request.hosts[0]
    return "yes" if found.hold(needs, target) else found.unknown(needs, target) or "no"


@pytest.mark.parametrize(
    ("guards", "facts", "expected"),
    [
        ({}, {}, "yes"),
        ({"driver": "none"}, {}, "yes"),
        ({"driver": "none"}, {"driver": {"version": "535.1"}}, "no"),
        ({"driver": ">=535"}, {"driver": {"version": "535.1"}}, "yes"),
        ({"driver": ">=550"}, {"driver": {"version": "535.1"}}, "no"),
        ({"driver": ">=550"}, {}, "driver"),
        ({"os": "ubuntu"}, {"os": {"id": "ubuntu", "version": "22.04"}}, "yes"),
        ({"os": "ubuntu 22.04"}, {"os": {"id": "ubuntu", "version": "22.04"}}, "yes"),
        ({"os": "ubuntu 24.04"}, {"os": {"id": "ubuntu", "version": "22.04"}}, "no"),
        ({"os": ["rhel 8", "rhel 9"]}, {"os": {"id": "rhel", "version": "9.4"}}, "yes"),
        ({"os": "rhel 9"}, {"os": {"id": "rhel", "version": "90"}}, "no"),
        ({"os": "ubuntu"}, {}, "os"),
        ({"secure_boot": "enforced"}, {"secure_boot": {"enabled": True, "mok_enrolled": False}}, "yes"),
        ({"gpu": ">=8.0"}, {"gpus": [{"name": "T4"}, {"name": "RTX 4090"}]}, "yes"),
        ({"gpu": ">=9.0"}, {"gpus": [{"name": "T4"}, {"name": "RTX 4090"}]}, "no"),
        ({"gpu": ">=7.0"}, {"gpus": [{"name": "RX 6700"}]}, "no"),
        ({"gpu_kind": "geforce"}, {"gpus": [{"name": "T4"}, {"name": "RTX 4090"}]}, "yes"),
        ({"gpu_kind": "datacenter"}, {"gpus": [{"name": "RTX 4090"}]}, "no"),
        ({"gpu_kind": "geforce"}, {"gpus": [{"compute_capability": "8.9"}]}, "gpu_kind"),
        ({"gpu_kind": "geforce"}, {}, "gpu_kind"),
        ({"platform": "linux/amd64"}, {}, "yes"),
        ({"platform": "linux/arm64", "driver": ">=550"}, {}, "no"),
        ({"runs": "container"}, {}, "yes"),
        ({"build": "none"}, {}, "yes"),
        ({"accelerator": ["cuda", "rocm"]}, {}, "yes"),
    ],
)
def test_a_guard_is_judged_by_facts(guards: dict[str, Any], facts: dict[str, Any], expected: str) -> None:
    assert judged(guards, facts) == expected


def test_virtualization_none_is_a_value_and_not_a_missing_fact() -> None:
    guards = {"virtualization": "none"}
    assert judged(guards, {"virtualization": "none"}) == "yes"
    assert judged(guards, {"virtualization": "wsl2"}) == "no"
    assert judged(guards, {}) == "virtualization"


def test_only_wsl_runs_kernels_of_microsofts_and_only_linux_has_flavours_of_the_module() -> None:
    wsl2, kernel = {"virtualization": "wsl2"}, "5.15.153.1-microsoft-standard-WSL2"
    assert judged(wsl2, {}) == "virtualization"
    assert judged(wsl2, {"kernel": kernel}) == "yes"
    assert judged({"virtualization": "wsl1"}, {"kernel": "4.4.0-19041-Microsoft"}) == "yes"
    assert judged(wsl2, {"kernel": "6.8.0-45-generic"}) == "no"
    assert judged(wsl2, {"driver": {"module": "open"}}) == "no"
    assert judged({"virtualization": ["vm", "container"]}, {"kernel": "6.8.0-45-generic"}) == "virtualization"
    assert judged(wsl2, {"kernel": kernel, "virtualization": "none"}) == "no", "what is stated holds"


def test_a_driver_that_is_there_without_a_version_is_not_absent() -> None:
    assert judged({"driver": "none"}, {"driver": {"kind": "nvidia"}}) == "no"
    assert judged({"driver": "none"}, {"driver": {"kind": "amdgpu"}}) == "yes"
    assert judged({"driver": ">=550"}, {"driver": {"kind": "nvidia"}}) == "driver"


def test_an_interpreter_nobody_stated_is_the_machines_but_on_apple_silicon() -> None:
    intel = {"python_arch": "x86_64"}
    assert judged(intel, {}) == "yes"
    assert judged(intel, {}, platform="linux/arm64") == "no"
    assert judged(intel, {}, platform="macos/arm64") == "python_arch"
    assert judged(intel, {"python_arch": "x86_64"}, platform="macos/arm64") == "yes"


def test_what_is_built_is_part_of_the_request() -> None:
    assert judged({"build": ["extension", "pytorch"]}, {}, build={"kind": "extension"}) == "yes"
    assert judged({"build": "none"}, {}, build={"kind": "extension"}) == "no"
