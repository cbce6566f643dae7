"""What the shipped matrix must say: published facts, each with where it can be read, and laws that hold across its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provisioner.versions import Version

if TYPE_CHECKING:
    from provisioner.matrix.model import Build, DriverMinimum, Matrix, Release


def release(matrix: Matrix, component: str, version: str) -> Release:
    return next(one for one in matrix.components[component].releases if one.version == Version.parse(version))


def build(matrix: Matrix, version: str, name: str, *, platform: str = "linux/amd64") -> Build:
    """The first build of a PyTorch release with this name and platform."""
    return next(one for one in release(matrix, "pytorch", version).builds if one.name == name and platform in one.platforms)


def default(matrix: Matrix, version: str, *, platform: str = "linux/amd64") -> Build:
    """What the default index serves."""
    builds = release(matrix, "pytorch", version).builds
    return next(one for one in builds if one.default and platform in one.platforms)


def wanted(build: Build, component: str) -> str:
    return next((str(need) for need in build.requires if need.component == component), "")


def minimum(matrix: Matrix, version: str) -> DriverMinimum:
    found = release(matrix, "cuda", version).driver
    assert found is not None
    return found


def allowed_gpus(matrix: Matrix, driver: str) -> set[str]:
    """The compute capabilities the rules leave to a driver."""
    rules = [rule for rule in matrix.rules if rule.when.component == "driver" and rule.when.allows(Version.parse(driver))]
    needs = [need for rule in rules for need in rule.require if need.component == "gpu"]
    capabilities = [one.version for one in matrix.components["gpu"].releases]
    return {str(version) for version in capabilities if all(need.allows(version) for need in needs)}


@pytest.mark.parametrize(
    ("version", "name"),
    # torch/version.py of each default Linux x86_64 wheel
    [
        ("1.13.1", "cu117"),
        ("2.0.1", "cu117"),
        ("2.1.0", "cu121"),
        ("2.4.1", "cu121"),
        ("2.5.0", "cu124"),
        ("2.6.0", "cu124"),
        ("2.7.1", "cu126"),
        ("2.8.0", "cu128"),
        ("2.10.0", "cu128"),
        ("2.11.0", "cu130"),
        ("2.14.1", "cu130"),
        ("2.15.0", "cu132"),
    ],
)
def test_the_default_build_is_the_cuda_of_the_published_wheel(matrix: Matrix, version: str, name: str) -> None:
    found = default(matrix, version)
    assert (found.name, found.index, found.local) == (name, "pypi", "")


def test_a_default_wheel_holds_no_ptx(matrix: Matrix) -> None:
    """Fat-binary records: no default wheel since 1.6.0 has PTX in its main library."""
    releases = [found for found in matrix.components["pytorch"].releases if found.version >= Version.parse("1.6")]
    defaults = [one for found in releases for one in found.builds if one.default]
    assert {one.ptx for one in defaults if one.accelerator == "cuda" and "linux/amd64" in one.platforms} == {()}


@pytest.mark.parametrize(
    ("version", "name", "has_volta"),
    # fat-binary records of 2.8.0 and 2.10.0; pytorch PR 146265 and issue 172352 for 2.7 and 2.11
    [("2.7.1", "cu128", False), ("2.8.0", "cu128", True), ("2.10.0", "cu128", True), ("2.11.0", "cu128", False)],
)
def test_volta_comes_and_goes_in_cu128(matrix: Matrix, version: str, name: str, has_volta: bool) -> None:  # noqa: FBT001 - a table
    assert ("sm_70" in (build(matrix, version, name).sass or ())) is has_volta


@pytest.mark.parametrize(
    ("target", "last"),
    # fat-binary records of the default wheels
    [("sm_37", "2.0.1"), ("sm_50", "2.7.1"), ("sm_60", "2.7.1"), ("sm_70", "2.10.0")],
)
def test_the_last_default_build_for_an_old_gpu(matrix: Matrix, target: str, last: str) -> None:
    releases = matrix.components["pytorch"].releases
    having = [one.version for one in releases if target in (default(matrix, str(one.version)).sass or ())]
    assert str(max(having)) == last


def test_maxwell_is_served_by_cu126_until_2_14(matrix: Matrix) -> None:
    """Pytorch issue 190385 and PR 196249: 2.15 drops cu126, and with it Maxwell, Pascal and Volta."""
    releases = matrix.components["pytorch"].releases
    having = {one.version for one in releases for variant in one.builds if "sm_50" in (variant.sass or ())}
    assert str(max(having)) == "2.14.1"
    assert "cu126" not in {one.name for one in release(matrix, "pytorch", "2.15.0").builds}


def test_the_first_default_build_for_blackwell_is_2_8(matrix: Matrix) -> None:
    """Fat-binary records; the 2.7 cu128 variant is not what the default index serves."""
    assert "sm_120" in (default(matrix, "2.8.0").sass or ())
    assert "sm_120" not in (default(matrix, "2.7.1").sass or ())
    assert build(matrix, "2.7.0", "cu128").index == "pytorch-cu128"
    assert build(matrix, "2.7.0", "cu128").ptx == ("compute_120",)


def test_arm64_was_a_cpu_build_until_2_11(matrix: Matrix) -> None:
    """torch/version.py of the aarch64 wheels; 2.11.0 has neither sm_75 nor sm_86."""
    assert default(matrix, "2.10.0", platform="linux/arm64").accelerator == "cpu"
    first = default(matrix, "2.11.0", platform="linux/arm64")
    assert (first.name, first.sass) == ("cu130", ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120"))


@pytest.mark.parametrize(
    ("version", "expected"),
    # METADATA of the default wheels; 9.1.0.70 has a post-release that the pin excludes
    [("2.3.1", "==8.9.2.26"), ("2.4.0", "9.1.0.70"), ("2.7.1", "==9.5.1.17"), ("2.11.0", "==9.19.0.56")],
)
def test_the_cudnn_pin_is_that_of_the_wheel(matrix: Matrix, version: str, expected: str) -> None:
    assert wanted(default(matrix, version), "cudnn") == expected


def test_an_nccl_pin_excludes_the_post_release(matrix: Matrix) -> None:
    """2.26.2.post1 is the same NCCL built with another CUDA; PEP 440's ==2.26.2 does not select it."""
    need = next(need for need in default(matrix, "2.7.1").requires if need.component == "nccl")
    assert need.allows(Version.parse("2.26.2"))
    assert not need.allows(Version.parse("2.26.2.post1"))


def test_python_3_12_gets_torch_2_2_1_without_triton(matrix: Matrix) -> None:
    """METADATA: triton==2.2.0; python_version < "3.12" in 2.2.1, without that marker in 2.2.0."""
    builds = [one for one in release(matrix, "pytorch", "2.2.1").builds if one.name == "cu121"]
    assert [(wanted(one, "python"), wanted(one, "triton")) for one in builds] == [
        ("3.8 or 3.9 or 3.10 or 3.11", "==2.2.0"),
        ("3.12", ""),
    ]
    assert wanted(build(matrix, "2.2.0", "cu121"), "triton") == "==2.2.0"


def pythons(matrix: Matrix, version: str) -> list[str]:
    builds = [one for one in release(matrix, "pytorch", version).builds if one.default and "linux/amd64" in one.platforms]
    return [str(python) for one in builds for need in one.requires if need.component == "python" for python in need.one_of]


def test_the_tag_list_decides_about_python_and_not_requires_python(matrix: Matrix) -> None:
    """2.5.1 says Requires-Python >=3.8 and has no cp38 wheel."""
    assert pythons(matrix, "2.5.1") == ["3.9", "3.10", "3.11", "3.12", "3.13"]
    assert pythons(matrix, "2.14.1") == ["3.10", "3.11", "3.12", "3.13", "3.14"]
    assert pythons(matrix, "2.15.0") == ["3.11", "3.12", "3.13", "3.14", "3.15"]


@pytest.mark.parametrize(
    ("version", "platform", "glibc"),
    # ELF symbol versions and wheel tags
    [
        ("2.3.1", "linux/amd64", ">=2.17"),
        ("2.6.0", "linux/amd64", ">=2.17"),
        ("2.6.0", "linux/arm64", ">=2.28"),
        ("2.7.0", "linux/amd64", ">=2.28"),
    ],
)
def test_glibc_is_what_the_wheel_really_needs(matrix: Matrix, version: str, platform: str, glibc: str) -> None:
    assert wanted(default(matrix, version, platform=platform), "glibc") == glibc


def test_cuda_12_7_was_never_released(matrix: Matrix) -> None:
    """Comment in NixOS/nixpkgs cuda.nix; driver branch 565 reports 12.7 all the same."""
    assert not [one for one in matrix.components["cuda"].releases if one.version.release[:2] == (12, 7)]
    assert str(matrix.native_cuda(Version.parse("565.57.01"))) == "12.7"


@pytest.mark.parametrize(
    ("version", "toolkit", "floor"),
    # CUDA 13.2 Update 2 release notes Table 3; Compatibility guide Table 1; uv for 11.0
    [
        ("11.0.3", "450.51.06", "450.36.06"),
        ("11.8.0", "520.61.05", "450.80.02"),
        ("12.4.1", "550.54.15", "525.60.13"),
        ("12.8.0", "570.26", "525.60.13"),
        ("13.0.0", "580.65.06", "580.65.06"),
    ],
)
def test_the_toolkit_driver_is_not_the_floor(matrix: Matrix, version: str, toolkit: str, floor: str) -> None:
    found = minimum(matrix, version)
    assert (str(found.toolkit), str(found.minor_version)) == (toolkit, floor)


def test_a_patch_release_has_no_driver_row(matrix: Matrix) -> None:
    """13.0.3 changes cuBLAS only (metapackage pins); NVIDIA's table has no row for it."""
    assert minimum(matrix, "13.0.3").toolkit is None


@pytest.mark.parametrize(
    ("version", "branches"),
    # NVIDIA_REQUIRE_CUDA of the container images
    [
        ("12.8.1", ("470", "535", "550", "560", "565")),
        ("12.9.1", ("535", "550", "560", "565", "570")),
        ("13.1.1", ("535", "550", "570", "575", "580")),
    ],
)
def test_forward_compatibility_skips_branches(matrix: Matrix, version: str, branches: tuple[str, ...]) -> None:
    assert minimum(matrix, version).forward_compat == branches


@pytest.mark.parametrize(
    ("driver", "cuda"),
    # release notes Table 3; redistributable manifests for 610 and 620
    [("470.256.02", "11.4"), ("535.104.05", "12.2"), ("580.65.06", "13.0"), ("610.57.04", "13.3"), ("620.70.06", "13.5")],
)
def test_a_branch_runs_its_cuda_natively(matrix: Matrix, driver: str, cuda: str) -> None:
    assert str(matrix.native_cuda(Version.parse(driver))) == cuda


@pytest.mark.parametrize(
    ("driver", "newest", "refused"),
    # MODULES_KERNEL_MAX of Gentoo's ebuilds, per release and not per branch
    [("580.65.06", "6.16", "6.17"), ("580.95.05", "6.18", "6.19"), ("580.173.02", "7.1", "7.2"), ("470.256.02", "6.9", "6.10")],
)
def test_the_newest_kernel_is_per_driver_release(matrix: Matrix, driver: str, newest: str, refused: str) -> None:
    (need,) = release(matrix, "driver", driver).requires
    assert need.allows(Version.parse(newest))
    assert need.allows(Version.parse(f"{newest}.12-generic"))
    assert not need.allows(Version.parse(refused))


@pytest.mark.parametrize(
    ("driver", "has", "lacks"),
    [
        ("470.256.02", {"3.5", "7.0", "8.6"}, {"8.9", "9.0", "10.0"}),
        ("580.95.05", {"5.2", "7.0", "9.0", "10.3", "12.1"}, {"3.5", "10.7"}),
        ("590.48.01", {"7.5", "12.0"}, {"7.0", "6.1"}),
        ("560.35.03", {"9.0"}, {"10.0", "12.0"}),
    ],
)
def test_a_driver_serves_the_gpus_of_its_time(matrix: Matrix, driver: str, has: set[str], lacks: set[str]) -> None:
    found = allowed_gpus(matrix, driver)
    assert has <= found
    assert not lacks & found


@pytest.mark.parametrize(
    ("name", "capability", "kind"),
    # NVIDIA's compute-capability pages; nvidia-smi spellings
    [
        ("NVIDIA H100 80GB HBM3", "9.0", "datacenter"),
        ("Tesla V100-SXM2-32GB", "7.0", "datacenter"),
        ("NVIDIA A100-SXM4-80GB", "8.0", "datacenter"),
        ("NVIDIA A10", "8.6", "datacenter"),
        ("NVIDIA GeForce RTX 5090", "12.0", "geforce"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9", "workstation"),
        ("NVIDIA GeForce RTX 3050 A Laptop GPU", "8.9", "geforce"),
        ("Jetson AGX Orin", "8.7", "jetson"),
    ],
)
def test_a_product_has_its_compute_capability(matrix: Matrix, name: str, capability: str, kind: str) -> None:
    gpu = next(one for one in matrix.gpus if one.name == name)
    assert (gpu.compute_capability, gpu.kind) == (capability, kind)


def test_blackwell_and_grace_hopper_start_with_open_modules_only(matrix: Matrix) -> None:
    """Gentoo's ebuild and kernel logs; press coverage of NVIDIA's announcement for Grace Hopper."""
    modules = {one.name: one.modules for one in matrix.gpus}
    assert modules["NVIDIA B200"] == modules["NVIDIA GH200 480GB"] == ("open",)
    assert modules["Tesla V100-SXM2-16GB"] == ("proprietary",)
    assert modules["NVIDIA H100 PCIe"] == ("open", "proprietary")


@pytest.mark.parametrize(
    ("reference", "glibc", "python"),
    # docker-library/official-images and Debian's libc6; Ubuntu's python3
    [
        ("python:3.12-slim-bookworm", "2.36", "3.12"),
        ("python:3.13-slim-trixie", "2.41", "3.13"),
        ("ubuntu:22.04", "2.35", "3.10"),
        ("nvidia/cuda:12.6.3-cudnn-runtime-ubuntu24.04", "2.39", "3.12"),
    ],
)
def test_an_image_holds_its_distribution(matrix: Matrix, reference: str, glibc: str, python: str) -> None:
    image = next(one for one in matrix.images if one.reference == reference)
    assert (image.glibc, image.python or image.apt_python) == (glibc, python)


def test_the_cuda_12_8_image_asks_for_more_than_compatibility_does(matrix: Matrix) -> None:
    """dist/12.8.1/ubuntu2204/base/Dockerfile: GeForce is not among the brands, 470 is among the branches."""
    image = next(one for one in matrix.images if one.reference == "nvidia/cuda:12.8.1-runtime-ubuntu22.04")
    terms = image.require_cuda.split()
    assert terms[0] == "cuda>=12.8"
    assert "brand=tesla,driver>=470,driver<471" in terms
    assert "geforce" not in image.require_cuda


def test_tags_that_never_existed_are_absent(matrix: Matrix) -> None:
    """Tag lists of the container repository: no cudnn image for 12.2.0 or 13.1.0, no ubuntu24.04 for 12.4.1."""
    references = {one.reference for one in matrix.images}
    assert "nvidia/cuda:13.1.0-cudnn-runtime-ubuntu24.04" not in references
    assert "nvidia/cuda:12.4.1-runtime-ubuntu24.04" not in references
    assert "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04" in references
    assert "nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04" in references


def test_cudnn_drops_gpus_before_the_compiler_does(matrix: Matrix) -> None:
    """Support matrices of cuDNN 9.10.2 and 9.17.0; fat-binary records of 9.10.2 and 9.11.0."""
    floors = {}
    for text in ("9.10.2.21", "9.11.0.98", "9.17.0.29"):
        rules = [rule for rule in matrix.rules if rule.when.component == "cudnn" and rule.when.allows(Version.parse(text))]
        needs = [need for rule in rules if not rule.on for need in rule.require if need.component == "gpu"]
        capabilities = [one.version for one in matrix.components["gpu"].releases]
        floors[text] = min(version for version in capabilities if all(need.allows(version) for need in needs))
    assert {text: str(floor) for text, floor in floors.items()} == {"9.10.2.21": "5.0", "9.11.0.98": "7.5", "9.17.0.29": "7.5"}
    names = [one.name for one in release(matrix, "cudnn", "9.10.2.21").builds]
    assert list(dict.fromkeys(names)) == ["cu12", "cu11"]


def test_every_pin_of_a_build_is_not_younger_than_the_release(matrix: Matrix) -> None:
    """A wheel cannot pin what did not exist; a wrong date or a wrong pin shows here."""
    late = []
    for torch in matrix.components["pytorch"].releases:
        for one in torch.builds:
            for need in (need for need in one.requires if need.component in {"cudnn", "nccl", "cuda"}):
                choices = [found for found in matrix.components[need.component].releases if need.allows(found.version)]
                # an unknown date sorts first, so one undated choice is enough
                if min(found.released for found in choices) > torch.released:
                    late.append((str(torch.version), one.name, need.component, str(need)))
    assert late == []


def test_every_cuda_build_has_a_toolkit_a_cudnn_and_a_python_it_can_be_used_with(matrix: Matrix) -> None:
    for torch in matrix.components["pytorch"].releases:
        for one in torch.builds:
            needed = {need.component for need in one.requires}
            assert "python" in needed, (torch.version, one.name)
            # A release of Jetson Linux has one C library.
            if {"linux/amd64", "linux/arm64"} & set(one.platforms) and "jetson" not in needed:
                assert "glibc" in needed, (torch.version, one.name)
            if one.accelerator == "cuda":
                assert "cuda" in needed, (torch.version, one.name)


def test_measured_citations_name_an_artefact(matrix: Matrix) -> None:
    """A default CUDA build was measured, so its citation says so and the wheel is named."""
    for torch in matrix.components["pytorch"].releases:
        found = default(matrix, str(torch.version))
        assert matrix.citations[found.source[0]].measured
        assert found.artefact.startswith(f"torch-{torch.version}-")
