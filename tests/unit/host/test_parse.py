"""What a machine and its software say of themselves, in the spellings that distributions and their ages really use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from provisioner.host import parse
from provisioner.host.parse import KernelModule, SeenGpu


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ("(x86_64-linux-gnu-gcc-11 (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38)", "11.4.0"),
        ("(gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40)", "12.2.0"),
        ("(gcc version 8.5.0 20210514 (Red Hat 8.5.0-4) (GCC)) #1 SMP", "8.5.0"),
        ("(gcc version 9.4.0 (Ubuntu 9.4.0-1ubuntu1~20.04.2)) #202-Ubuntu", "9.4.0"),
        ("(gcc (GCC) 14.1.1 20240607 (Red Hat 14.1.1-5), GNU ld version 2.41-37.fc40)", "14.1.1"),
        ("(aarch64-buildroot-linux-gnu-gcc.br_real (Buildroot 2022.08) 11.3.0, GNU ld (GNU Binutils) 2.38)", "11.3.0"),
        ("(clang version 17.0.6, LLD 17.0.6)", None),
    ],
)
def test_the_compiler_of_the_kernel_is_read_from_its_banner(banner: str, version: str | None) -> None:
    assert parse.kernel_gcc(f"Linux version 6.5.0 (builder@host) {banner}") == version


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("6.5.0-1017-aws\n", "6.5.0-1017-aws"),
        ("5.14.0-362.el9.x86_64", "5.14.0-362.el9.x86_64"),
        ("6.12.0-rc1+", "6.12.0-rc1+"),
        ("", None),
        ("../../etc", None),
        ("6.5.0\0x", None),
    ],
)
def test_a_kernel_release_is_one_word_that_starts_with_numbers(text: str, release: str | None) -> None:
    assert parse.kernel_release(text) == release


def test_os_release_may_quote_its_values_and_may_lack_a_version() -> None:
    assert parse.os_release('NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\n') == ("ubuntu", "22.04")
    assert parse.os_release("ID=arch\nBUILD_ID=rolling\n") == ("arch", None)
    assert parse.os_release("VERSION_ID=1\n") is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the C library of a Linux")
def test_the_banner_in_a_real_c_library_agrees_with_what_it_says_of_itself() -> None:
    told = parse.glibc_confstr(os.confstr("CS_GNU_LIBC_VERSION") or "")
    files = [path for pattern in ("lib/*/libc.so.6", "lib64/libc.so.6") for path in Path("/").glob(pattern)]
    if told is None or not files:
        pytest.skip("this Linux has no glibc")
    assert parse.glibc_banner(files[0].read_bytes()) == told


def test_pci_numbers_are_hexadecimal_words() -> None:
    assert parse.pci_id("0x10de\n") == "10DE"
    assert parse.pci_class("0x030200\n") == "0302"
    assert parse.pci_id("0x10d") is None
    assert parse.pci_class("0302") is None


@pytest.mark.parametrize(
    ("content", "flag"),
    [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x06\0\0\0\x07", None), (b"\x01", None), (b"", None)],
)
def test_an_efi_flag_is_four_bytes_of_attributes_and_one_of_value(content: bytes, flag: bool | None) -> None:  # noqa: FBT001 - the expected value
    assert parse.efi_flag(content) is flag


def test_the_machine_of_an_elf_file_is_read_in_either_byte_order() -> None:
    head = b"\x7fELF\x02%c" + b"\0" * 12
    assert parse.elf_machine(head % 1 + b"\x3e\0") == "x86_64"
    assert parse.elf_machine(head % 2 + b"\0\xb7") == "aarch64"
    assert parse.elf_machine(head % 9 + b"\x3e\0") is None
    assert parse.elf_machine(b"#!/bin/sh\nexit 0 # no ELF") is None


@pytest.mark.parametrize(
    ("release", "kind"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", "wsl2"),
        ("4.4.0-19041-Microsoft", "wsl1"),
        ("6.5.0-1017-aws", None),
        ("", None),
    ],
)
def test_wsl_is_told_by_the_kernel_release(release: str, kind: str | None) -> None:
    assert parse.wsl(release) == kind


@pytest.mark.parametrize(
    ("text", "is_container"),
    [
        ("12:cpuset:/docker/4fd5e2\n", True),
        ("0::/kubepods.slice/kubepods/burstable/pod1\n", True),
        ("0::/system.slice/docker-4fd5e2.scope\n", True),
        ("0::/machine.slice/libpod-4fd5e2.scope/container\n", True),
        ("0::/init.scope\n", False),
        ("0::/system.slice/docker.service\n", False),
        ("", False),
    ],
)
def test_a_container_is_told_by_the_control_group_of_its_first_process(text: str, is_container: bool) -> None:  # noqa: FBT001 - the expected value
    assert parse.container_cgroup(text) is is_container


def test_the_first_process_may_name_its_container_manager() -> None:
    assert parse.init_environment("HOME=/\0container=podman\0")
    assert not parse.init_environment("HOME=/\0container=\0containers=podman\0")


def test_only_installed_packages_count() -> None:
    status = (
        "Package: a\nStatus: install ok installed\nVersion: 1:12.3.0-1ubuntu1\nDescription: x\n Version: 9\n\n"
        "Package: b\nStatus: deinstall ok config-files\nVersion: 2\n"
    )
    assert parse.dpkg_status(status) == {"a": "1:12.3.0-1ubuntu1"}


@pytest.mark.parametrize(
    ("text", "version"),
    [("1:12.3.0-1ubuntu1~22.04", "12.3.0"), ("6.2+b77", "6.2"), ("535.104.05-1", "535.104.05"), ("git", None), ("", None)],
)
def test_a_packagers_part_of_a_version_is_dropped(text: str, version: str | None) -> None:
    assert parse.package_version(text) == version


@pytest.mark.parametrize(
    ("name", "stem", "version"),
    [
        ("libcudnn.so.8.9.2", "libcudnn", "8.9.2"),
        ("libcuda.so.550.135", "libcuda", "550.135"),
        ("libcuda.so.535.104.05", "libcuda", "535.104.05"),
        ("libcudnn.so.8", "libcudnn", None),
        ("libcuda.so.1.1", "libcuda", None),
        ("libcudnn_ops.so.9.1.0", "libcudnn", None),
    ],
)
def test_a_library_tells_its_version_only_by_a_full_file_name(name: str, stem: str, version: str | None) -> None:
    assert parse.library_file_name(name, stem) == version


def test_system_integrity_protection_is_partial_with_a_custom_configuration() -> None:
    assert parse.sip("System Integrity Protection status: enabled.\n") == "enabled"
    assert parse.sip("System Integrity Protection status: disabled.\n") == "disabled"
    custom = "System Integrity Protection status: enabled (Custom Configuration).\n\nConfiguration:\n\tKext Signing: disabled\n"
    assert parse.sip(custom) == "partial"
    assert parse.sip("csrutil: command not found") is None


def test_a_processor_tells_its_platform_and_its_hypervisor_only_on_x86() -> None:
    x86 = "processor\t: 0\nflags\t\t: fpu lm hypervisor\n"
    arm = "processor\t: 0\nFeatures\t: fp asimd\nCPU architecture: 8\n"
    assert (parse.cpu_machine(x86), parse.hypervisor(x86)) == ("x86_64", True)
    assert (parse.cpu_machine(arm), parse.hypervisor(arm)) == ("aarch64", None)
    assert parse.hypervisor("flags : fpu lm\n") is False


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
    assert parse.kernel_module(f"{line}\nGCC version:  gcc version 11.4.0\n") == module


def test_the_flavour_of_a_module_is_its_license() -> None:
    assert parse.module_license("filename: /lib/nvidia.ko\nlicense:        Dual MIT/GPL\n") == "open"
    assert parse.module_license("NVIDIA\n") == "proprietary"
    assert parse.module_license("license:        GPL\n") is None


def test_a_module_file_is_read_by_its_own_section() -> None:
    content = b"\x7fELF\0license=Dual MIT/GPL\0firmware=nvidia/x\0srcversion=0123\0version=570.86.15\0rest"
    assert parse.module_file(content) == ("570.86.15", "open")
    assert parse.module_file(b"\x7fELF\0srcversion=570.86.15\0") == (None, None)


def test_the_csv_of_nvidia_smi_gives_one_gpu_a_line() -> None:
    text = "NVIDIA H100 80GB HBM3, 535.104.05, 0x233010DE, 9.0\n[N/A], 535.104.05, [N/A], [N/A]\n"
    assert parse.smi_csv(text) == (
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
    assert parse.smi_csv(text) == ()


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
    assert parse.smi_banner(banner) == found


@pytest.mark.parametrize(
    ("text", "version"), [("12.550.54.14", "550.54.14"), ("550.54.14", "550.54.14"), ("11.550.135", "550.135"), ("x", None)]
)
def test_the_librarys_version_loses_its_leading_cuda_major(text: str, version: str | None) -> None:
    assert parse.nvml_version(text) == version


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
    assert parse.cuda_json(text) == version


def test_programs_tell_their_versions() -> None:
    assert parse.container_toolkit("NVIDIA Container Toolkit CLI version 1.17.4\ncommit: 9b69590c\n") == "1.17.4"
    assert parse.nvcc("Cuda compilation tools, release 12.4, V12.4.131\n") == "12.4"
    assert parse.fabric_manager("Fabric Manager version is : 535.104.05\n") == "535.104.05"
    assert parse.cuda_text("CUDA Version 10.2.89\n") == "10.2.89"


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
    assert parse.tegra_model(text) == model


def test_the_release_of_a_jetson_joins_release_and_revision() -> None:
    assert parse.tegra_release("# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic") == "36.4.3"
    assert parse.tegra_release("# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref") == "32.7.1"


@pytest.mark.parametrize(
    ("number", "target"),
    [(90402, "gfx942"), (90010, "gfx90a"), (90012, "gfx90c"), (100300, "gfx1030"), (110501, "gfx1151"), (0, None)],
)
def test_an_amd_target_is_spelled_as_its_compiler_does(number: int, target: str | None) -> None:
    text = f"simd_count 304\ngfx_target_version {number}\n"
    assert parse.kfd_target(text) == target


@pytest.mark.parametrize(
    ("text", "like"),
    [
        (
            'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="21.3"\nVERSION_CODENAME=virginia\nUBUNTU_CODENAME=jammy\n',
            "ubuntu 22.04",
        ),
        ('ID=pop\nID_LIKE="ubuntu debian"\nVERSION_ID="22.04"\nUBUNTU_CODENAME=jammy\n', "ubuntu 22.04"),
        ('ID=pop\nID_LIKE="ubuntu debian"\nVERSION_ID="24.04"\n', "ubuntu 24.04"),
        ('ID=zorin\nID_LIKE="ubuntu debian"\nVERSION_ID="17"\n', None),
        ('ID=linuxmint\nID_LIKE=debian\nVERSION_ID="6"\nDEBIAN_CODENAME=bookworm\n', "debian 12"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n', None),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\nPLATFORM_ID="platform:el9"\n', "rhel 9.4"),
        ('ID="centos"\nID_LIKE="rhel fedora"\nVERSION_ID="9"\nPLATFORM_ID="platform:el9"\n', "rhel 9"),
        ('ID="ol"\nID_LIKE="fedora"\nVERSION_ID="8.10"\nPLATFORM_ID="platform:el8"\n', "rhel 8.10"),
        ('ID="scientific"\nID_LIKE="rhel centos fedora"\nVERSION_ID="7.9"\n', "rhel 7.9"),
        ('ID=nobara\nID_LIKE="rhel centos fedora"\nVERSION_ID=41\nPLATFORM_ID="platform:f41"\n', "fedora 41"),
        ('ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\nPLATFORM_ID="platform:al2023"\n', None),
        ("ID=manjaro\nID_LIKE=arch\n", "arch"),
        ("ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n", None),
        ("", None),
    ],
)
def test_a_derivative_names_the_system_it_is_derived_from(text: str, like: str | None) -> None:
    assert parse.os_like(text) == like
