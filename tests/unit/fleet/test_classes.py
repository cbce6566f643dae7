"""Hosts folded into classes, and classes parted into pools."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from msgspec.json import decode

from provisioner.fleet.classes import HostClass, fold, indistinguishable, natural, pools_of
from provisioner.host.inventory import InventoryHost
from provisioner.host.model import Host
from provisioner.places import Place
from tests import small

CUDA = {"gpus": [{"name": "T4", "compute_capability": "7.5"}]}
AMD = {"gpus": [{"gfx": "gfx942"}]}
MATRIX = small.matrix(["pytorch", "driver", "kernel", "glibc"], {"pytorch": {"2.7": {}}})


def host(**facts: Any) -> Host:  # noqa: ANN401 - any key of a profile
    return decode(json.dumps(facts), type=Host)


def listed(**hosts: Host) -> list[InventoryHost]:
    return [InventoryHost(name=name, host=one) for name, one in hosts.items()]


def named(classes: tuple[HostClass, ...]) -> list[list[str]]:
    return [[member.name for member in one.members] for one in classes]


def test_names_are_sorted_as_people_do() -> None:
    names = ["node-10", "node-9", "10", "node-1a", "9", "node"]
    assert sorted(names, key=natural) == ["node", "node-1a", "node-9", "node-10", "9", "10"]


def test_hosts_that_state_the_same_are_one_class_in_any_order() -> None:
    inventory = listed(b=host(kernel="6.8"), a2=host(kernel="5.15"), a10=host(kernel="6.8"), a1=host(kernel="5.15"))
    expected = {("a1", "a2"), ("a10", "b")}
    for seed in range(5):
        random.Random(seed).shuffle(inventory)
        assert {tuple(member.name for member in one.members) for one in fold(inventory)} == expected


def test_a_class_counts_machines_and_goes_by_its_first_name() -> None:
    same = host(kernel="6.8")
    (one,) = fold(
        [
            InventoryHost(name="b", host=same, count=40, place=Place("x.csv", 3)),
            InventoryHost(name="a", host=same, place=Place("x.csv", 2)),
        ]
    )
    assert (one.name, one.nodes) == ("a", 41)
    assert one.target.label == "a"
    assert str(one.target.place("driver").place) == str(one.target.place("gpus.0").place) == "x.csv:2"


def test_what_nothing_reads_does_not_part_classes() -> None:
    request = small.request({"pytorch": ">=2"}, CUDA)
    eight = host(gpus=[{"name": "T4", "compute_capability": "7.5", "count": 8}], glibc="2.31")
    one = host(gpus=[{"name": "T4", "compute_capability": "7.5"}], glibc="2.35")
    other = host(gpus=[{"name": "T4", "compute_capability": "7.5"}], kernel="6.8")
    classes = list(fold(listed(a=eight, b=one, c=other)))
    assert named(indistinguishable(classes, MATRIX, request)) == [["a", "b"], ["c"]]  # a container brings its own glibc


def test_on_the_host_itself_its_glibc_counts() -> None:
    request = small.request({"pytorch": ">=2"}, CUDA, runs="host")
    classes = list(fold(listed(a=host(**CUDA, glibc="2.31"), b=host(**CUDA, glibc="2.35"))))
    assert named(indistinguishable(classes, MATRIX, request)) == [["a"], ["b"]]


def test_a_guard_may_read_what_does_not_bind() -> None:
    rule = small.rule("old-c", {"pytorch": ">=2"}, {"driver": ">=5"}, on={"glibc": "<2.33"})
    matrix = small.matrix(["pytorch", "driver", "kernel", "glibc"], {"pytorch": {"2.7": {}}}, rules=[rule])
    classes = list(fold(listed(a=host(**CUDA, glibc="2.31"), b=host(**CUDA, glibc="2.35"))))
    assert named(indistinguishable(classes, matrix, small.request({"pytorch": ">=2"}, CUDA))) == [["a"], ["b"]]


def test_one_pool_for_each_platform_and_accelerator() -> None:
    inventory = listed(
        a=host(platform="linux/amd64", **CUDA), b=host(platform="linux/amd64", **AMD), c=host(platform="linux/arm64", **CUDA)
    )
    fleet = pools_of(inventory, MATRIX, small.request({"pytorch": ">=2"}), platforms=())
    found = [(pool.request.platform, pool.request.accelerator, named(pool.classes)) for pool in fleet.pools]
    assert found == [
        ("linux/amd64", "cuda", [["a"]]),
        ("linux/amd64", "rocm", [["b"]]),
        ("linux/arm64", "cuda", [["c"]]),
    ]


def test_platforms_the_spec_does_not_name_are_strangers() -> None:
    inventory = listed(a=host(platform="linux/amd64", **CUDA), c=host(platform="linux/arm64", **CUDA), d=host(**CUDA))
    fleet = pools_of(inventory, MATRIX, small.request({"pytorch": ">=2"}), platforms=("linux/amd64",))
    assert [named(pool.classes) for pool in fleet.pools] == [[["a"], ["d"]]]
    assert named(fleet.other_platforms) == [["c"]]


@pytest.mark.parametrize(
    ("spec", "pools"),
    [
        ({}, [("cuda", [["a"], ["c"]]), ("cpu", [["b"]])]),
        ({"accelerator": "cuda"}, [("cuda", [["a"], ["b"], ["c"]])]),
        ({"accelerator": "cpu"}, [("cpu", [["a"], ["b"], ["c"]])]),
    ],
)
def test_hosts_that_state_no_gpu_are_a_pool_of_cpus_and_hosts_that_state_nothing_are_not(
    spec: dict[str, Any], pools: list[object]
) -> None:
    inventory = listed(a=host(**CUDA), b=host(gpus=[]), c=host(driver={"version": "5"}))
    fleet = pools_of(inventory, MATRIX, small.request({"pytorch": ">=2"}, **spec), platforms=())
    assert [(pool.request.accelerator, named(pool.classes)) for pool in fleet.pools] == pools


def test_a_fleet_without_any_gpu_is_one_of_cpus() -> None:
    fleet = pools_of(
        listed(a=host(gpus=[]), b=host(gpus=[], kernel="6.8")), MATRIX, small.request({"pytorch": ">=2"}), platforms=()
    )
    assert [pool.request.accelerator for pool in fleet.pools] == ["cpu"]
