"""Facts of a machine: what collapses, what may move, what follows, and the profile afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from provisioner.host.model import Host
from provisioner.plan.machine import (
    Machine,
    changeable_components,
    changed_host,
    facts_of,
    machines_of,
    open_host,
    with_installed_together,
)
from provisioner.request import TargetHost
from provisioner.strict_model import plain_data

A100: dict[str, Any] = {
    "platform": "linux/amd64",
    "os": {"id": "ubuntu", "version": "22.04"},
    "kernel": "5.15.0-105-generic",
    "kernel_headers": "5.15.0-105-generic",
    "driver": {"version": "535.104.05", "module": "open"},
    "fabric_manager": "535.104.05",
    "gpus": ({"compute_capability": "8.0"},),
}


def machine(**facts: Any) -> Machine:  # noqa: ANN401 - any fact of a profile
    host = convert({**A100, **facts}, Host)
    (found,) = machines_of([TargetHost(label="node", host=host)], [1])
    return found


def test_hosts_that_state_the_same_are_one_machine() -> None:
    hosts = [convert({**A100, "kernel": kernel}, Host) for kernel in ("5.15.0-105", "6.8.0-45", "5.15.0-105")]
    targets = [TargetHost(label=f"node-{index}", host=host) for index, host in enumerate(hosts)]
    found = machines_of(targets, [1, 10, 100])
    assert [(one.label, one.names, one.count) for one in found] == [
        ("node-0", ("node-0", "node-2"), 101),
        ("node-1", ("node-1",), 10),
    ]


@pytest.mark.parametrize(
    ("facts", "free"),
    [
        ({}, ("kernel", "driver", "driver_module", "container_toolkit")),
        ({"jetson": {"l4t": "36.4.3"}}, ("container_toolkit",)),
        ({"virtualization": "wsl2"}, ("driver", "driver_module", "container_toolkit")),
        (
            {"platform": "macos/x86_64", "os": {"id": "macos"}},
            ("webdriver", "cuda_driver"),
        ),
    ],
)
def test_what_may_be_changed_most_expensive_first(facts: dict[str, Any], free: tuple[str, ...]) -> None:
    assert changeable_components(machine(**facts), "cuda", keep=frozenset(), may_change=frozenset()) == free


def test_what_is_kept_does_not_move_and_the_system_only_when_it_is_named() -> None:
    keep, os = frozenset({"driver"}), frozenset({"os"})
    assert changeable_components(machine(), "cuda", keep=keep, may_change=frozenset()) == ("kernel", "container_toolkit")
    assert changeable_components(machine(), "cuda", keep=keep, may_change=os) == ("os", "kernel", "container_toolkit")


def test_an_open_host_states_nothing_that_may_change() -> None:
    host = open_host(machine(), ("kernel", "driver", "driver_module"))
    assert plain_data(host).keys() <= {"platform", "os", "gpus"}
    assert open_host(machine(), ()) == machine().host


def test_what_goes_with_a_driver_and_a_kernel_moves_with_them() -> None:
    before = machine()
    assert with_installed_together({**before.facts, "driver": "580.95.05"}, before)["fabric_manager"] == "580.95.05"
    assert "userspace_driver" not in with_installed_together({**before.facts, "driver": "580.95.05"}, before)
    assert with_installed_together({**before.facts, "kernel": "6.8"}, before)["kernel_headers"] == "6.8"
    assert with_installed_together(dict(before.facts), before) == before.facts


def test_the_profile_afterwards_states_the_facts_afterwards() -> None:
    before = machine(secure_boot={"enabled": True, "mok_enrolled": False}, loaded_modules=("nouveau", "snd"))
    facts = {
        **before.facts,
        "driver": "580.95.05",
        "driver_module": "proprietary",
        "fabric_manager": "580.95.05",
        "kernel": "6.8",
        "kernel_headers": "6.8",
        "secure_boot": "enrolled",
        "loaded_modules": "free",
        "os": "ubuntu 24.04",
    }
    after = changed_host(before, facts)
    assert facts_of(after) == facts
    assert after.loaded_modules == ("snd",)
    assert changed_host(before, before.facts) is before.host
