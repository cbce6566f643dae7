"""The actions of single moves, with what the shipped matrix knows of distributions and branches."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from msgspec import convert

from provisioner.grounds.step import UsePackage
from provisioner.host.model import Host
from provisioner.matrix.cache import cached_matrix
from provisioner.plan.actions import ActionFinder, support_of
from provisioner.plan.machine import Machine, machines_of
from provisioner.request import TargetHost
from provisioner.resolver.rules.lifecycle import policy_day
from provisioner.words.step import action_words, detail_words, undo_words

TODAY = date(2026, 11, 21)
FACTS = {"os": "ubuntu 22.04", "kernel": "5.15.0-105-generic", "driver": "535.104.05", "driver_module": "open"}


WITH_FOLLOWERS = (
    "install driver 580.95.05 with the open kernel modules in place of 535.104.05 (open), "
    "and user-mode driver libraries and Fabric Manager of the same version"
)
NOUVEAU = "keep nouveau off the GPU: blacklist it, rebuild the initramfs and reboot"


def actions(**facts: Any) -> ActionFinder:  # noqa: ANN401 - any fact of a profile
    host = convert({"gpus": ({"compute_capability": "8.0"},), **facts}, Host)
    (machine,) = machines_of([TargetHost(label="node", host=host)], [1])
    assert isinstance(machine, Machine)
    return ActionFinder(cached_matrix(None), machine, today=TODAY)


@pytest.mark.parametrize(
    ("move", "before", "after", "text"),
    [
        ("kernel", {}, {"kernel": "6.8"}, "boot a kernel of the 6.8 series in place of 5.15.0-105-generic"),
        ("kernel", {}, {"kernel": "6.8.0-45-generic"}, "boot kernel 6.8.0-45-generic in place of 5.15.0-105-generic"),
        (
            "driver",
            {},
            {"driver": "580.95.05"},
            "install driver 580.95.05 with the open kernel modules in place of 535.104.05 (open)",
        ),
        (
            "driver",
            {},
            {"driver_module": "proprietary"},
            "install the proprietary kernel modules of driver 535.104.05 in place of the open ones",
        ),
        (
            "driver",
            {"userspace_driver": "535.104.05", "fabric_manager": "535.104.05"},
            {"driver": "580.95.05", "userspace_driver": "580.95.05", "fabric_manager": "580.95.05"},
            WITH_FOLLOWERS,
        ),
        (
            "container_toolkit",
            {"container_toolkit": "none"},
            {"container_toolkit": "1.19.1"},
            "install NVIDIA Container Toolkit 1.19.1",
        ),
        (
            "container_toolkit",
            {"container_toolkit": "1.17.4"},
            {"container_toolkit": "1.19.1"},
            "install NVIDIA Container Toolkit 1.19.1 in place of 1.17.4",
        ),
        ("os", {}, {"os": "ubuntu 24.04"}, "upgrade ubuntu 22.04 to ubuntu 24.04"),
        ("loaded_modules", {"loaded_modules": "nouveau"}, {"loaded_modules": "free"}, NOUVEAU),
        ("fabric_manager", {"fabric_manager": "1.0"}, {"fabric_manager": "2.0"}, "install Fabric Manager 2.0 in place of 1.0"),
    ],
)
def test_what_to_do(move: str, before: dict[str, str], after: dict[str, str], text: str) -> None:
    old = {**FACTS, **before}
    assert action_words(actions().find(move, old, {**old, **after}).action) == text


def test_a_driver_comes_with_its_branch_its_packages_and_a_way_back() -> None:
    found = actions().find("driver", FACTS, {**FACTS, "driver": "580.95.05"})
    assert found.action.change == ("driver", "535.104.05", "580.95.05")
    assert found.undo is not None
    no_dkms, dkms = "nvidia-headless-no-dkms-580-open", "dkms, signed by this host, needs linux-headers-$(uname -r)"
    assert (*map(detail_words, found.details), undo_words(found.undo)) == (
        "branch 580: a Long Term Support Branch, supported until 2028-06",
        f"as `linux-modules-nvidia-580-open-generic-5.15` (precompiled, signed), with {no_dkms}, nvidia-utils-580",
        f"as `nvidia-driver-580 with DKMS` ({dkms}): nvidia-headless-580-open, nvidia-utils-580",
        "as `nvidia-open of NVIDIA's repository` (dkms, signed by this host, needs linux-headers-$(uname -r))",
        "`provision inspect` must then report driver 580.95.05, module open",
        "undo: install driver 535.104.05 (open) again",
    )


def test_secure_boot_without_a_key_leaves_only_what_is_signed_already() -> None:
    facts = {**FACTS, "secure_boot": "enforced"}
    details = actions().find("driver", facts, {**facts, "driver": "580.95.05"}).details
    packages = [detail for detail in details if isinstance(detail, UsePackage)]
    assert not any(package.is_signed is False for package in packages)
    assert "linux-modules-nvidia-580-open-generic-5.15" in [package.name for package in packages if package.is_signed]


def test_a_flavour_is_not_guessed_where_the_gpus_are_unknown() -> None:
    found = actions(gpus=None).find("driver", {}, {"driver": "580.95.05", "driver_module": "open"})
    assert action_words(found.action) == "install driver 580.95.05 with the kernel modules that its GPUs call for"
    assert detail_words(found.details[-1]) == "`provision inspect` must then report driver 580.95.05"


def test_on_wsl_the_driver_is_windows_own() -> None:
    action = actions(virtualization="wsl2").find("driver", {}, {"driver": "580.95.05"}).action
    assert action_words(action) == "install a driver of branch 580 on Windows; inside WSL no driver is installed"
    assert action.change.after == "580"


def test_the_life_of_a_branch() -> None:
    matrix = cached_matrix(None)
    branches = {name: matrix.branch_of(f"{name}.1") for name in ("580", "535", "455", "999")}
    assert branches["999"] is None
    found = [support_of(branch, TODAY) for branch in branches.values() if branch is not None]
    assert [(support.branch, support.end, support.is_over) for support in found] == [
        ("580", "2028-06", False),
        ("535", "2026-06", True),
        ("455", "", False),
    ]


def test_a_branch_lives_to_the_end_of_the_month_that_is_named() -> None:
    branch = cached_matrix(None).branch_of("535.1")
    assert branch is not None
    assert detail_words(support_of(branch, date(2026, 6, 30))).endswith("supported until 2026-06")
    assert detail_words(support_of(branch, date(2026, 7, 1))).endswith("ended 2026-06")


@pytest.mark.parametrize("day", ["20260901", "2026-09-01", "2026-09-01T12:00:00Z"])
def test_support_is_judged_on_the_day_however_it_is_written(day: str) -> None:
    matrix = cached_matrix(None)
    branch = matrix.branch_of("590.48.01")
    assert branch is not None
    support = support_of(branch, policy_day(matrix, day))
    assert (support.end, support.is_over) == ("2026-12-22", False)
