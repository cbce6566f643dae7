"""Whole fleets on small matrices: what is shared, what is each host's own, and what no stack can do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode

from provisioner.fleet import cover
from provisioner.fleet.covering import cover_fleet
from provisioner.fleet.labels import labels_of
from provisioner.fleet.placing import affinities
from provisioner.fleet.stacks import shared_range
from provisioner.grounds.doubt import Unstated
from provisioner.host.inventory import InventoryHost
from provisioner.host.model import Host
from provisioner.matrix.cache import cached_matrix
from provisioner.request import Request
from provisioner.spec.model import Spec
from provisioner.words.conflict import member_words
from provisioner.words.ground import say
from tests import small
from tests.scheduler import admits
from tests.told import unverified

if TYPE_CHECKING:
    from provisioner.fleet.model import FleetAnswer
    from provisioner.matrix.model import Matrix

GPU = [{"compute_capability": "7.0"}]


def covered(
    matrix: Matrix, requires: dict[str, str], /, *, spec: dict[str, Any] | None = None, **hosts: dict[str, Any]
) -> FleetAnswer:
    """The answer for hosts by name; each has a GPU unless it says otherwise."""
    requested = decode(json.dumps({"requires": requires, **(spec or {})}), type=Spec)
    listed = [
        InventoryHost(name=name.replace("_", "-"), host=decode(json.dumps({"gpus": GPU, **facts}), type=Host))
        for name, facts in hosts.items()
    ]
    return cover_fleet(matrix, Request(spec=requested, hosts=(), platform="linux/amd64"), listed, platforms=())


def driver(version: str, **facts: Any) -> dict[str, Any]:  # noqa: ANN401 - any key of a profile
    return {"driver": {"version": version}, "kernel": "1", **facts}


def shape(answer: FleetAnswer) -> list[tuple[dict[str, str], list[str]]]:
    return [
        (
            {name: text for name, text in one.stack.components.items() if name != "platform"},
            sorted(host.name for host in one.hosts),
        )
        for one in answer.stacks
    ]


NEEDS_DRIVER = small.matrix(
    ["app", "driver", "kernel"],
    {
        "app": {"3": {"driver": ["3"]}, "2": {"driver": ["2", "3"]}, "1": {"driver": ["1", "2"]}},
        "driver": {"3": {}, "2": {}, "1": {}},
        "kernel": {"1": {}},
    },
)


def test_one_stack_where_one_will_do() -> None:
    answer = covered(NEEDS_DRIVER, {"app": "*"}, a=driver("2"), b=driver("3"))
    assert shape(answer) == [({"app": "2"}, ["a", "b"])]
    assert (answer.bound.lower, answer.bound.found, answer.bound.is_optimal) == (1, 1, True)


def test_what_two_stacks_can_serve_goes_where_most_nodes_are_newest() -> None:
    """Driver 2 runs 1 and 2, driver 1 only 1, driver 3 not 1: two stacks, and the middle joins the newer of them."""
    answer = covered(NEEDS_DRIVER, {"app": "*"}, old=driver("1"), middle=driver("2"), new=driver("3"))
    assert shape(answer) == [({"app": "2"}, ["middle", "new"]), ({"app": "1"}, ["old"])]
    assert answer.bound.is_optimal


def test_many_nodes_keep_their_newest_stack_from_few_that_would_hold_it_back() -> None:
    requested = decode('{"requires": {"app": "*"}}', type=Spec)
    hosts = [("old", "1", 1), ("middle", "2", 1), ("new", "3", 100)]
    listed = [
        InventoryHost(name=name, host=decode(json.dumps({"gpus": GPU, **driver(version)}), type=Host), count=count)
        for name, version, count in hosts
    ]
    answer = cover_fleet(NEEDS_DRIVER, Request(spec=requested, hosts=(), platform="linux/amd64"), listed, platforms=())
    assert shape(answer) == [({"app": "3"}, ["new"]), ({"app": "1"}, ["middle", "old"])]


def test_a_rule_of_some_hosts_may_bring_a_component_into_the_stack_of_all() -> None:
    rule = small.rule("debian-needs-lib", {"app": ">=1"}, {"lib": ">=2"}, on={"os": ["debian"]})
    matrix = small.matrix(
        ["app", "lib", "driver", "kernel", "os"],
        {"app": {"1": {}}, "lib": {"3": {"driver": ["2"]}, "2": {}}, "driver": {"2": {}, "1": {}}, "kernel": {"1": {}}},
        rules=[rule],
        releases={"os": small.names("debian", "ubuntu")},
    )
    debian, ubuntu = {"os": {"id": "debian"}}, {"os": {"id": "ubuntu"}}
    answer = covered(matrix, {"app": "*"}, a=driver("2", **debian), b=driver("1", **ubuntu))
    assert shape(answer) == [({"app": "1", "lib": "2"}, ["a", "b"])]
    assert shape(covered(matrix, {"app": "*"}, b=driver("1", **ubuntu))) == [({"app": "1"}, ["b"])]


def test_a_kernel_nobody_states_is_chosen_for_each_host_on_its_own() -> None:
    rule = small.rule("driver-2-kernel", {"driver": ">=2"}, {"kernel": ["5"]})
    matrix = small.matrix(
        ["app", "driver", "kernel"],
        {"app": {"2": {"kernel": ["6"]}, "1": {}}, "driver": {"2": {}, "1": {}}, "kernel": {"6": {}, "5": {}}},
        rules=[rule],
    )
    open_kernel: dict[str, Any] = {"driver": {"version": "1"}}
    answer = covered(matrix, {"app": "*"}, a=open_kernel, b={"driver": {"version": "2"}})
    assert shape(answer) == [({"app": "1"}, ["a", "b"])]
    assert shape(covered(matrix, {"app": ">=2"}, a=open_kernel, b={"driver": {"version": "2"}})) == [({"app": "2"}, ["a"])]


def test_hosts_with_the_same_conflict_are_told_once_with_what_each_states() -> None:
    answer = covered(
        NEEDS_DRIVER, {"app": "==3"}, a=driver("1"), b=driver("2"), c=driver("1", container_toolkit="1.17.4"), d=driver("3")
    )
    (left,) = answer.unserved
    assert [member.name for one in left.classes for member in one.members] == ["a", "b", "c"]
    assert [member_words(member) for member in left.conflict.members] == [
        "you require app ==3",
        "app 3 needs driver 3",
        "the host has driver 1",
    ]
    assert [say(one) for one in left.also] == ["the host has driver 2"]
    assert (answer.served_nodes, answer.unserved_nodes) == (1, 3)


def test_missing_facts_are_one_note_for_all_that_lack_them() -> None:
    hosts = {"a": driver("3"), "b": driver("2", container_toolkit="1.17.4"), "c": driver("2")}
    assert covered(NEEDS_DRIVER, {"app": "*"}, **hosts).stacks[0].verdict == "yes", "it is assumed"
    (stack,) = covered(NEEDS_DRIVER, {"app": "*"}, spec={"policy": {"strict": True}}, **hosts).stacks
    (note,) = [one for one in stack.unverified if one.reason.component == "container_toolkit"]
    assert isinstance(note.reason, Unstated)
    assert note.reason.host == "the host"
    assert sorted(member.name for one in note.classes for member in one.members) == ["a", "c"]
    assert (stack.verdict, unverified(stack.stack)) == ("unverified", ())


def test_a_fleet_of_no_hosts_needs_no_stack() -> None:
    answer = covered(NEEDS_DRIVER, {"app": "*"})
    assert (answer.stacks, answer.unserved, answer.bound.found) == ((), (), 0)


def test_where_not_every_set_is_listed_the_bound_says_what_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "EXACT_SIGNATURES", 0)
    monkeypatch.setattr(cover, "MOST_SETS", 1)
    versions = [str(number) for number in range(1, 7)]
    matrix = small.matrix(
        ["app", "driver", "kernel"],
        {
            "app": {number: {"driver": [number]} for number in versions},
            "driver": {number: {} for number in versions},
            "kernel": {"1": {}},
        },
    )
    hosts = {f"h{number}": driver(number) for number in versions}
    answer = covered(matrix, {"app": "*"}, **hosts)
    assert (answer.bound.lower, answer.bound.found) == (6, 6)  # no two share a stack, which is proved without the list
    assert [stack.stack.components["app"] for stack in answer.stacks] == ["6", "5", "4", "3", "2", "1"]


def test_amd_gpus_that_need_different_overrides_cannot_share_an_environment() -> None:
    """HSA_OVERRIDE_GFX_VERSION is one for a process: a host alone can be served, and two together not."""
    amd = {"driver": {"kind": "amdgpu", "version": "6.12.12"}}
    matrix = cached_matrix(None)
    one, other = {**amd, "gpus": [{"gfx": "gfx1031"}]}, {**amd, "gpus": [{"gfx": "gfx1103"}]}
    apart = covered(matrix, {"pytorch": ">=2.0"}, a=one, b=other)
    alone = [covered(matrix, {"pytorch": ">=2.0"}, a=host).bound.found for host in (one, other)]
    assert alone == [1, 1]
    settings = [dict(stack.stack.environment) for stack in apart.stacks]
    assert [sorted(host.name for host in stack.hosts) for stack in apart.stacks] == [["a"], ["b"]]
    assert settings[0] != settings[1]


def test_a_host_without_a_gpu_is_not_served_by_a_stack_for_gpus() -> None:
    answer = covered(NEEDS_DRIVER, {"app": "*"}, spec={"accelerator": "cuda"}, a=driver("3"), b=driver("3", gpus=[]))
    assert shape(answer) == [({"app": "3"}, ["a"])]
    (left,) = answer.unserved
    assert [member_words(member) for member in left.conflict.members] == [
        "you ask for accelerator cuda",
        "the target has no GPU",
    ]


def test_hosts_without_a_gpu_get_a_stack_of_their_own_for_cpus_after_those_for_gpus() -> None:
    answer = covered(NEEDS_DRIVER, {"app": "*"}, a=driver("3"), b=driver("3", gpus=[]))
    assert [(one.stack.accelerator, [host.name for host in one.hosts]) for one in answer.stacks] == [
        ("cuda", ["a"]),
        ("cpu", ["b"]),
    ]


def test_what_only_the_newest_gpus_need_is_asked_of_no_other_host() -> None:
    """CuDNN 9.10.2 wants driver 570.26 on Blackwell (its support matrix); a T4 runs the same stack on 525."""
    matrix = cached_matrix(None)
    t4 = {"driver": {"version": "525.147.05"}, "gpus": [{"name": "Tesla T4", "compute_capability": "7.5"}]}
    b200 = {"driver": {"version": "570.86.15"}, "gpus": [{"name": "NVIDIA B200", "compute_capability": "10.0"}]}
    answer = covered(matrix, {"pytorch": "==2.10.0+cu128"}, t4=t4, b200=b200)
    (found,) = answer.stacks
    assert found.stack.host_requirements["driver"] == ">=525.60.13"
    (affinity,) = affinities(answer, matrix)
    assert affinity.is_exact
    drivers = {("7.5", "525.147.05"): True, ("10.0", "525.147.05"): False, ("10.0", "570.86.15"): True}
    for (capability, version), is_admitted in drivers.items():
        facts = {"platform": "linux/amd64", "driver": {"version": version}, "gpus": [{"compute_capability": capability}]}
        assert admits(affinity, labels_of(decode(json.dumps(facts), type=Host))) == is_admitted, (capability, version)


@pytest.mark.parametrize(
    ("texts", "shared"),
    [
        ([">=525.60.13", ">=570.26"], ">=525.60.13"),
        ([">=4.15,<6.9", ">=4.15"], ">=4.15"),
        (["<6.9,>=4.15", "<6.9,>=5.4"], ">=4.15,<6.9"),
        (["<6.9", ">=4.15"], ""),
    ],
)
def test_several_blocks_share_what_all_of_them_ask(texts: list[str], shared: str) -> None:
    assert shared_range(texts) == shared
