"""Inspect a machine: read each fact of a host profile, except the GPUs and their driver, which `graphics` finds."""

from __future__ import annotations

import os
import re
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from provisioner.components import ABSENT
from provisioner.errors import UsageError
from provisioner.host import parse
from provisioner.host.graphics import LIBRARY_DIRECTORIES, NVIDIA, KnownHardware, find_graphics, pci_devices
from provisioner.host.machine import Machine
from provisioner.host.model import Driver, Host, HostGpu, Jetson, Libraries, OperatingSystem, SecureBoot
from provisioner.host.parse import GPU_HOLDERS, NVIDIA_MODULE
from provisioner.host.remark import GpusUnknown, Remark
from provisioner.platforms import platform_of
from provisioner.versions import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provisioner.host.parse import PciDevice
    from provisioner.platforms import PlatformName

_MACOS_RELEASE = "System/Library/CoreServices/SystemVersion.plist"
_LIBC_DIRECTORIES = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "lib64",
)
_PROGRAM_DIRECTORIES = ("usr/bin", "usr/local/bin", "usr/local/nvidia/toolkit")
_TOOLKIT_PROGRAMS = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-container-toolkit")

_DRIVER_CONTAINER = "run/nvidia/driver"
"""Where the driver container of the GPU Operator mounts its driver."""

_BRIDGE = "0680"
"""The class of an NVSwitch on the PCI bus."""

_EFI_VARIABLES = "sys/firmware/efi/efivars"
_EFI_GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
_SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23"
"""GUIDs of the owners of EFI variables: EFI_GLOBAL_VARIABLE of the UEFI specification, and shim (shim, lib/guid.c)."""

_SIGNING_KEYS = ("var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub", "etc/pki/akmods/certs/public_key.der")
"""The certificates with which DKMS signs modules on Ubuntu and on Debian, and akmods on Fedora.

MokListRT contains these DER files byte by byte.
"""

_ELF_HEADER_BYTES = 20


class Inspection(Struct, frozen=True, kw_only=True):
    """A host profile read from a machine, and remarks on facts that could not be determined or that contradict each other.

    `unread` are remarks on what is known of the machine and no rule reads.
    """

    host: Host
    remarks: tuple[Remark, ...] = ()
    unread: tuple[Remark, ...] = ()


def inspect_host(
    root: Path = Path("/"),
    *,
    gpu_names: Mapping[str, tuple[str, str]] | None = None,
    modules: Mapping[str, str] | None = None,
) -> Inspection:
    """Return the facts of this machine, or of a saved tree of its files at `root`; a fact that is not found stays unknown.

    `gpu_names` maps a PCI device id (`2330`), or the name of a GPU without one (Jetson), to product and compute capability; it
    is used if the driver cannot be queried. `modules` maps versions of AMD's kernel module to series of its driver. Raises
    `UsageError` when `root` is not a directory.
    """
    machine = machine_at(root)
    if machine.exists(_MACOS_RELEASE):
        return Inspection(host=_inspect_mac(machine), remarks=(GpusUnknown("macos"),))
    return _Linux(machine).inspection(gpu_names or {}, modules or {})


def machine_at(root: Path) -> Machine:
    """Return the machine whose files are below `root`; raises `UsageError` when it is not a directory."""
    if not root.is_dir():
        raise UsageError(
            f"`{root}` is not a directory", hints=("give --root the folder that holds the machine's proc, sys and etc",)
        )
    return Machine(Path("/") if root.resolve() == Path("/") else root)


def _inspect_mac(machine: Machine) -> Host:
    """Return the facts of a Mac from its property lists; platform, kernel and SIP are read on a running machine only."""
    release = machine.text(_MACOS_RELEASE)
    bundle = machine.text("Library/Extensions/NVDAStartupWeb.kext/Contents/Info.plist")
    web_driver = parse.web_driver(parse.plist_string(bundle, "CFBundleGetInfoString") or "")
    running = os.uname() if machine.is_live else None
    return Host(
        platform=platform_of("macos", running.machine) if running is not None else None,
        os=OperatingSystem(
            id="macos",
            version=parse.plist_string(release, "ProductVersion"),
            build=parse.plist_string(release, "ProductBuildVersion"),
        ),
        kernel=running.release if running is not None else None,
        driver=Driver(kind="webdriver", version=web_driver) if web_driver else None,
        python_arch=running.machine if running is not None else None,
        cuda_driver=parse.plist_string(
            machine.text("Library/Frameworks/CUDA.framework/Versions/A/Resources/Info.plist"), "CFBundleVersion"
        ),
        sip=parse.sip(machine.ask("csrutil", "status")),
        xcode=parse.plist_string(machine.text("Applications/Xcode.app/Contents/version.plist"), "CFBundleShortVersionString"),
    )


class _Linux:
    """Reads the facts of one Linux machine; it has a method or property for each fact, in the order of the fields of `Host`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._banner = machine.text("proc/version")
        self._kernel = parse.kernel_release(machine.text("proc/sys/kernel/osrelease")) or parse.kernel_banner(self._banner)
        self._is_wsl = parse.wsl(self._kernel or "") is not None

    def inspection(self, gpu_names: Mapping[str, tuple[str, str]], modules: Mapping[str, str]) -> Inspection:
        known = KnownHardware(gpu_names=gpu_names, modules=modules)
        graphics = find_graphics(self._machine, kernel=self._kernel, is_wsl=self._is_wsl, known=known)
        host = Host(
            platform=self._platform(),
            os=self._operating_system(),
            kernel=self._kernel,
            glibc=self._glibc(),
            driver=graphics.driver,
            gpus=graphics.gpus,
            container_toolkit=self._container_toolkit(),
            secure_boot=self._secure_boot(),
            kernel_headers=self._kernel_headers(),
            kernel_gcc=parse.kernel_gcc(self._banner),
            gcc=self._gcc(),
            nvcc=self._nvcc(),
            loaded_modules=self._loaded_modules(),
            python_arch=self._python_arch(),
            libraries=self._libraries(),
            userspace_driver=graphics.userspace,
            fabric_manager=self._fabric_manager(),
            nvswitch=self._nvswitch(graphics.gpus),
            mig=graphics.mig,
            virtualization=self._virtualization(),
            jetson=self._jetson(),
        )
        return Inspection(host=host, remarks=graphics.remarks, unread=graphics.unread)

    def _platform(self) -> PlatformName | None:
        """Return the platform of the machine; None if no file shows its architecture.

        The running kernel is queried first; in a saved tree the first file that shows the architecture decides.
        """
        module = parse.kernel_module(self._machine.text("proc/driver/nvidia/version"))
        machines = (
            os.uname().machine if self._machine.is_live else "",
            parse.kernel_architecture(self._kernel or ""),
            module.machine if module else "",
            *(self._elf_machine(path) for path in ("usr/bin/env", "bin/sh")),
            parse.cpu_machine(self._machine.text("proc/cpuinfo")),
        )
        return next((platform for machine in machines if machine and (platform := platform_of("linux", machine))), None)

    def _operating_system(self) -> OperatingSystem | None:
        # /usr/lib/os-release is where os-release(5) says to look when /etc has none.
        texts = (self._machine.text(path) for path in ("etc/os-release", "usr/lib/os-release"))
        found = next(((release, text) for text in texts if (release := parse.os_release(text))), None)
        if found is None:
            return None
        (name, version), text = found
        return OperatingSystem(id=name, version=version, like=parse.os_like(text))

    def _glibc(self) -> str | None:
        if self._machine.is_live:
            try:
                return parse.glibc_confstr(os.confstr("CS_GNU_LIBC_VERSION") or "")
            except (ValueError, OSError):
                return None  # musl has no such name
        for directory in _LIBC_DIRECTORIES:
            names = self._machine.names(directory) or ()
            named = next((version for name in names if (version := parse.glibc_file_name(name))), None)
            found = named or parse.glibc_banner(self._machine.bytes(f"{directory}/libc.so.6") or b"")
            if found:
                return found
        return None

    def _container_toolkit(self) -> str | None:
        """Return the version of the NVIDIA Container Toolkit; None if it is unknown.

        The result is `none` only if dpkg and all program directories of the machine were searched without finding the toolkit.
        """
        version = self._package("nvidia-container-toolkit") or self._package("nvidia-container-toolkit-base")
        version = version or parse.container_toolkit(self._machine.ask("nvidia-ctk", "--version"))
        # Inside a container the toolkit of its host is invisible, and packages are known on distributions with dpkg only.
        if version is not None or self._is_container or self._packages is None:
            return version
        names = {name for directory in _PROGRAM_DIRECTORIES for name in self._machine.names(directory) or ()}
        return None if names & set(_TOOLKIT_PROGRAMS) else ABSENT

    def _secure_boot(self) -> SecureBoot | None:
        """Return the state of Secure Boot, read from the EFI variables; None when unknown, as in a container, which hides them.

        A machine that did not boot through EFI counts as having Secure Boot off.
        """
        flag = self._efi_flag(f"SecureBoot-{_EFI_GLOBAL}")
        if flag is None:
            # Container engines mask /sys/firmware, so only elsewhere does its absence say that the machine booted by BIOS.
            has_bios = self._machine.exists("sys/firmware") and not self._machine.exists("sys/firmware/efi")
            return SecureBoot(enabled=False) if has_bios and not self._is_container else None
        # `mokutil --disable-validation`: the firmware still verifies shim, but the kernel then accepts unsigned modules.
        is_ignored = self._efi_flag(f"MokSBStateRT-{_SHIM}") is True
        enrolled = self._machine.bytes(f"{_EFI_VARIABLES}/MokListRT-{_SHIM}")
        keys = [content for path in _SIGNING_KEYS if (content := self._machine.bytes(path))]
        is_enrolled = None if enrolled is None or not keys else any(key in enrolled for key in keys)
        return SecureBoot(enabled=flag and not is_ignored, mok_enrolled=is_enrolled)

    def _efi_flag(self, variable: str) -> bool | None:
        return parse.efi_flag(self._machine.bytes(f"{_EFI_VARIABLES}/{variable}") or b"")

    def _kernel_headers(self) -> str | None:
        """Return the kernel release of the headers installed for the running kernel; None if it is unknown.

        The result is `none` if the modules of the running kernel are installed without its headers.
        """
        place = f"lib/modules/{self._kernel}"
        if self._kernel is None or not self._machine.exists(place):
            return None
        if not self._machine.exists(f"{place}/build/Makefile"):
            return ABSENT
        return parse.kernel_release(self._machine.text(f"{place}/build/include/config/kernel.release")) or self._kernel

    def _gcc(self) -> str | None:
        """Return the version of the default `gcc`; None if it is unknown."""
        # /usr/bin/gcc -> gcc-12, or x86_64-linux-gnu-gcc-12; the package of that name has the full version.
        major = self._machine.link_name("usr/bin/gcc").rpartition("gcc-")[2]
        version = self._package(f"gcc-{major}") if major.isdecimal() else None
        return version or parse.gcc_version(self._machine.ask("gcc", "-dumpfullversion"))

    def _nvcc(self) -> str | None:
        """Return the version of the CUDA toolkit in /usr/local/cuda, else of the default `nvcc`; None if it is unknown."""
        version = parse.cuda_json(self._machine.text("usr/local/cuda/version.json"))
        version = version or parse.cuda_text(self._machine.text("usr/local/cuda/version.txt"))
        return version or parse.nvcc(self._machine.ask("nvcc", "--version"))

    def _loaded_modules(self) -> tuple[str, ...] | None:
        """Return the kernel modules that bind NVIDIA GPUs: NVIDIA's own, and those that may hold one in its place.

        These are loaded modules, and drivers bound to NVIDIA devices, which may be built into the kernel. None if unknown.
        """
        loaded = self._machine.bytes("proc/modules")
        found = {device.driver for device in self._nvidia_devices}
        if loaded is None and not found & set(GPU_HOLDERS):
            return None
        found |= set(parse.modules((loaded or b"").decode("utf-8", "replace")))
        if self._machine.exists("proc/driver/nvidia/version"):  # of a module that is built into the kernel, too
            found.add(NVIDIA_MODULE)
        return tuple(name for name in (*GPU_HOLDERS, NVIDIA_MODULE) if name in found)

    def _python_arch(self) -> str | None:
        """Return the architecture of the Python interpreter: of this process, or of python3 in a saved tree."""
        return self._elf_machine(sys.executable if self._machine.is_live else "usr/bin/python3")

    def _libraries(self) -> Libraries | None:
        """Return the versions of the system's copies of libraries that wheels bundle; None if no copy was found."""
        searched = os.environ.get("LD_LIBRARY_PATH", "").split(":") if self._machine.is_live else []
        on_path = self._names(directory for directory in searched if directory.startswith("/"))
        system = self._names((*LIBRARY_DIRECTORIES, "usr/local/cuda/lib64"))
        found = {
            key: _newest(parse.library_file_name(name, f"lib{key}") for name in on_path | system)
            for key in ("cudnn", "nccl", "cublas")
        }
        rocm = self._rocm()
        if rocm is None and not any(found.values()):
            return None
        shadows = any(parse.library_file_name(name, f"lib{key}") for name in on_path for key in found)
        return Libraries(**found, rocm=rocm, on_path=("LD_LIBRARY_PATH",) if shadows else ())

    def _rocm(self) -> str | None:
        """Return the release of the installed ROCm, from the file in which its packages keep it; None if unknown."""
        kept = (self._machine.text(f"opt/rocm/{folder}.info/version") for folder in ("", "core/"))
        match = next((found for text in kept if (found := re.match(r"\d+(\.\d+)+", text))), None)
        return match[0] if match else None

    def _fabric_manager(self) -> str | None:
        """Return the version of the Fabric Manager, which must equal the driver's on NVSwitch machines; None if it is unknown.

        The result is `none` only beside an NVSwitch, if dpkg and all program directories were searched without finding it. The
        GPU Operator has its own in a container beside the driver, and that of a virtual machine may run on its host.
        """
        packages = self._packages or {}
        named = sorted(name for name in packages if name.startswith("nvidia-fabricmanager") and "dev" not in name)
        version = self._package(named[-1]) if named else None
        version = version or parse.fabric_manager(self._machine.ask("nv-fabricmanager", "--version"))
        if version is not None or self._packages is None or self._virtualization() != "none":
            return version
        is_elsewhere = self._machine.exists(_DRIVER_CONTAINER) or "nv-fabricmanager" in self._names(_PROGRAM_DIRECTORIES)
        has_switch = any(device.device_class == _BRIDGE for device in self._nvidia_devices)
        return ABSENT if has_switch and not is_elsewhere else None

    def _nvswitch(self, gpus: tuple[HostGpu, ...] | None) -> Literal["present", "none"] | None:
        """Return `present` or `none`, whether an NVSwitch connects the GPUs; None if it is unknown.

        Beside an NVSwitch, CUDA fails with error 802 until a Fabric Manager runs.

        An NVSwitch is an NVIDIA bridge on the PCI bus (pci.ids: `22a3 GH100 [H100 NVSwitch]`), except beside GPUs of compute
        capability 10, where an NVSwitch is managed through InfiniBand (Fabric Manager User Guide, Systems Using Fourth
        Generation NVSwitches).
        """
        if any(device.device_class == _BRIDGE for device in self._nvidia_devices):
            return "present"
        targets = [gpu.compute_capability for gpu in gpus or ()]
        would_show = self._nvidia_devices and targets and all(target and not target.startswith("10.") for target in targets)
        return "none" if would_show else None

    def _virtualization(self) -> Literal["none", "wsl1", "wsl2", "vm", "container"] | None:
        if self._is_container:
            return "container"
        wsl = parse.wsl(self._kernel or "")
        if wsl is not None:
            return wsl
        if self._machine.exists("sys/hypervisor/type"):
            return "vm"
        is_guest = parse.hypervisor(self._machine.text("proc/cpuinfo"))
        return None if is_guest is None else "vm" if is_guest else "none"

    def _jetson(self) -> Jetson | None:
        release = parse.tegra_release(self._machine.text("etc/nv_tegra_release"))
        jetpack = self._package("nvidia-jetpack")
        return Jetson(l4t=release, jetpack=jetpack) if release or jetpack else None

    @cached_property
    def _is_container(self) -> bool:
        """Whether the machine is a container.

        Docker and Podman create a marker file, systemd's container interface sets a variable, the kernel names the control
        group.
        """
        return (
            self._machine.exists(".dockerenv")
            or self._machine.exists("run/.containerenv")
            or parse.init_environment(self._machine.text("proc/1/environ"))
            or parse.container_cgroup(self._machine.text("proc/1/cgroup"))
        )

    @cached_property
    def _nvidia_devices(self) -> tuple[PciDevice, ...]:
        return tuple(device for device in pci_devices(self._machine) or () if device.vendor == NVIDIA)

    @cached_property
    def _packages(self) -> dict[str, str] | None:
        """Installed Debian packages and their versions; None on distributions without dpkg."""
        status = self._machine.text("var/lib/dpkg/status")
        return parse.dpkg_status(status) if status else None

    def _package(self, name: str) -> str | None:
        return parse.package_version((self._packages or {}).get(name, ""))

    def _elf_machine(self, path: str) -> str | None:
        return parse.elf_machine(self._machine.bytes(path, most=_ELF_HEADER_BYTES) or b"")

    def _names(self, directories: Iterable[str]) -> set[str]:
        return {name for directory in directories for name in self._machine.names(directory) or ()}


def _newest(versions: Iterable[str | None]) -> str | None:
    known = {version for version in versions if version}
    return max(known, key=numbers_of, default=None)
