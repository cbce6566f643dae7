"""Stacks for AMD GPUs and for Macs: their own drivers, their own coverage, builds nobody publishes, variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provisioner.matrix.model import GfxOverride, Gpu, Variables
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.words.conflict import member_words
from tests import small
from tests.told import changes, unverified

if TYPE_CHECKING:
    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.stack import Stack

ORDER = ("pytorch", "cuda", "rocm", "cuda_driver", "webdriver", "amdgpu", "driver", "driver_module", "kernel", "macos", "gpu")
HSA = {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
LINUX, MAC, ARM = "linux/amd64", "macos/x86_64", "macos/arm64"
ROCM = {"accelerator": "rocm", "sass": None, "ptx": None, "gfx": ("gfx1030", "gfx942")}
MATRIX = small.matrix(
    ORDER,
    {
        "rocm": {"6.4": {"amdgpu": ">=6.2,<7"}},
        "amdgpu": {"6.4": {"kernel": "<6.9"}, "6.0": {}},
        "webdriver": {"387.1.40.105": {"macos": "==10.13.6+17G65"}, "387.1.40.130": {"macos": "==10.13.6+17G8030"}},
        "cuda_driver": {"418.163": {}},
        "kernel": {"6.8": {}, "6.12": {}},
        "gpu": {"6.1": {}, "9.0": {}},
    },
    rules=(
        small.rule("cuda-driver-on-macos", {"cuda": "*"}, {"cuda_driver": ">=418.105"}, on={"platform": MAC}),
        small.rule("web-driver-on-macos", {"cuda_driver": "*"}, {"webdriver": "*"}),
    ),
    branches={"580": "13.0"},
    releases={
        "pytorch": (
            small.release(
                "2.7.0",
                {},
                builds=(
                    small.build("cu126", {"cuda": "==12.6.*"}, sass=("sm_90",)),
                    small.build("rocm6.4", {"rocm": "==6.4.*"}, **ROCM),
                    small.build("cpu", {}, accelerator="cpu", sass=None, platforms=(LINUX, ARM)),
                    small.build("mps", {"macos": ">=11"}, accelerator="mps", platforms=(ARM,), sass=None),
                ),
            ),
            small.release(
                "1.4.0",
                {},
                builds=(
                    small.build("cu101", {"cuda": "==10.1.*"}, platforms=(MAC,), sass=("sm_61",), compiled=True),
                    small.build("cpu", {}, accelerator="cpu", platforms=(MAC,), sass=None),
                ),
            ),
        ),
        "cuda": (small.cuda("12.6.3", "525.60.13", "560.28"), small.cuda("10.1.243", None, "418.87")),
        "macos": (
            small.release("10.13.6", {}, builds=tuple(small.plain_build(one) for one in ("17G8030", "17G65"))),
            small.release("12.6", {}),
        ),
        "driver_module": small.names("open"),
    },
    gpus=tuple(
        Gpu(name=gfx, architecture="", compute_capability="", gfx=gfx, kind="radeon")
        for gfx in ("gfx942", "gfx1030", "gfx1031", "gfx1100")
    ),
    overrides=(GfxOverride(name="rdna-2", gfx=("gfx1031",), runs_as="gfx1030", set=HSA, because="one instruction set"),),
    variables=(
        Variables(
            name="cuda-home",
            when=small.need("cuda", "*"),
            on=small.rule("r", {"cuda": "*"}, {"cuda": "*"}, on={"platform": MAC}).on,
            set={"DYLD_LIBRARY_PATH": "/usr/local/cuda/lib", "CUDA_HOME": "/usr/local/cuda"},
            because="nothing else finds it",
        ),
    ),
)
AMD = {"gpus": [{"gfx": "gfx942"}], "glibc": "2.35"}
IMAC = {
    "os": {"id": "macos", "version": "10.13.6", "build": "17G65"},
    "driver": {"kind": "webdriver", "version": "387.1.40.105"},
    "cuda_driver": "418.163",
    "gpus": [{"compute_capability": "6.1"}],
}


def solved(host: dict[str, Any], requires: dict[str, str] | None = None, platform: str = LINUX, **spec: Any) -> Stack:  # noqa: ANN401 - any key of a spec
    request = small.request({"pytorch": ">=1", **(requires or {})}, host, platform=platform, **spec)
    return solve_system(join(MATRIX, request))


def refused(host: dict[str, Any], requires: dict[str, str] | None = None, platform: str = LINUX, **spec: Any) -> Conflict:  # noqa: ANN401 - any key of a spec
    with pytest.raises(NoStackError) as caught:
        solved(host, requires, platform, **spec)
    return caught.value.conflict


def test_an_amd_gpu_calls_for_rocm_and_its_own_driver() -> None:
    stack = solved(AMD)
    assert dict(stack.components) == {
        "pytorch": "2.7.0",
        "pytorch_build": "rocm6.4",
        "rocm": "6.4",
        "amdgpu": "6.4",
        "kernel": "6.8",
        "gpu": "gfx942",
        "platform": LINUX,
    }
    assert (stack.basis, stack.require_cuda, stack.arch_list) == ("", "", ("gfx1030", "gfx942"))
    assert stack.host_requirements == {"amdgpu": ">=6.2,<7", "gpu": "gfx1030, gfx942"}
    assert stack.verdict == "yes"


def test_an_amdgpu_driver_too_old_for_rocm_is_refused_with_the_newer_one_as_hint() -> None:
    conflict = refused({**AMD, "driver": {"kind": "amdgpu", "version": "6.0"}})
    assert sorted({member.component for member in conflict.members}) >= ["amdgpu"]
    assert ("amdgpu", "==6.4") in [change for hint in conflict.fixes for change in changes(hint)]


def test_a_target_nobody_compiled_for_is_refused_and_never_served_by_the_cpu() -> None:
    conflict = refused({"gpus": [{"gfx": "gfx1100"}]})
    assert any(member_words(member) == "the host has gpu gfx1100" for member in conflict.members)


def test_a_gpu_that_passes_for_another_is_served_with_its_variable_and_said_to_be_unsupported() -> None:
    stack = solved({**AMD, "gpus": [{"gfx": "gfx1031"}]})
    assert stack.environment == {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
    (text,) = unverified(stack)
    assert text.startswith("gpu: gfx1031 runs code for gfx1030 with HSA_OVERRIDE_GFX_VERSION=10.3.0, which nobody supports")


def test_asking_for_cuda_on_an_amd_gpu_is_impossible() -> None:
    conflict = refused(AMD, {"cuda": "12.*"})
    assert [member.component for member in conflict.members] == ["cuda"]


def test_a_mac_with_cuda_gets_a_build_nobody_publishes_and_is_told_so() -> None:
    stack = solved(IMAC, platform=MAC)
    assert stack.components["pytorch_build"] == "cu101"
    assert stack.components["webdriver"] == "387.1.40.105"
    assert stack.components["macos"] == "10.13.6+17G65"
    assert "driver" not in stack.components
    assert stack.runs == "host"
    assert unverified(stack) == ("pytorch_build: pytorch 1.4.0+cu101 is compiled from source: no binary is published",)
    assert list(stack.environment) == ["CUDA_HOME", "DYLD_LIBRARY_PATH"]


def test_a_web_driver_goes_with_one_build_of_macos_exactly() -> None:
    other = {**IMAC, "os": {"id": "macos", "version": "10.13.6", "build": "17G8030"}}
    conflict = refused(other, platform=MAC)
    assert {member.component for member in conflict.members} == {"webdriver", "macos"}
    assert ("webdriver", "==387.1.40.130") in [change for hint in conflict.fixes for change in changes(hint)]


def test_a_macos_stated_without_its_build_stays_open_and_unverified() -> None:
    stack = solved({**IMAC, "os": {"id": "macos", "version": "10.13.6"}}, platform=MAC)
    assert stack.components["macos"] == "10.13.6+17G65"
    assert "macos: host0 does not state its build; 17G65 was assumed" in unverified(stack)


def test_where_binaries_are_published_a_build_nobody_publishes_is_for_those_who_ask() -> None:
    matrix = small.matrix(
        ("pytorch",),
        {},
        releases={
            "pytorch": (
                small.release("2.0", {}, builds=(small.build("own", {}, compiled=True), small.build("cu1", {}))),
                small.release("2.1", {}, builds=(small.build("own", {}, compiled=True),)),
            )
        },
    )

    def chosen(requires: dict[str, str], **spec: Any) -> str:  # noqa: ANN401 - any key of a spec
        stack = solve_system(join(matrix, small.request(requires, **spec)))
        return f"{stack.components['pytorch']}+{stack.components['pytorch_build']}"

    assert chosen({"pytorch": ">=2"}) == "2.0+cu1"
    assert chosen({"pytorch": ">=2"}, build={"kind": "pytorch"}) == "2.1+own"
    assert chosen({"pytorch": "==2.0+own"}) == "2.0+own"
    assert chosen({"pytorch": ">=2", "pytorch_build": "own"}) == "2.1+own"


def test_an_arm_mac_has_mps_unless_the_spec_asks_for_the_cpu() -> None:
    host = {"os": {"id": "macos", "version": "12.6"}}
    assert solved(host, platform=ARM).components["pytorch_build"] == "mps"
    assert solved(host, platform=ARM, accelerator="cpu").components["pytorch_build"] == "cpu"
    assert solved(host, platform=ARM).verdict == "yes"


def test_a_cpu_stack_is_bound_by_no_driver() -> None:
    stack = solved({"driver": {"version": "390.1"}, "kernel": "9.9"}, accelerator="cpu")
    assert stack.components["pytorch_build"] == "cpu"
    assert "driver" not in stack.components


def test_a_release_binds_its_platforms_as_its_builds_do() -> None:
    versions = (small.release("2", {}, platforms=(ARM,)), small.release("1", {}))
    matrix = small.matrix(("cudnn",), {}, releases={"cudnn": versions})
    assert solve_system(join(matrix, small.request({"cudnn": "*"}))).components["cudnn"] == "1"
