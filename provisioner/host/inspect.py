"""Inspects a machine: the only module that decides where each fact of a host profile is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct

from provisioner.errors import UsageError
from provisioner.host import macos
from provisioner.host.firmware import find_secure_boot
from provisioner.host.graphics import NVIDIA, find_graphics, pci_devices
from provisioner.host.model import Host, Jetson, OperatingSystem
from provisioner.host.parse import (
    GPU_HOLDERS,
    parse_container_cgroup,
    parse_cpu_platform,
    parse_elf_machine,
    parse_glibc_banner,
    parse_glibc_confstr,
    parse_glibc_file_name,
    parse_hypervisor,
    parse_init_environment,
    parse_kernel_architecture,
    parse_kernel_banner,
    parse_kernel_gcc,
    parse_kernel_release,
    parse_modules,
    parse_os_release,
    parse_platform,
    parse_wsl,
)
from provisioner.host.parse_nvidia import parse_kernel_module, parse_tegra_release
from provisioner.host.software import Software
from provisioner.host.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

Platform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
Virtualization = Literal["none", "wsl1", "wsl2", "vm", "container"]

_LIBC_DIRECTORIES = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib64",
)
_HEADER_BYTES = 20


class Inspection(Struct, frozen=True, kw_only=True):
    """A host profile, and one sentence for each fact that could not be learned or that contradicts another."""

    host: Host
    notes: tuple[str, ...] = ()


def inspect_host(root: Path = Path("/"), *, gpu_names: Mapping[str, tuple[str, str]] | None = None) -> Inspection:
    """Read the facts of this machine, or of a saved tree of files; what is not found stays unknown.

    `gpu_names` maps a PCI device id (`2330`), or the name of a GPU that has none (Jetson), to product and compute
    capability, for machines whose driver cannot be asked.
    Raises `UsageError` when `root` is not a directory.
    """
    if not root.is_dir():
        raise UsageError(
            f"`{root}` is not a directory", hints=("give --root the folder that holds the machine's proc, sys and etc",)
        )
    tree = Tree(Path("/") if root.resolve() == Path("/") else root)
    if macos.is_macos(tree):
        return Inspection(host=macos.inspect_mac(tree), notes=("gpus: not read on macOS; add them to the profile",))
    return _Machine(tree, gpu_names or {}).inspection()


class _Machine:
    """One Linux machine."""

    def __init__(self, tree: Tree, gpu_names: Mapping[str, tuple[str, str]]) -> None:
        self.tree = tree
        self.gpu_names = gpu_names
        self.software = Software(tree)
        self.banner = tree.text("proc/version") or ""
        self.kernel = parse_kernel_release(tree.text("proc/sys/kernel/osrelease") or "") or parse_kernel_banner(self.banner)

    def inspection(self) -> Inspection:
        virtualization = self._virtualization()
        is_container = virtualization == "container"
        is_wsl = parse_wsl(self.kernel or "") is not None
        graphics = find_graphics(self.tree, kernel=self.kernel, is_wsl=is_wsl, gpu_names=self.gpu_names)
        host = Host(
            platform=self._platform(),
            os=self._operating_system(),
            kernel=self.kernel,
            glibc=self._glibc(),
            driver=graphics.driver,
            gpus=graphics.gpus,
            container_toolkit=self.software.container_toolkit(is_container=is_container),
            secure_boot=find_secure_boot(self.tree, is_container=is_container),
            kernel_headers=self.software.kernel_headers(self.kernel),
            kernel_gcc=parse_kernel_gcc(self.banner),
            gcc=self.software.gcc(),
            nvcc=self.software.nvcc(),
            loaded_modules=self._loaded_modules(),
            python_arch=self.software.python_arch(),
            libraries=self.software.libraries(),
            userspace_driver=graphics.userspace,
            fabric_manager=self.software.fabric_manager(),
            virtualization=virtualization,
            jetson=self._jetson(),
        )
        return Inspection(host=host, notes=graphics.notes)

    def _platform(self) -> Platform | None:
        """The machine's architecture: the kernel's word on this machine, else whichever file of the tree tells."""
        module = parse_kernel_module(self.tree.text("proc/driver/nvidia/version") or "")
        machines = (
            os.uname().machine if self.tree.is_live else "",
            parse_kernel_architecture(self.kernel or "") or "",
            module.machine or "" if module else "",
            *(parse_elf_machine(self.tree.bytes(path, most=_HEADER_BYTES) or b"") or "" for path in ("usr/bin/env", "bin/sh")),
        )
        found = next((platform for machine in machines if (platform := parse_platform(machine))), None)
        return cast("Platform | None", found or parse_cpu_platform(self.tree.text("proc/cpuinfo") or ""))

    def _operating_system(self) -> OperatingSystem | None:
        # /usr/lib/os-release is where os-release(5) says to look when /etc has none.
        texts = (self.tree.text(path) or "" for path in ("etc/os-release", "usr/lib/os-release"))
        found = next((release for text in texts if (release := parse_os_release(text))), None)
        return OperatingSystem(id=found[0], version=found[1]) if found else None

    def _glibc(self) -> str | None:
        if self.tree.is_live:
            return _own_glibc()
        for directory in _LIBC_DIRECTORIES:
            names = self.tree.names(directory) or ()
            named = next((version for name in names if (version := parse_glibc_file_name(name))), None)
            found = named or parse_glibc_banner(self.tree.bytes(f"{directory}/libc.so.6") or b"")
            if found:
                return found
        return None

    def _loaded_modules(self) -> tuple[str, ...] | None:
        """What else holds or may hold the GPU: loaded modules and, where it is built in, the driver of the device."""
        text = self.tree.text("proc/modules")
        holders = {device.driver for device in pci_devices(self.tree) or () if device.vendor == NVIDIA}
        if text is None and not holders & set(GPU_HOLDERS):
            return None
        return tuple(name for name in GPU_HOLDERS if name in holders or name in parse_modules(text or ""))

    def _virtualization(self) -> Virtualization | None:
        wsl = parse_wsl(self.kernel or "")
        if self._is_container():
            return "container"
        if wsl is not None:
            return cast("Virtualization", wsl)
        if self.tree.exists("sys/hypervisor/type"):
            return "vm"
        is_guest = parse_hypervisor(self.tree.text("proc/cpuinfo") or "")
        return None if is_guest is None else "vm" if is_guest else "none"

    def _is_container(self) -> bool:
        """Docker and Podman leave a marker, systemd's container interface a variable, the kernel a control group."""
        return (
            self.tree.exists(".dockerenv")
            or self.tree.exists("run/.containerenv")
            or parse_init_environment(self.tree.text("proc/1/environ") or "")
            or parse_container_cgroup(self.tree.text("proc/1/cgroup") or "")
        )

    def _jetson(self) -> Jetson | None:
        release = parse_tegra_release(self.tree.text("etc/nv_tegra_release") or "")
        jetpack = self.software.jetpack()
        return Jetson(l4t=release, jetpack=jetpack) if release or jetpack else None


def _own_glibc() -> str | None:
    """The C library of this process; musl has no such name."""
    try:
        return parse_glibc_confstr(os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (ValueError, OSError):
        return None
