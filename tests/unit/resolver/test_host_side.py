"""Facts of hosts against rules: versions that must be the same, what is missing, what nobody stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provisioner.matrix.model import Gpu
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.words.conflict import member_words
from provisioner.words.notation import sources_words
from tests import small
from tests.told import assumed, changes, unverified

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.stack import Stack

ORDER = ("pytorch", "cuda", "fabric_manager", "driver", "driver_module", "secure_boot", "kernel_headers", "os", "kernel", "gpu")
RULES = (
    small.rule("fabric-manager-is-of-its-driver", {"fabric_manager": "*"}, {"driver": "same"}),
    small.rule("headers-are-of-the-kernel", {"kernel_headers": "*"}, {"kernel": "same"}),
    small.rule("a-new-driver-needs-headers", {"driver": "*"}, {"kernel_headers": ">=2"}, on={"driver": "none"}),
    small.rule(
        "a-new-driver-must-be-signed", {"driver": "*"}, {"secure_boot": ["disabled", "enrolled"]}, on={"driver": "none"}
    ),
    small.rule("geforce-is-not-for-580", {"driver": ">=580"}, {"kernel": "<6"}, on={"gpu_kind": "geforce"}),
    small.rule("580-on-rhel", {"driver": ">=580"}, {"os": ["rhel 8", "rhel 9"]}, on={"os": "rhel"}),
)
MATRIX = small.matrix(
    ORDER,
    {
        "driver": {"580.65.06": {"kernel": ">=4,<7"}, "535.104.05": {"kernel": ">=4,<7"}},
        "kernel": {"6.8": {}, "5.15": {}},
        "gpu": {"9.0": {}},
    },
    rules=RULES,
    branches={"535": "12.2", "580": "13.0"},
    releases={
        "pytorch": (small.release("2.0.0", {}, builds=(small.build("cu121", {"cuda": "==12.1.*"}, sass=("sm_90",)),)),),
        "cuda": (small.cuda("12.1.1", "525.60.13", "530.30.02"),),
        "driver_module": small.names("open", "proprietary"),
        "secure_boot": small.names("disabled", "enrolled", "enforced"),
        "os": small.names("ubuntu 22.04", "rhel 9", "rhel 10"),
    },
    gpus=(Gpu(name="H100", architecture="", compute_capability="9.0", kind="datacenter"),),
)
DRIVER = {"version": "580.65.06", "module": "open"}
KERNEL = "6.8.0-45-generic"
UBUNTU = {"id": "ubuntu", "version": "22.04"}


def solved(*hosts: dict[str, Any], **requires: str) -> Stack:
    stated = {"gpus": [{"name": "H100"}], "glibc": "2.35", "container_toolkit": "1.17", "os": UBUNTU}
    facts = ({**stated, **host} for host in hosts)
    return solve_system(join(MATRIX, small.request({"pytorch": ">=2", **requires}, *facts)))


def refused(*hosts: dict[str, Any], **requires: str) -> Conflict:
    with pytest.raises(NoStackError) as caught:
        solved(*hosts, **requires)
    return caught.value.conflict


def wheres(conflict: Conflict) -> list[str]:
    return [sources_words(member.sources).partition(",")[0] for member in conflict.members if member.kind == "rule"]


def test_a_fabric_manager_must_be_of_its_driver() -> None:
    assert not unverified(solved({"driver": DRIVER, "fabric_manager": "580.65.06"}))
    conflict = refused({"driver": DRIVER, "fabric_manager": "580.82.07"})
    assert wheres(conflict) == ["rule fabric-manager-is-of-its-driver"]
    assert sorted(member.component for member in conflict.members) == ["driver", "fabric_manager", "fabric_manager"]


def test_a_driver_to_be_installed_is_of_the_fabric_manager_that_is_there() -> None:
    host = {"fabric_manager": "535.216.01", "kernel": KERNEL, "kernel_headers": KERNEL, "secure_boot": {"enabled": False}}
    assert solved(host).components["driver"] == "535.216.01"


def test_headers_are_compared_as_spelled() -> None:
    host = {"kernel": KERNEL, "secure_boot": {"enabled": False}}
    assert not unverified(solved({**host, "kernel_headers": KERNEL}))
    assert "rule headers-are-of-the-kernel" in wheres(refused({**host, "kernel_headers": "6.8.0-47-generic"}))


def test_missing_headers_stop_a_driver_that_is_still_to_be_installed_only() -> None:
    host = {"kernel": KERNEL, "kernel_headers": "none", "secure_boot": {"enabled": False}}
    conflict = refused(host)
    assert wheres(conflict) == ["rule a-new-driver-needs-headers"]
    assert any(member_words(member) == "the host has no kernel headers" for member in conflict.members)
    assert solved({**host, "driver": DRIVER}).components["kernel_headers"] == "none"


def test_secure_boot_without_a_key_stops_a_new_driver() -> None:
    host = {"kernel": KERNEL, "kernel_headers": KERNEL}
    conflict = refused({**host, "secure_boot": {"enabled": True, "mok_enrolled": False}})
    assert wheres(conflict) == ["rule a-new-driver-must-be-signed"]
    assert [dict(changes(hint)) for hint in conflict.fixes] == [{"secure_boot": "==enrolled"}]
    assert not unverified(solved({**host, "secure_boot": {"enabled": True, "mok_enrolled": True}}))


def test_what_only_a_driver_needs_is_assumed_once_where_nobody_says_whether_one_runs() -> None:
    stack = solved({"kernel": KERNEL})
    headers, boot = assumed(stack)
    assert headers == (
        "kernel_headers: host0 does not state it, and is taken to have what the stack needs, "
        "and rule a-new-driver-needs-headers needs kernel_headers >=2"
    )
    assert boot == (
        "secure_boot: host0 does not state it, and is taken to have what the stack needs, "
        "and rule a-new-driver-must-be-signed needs secure_boot disabled or enrolled"
    )
    assert unverified(stack) == ()


def test_nothing_is_said_about_facts_that_no_rule_of_the_stack_needs() -> None:
    assert unverified(solved({"driver": DRIVER, "kernel": KERNEL})) == ()


def test_a_guard_on_an_unknown_fact_is_unverified_where_it_would_matter() -> None:
    unnamed = [{"compute_capability": "9.0"}]
    host = {"kernel": KERNEL, "kernel_headers": KERNEL, "secure_boot": {"enabled": False}, "gpus": unnamed}
    (text,) = unverified(solved(host))
    assert text.startswith("gpu_kind: host0 does not state it, so whether rule geforce-is-not-for-580 holds is unknown")
    assert unverified(solved({**host, "kernel": "5.15", "kernel_headers": "5.15"})) == (), "the rule holds either way"
    assert unverified(solved({**host, "driver": DRIVER})) == (), "the driver runs on that kernel"


def test_a_rule_binds_the_hosts_its_guard_holds_on() -> None:
    ubuntu = {"driver": DRIVER, "kernel": KERNEL, "os": {"id": "ubuntu", "version": "22.04"}}
    rhel = {**ubuntu, "os": {"id": "rhel", "version": "9.4"}}
    assert solved(ubuntu, rhel).components["os"] == "ubuntu 22.04, rhel 9.4"
    conflict = refused(ubuntu, {**rhel, "os": {"id": "rhel", "version": "10.0"}})
    assert wheres(conflict) == ["rule 580-on-rhel"]


def test_what_the_spec_requires_of_a_host_is_what_the_host_states_even_where_no_gpu_is_used() -> None:
    request = small.request({"driver": ">=535"}, {"driver": {**DRIVER, "version": "535.104.05"}}, accelerator="cpu")
    assert solve_system(join(MATRIX, request)).components["driver"] == "535.104.05"
    too_new = small.request({"driver": ">=580"}, {"driver": {**DRIVER, "version": "535.104.05"}}, accelerator="cpu")
    with pytest.raises(NoStackError) as caught:
        solve_system(join(MATRIX, too_new))
    assert [(member.kind, member_words(member)) for member in caught.value.conflict.members] == [
        ("request", "you require driver >=580"),
        ("fact", "the host has driver 535.104.05"),
    ]


def test_no_driver_of_nvidia_is_installed_for_the_gpus_of_another_vendor() -> None:
    request = small.request({"driver": ">=535"}, {"driver": {"kind": "amdgpu", "version": "6.8.5"}}, accelerator="rocm")
    with pytest.raises(NoStackError) as caught:
        solve_system(join(MATRIX, request))
    assert [(member.kind, member_words(member)) for member in caught.value.conflict.members] == [
        ("request", "you require driver >=535: the matrix has no driver for rocm on linux/amd64")
    ]


def test_what_the_spec_requires_of_a_host_is_chosen_where_the_host_leaves_it_open() -> None:
    assert solved({"driver": DRIVER}, secure_boot="enrolled").components["secure_boot"] == "enrolled"
    conflict = refused({"driver": DRIVER, "secure_boot": {"enabled": False}}, secure_boot="enrolled")
    assert sorted(member.kind for member in conflict.members) == ["fact", "request"]


def test_the_kernel_of_wsl_builds_no_driver() -> None:
    host = {"driver": DRIVER, "kernel": "7.1.0-microsoft-standard-WSL2"}
    assert any(text.startswith("kernel:") for text in assumed(solved({**host, "virtualization": "none"})))
    assert assumed(solved({**host, "virtualization": "wsl2"})) == ()
    assert assumed(solved(host)) == (), "nothing but WSL runs a kernel of Microsoft's"
