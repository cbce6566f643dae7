"""What NVIDIA's and AMD's software prints, in the spellings of its different ages."""

from __future__ import annotations

import pytest

from provisioner.host import parse_nvidia
from provisioner.host.parse_nvidia import KernelModule, SeenGpu


@pytest.mark.parametrize(
    ("line", "module"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024",
            KernelModule(version="470.256.02", flavour="proprietary", machine="x86_64"),
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3-B17)",
            KernelModule(version="580.95.05", flavour="open", machine="x86_64"),
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build  (buildbrain@mobile)",
            KernelModule(version="540.4.0", flavour="open", machine="aarch64"),
        ),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.135  Fri Jan 10 20:00:00 UTC 2025",
            KernelModule(version="550.135", flavour="proprietary", machine="x86_64"),
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  59", None),
        ("GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)", None),
        ("", None),
    ],
)
def test_the_nvrm_line_tells_version_and_flavour(line: str, module: KernelModule | None) -> None:
    assert parse_nvidia.parse_kernel_module(f"{line}\nGCC version:  gcc version 11.4.0\n") == module


def test_the_flavour_of_a_module_is_its_license() -> None:
    assert parse_nvidia.parse_module_license("filename: /lib/nvidia.ko\nlicense:        Dual MIT/GPL\n") == "open"
    assert parse_nvidia.parse_module_license("NVIDIA\n") == "proprietary"
    assert parse_nvidia.parse_module_license("license:        GPL\n") is None


def test_a_module_file_is_read_by_its_own_section() -> None:
    content = b"\x7fELF\0license=Dual MIT/GPL\0firmware=nvidia/x\0srcversion=0123\0version=570.86.15\0rest"
    assert parse_nvidia.parse_module_file(content) == ("570.86.15", "open")
    assert parse_nvidia.parse_module_file(b"\x7fELF\0srcversion=570.86.15\0") == (None, None)


def test_the_csv_of_nvidia_smi_gives_one_gpu_a_line() -> None:
    text = "NVIDIA H100 80GB HBM3, 535.104.05, 0x233010DE, 9.0\n[N/A], 535.104.05, [N/A], [N/A]\n"
    assert parse_nvidia.parse_smi_csv(text) == (
        SeenGpu(name="NVIDIA H100 80GB HBM3", compute_capability="9.0", pci_device_id="2330", driver="535.104.05"),
        SeenGpu(driver="535.104.05"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "No devices were found",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA",
        'Field "compute_cap" is not a valid field to query.',
        "",
    ],
)
def test_what_nvidia_smi_says_instead_of_gpus_is_no_gpu(text: str) -> None:
    assert parse_nvidia.parse_smi_csv(text) == ()


@pytest.mark.parametrize(
    ("banner", "found"),
    [
        ("| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |", ("535.104.05", "12.2")),
        ("| NVIDIA-SMI 610.57.04      KMD Version: 610.57.04     CUDA UMD Version: 13.3     |", ("610.57.04", "13.3")),
        ("| NVIDIA-SMI 550.54.10   Driver Version: 551.61   CUDA Version: 12.4 |", ("551.61", "12.4")),
        ("| NVIDIA-SMI 390.157                Driver Version: 390.157                   |", ("390.157", None)),
        ("| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: N/A |", ("535.104.05", None)),
        ("command not found", None),
    ],
)
def test_the_banner_of_nvidia_smi_is_read_in_both_spellings(banner: str, found: tuple[str, str | None] | None) -> None:
    assert parse_nvidia.parse_smi_banner(banner) == found


@pytest.mark.parametrize(
    ("text", "version"), [("12.550.54.14", "550.54.14"), ("550.54.14", "550.54.14"), ("11.550.135", "550.135"), ("x", None)]
)
def test_the_librarys_version_loses_its_leading_cuda_major(text: str, version: str | None) -> None:
    assert parse_nvidia.parse_nvml_version(text) == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}', "12.4.1"),
        ('{"cuda": {"name": "CUDA SDK"}}', None),
        ('{"cuda": "12.4"}', None),
        ('{"cuda": {"version": "12.x"}}', None),
        ("[1]", None),
        ("{", None),
        ("[" * 100_000, None),
    ],
)
def test_the_toolkits_json_gives_the_release_or_nothing(text: str, version: str | None) -> None:
    assert parse_nvidia.parse_cuda_json(text) == version


def test_programs_tell_their_versions() -> None:
    assert parse_nvidia.parse_container_toolkit("NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c\n") == "1.17.4"
    assert parse_nvidia.parse_nvcc("Cuda compilation tools, release 12.4, V12.4.131\n") == "12.4"
    assert parse_nvidia.parse_fabric_manager("Fabric Manager version is : 535.104.05\n") == "535.104.05"
    assert parse_nvidia.parse_cuda_text("CUDA Version 10.2.89\n") == "10.2.89"


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("NVIDIA Jetson AGX Orin Developer Kit\0", "Jetson AGX Orin"),
        ("NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super\0", "Jetson Orin Nano"),
        ("NVIDIA Jetson Xavier NX Developer Kit\0", "Jetson Xavier NX"),
        ("Raspberry Pi 5 Model B Rev 1.0\0", None),
    ],
)
def test_a_jetson_board_is_named_without_its_kit(text: str, model: str | None) -> None:
    assert parse_nvidia.parse_tegra_model(text) == model


def test_the_release_of_a_jetson_joins_release_and_revision() -> None:
    assert parse_nvidia.parse_tegra_release("# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic") == "36.4.3"
    assert parse_nvidia.parse_tegra_release("# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref") == "32.7.1"


@pytest.mark.parametrize(
    ("number", "target"),
    [(90402, "gfx942"), (90010, "gfx90a"), (90012, "gfx90c"), (100300, "gfx1030"), (110501, "gfx1151"), (0, None)],
)
def test_an_amd_target_is_spelled_as_its_compiler_does(number: int, target: str | None) -> None:
    text = f"simd_count 304\ngfx_target_version {number}\n"
    assert parse_nvidia.parse_kfd_target(text) == target
