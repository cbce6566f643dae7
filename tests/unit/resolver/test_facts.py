"""What a host profile says about virtual components, and when it matters."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.json import decode

from provisioner.host.model import Host
from provisioner.resolver.rules.facts import FACTS, binds, is_chosen, shown, stated
from tests import small


def host(**facts: Any) -> Host:  # noqa: ANN401 - any key of a profile
    return decode(json.dumps(facts), type=Host)


@pytest.mark.parametrize(
    ("component", "facts", "expected"),
    [
        ("driver", {"driver": {"version": "535.104.05"}}, "535.104.05"),
        ("driver", {"driver": {"version": "6.10.5", "kind": "amdgpu"}}, None),
        ("amdgpu", {"driver": {"version": "6.10.5", "kind": "amdgpu"}}, "6.10.5"),
        ("webdriver", {"driver": {"version": "387.10.10.10.40.105", "kind": "webdriver"}}, "387.10.10.10.40.105"),
        ("driver_module", {"driver": {"module": "open"}}, "open"),
        ("secure_boot", {"secure_boot": {"enabled": False}}, "disabled"),
        ("secure_boot", {"secure_boot": {"enabled": True, "mok_enrolled": True}}, "enrolled"),
        ("secure_boot", {"secure_boot": {"enabled": True, "mok_enrolled": False}}, "enforced"),
        ("secure_boot", {"secure_boot": {"enabled": True}}, None),
        ("loaded_modules", {"loaded_modules": ["ext4", "nouveau"]}, "nouveau"),
        ("loaded_modules", {"loaded_modules": ["vfio_pci"]}, "vfio-pci"),
        ("loaded_modules", {"loaded_modules": []}, "free"),
        ("loaded_modules", {}, None),
        ("kernel_headers", {"kernel_headers": "none"}, "none"),
        ("os", {"os": {"id": "ubuntu", "version": "22.04"}}, "ubuntu 22.04"),
        ("os", {"os": {"id": "arch"}}, "arch"),
        ("os", {"os": {"id": "macos", "version": "10.13.6"}}, None),
        ("macos", {"os": {"id": "macos", "version": "10.13.6", "build": "17G65"}}, "10.13.6+17G65"),
        ("macos", {"os": {"id": "macos", "version": "10.13.6"}}, "10.13.6"),
        ("macos", {"os": {"id": "ubuntu", "version": "22.04"}}, None),
        ("jetson", {"jetson": {"l4t": "36.4.3"}}, "36.4.3"),
        ("python_arch", {"python_arch": "aarch64"}, "arm64"),
    ],
)
def test_a_fact_is_read_from_its_key(component: str, facts: dict[str, Any], expected: str | None) -> None:
    assert stated(host(**facts), component) == expected


def test_a_host_that_says_nothing_states_nothing() -> None:
    assert {name: stated(Host(), name) for name in FACTS} == dict.fromkeys(FACTS)


def test_in_a_container_the_image_brings_libraries_and_compilers_but_never_the_kernel_side() -> None:
    inside, outside = small.request({}, {}, runs="container"), small.request({}, {}, runs="host")
    assert {name for name in FACTS if binds(name, outside) and not binds(name, inside)} == {"glibc", "gcc", "python_arch"}
    assert binds("kernel", inside)
    assert binds("driver", inside)


def test_each_accelerator_has_its_own_drivers() -> None:
    drivers = ("driver", "amdgpu", "webdriver", "cuda_driver")
    requests = {
        "cuda": small.request({}, {}, accelerator="cuda"),
        "rocm": small.request({}, {}, accelerator="rocm"),
        "cpu": small.request({}, {}, accelerator="cpu"),
        "mac": small.request({}, {}, accelerator="cuda", platform="macos/x86_64"),
    }
    assert {name: [one for one in drivers if is_chosen(one, request)] for name, request in requests.items()} == {
        "cuda": ["driver"],
        "rocm": ["amdgpu"],
        "cpu": [],
        "mac": ["webdriver", "cuda_driver"],
    }


def test_compilers_are_chosen_only_where_something_is_compiled() -> None:
    plain = small.request({}, {}, runs="host")
    building = small.request({}, {}, runs="host", build={"kind": "extension"})
    with_clang = small.request({"clang": ">=15"}, {}, runs="host", build={"kind": "extension"})
    assert [name for name in ("nvcc", "gcc", "clang") if is_chosen(name, plain)] == []
    assert [name for name in ("nvcc", "gcc", "clang") if is_chosen(name, building)] == ["nvcc", "gcc"]
    assert not binds("gcc", with_clang), "who compiles with Clang is not bound by GCC"


def test_drivers_of_other_gpus_are_not_shown() -> None:
    machine = host(driver={"version": "535.104.05"}, kernel="6.8", gcc="13.2")
    assert dict(shown(machine, small.request({}, {}, accelerator="cpu"))) == {"kernel": "6.8"}
    assert dict(shown(machine, small.request({}, {}, runs="host"))) == {"driver": "535.104.05", "kernel": "6.8", "gcc": "13.2"}
