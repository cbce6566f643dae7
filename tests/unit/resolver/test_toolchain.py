"""Compiling: nvcc, its host compiler and the architectures to compile for, in containers and on hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.index.model import PackageRelease
from provisioner.matrix.model import ImageFacts, SystemNeed, SystemTool
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import PACKAGE, FileCandidate, Key
from provisioner.versions import Version
from provisioner.words.conflict import member_words
from tests import small
from tests.told import changes, unverified

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.grounds.conflict import Conflict
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.stack import Stack


def toolkit(*targets: str) -> dict[str, Any]:
    return {"accelerator": "", "sass": tuple(f"sm_{one}" for one in targets), "ptx": (f"compute_{targets[-1]}",)}


MATRIX = small.matrix(
    ("pytorch", "nvcc", "cuda", "image", "python", "driver", "clang", "gcc", "glibc", "gpu"),
    {
        "python": {"3.12": {}},
        "driver": {"580.65.06": {}},
        "gcc": {"14.2": {}, "13.3": {}, "11.4": {}},
        "clang": {"18.1": {}, "16.0": {}},
        "glibc": {"2.39": {}},
        "gpu": {"8.0": {}, "9.0": {}, "12.0": {}},
    },
    rules=(small.rule("nvcc-12-gcc-ceiling", {"nvcc": "==12.*"}, {"gcc": "<14"}),),
    branches={"580": "13.0"},
    releases={
        "pytorch": (small.release("2.6.0", {}, builds=(small.build("cu124", {"cuda": "==12.4.*"}, sass=("sm_80", "sm_90")),)),),
        "cuda": (
            small.cuda("13.0.1", "580.65.06", "580.65.06"),
            small.cuda("12.8.1", "525.60.13", "570.86"),
            small.cuda("12.4.1", "525.60.13", "550.54.15"),
        ),
        "nvcc": (
            small.release("13.0.1", {}, builds=(small.build("toolkit", {}, **toolkit("80", "90", "120")),)),
            small.release("12.8.1", {"clang": "<19"}, builds=(small.build("toolkit", {}, **toolkit("80", "90", "120")),)),
            small.release("12.4.1", {"clang": "<18"}, builds=(small.build("toolkit", {}, **toolkit("80", "90", "90a")),)),
        ),
    },
    images=(
        ImageFacts(reference="python:3.12-slim", kind="slim", glibc="2.39", python="3.12"),
        ImageFacts(reference="nvidia/cuda:12.8.1-devel", kind="cuda-devel", glibc="2.39", apt_python="3.12", cuda="12.8.1"),
        ImageFacts(reference="nvidia/cuda:12.4.1-devel", kind="cuda-devel", glibc="2.39", apt_python="3.12", cuda="12.4.1"),
    ),
)
HOST = {
    "gpus": [{"compute_capability": "9.0"}],
    "driver": {"version": "580.65.06"},
    "glibc": "2.39",
    "container_toolkit": "1.17",
}
EXTENSION = {"kind": "extension"}


def solved(host: dict[str, Any], requires: dict[str, str] | None = None, **spec: Any) -> Stack:  # noqa: ANN401 - any key of a spec
    spec = {"build": EXTENSION, **spec}
    return solve_system(join(MATRIX, small.request({"pytorch": ">=2", **(requires or {})}, {**HOST, **host}, **spec)))


def refused(host: dict[str, Any], requires: dict[str, str] | None = None, **spec: Any) -> Conflict:  # noqa: ANN401 - any key of a spec
    with pytest.raises(NoStackError) as caught:
        solved(host, requires, **spec)
    return caught.value.conflict


def tools(stack: Stack) -> dict[str, str]:
    return {name: stack.components[name] for name in ("nvcc", "gcc", "clang", "arch_list") if name in stack.components}


def test_in_a_container_the_image_brings_the_compiler_of_the_frameworks_cuda() -> None:
    stack = solved({"gcc": "4.8", "nvcc": "11.0"})
    assert stack.components["image"] == "nvidia/cuda:12.4.1-devel"
    assert tools(stack) == {"nvcc": "12.4.1", "gcc": "13.3", "arch_list": "9.0"}
    assert stack.verdict == "yes"


def test_nothing_is_compiled_unless_the_spec_says_so() -> None:
    stack = solved({}, build=None)
    assert stack.components["image"] == "python:3.12-slim"
    assert tools(stack) == {}


def test_a_host_compiler_too_new_for_nvcc_is_refused_by_the_rule() -> None:
    conflict = refused({"gcc": "14.2", "nvcc": "12.4.1"}, runs="host")
    assert sorted(f"{member.kind} {member.component}" for member in conflict.members) == ["fact gcc", "fact nvcc", "rule nvcc"]
    assert ("gcc", "<=13.3") in [change for hint in conflict.fixes for change in changes(hint)]


def test_who_compiles_with_clang_is_not_bound_by_gcc() -> None:
    stack = solved({"gcc": "14.2"}, {"clang": ">=16"}, runs="host")
    assert tools(stack) == {"nvcc": "12.4.1", "clang": "16.0", "gcc": "14.2", "arch_list": "9.0"}


def test_an_nvcc_of_another_major_is_refused_and_of_another_minor_is_unverified() -> None:
    stack = solved({"gcc": "11.4", "nvcc": "12.8.1"}, runs="host")
    assert (stack.components["cuda"], stack.components["nvcc"]) == ("12.4.1", "12.8.1")
    (text,) = unverified(stack)
    assert text.startswith("nvcc: 12.8.1 of host0 is not of CUDA 12.4.1")
    conflict = refused({"gcc": "11.4", "nvcc": "13.0.1"}, runs="host")
    assert ("fact", "nvcc") in [(member.kind, member.component) for member in conflict.members]


def test_every_architecture_must_be_one_the_compiler_knows() -> None:
    assert tools(solved({}, build={**EXTENSION, "arch_list": ["8.0", "9.0a", "9.0"]}))["arch_list"] == "8.0, 9.0a, 9.0"
    conflict = refused({}, build={**EXTENSION, "arch_list": ["9.0", "12.0"]})
    assert ("request", "arch_list", "you compile for 12.0") in [
        (m.kind, m.component, member_words(m)) for m in conflict.members
    ]
    assert not any(member_words(member) == "you compile for 9.0" for member in conflict.members)


def test_left_out_the_architectures_are_those_of_the_targets_gpus() -> None:
    conflict = refused({"gpus": [{"compute_capability": "9.0"}, {"compute_capability": "12.0"}]})
    assert any(member.kind == "fact" and "12.0" in member_words(member) for member in conflict.members)


RUNTIME = ImageFacts(
    reference="nvidia/cuda:12.4.1-runtime", kind="cuda-runtime", glibc="2.39", apt_python="3.12", cuda="12.4.1"
)
NVCC = SystemTool(name="cuda-compiler", title="nvcc", kinds=("cuda-devel",))
COMPILES = SystemNeed(distribution="jitter", tools=("cuda-compiler",), optional=True, because="it compiles kernels")


def shipped(*images: ImageFacts, beside: Mapping[Key, Candidate] | None = None, **spec: Any) -> str:  # noqa: ANN401 - any key
    """The image that is shipped in place of the one with compilers; "" when that one is shipped."""
    matrix = replace(MATRIX, images=(*MATRIX.images, *images), system_tools=(NVCC,), system_needs=(COMPILES,))
    request = small.request({"pytorch": ">=2", **spec.pop("requires", {})}, HOST, **{"build": EXTENSION, **spec})
    image = solve_system(join(matrix, request), beside=beside).image
    assert image is not None
    assert image.reference == "nvidia/cuda:12.4.1-devel"
    return image.runtime.reference if image.runtime is not None else ""


def test_for_a_build_the_image_with_the_same_libraries_and_without_compilers_is_known() -> None:
    assert shipped(RUNTIME) == RUNTIME.reference
    assert shipped() == ""
    for other in ({"cuda": "12.4.0"}, {"cudnn": "9.1.0"}, {"glibc": "2.35"}, {"platforms": ("linux/arm64",)}):
        assert shipped(replace(RUNTIME, **other)) == "", other


def test_compilers_that_the_spec_asks_for_are_shipped() -> None:
    assert shipped(RUNTIME, image={"base": "cuda-devel"}) == ""
    assert shipped(RUNTIME, image={"base": "nvidia/cuda:12.4.1-devel"}) == ""
    assert shipped(RUNTIME, requires={"nvcc": ">=12"}) == ""


def test_compilers_are_shipped_to_what_compiles_when_it_runs() -> None:
    release = PackageRelease.of(name=canonicalize_name("jitter"), version_text="1.0", file=None)
    key = Key("jitter", PACKAGE)
    assert shipped(RUNTIME, beside={key: FileCandidate(key, Version.parse("1.0"), "1.0", release)}) == ""
