"""What an operating system's files say, in the spellings distributions really use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from provisioner.host import parse


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
    assert parse.parse_kernel_gcc(f"Linux version 6.5.0 (builder@host) {banner}") == version


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
    assert parse.parse_kernel_release(text) == release


def test_os_release_may_quote_its_values_and_may_lack_a_version() -> None:
    assert parse.parse_os_release('NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="22.04"\n') == ("ubuntu", "22.04")
    assert parse.parse_os_release("ID=arch\nBUILD_ID=rolling\n") == ("arch", None)
    assert parse.parse_os_release("VERSION_ID=1\n") is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the C library of a Linux")
def test_the_banner_in_a_real_c_library_agrees_with_what_it_says_of_itself() -> None:
    told = parse.parse_glibc_confstr(os.confstr("CS_GNU_LIBC_VERSION") or "")
    files = [path for pattern in ("lib/*/libc.so.6", "lib64/libc.so.6") for path in Path("/").glob(pattern)]
    if told is None or not files:
        pytest.skip("this Linux has no glibc")
    assert parse.parse_glibc_banner(files[0].read_bytes()) == told


def test_pci_numbers_are_hexadecimal_words() -> None:
    assert parse.parse_pci_id("0x10de\n") == "10DE"
    assert parse.parse_pci_class("0x030200\n") == "0302"
    assert parse.parse_pci_id("0x10d") is None
    assert parse.parse_pci_class("0302") is None


@pytest.mark.parametrize(
    ("content", "flag"),
    [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x06\0\0\0\x07", None), (b"\x01", None), (b"", None)],
)
def test_an_efi_flag_is_four_bytes_of_attributes_and_one_of_value(content: bytes, flag: bool | None) -> None:  # noqa: FBT001 - the expected value
    assert parse.parse_efi_flag(content) is flag


def test_the_machine_of_an_elf_file_is_read_in_either_byte_order() -> None:
    head = b"\x7fELF\x02%c" + b"\0" * 12
    assert parse.parse_elf_machine(head % 1 + b"\x3e\0") == "x86_64"
    assert parse.parse_elf_machine(head % 2 + b"\0\xb7") == "aarch64"
    assert parse.parse_elf_machine(head % 9 + b"\x3e\0") is None
    assert parse.parse_elf_machine(b"#!/bin/sh\nexit 0 # no ELF") is None


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
    assert parse.parse_wsl(release) == kind


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
    assert parse.parse_container_cgroup(text) is is_container


def test_the_first_process_may_name_its_container_manager() -> None:
    assert parse.parse_init_environment("HOME=/\0container=podman\0")
    assert not parse.parse_init_environment("HOME=/\0container=\0containers=podman\0")


def test_only_installed_packages_count() -> None:
    status = (
        "Package: a\nStatus: install ok installed\nVersion: 1:12.3.0-1ubuntu1\nDescription: x\n Version: 9\n\n"
        "Package: b\nStatus: deinstall ok config-files\nVersion: 2\n"
    )
    assert parse.parse_dpkg_status(status) == {"a": "1:12.3.0-1ubuntu1"}


@pytest.mark.parametrize(
    ("text", "version"),
    [("1:12.3.0-1ubuntu1~22.04", "12.3.0"), ("6.2+b77", "6.2"), ("535.104.05-1", "535.104.05"), ("git", None), ("", None)],
)
def test_a_packagers_part_of_a_version_is_dropped(text: str, version: str | None) -> None:
    assert parse.parse_package_version(text) == version


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
    assert parse.parse_library_file_name(name, stem) == version


def test_system_integrity_protection_is_partial_with_a_custom_configuration() -> None:
    assert parse.parse_sip("System Integrity Protection status: enabled.\n") == "enabled"
    assert parse.parse_sip("System Integrity Protection status: disabled.\n") == "disabled"
    custom = "System Integrity Protection status: enabled (Custom Configuration).\n\nConfiguration:\n\tKext Signing: disabled\n"
    assert parse.parse_sip(custom) == "partial"
    assert parse.parse_sip("csrutil: command not found") is None


def test_a_processor_tells_its_platform_and_its_hypervisor_only_on_x86() -> None:
    x86 = "processor\t: 0\nflags\t\t: fpu lm hypervisor\n"
    arm = "processor\t: 0\nFeatures\t: fp asimd\nCPU architecture: 8\n"
    assert (parse.parse_cpu_platform(x86), parse.parse_hypervisor(x86)) == ("linux/amd64", True)
    assert (parse.parse_cpu_platform(arm), parse.parse_hypervisor(arm)) == ("linux/arm64", None)
    assert parse.parse_hypervisor("flags : fpu lm\n") is False
