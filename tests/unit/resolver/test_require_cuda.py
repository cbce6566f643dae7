"""The NVIDIA_REQUIRE_CUDA of a stack. That it lets in exactly the right hosts: tests/property/test_gate_agreement.py."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from provisioner.matrix.model import DriverBranch
from provisioner.resolver.joint import solve_system
from provisioner.resolver.problem import join
from provisioner.versions import Version
from tests import small

SASS = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_120")
HOST = {"driver": {"version": "580.65.06"}, "gpus": [{"name": "card", "compute_capability": "9.0"}]}
BRANCHES = {"470": "11.4", "525": "12.0", "535": "12.2", "550": "12.4", "560": "12.6", "580": "13.0"}
ORDER = ("pytorch", "jax", "cudnn", "cuda", "image", "python", "driver", "gpu")
HOLES = "arch!=5.3,arch!=6.2,arch!=7.2,arch!=8.7"


def emitted(
    *,
    sass: tuple[str, ...] = SASS,
    ptx: tuple[str, ...] = (),
    cuda: str = "12.6.3",
    floor: str | None = "525.60.13",
    rules: tuple[Any, ...] = (),
    requires: dict[str, str] | None = None,
    hosts: tuple[Any, ...] = (HOST,),
    **spec: Any,  # noqa: ANN401 - any key of a spec
) -> str:
    pytorch = small.release("2.7.1", {"cudnn": ">=9"}, builds=(small.build("cu126", {"cuda": cuda}, sass=sass, ptx=ptx),))
    jax = small.release("0.7", {}, builds=(small.build("cuda13", {"cuda": "13.0.2"}, sass=("sm_75", "sm_90")),))
    matrix = small.matrix(
        ORDER,
        {
            "cudnn": {"9.10.2": {}},
            "gpu": {"7.0": {}, "9.0": {}, "12.0": {}},
            "driver": {"580.65.06": {}},
            "python": {"3.12": {}},
        },
        releases={
            "pytorch": (pytorch,),
            "jax": (jax,),
            "cuda": (small.cuda("13.0.2", "580.65.06", "580.82.07"), small.cuda(cuda, floor, "560.35.05", ("470", "550"))),
        },
        rules=rules,
    )
    branches = tuple(DriverBranch(branch=one, native_cuda=Version.parse(level)) for one, level in reversed(BRANCHES.items()))
    request = small.request(requires or {"pytorch": ""}, *hosts, runs="host", accelerator="cuda", **spec)
    return solve_system(join(replace(matrix, branches=branches), request)).require_cuda


def test_the_family_floor_and_every_major_there_is_code_for() -> None:
    assert emitted() == f"driver>=525.60.13,arch>=5.0,arch<10.0,{HOLES} driver>=525.60.13,arch>=12.0,arch<13.0"


def test_without_minor_version_compatibility_the_driver_is_of_a_native_branch() -> None:
    assert emitted(sass=("sm_90",), policy={"allow": []}) == "driver>=560,arch>=9.0,arch<10.0"


def test_the_floor_of_the_family_binds_an_older_driver_of_a_native_branch_too() -> None:
    assert emitted(sass=("sm_90",), cuda="12.0.1", policy={"allow": []}) == "driver>=525.60.13,arch>=9.0,arch<10.0"


def test_forward_compatibility_is_for_brands_that_have_it_and_for_images_that_carry_it() -> None:
    words = {"allow": ["forward-compat"]}
    assert emitted(sass=("sm_90",), policy=words) == "driver>=560,arch>=9.0,arch<10.0"
    assert emitted(sass=("sm_90",), policy=words, image={"cuda_compat": "12.6"}).split() == [
        "driver>=560,arch>=9.0,arch<10.0",
        *(
            f"brand={brand},driver>={branch},driver<{branch + 1},arch>=9.0,arch<10.0"
            for branch in (470, 550)
            for brand in ("nvidia", "tesla", "unknown")
        ),
    ]


def test_a_branch_that_minor_version_compatibility_reaches_needs_no_brand() -> None:
    words = {"allow": ["minor-version", "forward-compat"]}
    text = emitted(sass=("sm_90",), policy=words, image={"cuda_compat": "12.6"})
    assert "driver>=550" not in text
    assert text.startswith("driver>=525.60.13,arch>=9.0,arch<10.0 brand=nvidia,driver>=470,driver<471,")


def test_code_for_one_chip_serves_that_chip_alone_and_code_of_a_family_its_major() -> None:
    assert emitted(sass=("sm_90a",)) == "driver>=525.60.13,arch=9.0"
    assert emitted(sass=("sm_100f", "sm_90a")) == "driver>=525.60.13,arch=9.0 driver>=525.60.13,arch>=10.0,arch<11.0"


def test_ptx_serves_whatever_comes_later_on_drivers_that_know_its_cuda() -> None:
    assert emitted(sass=("sm_90",), ptx=("compute_90",)) == "driver>=525.60.13,arch>=9.0,arch<10.0"
    assert emitted(sass=("sm_90",), ptx=("compute_90",), policy={"allow": ["minor-version", "ptx-jit"]}) == (
        "driver>=525.60.13,arch>=9.0,arch<10.0 driver>=560,arch>=10.0"
    )


def test_rules_about_parts_of_the_image_narrow_it() -> None:
    rules = (
        small.rule("floor", {"cudnn": ">=9"}, {"gpu": ">=7.5"}),
        small.rule("new", {"cudnn": "==9.10.*"}, {"driver": ">=570.26"}, on={"gpu": ">=9.0"}),
        small.rule("gap", {"cuda": "==12.6.*"}, {"driver": ">=535.54"}, on={"driver": ">=535,<535.54"}),
        small.rule("elsewhere", {"cuda": ">=12"}, {"driver": ">=999"}, on={"os": "ubuntu 99.04"}),
    )
    assert emitted(sass=("sm_75", "sm_90"), rules=rules).split() == [
        "driver>=525.60.13,driver<535,arch>=7.5,arch<8.0",
        "driver>=535.54,arch>=7.5,arch<8.0",
        "driver>=570.26,arch>=9.0,arch<10.0",
    ]


def test_of_several_frameworks_every_one_must_run() -> None:
    assert emitted(requires={"pytorch": "", "jax": ""}) == (
        "driver>=580.65.06,arch>=7.5,arch<8.0 driver>=580.65.06,arch>=9.0,arch<10.0"
    )


@pytest.mark.parametrize(
    ("asked", "drivers"),
    [
        ("580.*", ("driver>=580,driver<581",)),
        ("580", ("driver>=580,driver<581",)),
        (">=550", ("driver>=550",)),
        (">=470", ("driver>=525.60.13",)),
        ("==580.65.06", ("driver>=580.65.06,driver<580.65.7",)),
        ("<=580.65.06", ("driver>=525.60.13,driver<580.65.7",)),
        ("~=580.65.0", ("driver>=580.65.0,driver<580.66",)),
        ("!=580.95.05", ("driver>=525.60.13,driver<580.95.05", "driver>=580.95.6")),
    ],
)
def test_a_driver_that_the_spec_requires_narrows_it(asked: str, drivers: tuple[str, ...]) -> None:
    requires = {"pytorch": "", "driver": asked}
    assert emitted(sass=("sm_90",), requires=requires).split() == [f"{one},arch>=9.0,arch<10.0" for one in drivers]


def test_it_is_the_same_for_every_host_the_image_runs_on_and_for_none() -> None:
    other = {"driver": {"version": "560.35.05"}, "gpus": [{"compute_capability": "7.0"}]}
    assert len({emitted(), emitted(hosts=()), emitted(hosts=(other,)), emitted(hosts=(HOST, other))}) == 1


@pytest.mark.parametrize("accelerator", ["cpu", "rocm"])
def test_other_stacks_have_none(accelerator: str) -> None:
    matrix = small.matrix(("python",), {"python": {"3.12": {}}})
    request = small.request({"python": ""}, accelerator=accelerator, runs="host")
    assert solve_system(join(matrix, request)).require_cuda == ""
