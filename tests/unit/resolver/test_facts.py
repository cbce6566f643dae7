"""When a fact of a host matters to a stack, and what is chosen where a host states none."""

from __future__ import annotations

import json
from typing import Any

from msgspec.json import decode

from provisioner.host.model import Host
from provisioner.resolver.rules.facts import FACTS, binds, is_chosen, shown
from tests import small


def host(**facts: Any) -> Host:  # noqa: ANN401 - any key of a profile
    return decode(json.dumps(facts), type=Host)


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
