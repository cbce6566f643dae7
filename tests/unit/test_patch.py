"""What edits make of the spec and the hosts, as merge patches."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from provisioner.grounds.edit import AddPlatform, DropBound, DropComponent, DropHost, SetDistribution, SetFact
from provisioner.grounds.patch import patch_of
from tests import small

HOST: dict[str, Any] = {"driver": {"version": "470.256.02", "module": "proprietary"}, "gpus": [{"compute_capability": "7.0"}]}
REQUEST = small.request({"cuda": "12.6", "python": "3.11"}, HOST, HOST, packages=["numpy>=2", "scipy<1.12"])


def test_what_is_left_out_of_a_mapping_is_null() -> None:
    assert patch_of(REQUEST, [DropComponent(name="cuda")]) == {"spec": {"requires": {"cuda": None}}}


def test_a_list_is_told_whole() -> None:
    edit = SetDistribution(name="scipy", distribution="scipy", value="1.11.4")
    assert patch_of(REQUEST, [edit]) == {"spec": {"packages": ["numpy>=2", "scipy==1.11.4"]}}


def test_lines_of_files_are_in_the_patch_and_their_files_no_longer_are() -> None:
    request = replace(REQUEST, spec=replace(REQUEST.spec, packages_from=("requirements.in",)))
    edit = SetDistribution(name="scipy", distribution="scipy", value="1.11.4")
    assert patch_of(request, [edit]) == {"spec": {"packages": ["numpy>=2", "scipy==1.11.4"], "packages-from": []}}


def test_of_two_constraints_on_one_distribution_the_one_that_goes_is_known() -> None:
    request = replace(REQUEST, spec=replace(REQUEST.spec, constraints=("numpy<3", "numpy<2.1")))
    edit = DropBound(key="constraints", distribution="numpy", requirement="numpy<2.1")
    assert patch_of(request, [edit]) == {"spec": {"constraints": ["numpy<3"]}}


def test_a_fact_of_a_host_has_the_nearest_value_and_a_host_that_goes_is_null() -> None:
    first, second = (target.label for target in REQUEST.hosts)
    edits = [SetFact(name="driver", host=first, value="525.60.13", today="470.256.02", sign=">="), DropHost(host=second)]
    assert patch_of(REQUEST, edits) == {"hosts": {first: {"driver": {"version": "525.60.13"}}, second: None}}


def test_hosts_with_the_same_facts_are_each_in_the_patch() -> None:
    first, _ = REQUEST.hosts
    request = replace(REQUEST, hosts=(replace(first, names=("a", "b")),))
    edit = SetFact(name="driver", host=first.label, value="525.60.13", today="470.256.02")
    assert patch_of(request, [edit]) == {"hosts": {name: {"driver": {"version": "525.60.13"}} for name in ("a", "b")}}


def test_a_platform_joins_those_of_the_spec() -> None:
    edit = AddPlatform(platforms=("linux/amd64", "linux/arm64"))
    assert patch_of(REQUEST, [edit]) == {"spec": {"target": {"platform": ["linux/amd64", "linux/arm64"]}}}
