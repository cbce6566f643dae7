"""What is compiled against PyTorch comes from the index of the build that was chosen: real matrix, two real indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from provisioner.index.client import PackageIndex
from provisioner.index.settings import IndexLocation, IndexSettings
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.words.conflict import member_words
from tests import small
from tests.loopback_index import LoopbackIndex
from tests.shipped import shipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from provisioner.resolver.stack import Stack

OLD_T4 = {"driver": {"version": "470.256.02"}, "gpus": [{"compute_capability": "7.5"}]}
"""Driver 470 stops at CUDA 11: of PyTorch 2.1.2 only the cu118 build runs on it."""


@pytest.fixture
def index() -> Iterator[LoopbackIndex]:
    with LoopbackIndex() as served:
        served.add_wheel("torch", "2.1.2")
        served.add_wheel("torch", "2.1.2+cu118", index="whl/cu118")
        served.add_wheel("torchvision", "0.16.2", requires=["torch==2.1.2"])
        served.add_wheel("vllm", "0.3.3", requires=["torch==2.1.2"])
        yield served


NEW_T4 = {"driver": {"version": "580.65.06"}, "gpus": [{"compute_capability": "7.5"}]}
"""Driver 580 runs the CUDA 12 of the main index's wheels, too."""


def solve(
    index: LoopbackIndex, folder: Path, *packages: str, pytorch: str = "==2.1.2", host: Mapping[str, Any] = OLD_T4
) -> Stack:
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="pytorch", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=folder / "cache", fresh_seconds=0)
    request = small.request({"python": "==3.11", "pytorch": pytorch}, host, packages=packages)
    return solve_joint(join(shipped(), request), lambda environment: PackageIndex(settings, environment))


def test_torchvision_beside_a_cu118_build_is_the_one_of_cu118(index: LoopbackIndex, tmp_path: Path) -> None:
    index.add_wheel("torchvision", "0.16.2+cu118", requires=["torch==2.1.2"], index="whl/cu118")
    stack = solve(index, tmp_path, "torchvision")
    assert {package.name: package.version for package in stack.packages} == {
        "torch": "2.1.2+cu118",
        "torchvision": "0.16.2+cu118",
    }


def test_torchvision_of_the_default_index_does_not_go_with_a_cu118_build(index: LoopbackIndex, tmp_path: Path) -> None:
    with pytest.raises(NoStackError) as caught:
        solve(index, tmp_path, "torchvision", pytorch="==2.1.2+cu118", host=NEW_T4)
    said = [member_words(member) for member in caught.value.conflict.members if member.component == "torchvision"]
    assert said == [
        "you require torchvision",
        "torchvision 0.16.2 from the pypi index is compiled for the PyTorch build of the pypi index",
    ]


def test_a_distribution_that_no_variant_index_serves_is_not_looked_for_there(index: LoopbackIndex, tmp_path: Path) -> None:
    with pytest.raises(NoStackError):
        solve(index, tmp_path, "vllm")
    assert index.requests["/whl/cu118/vllm/"] == 0
    assert index.requests["/whl/cu118/torch/"] > 0


ORIN = {"platform": "linux/arm64", "gpus": [{"name": "Jetson AGX Orin"}], "jetson": {"l4t": "36.4.3"}}


def test_torch_for_a_jetson_comes_from_the_index_of_its_jetpack(index: LoopbackIndex, tmp_path: Path) -> None:
    index.add_wheel("torch", "2.8.0")
    index.add_wheel("torch", "2.8.0", index="whl/jp6/cu126")
    index.add_wheel("torchvision", "0.23.0", requires=["torch==2.8.0"])
    index.add_wheel("torchvision", "0.23.0", requires=["torch==2.8.0"], index="whl/jp6/cu126")
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="jetson", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=tmp_path / "cache", fresh_seconds=0)
    request = small.request({"pytorch": "*"}, ORIN, packages=("torchvision",), platform="linux/arm64")
    stack = solve_joint(join(shipped(), request), lambda environment: PackageIndex(settings, environment))
    assert stack.components["pytorch_build"] == "jp6.cu126"
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": ("2.8.0", "jetson-jp6/cu126"),
        "torchvision": ("0.23.0", "jetson-jp6/cu126"),
    }


MI300X = {"driver": {"kind": "amdgpu", "version": "6.3.6"}, "gpus": [{"gfx": "gfx942"}]}


def test_the_compiler_of_a_rocm_build_comes_from_its_index_alone(index: LoopbackIndex, tmp_path: Path) -> None:
    index.add_wheel("torch", "2.7.1+rocm6.3", requires=["pytorch-triton-rocm==3.3.1"], index="whl/rocm6.3")
    index.add_wheel("pytorch-triton-rocm", "3.3.1", index="whl/rocm6.3")
    index.add_wheel("pytorch-triton-rocm", "3.3.1")
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="pytorch", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=tmp_path / "cache", fresh_seconds=0)
    request = small.request({"python": "==3.12", "pytorch": "==2.7.1+rocm6.3"}, MI300X, packages=("torch",))
    stack = solve_joint(join(shipped(), request), lambda environment: PackageIndex(settings, environment))
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": ("2.7.1+rocm6.3", "pytorch-rocm6.3"),
        "pytorch-triton-rocm": ("3.3.1", "pytorch-rocm6.3"),
    }
    assert index.requests["/simple/pytorch-triton-rocm/"] == 0


@pytest.mark.parametrize(
    ("local", "runs"), [("rocm6.4", False), ("rocm7.2", True)], ids=["ROCm 6 lacks a library", "ROCm 7 has it"]
)
def test_a_wheel_for_rocm_7_needs_a_pytorch_that_contains_it(
    index: LoopbackIndex, tmp_path: Path, local: str, *, runs: bool
) -> None:
    """CuPy for ROCm 7 links to libamdhip64.so.7 (matrices/wheels.yaml), which PyTorch's wheels for ROCm 6.4 do not contain."""
    version = "2.9.1+rocm6.4" if local == "rocm6.4" else "2.11.0+rocm7.2"
    index.add_wheel("torch", version, index=f"whl/{local}")
    index.add_wheel("cupy-rocm-7-0", "14.2.0", tag="cp312-cp312-manylinux2014_x86_64")
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="pytorch", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=tmp_path / "cache", fresh_seconds=0)
    host = {"driver": {"kind": "amdgpu", "version": "6.4.3"}, "gpus": [{"gfx": "gfx942"}]}
    request = small.request({"python": "==3.12", "pytorch": f"=={version}"}, host, packages=("cupy-rocm-7-0",))

    def solved() -> Stack:
        return solve_joint(join(shipped(), request), lambda environment: PackageIndex(settings, environment))

    if runs:
        assert "cupy-rocm-7-0" in {package.name for package in solved().packages}
        return
    with pytest.raises(NoStackError) as caught:
        solved()
    said = [member_words(member) for member in caught.value.conflict.members]
    assert any("needs libamdhip64.so.7" in text for text in said), said


@pytest.mark.parametrize(
    ("version", "pytorch", "gfx", "runs"),
    [
        ("0.49.2", "2.9.1+rocm6.3", "gfx1201", False),
        ("0.49.2", "2.9.1+rocm6.4", "gfx1201", True),
        ("0.50.1", "2.9.1+rocm6.4", "gfx908", False),
        ("0.50.1", "2.14.1+rocm7.2", "gfx1030", False),
        ("0.50.1", "2.14.1+rocm7.14", "gfx1030", True),
        ("0.50.2", "2.9.1+rocm6.4", "gfx908", True),
    ],
)
def test_bitsandbytes_has_code_in_the_library_that_it_loads_with_the_rocm_of_its_pytorch(
    index: LoopbackIndex, tmp_path: Path, version: str, pytorch: str, gfx: str, *, runs: bool
) -> None:
    """Measured: the offload bundles of each libbitsandbytes_rocmNN.so. 0.50 loads the nearest one of the same major release."""
    index.add_wheel("torch", pytorch, index=f"whl/{pytorch.partition('+')[2]}")
    index.add_wheel("bitsandbytes", version, requires=["torch"], tag="py3-none-manylinux_2_24_x86_64")
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="pytorch", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=tmp_path / "cache", fresh_seconds=0)
    driver = "30.30" if "rocm7" in pytorch else "6.4.3" if "6.4" in pytorch else "6.3.3"
    host = {"driver": {"kind": "amdgpu", "version": driver}, "gpus": [{"gfx": gfx}]}
    request = small.request({"python": "==3.12", "pytorch": f"=={pytorch}"}, host, packages=("bitsandbytes",))
    problem = join(shipped(), request)
    if runs:
        stack = solve_joint(problem, lambda environment: PackageIndex(settings, environment))
        assert ("bitsandbytes", version) in {(package.name, package.version) for package in stack.packages}
        return
    with pytest.raises(NoStackError) as caught:
        solve_joint(problem, lambda environment: PackageIndex(settings, environment))
    said = [member_words(member) for member in caught.value.conflict.members]
    assert any("have no code for every GPU here" in text for text in said), said


def test_torch_from_a_wheel_of_ones_own_is_the_build_its_name_says(index: LoopbackIndex, tmp_path: Path) -> None:
    """The wheel of a build that the matrix knows may lie anywhere; what it needs of the host is known by its number."""
    filename = index.add_wheel(
        "torch", "2.1.2+cu118", index="hidden", tag="cp311-cp311-manylinux_2_17_x86_64", requires=["sympy"]
    )
    index.add_wheel("sympy", "1.0")
    stack = solve(index, tmp_path, f"torch @ {index.root}/files/hidden/{filename.replace('+', '%2B')}")
    assert (stack.components["pytorch_build"], stack.components["cuda"]) == ("cu118", "11.8.0")
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": ("2.1.2+cu118", "url"),
        "sympy": ("1.0", "pypi"),
    }
    assert index.requests["/simple/torch/"] == index.requests["/whl/cu118/torch/"] == 0


def test_a_build_of_torch_that_nobody_knows_is_refused(index: LoopbackIndex, tmp_path: Path) -> None:
    filename = index.add_wheel("torch", "2.1.2+cu118.mine", index="hidden", tag="cp311-cp311-manylinux_2_17_x86_64")
    url = f"{index.root}/files/hidden/{filename}"
    with pytest.raises(NoStackError) as caught:
        solve(index, tmp_path, f"torch @ {url}")
    said = [member_words(member) for member in caught.value.conflict.members if member.component == "pytorch"]
    assert f"you require torch @ {url}, a build the matrix does not list" in said


def test_torch_from_a_wheel_for_another_python_needs_that_python(index: LoopbackIndex, tmp_path: Path) -> None:
    filename = index.add_wheel("torch", "2.1.2+cu118", index="hidden", tag="cp310-cp310-manylinux_2_17_x86_64")
    with pytest.raises(NoStackError) as caught:
        solve(index, tmp_path, f"torch @ {index.root}/files/hidden/{filename}")
    said = [member_words(member) for member in caught.value.conflict.members]
    assert "pytorch 2.1.2+cu118 cannot be installed: no wheel for cp311 on linux/amd64 (has cp310)" in said


def test_torchvision_by_url_is_for_the_build_that_its_version_names(index: LoopbackIndex, tmp_path: Path) -> None:
    own = index.add_wheel("torchvision", "0.16.2+cu118", requires=["torch==2.1.2"], index="hidden")
    other = index.add_wheel("torchvision", "0.16.2+cu121", requires=["torch==2.1.2"], index="hidden")
    stack = solve(index, tmp_path, f"torchvision @ {index.root}/files/hidden/{own}")
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": ("2.1.2+cu118", "pytorch-cu118"),
        "torchvision": ("0.16.2+cu118", "url"),
    }
    with pytest.raises(NoStackError) as caught:
        solve(index, tmp_path, f"torchvision @ {index.root}/files/hidden/{other}")
    said = [member_words(member) for member in caught.value.conflict.members if member.component == "torchvision"]
    assert (
        f"torchvision 0.16.2+cu121 @ {index.root}/files/hidden/{other} is compiled for the PyTorch build that "
        "its local version cu121 names"
    ) in said


@pytest.mark.parametrize(("version", "python"), [("2.15.0", "3.12"), ("2.10.0", "3.12")])
def test_a_cpu_build_is_the_wheel_of_the_cpu_index_and_not_the_default_one(
    index: LoopbackIndex, tmp_path: Path, version: str, python: str
) -> None:
    """Builds of several platforms are called cpu; that of macOS or arm64 is on PyPI, where x86_64 has the CUDA build."""
    index.add_wheel("torch", version, requires=["nvidia-cublas"])
    index.add_wheel("torch", f"{version}+cpu", index="whl/cpu")
    index.add_wheel("torchvision", "0.30.0")
    index.add_wheel("torchvision", "0.30.0+cpu", index="whl/cpu")
    index.add_wheel("nvidia-cublas", "13.4")
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="pytorch", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=tmp_path / "cache", fresh_seconds=0)
    request = small.request({"python": f"=={python}", "pytorch": f"=={version}"}, {"gpus": []}, packages=("torchvision",))
    stack = solve_joint(join(shipped(), request), lambda environment: PackageIndex(settings, environment))
    assert stack.components["pytorch_build"] == "cpu"
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": (f"{version}+cpu", "pytorch-cpu"),
        "torchvision": ("0.30.0+cpu", "pytorch-cpu"),
    }


A100 = {"driver": {"version": "580.95.05", "module": "open"}, "gpus": [{"compute_capability": "8.0"}]}
MANYLINUX = "cp311-cp311-manylinux_2_17_x86_64"


@pytest.fixture
def two_abis() -> Iterator[LoopbackIndex]:
    """PyTorch 2.6.0 for x86_64 alone has builds of both C++ ABIs: the default one is of the old, that of cu126 of the new."""
    with LoopbackIndex() as served:
        served.add_wheel("torch", "2.6.0")
        served.add_wheel("torch", "2.6.0+cu126", index="whl/cu126")
        served.add_wheel("torchcodec", "0.2.1", tag=MANYLINUX)
        yield served


def beside_2_6(index: LoopbackIndex, folder: Path, package: str, pytorch: str = "==2.6.0+cu126") -> Stack:
    locations = (IndexLocation(name="pypi", url=index.url), IndexLocation(name="pytorch", url=index.template))
    settings = IndexSettings(indexes=locations, cache_directory=folder / "cache", fresh_seconds=0)
    request = small.request({"python": "==3.11", "pytorch": pytorch}, A100, packages=(package,))
    return solve_joint(join(shipped(), request), lambda environment: PackageIndex(settings, environment))


def test_a_wheel_of_the_old_c_plus_plus_abi_does_not_go_with_a_build_of_the_new_one(
    two_abis: LoopbackIndex, tmp_path: Path
) -> None:
    with pytest.raises(NoStackError) as caught:
        beside_2_6(two_abis, tmp_path, "torchcodec")
    said = [(member.kind, member_words(member)) for member in caught.value.conflict.members if member.component == "torchcodec"]
    assert said == [
        ("request", "you require torchcodec"),
        (
            "rule",
            (
                "torchcodec 0.2.1 needs a build of the old C++ ABI of PyTorch: its libraries call functions by their names "
                "in that ABI"
            ),
        ),
    ]


def test_the_build_of_its_abi_is_chosen_where_any_of_the_release_will_do(two_abis: LoopbackIndex, tmp_path: Path) -> None:
    stack = beside_2_6(two_abis, tmp_path, "torchcodec", "==2.6.0")
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": ("2.6.0", "pypi"),
        "torchcodec": ("0.2.1", "pypi"),
    }


def test_a_wheel_of_the_variant_index_is_of_the_abi_of_its_build(two_abis: LoopbackIndex, tmp_path: Path) -> None:
    two_abis.add_wheel("torchcodec", "0.2.1+cu126", index="whl/cu126", tag=MANYLINUX)
    stack = beside_2_6(two_abis, tmp_path, "torchcodec")
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": ("2.6.0+cu126", "pytorch-cu126"),
        "torchcodec": ("0.2.1+cu126", "pytorch-cu126"),
    }


def test_a_wheel_by_url_that_names_its_build_is_of_the_abi_of_that_build(two_abis: LoopbackIndex, tmp_path: Path) -> None:
    own = two_abis.add_wheel("torchcodec", "0.2.1+cu126", index="hidden", tag=MANYLINUX)
    stack = beside_2_6(two_abis, tmp_path, f"torchcodec @ {two_abis.root}/files/hidden/{own}")
    assert {package.name: package.version for package in stack.packages} == {
        "torch": "2.6.0+cu126",
        "torchcodec": "0.2.1+cu126",
    }


GRACE_HOPPER = {"platform": "linux/arm64", **A100, "gpus": [{"compute_capability": "9.0"}]}


def on_arm(folder: Path, host: Mapping[str, object], **spec: object) -> Stack:
    """For Arm, vllm 0.11.0 and its PyTorch: a CPU build on the default index, one with CUDA on the index of cu129."""
    with LoopbackIndex() as served:
        served.add_wheel("torch", "2.8.0", tag="cp311-cp311-manylinux_2_28_aarch64")
        served.add_wheel("torch", "2.8.0+cu129", index="whl/cu129", tag="cp311-cp311-manylinux_2_28_aarch64")
        served.add_wheel("vllm", "0.11.0", requires=["torch==2.8.0"], tag="cp38-abi3-manylinux2014_aarch64")
        locations = (IndexLocation(name="pypi", url=served.url), IndexLocation(name="pytorch", url=served.template))
        settings = IndexSettings(indexes=locations, cache_directory=folder / "cache", fresh_seconds=0)
        target = {"platform": "linux/arm64"}
        request = small.request({"python": "==3.11"}, host, packages=("vllm",), platform="linux/arm64", target=target, **spec)
        return solve_joint(join(shipped(), request), lambda environment: PackageIndex(settings, environment))


def test_on_arm_a_wheel_that_links_cuda_is_for_a_build_with_cuda_of_its_major(tmp_path: Path) -> None:
    """Its wheel links libtorch_cuda.so and libcudart.so.12; of the CPU build it could load neither."""
    stack = on_arm(tmp_path, GRACE_HOPPER)
    assert {package.name: (package.version, package.file.index) for package in stack.packages} == {
        "torch": ("2.8.0+cu129", "pytorch-cu129"),
        "vllm": ("0.11.0", "pypi"),
    }


def test_on_arm_a_wheel_that_links_cuda_does_not_go_with_the_cpu_build(tmp_path: Path) -> None:
    with pytest.raises(NoStackError) as caught:
        on_arm(tmp_path, {"platform": "linux/arm64", "gpus": []}, accelerator="cpu")
    said = [member_words(member) for member in caught.value.conflict.members if member.component == "vllm"]
    assert said == [
        "you require vllm",
        (
            "vllm 0.11.0 from the pypi index is compiled for the PyTorch build of the pypi index, or for one with CUDA where "
            "that is a CPU build"
        ),
        "vllm 0.11.0 needs torch==2.8.0",
    ]
