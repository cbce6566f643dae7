"""Whole machines, saved as trees of files, become the profiles that stand beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.document import load_document
from provisioner.errors import UsageError
from provisioner.host.inspect import Inspection, inspect_host
from provisioner.host.model import HostGpu, SecureBoot
from provisioner.host.profile import KIND, host_document, host_from_document
from provisioner.words.remark import remark_words

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTS = Path(__file__).parents[2] / "fixtures/hosts"
NAMES = sorted(path.name for path in HOSTS.iterdir() if path.is_dir())
MODULES = {"6.8.5": "6.2"}

PRODUCTS = {
    "2330": ("NVIDIA H100", "9.0"),
    "1eb8": ("Tesla T4", "7.5"),
    "0x2684": ("NVIDIA GeForce RTX 4090", "8.9"),
    "Jetson AGX Orin": ("Jetson AGX Orin", "8.7"),
}


def write(root: Path, path: str, content: str | bytes) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else content.encode())


def remarks(inspection: Inspection) -> tuple[str, ...]:
    return tuple(map(remark_words, inspection.remarks))


def add_gpu(root: Path, *, slot: str = "0000:01:00.0", device: str = "0x2684") -> None:
    for name, text in {"vendor": "0x10de", "device": device, "class": "0x030000"}.items():
        write(root, f"sys/bus/pci/devices/{slot}/{name}", f"{text}\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_machine_becomes_its_profile(name: str, golden: Callable[[Path, str], None]) -> None:
    profile = HOSTS / f"{name}.yaml"
    golden(profile, host_document(inspect_host(HOSTS / name, gpu_names=PRODUCTS, modules=MODULES).host))


@pytest.mark.parametrize("name", NAMES)
def test_the_profile_of_a_saved_machine_reads_back(name: str) -> None:
    read = host_from_document(load_document(HOSTS / f"{name}.yaml", kind=KIND))
    assert read == inspect_host(HOSTS / name, gpu_names=PRODUCTS, modules=MODULES).host


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("ubuntu-22.04-h100-open", ()),
        ("debian-12-no-gpu", ()),
        ("secure-boot", ("driver: NVIDIA 550.107.02 is installed for kernel 6.8.0-45-generic, but not loaded",)),
        ("nouveau", ("gpus: no product is known for PCI device 1B06",)),
        ("wsl2", ("gpus: WSL does not show the GPU on its PCI bus, and the driver's library did not answer",)),
        ("sandbox-without-sys", ("gpus: the PCI bus cannot be read",)),
        ("macos-10.13", ("gpus: not read on macOS; add them to the profile",)),
    ],
)
def test_what_could_not_be_learned_is_said(name: str, notes: tuple[str, ...]) -> None:
    assert remarks(inspect_host(HOSTS / name, gpu_names=PRODUCTS, modules=MODULES)) == notes


def test_no_gpu_is_stated_only_where_the_bus_was_readable(tmp_path: Path) -> None:
    assert inspect_host(HOSTS / "debian-12-no-gpu").host.gpus == ()
    assert inspect_host(tmp_path).host.gpus is None


def test_an_empty_tree_is_a_machine_of_which_nothing_is_known(tmp_path: Path) -> None:
    assert host_document(inspect_host(tmp_path).host) == "{}\n"


def test_a_gpu_whose_product_is_unknown_keeps_its_pci_id(tmp_path: Path) -> None:
    add_gpu(tmp_path, device="0x1b06")
    inspection = inspect_host(tmp_path)
    assert inspection.host.gpus == (HostGpu(pci_device_id="1B06", count=1),)
    assert remarks(inspection) == ("gpus: no product is known for PCI device 1B06",)


def test_unlike_gpus_stay_apart_and_like_ones_are_counted(tmp_path: Path) -> None:
    for slot, device in (("0000:01:00.0", "0x2684"), ("0000:02:00.0", "0x1eb8"), ("0000:03:00.0", "0x2684")):
        add_gpu(tmp_path, slot=slot, device=device)
    assert inspect_host(tmp_path, gpu_names=PRODUCTS, modules=MODULES).host.gpus == (
        HostGpu(name="NVIDIA GeForce RTX 4090", compute_capability="8.9", pci_device_id="2684", count=2),
        HostGpu(name="Tesla T4", compute_capability="7.5", pci_device_id="1EB8", count=1),
    )


def test_user_space_and_kernel_of_different_versions_are_both_kept(tmp_path: Path) -> None:
    add_gpu(tmp_path)
    write(tmp_path, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n")
    write(tmp_path, "usr/lib64/libcuda.so.550.54.15", "")
    inspection = inspect_host(tmp_path, gpu_names=PRODUCTS, modules=MODULES)
    assert inspection.host.driver is not None
    assert inspection.host.driver.version == "535.104.05"
    assert inspection.host.userspace_driver == "550.54.15"
    assert remarks(inspection) == ("userspace_driver: libcuda is 550.54.15, but the loaded kernel module is 535.104.05",)


def test_the_module_of_the_running_driver_is_told_beside_one_that_has_another_card(tmp_path: Path) -> None:
    write(tmp_path, "proc/modules", "nouveau 3698688 4 - Live 0x0\nnvidia 8609792 20 - Live 0x0\n")
    assert inspect_host(tmp_path).host.loaded_modules == ("nouveau", "nvidia")
    write(tmp_path, "proc/modules", "nouveau 3698688 4 - Live 0x0\n")
    assert inspect_host(tmp_path).host.loaded_modules == ("nouveau",)
    write(tmp_path, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n")
    assert inspect_host(tmp_path).host.loaded_modules == ("nouveau", "nvidia")


def test_several_user_space_drivers_are_no_answer(tmp_path: Path) -> None:
    write(tmp_path, "usr/lib64/libcuda.so.550.54.15", "")
    write(tmp_path, "usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05", "")
    inspection = inspect_host(tmp_path)
    assert inspection.host.userspace_driver is None
    assert "userspace_driver: several libcuda are installed: 535.104.05, 550.54.15" in remarks(inspection)


def test_the_flavour_comes_from_the_license_where_the_driver_does_not_say(tmp_path: Path) -> None:
    import lzma

    write(tmp_path, "proc/sys/kernel/osrelease", "6.9.4-200.fc40.x86_64\n")
    write(tmp_path, "sys/module/nvidia/version", "570.86.15\n")
    module = lzma.compress(b"\x7fELF\0license=Dual MIT/GPL\0version=570.86.15\0")
    write(tmp_path, "lib/modules/6.9.4-200.fc40.x86_64/extra/nvidia.ko.xz", module)
    driver = inspect_host(tmp_path).host.driver
    assert driver is not None
    assert (driver.version, driver.module) == ("570.86.15", "open")


def test_a_module_file_that_is_broken_tells_nothing(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/osrelease", "6.9.4-200.fc40.x86_64\n")
    write(tmp_path, "sys/module/nvidia/version", "570.86.15\n")
    write(tmp_path, "lib/modules/6.9.4-200.fc40.x86_64/extra/nvidia.ko.xz", b"\xfd7zXZ\0 cut short")
    driver = inspect_host(tmp_path).host.driver
    assert driver is not None
    assert (driver.version, driver.module) == ("570.86.15", None)


def test_an_amd_gpu_that_is_not_offered_for_computing_is_unknown(tmp_path: Path) -> None:
    for name, text in {"vendor": "0x1002", "device": "0x74a1", "class": "0x120000"}.items():
        write(tmp_path, f"sys/bus/pci/devices/0000:01:00.0/{name}", text)
    inspection = inspect_host(tmp_path)
    assert inspection.host.gpus is None
    assert remarks(inspection) == (
        "gpus: an AMD GPU is on the PCI bus, but amdgpu does not offer it for computing (/sys/class/kfd)",
    )


def test_an_amd_gpu_beside_nvidias_is_left_out_and_said(tmp_path: Path) -> None:
    add_gpu(tmp_path)
    write(tmp_path, "sys/class/kfd/kfd/topology/nodes/1/properties", "gfx_target_version 100306\n")
    inspection = inspect_host(tmp_path, gpu_names=PRODUCTS, modules=MODULES)
    assert inspection.host.gpus is not None
    assert [gpu.name for gpu in inspection.host.gpus] == ["NVIDIA GeForce RTX 4090"]
    assert remarks(inspection) == ("gpus: 1 AMD GPU(s) stand beside NVIDIA's and are left out",)


def test_a_gpu_given_to_a_virtual_machine_is_held_by_another_module(tmp_path: Path) -> None:
    add_gpu(tmp_path)
    (tmp_path / "sys/bus/pci/devices/0000:01:00.0/driver").symlink_to("../../drivers/vfio-pci")
    assert inspect_host(tmp_path).host.loaded_modules == ("vfio_pci",)


@pytest.mark.parametrize(
    ("gpu", "switch", "nvswitch"), [("0x2330", True, "present"), ("0x2330", False, "none"), ("0x2901", False, None)]
)
def test_an_nvswitch_is_a_bridge_on_the_bus_unless_the_gpus_are_newer(
    tmp_path: Path, gpu: str, *, switch: bool, nvswitch: str | None
) -> None:
    add_gpu(tmp_path, device=gpu)
    if switch:
        add_gpu(tmp_path, slot="0000:07:00.0", device="0x22a3")
        write(tmp_path, "sys/bus/pci/devices/0000:07:00.0/class", "0x068000\n")
    host = inspect_host(tmp_path, gpu_names={**PRODUCTS, "2901": ("NVIDIA B200", "10.0")}).host
    assert host.nvswitch == nvswitch
    assert [one.pci_device_id for one in host.gpus or ()] == [gpu[2:]]


VARIABLES = "sys/firmware/efi/efivars"
SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"


def secure_boot(root: Path, *, state: int = 1) -> None:
    write(root, f"{VARIABLES}/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", b"\x06\0\0\0" + bytes([state]))


def test_the_key_is_enrolled_when_shims_list_holds_it(tmp_path: Path) -> None:
    secure_boot(tmp_path)
    write(tmp_path, "var/lib/dkms/mok.pub", b"the certificate")
    write(tmp_path, f"{VARIABLES}/MokListRT-{SHIM}", b"\x06\0\0\0 another, the certificate, a third")
    assert inspect_host(tmp_path).host.secure_boot == SecureBoot(enabled=True, mok_enrolled=True)


def test_without_a_key_to_compare_enrolment_is_unknown(tmp_path: Path) -> None:
    secure_boot(tmp_path)
    assert inspect_host(tmp_path).host.secure_boot == SecureBoot(enabled=True, mok_enrolled=None)


def test_shims_switch_turns_the_verification_of_modules_off(tmp_path: Path) -> None:
    secure_boot(tmp_path)
    write(tmp_path, f"{VARIABLES}/MokSBStateRT-{SHIM}", b"\x06\0\0\0\x01")
    assert inspect_host(tmp_path).host.secure_boot == SecureBoot(enabled=False, mok_enrolled=None)


def test_a_container_does_not_show_secure_boot_nor_the_toolkit_that_serves_it(tmp_path: Path) -> None:
    write(tmp_path, ".dockerenv", "")
    write(tmp_path, "sys/firmware/acpi/pm_profile", "0")
    write(tmp_path, "var/lib/dpkg/status", "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n")
    host = inspect_host(tmp_path).host
    assert (host.virtualization, host.secure_boot, host.container_toolkit) == ("container", None, None)


def test_a_toolkit_that_dpkg_does_not_know_is_not_called_missing(tmp_path: Path) -> None:
    write(tmp_path, "var/lib/dpkg/status", "Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n")
    assert inspect_host(tmp_path).host.container_toolkit == "none"
    write(tmp_path, "usr/local/nvidia/toolkit/nvidia-container-runtime", "")
    assert inspect_host(tmp_path).host.container_toolkit is None


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        inspect_host(tmp_path / "absent")
    assert caught.value.message == f"`{tmp_path / 'absent'}` is not a directory"
    assert caught.value.exit_code == 2


def test_the_running_machine_is_inspected_the_same_twice() -> None:
    first = inspect_host()
    assert first == inspect_host()
    assert first.host.kernel is not None or first.host.os is not None
