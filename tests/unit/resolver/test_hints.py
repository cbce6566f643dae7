"""Ways out of a conflict: each holds with everything it touches, also what nobody else requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from provisioner.matrix.model import Rule
from provisioner.request import merge_equal_hosts
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.words.conflict import fix_words, member_words
from tests import small
from tests.told import changes, conclusion, hosts

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Conflict, Fix
    from provisioner.matrix.model import Matrix


def rule(name: str, drivers: str, gpus: str) -> Rule:
    needs = small.needs({"gpu": gpus})
    return Rule(name=name, when=small.need("driver", drivers), require=needs, because="invented", source=("invented",))


def test_a_driver_that_nothing_requires_is_changed_to_one_that_goes_with_the_host() -> None:
    matrix = small.matrix(
        ("python", "driver", "gpu"),
        {
            "python": {"3.12": {}},
            "driver": {"560.28.03": {}, "510.10.00": {}, "450.51.06": {}},
            "gpu": {"7.0": {}, "8.0": {}, "9.0": {}},
        },
        rules=(rule("ampere first", "<500", "<8.0"), rule("hopper first", "<520", "<8.9")),
    )
    host = {"driver": {"version": "450.51.06"}, "gpus": [{"compute_capability": "9.0"}], "container_toolkit": "1.17.4"}
    with pytest.raises(NoStackError) as caught:
        solve_system(join(matrix, small.request({"python": "3.12"}, host)))
    assert [changes(hint) for hint in caught.value.conflict.fixes] == [
        (("driver", "==560.28.03"),),
        (("gpu", "==7.0"),),
    ]


def floors() -> Matrix:
    return small.matrix(
        ("alpha", "driver", "gpu"),
        {
            "alpha": {"2.0": {"driver": ">=525"}, "1.0": {"driver": ">=450"}},
            "driver": {"535.10": {}, "525.10": {}, "470.10": {}},
        },
    )


def host(driver: str) -> dict[str, object]:
    return {"driver": {"version": driver}, "gpus": [{"compute_capability": "7.5"}], "container_toolkit": "1.17.4"}


def ways(*drivers: str, **requires: str) -> tuple[Fix, ...]:
    with pytest.raises(NoStackError) as caught:
        solve_system(join(floors(), small.request(requires, *(host(driver) for driver in drivers))))
    return caught.value.conflict.fixes


def test_where_there_are_several_hosts_the_one_to_change_is_named() -> None:
    version, driver, fewer = ways("535.10", "470.10", alpha=">=2.0")
    assert (fix_words(version), hosts(version)) == ("alpha 1.0 instead of `>=2.0` would do", ("",))
    assert changes(driver) == (("driver", ">=525.10"),)
    assert hosts(driver) == ("host1",)
    assert fix_words(driver) == "driver >=525.10 on host1 would do"
    assert (changes(fewer), hosts(fewer)) == ((("target", "left out"),), ("host1",))
    assert fix_words(fewer) == "without host1 would do"


def test_the_same_change_on_many_hosts_is_one_thing_said_once() -> None:
    _, driver = ways(*["470.10"] * 5, alpha=">=2.0")
    assert changes(driver) == (("driver", ">=525.10"),) * 5
    assert hosts(driver) == ("host0", "host1", "host2", "host3", "host4")
    assert fix_words(driver) == "driver >=525.10 on host0, host1, host2, host3, host4 would do"


def test_where_no_change_is_enough_that_is_said() -> None:
    matrix = small.matrix(("pytorch",), {"pytorch": {"1.0": {"pytorch": "==2.0"}}})
    with pytest.raises(NoStackError) as caught:
        solve_system(join(matrix, small.request({"pytorch": ">=1.0"})))
    assert caught.value.conflict.fixes == ()
    assert caught.value.hints == (
        (
            "no way out was found: up to 40 combinations of the spec's requests and the hosts' facts were changed, "
            "3 at most together, and then up to 40 of any size"
        ),
    )


def test_every_host_that_stands_in_the_way_is_left_out_at_once() -> None:
    *_, fewer = ways("470.10", "535.10", "470.10", "525.10", alpha=">=2.0")
    assert fix_words(fewer) == "without host0, host2 would do"
    assert hosts(fewer) == ("host0", "host2")


def test_a_target_of_which_nothing_would_be_left_is_not_made_smaller() -> None:
    assert not any(change == "left out" for hint in ways("470.10", "470.10", alpha=">=2.0") for _, change in changes(hint))


def test_hosts_that_state_the_same_are_one_in_words_and_many_in_changes() -> None:
    asked = small.request({"alpha": ">=2.0"}, *[host("470.10")] * 20, host("535.10"))
    with pytest.raises(NoStackError) as caught:
        solve_system(join(floors(), replace(asked, hosts=merge_equal_hosts(asked.hosts))))
    _, driver, fewer = caught.value.conflict.fixes
    assert fix_words(driver) == "driver >=525.10 on host0 (and 19 hosts like it) would do"
    assert changes(driver) == (("driver", ">=525.10"),) * 20
    assert hosts(driver) == tuple(f"host{index}" for index in range(20))
    assert fix_words(fewer) == "without host0 (and 19 hosts like it) would do"
    assert conclusion(caught.value.conflict) == "so no alpha >=2.0 is left for host0 (and 19 hosts like it)"


def frameworks() -> Matrix:
    """One build for CUDA, one for ROCm, one for the CPU; the newer release is for newer GPUs and another CUDA."""
    builds = {
        name: small.build(name, {}, accelerator=name, sass=("sm_70",) if name == "cuda" else None, gfx=("gfx942",))
        for name in ("cuda", "rocm", "cpu")
    }
    newer = small.build("cu2", {"cuda": "==2.*"}, sass=("sm_90",))
    older = small.build("cu1", {"cuda": "==1.*"})
    releases = (
        small.release("2.0", {}, builds=(newer,)),
        small.release("1.0", {}, builds=(older, builds["rocm"], builds["cpu"])),
    )
    devices: dict[str, dict[str, str]] = {"7.0": {}, "9.0": {}}
    return small.matrix(
        ("pytorch", "cuda", "gpu"), {"cuda": {"2.0": {}, "1.0": {}}, "gpu": devices}, releases={"pytorch": releases}
    )


def refused(*hosts: dict[str, object], requires: dict[str, str] | None = None, **spec: str) -> Conflict:
    with pytest.raises(NoStackError) as caught:
        solve_system(join(frameworks(), small.request(requires or {"pytorch": ">=1.0"}, *hosts, **spec)))
    return caught.value.conflict


NVIDIA: dict[str, object] = {"gpus": [{"compute_capability": "9.0"}], "container_toolkit": "1.17.4"}


def test_a_gpu_of_another_vendor_is_what_stands_in_the_way() -> None:
    conflict = refused({"gpus": [{"gfx": "gfx942"}]}, accelerator="cuda")
    assert [member_words(member) for member in conflict.members] == [
        "you ask for accelerator cuda",
        "the host has gpu gfx942, which CUDA does not run on",
    ]
    assert conclusion(conflict) == "so nothing can be accelerated with cuda"
    (hint,) = conflict.fixes
    assert (fix_words(hint), changes(hint)) == ("accelerator rocm instead of `cuda` would do", (("accelerator", "==rocm"),))
    assert hint.gives["pytorch_build"] == "rocm"


def test_the_cpu_is_a_way_out_that_is_said_and_never_taken_in_silence() -> None:
    conflict = refused({"gpus": []}, accelerator="cuda")
    assert [fix_words(hint) for hint in conflict.fixes] == ["accelerator cpu instead of `cuda` would do"]


def test_hosts_of_two_vendors_are_told_which_to_leave_out() -> None:
    conflict = refused(NVIDIA, {"gpus": [{"gfx": "gfx942"}]})
    assert [member_words(member) for member in conflict.members] == [
        "the target's GPUs call for cuda",
        "the host has gpu gfx942, which CUDA does not run on",
    ]
    assert [fix_words(hint) for hint in conflict.fixes] == ["without host1 would do"]


def test_what_was_asked_for_is_not_left_out_when_nothing_else_was() -> None:
    conflict = refused(NVIDIA, requires={"pytorch": "==1.0", "cuda": "==1.*"})
    assert changes(conflict.fixes[0]) == (("cuda", "==2.0"), ("pytorch", "==2.0+cu2"))
    assert not any(change == "left out" for hint in conflict.fixes for _, change in changes(hint))
