"""Parse the files of a machine and the output of its programs; every parser returns a fact or None and never raises.

First come the operating system's, then the software of NVIDIA and AMD. The docstring of a parser shows a sample of its input;
after `->` follows its result.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Literal

from msgspec import Struct

_KERNEL = re.compile(r"\d+\.\d+[\w.+~-]*")
_GLIBC_BANNER = re.compile(rb"GNU C Library [^\n]{0,200}?release version (\d+\.\d+)")
_CONTAINER_GROUP = re.compile(
    r"(?m)^\d+:[^:]*:.*/(?:docker[/-]|kubepods(?:[./-]|$)|lxc(?:\.payload)?[./]|libpod-|crio-|cri-containerd-|buildkit/)"
)
_VERSION = r"\d{2,4}(?:\.\d+){1,2}"
"""The version of an NVIDIA driver."""

_MODINFO = re.compile(rb"\0(license|version)=([^\0]{1,80})(?=\0)")
_MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 21: "ppc64le", 243: "riscv64"}

_UBUNTU = {
    "xenial": "16.04", "bionic": "18.04", "focal": "20.04", "jammy": "22.04", "noble": "24.04", "questing": "25.10",
    "resolute": "26.04",
}  # fmt: skip
_DEBIAN = {"buster": "10", "bullseye": "11", "bookworm": "12", "trixie": "13"}
"""Releases by the codename that derivatives keep. Source: distro-info-data, ubuntu.csv and debian.csv."""

HANDED_ON = ("vfio_pci", "pci_stub", "xen_pciback")
"""Kernel modules that bind a GPU of any vendor to hand it to a virtual machine."""

GPU_HOLDERS = ("nouveau", "nova_core", "nvidiafb", "rivafb", *HANDED_ON)
"""Kernel modules that bind an NVIDIA GPU in place of NVIDIA's own module, so that the driver cannot use the GPU."""

NVIDIA_MODULE = "nvidia"
"""NVIDIA's own kernel module, which is loaded only where it drives a GPU.

With no GPU left to it, loading fails with "No NVIDIA devices probed" (NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv.c).
"""

Flavour = Literal["open", "proprietary"]
"""The flavour of NVIDIA's kernel module."""


class PciDevice(Struct, frozen=True, kw_only=True):
    """One device of the PCI bus: ids in upper-case hexadecimal, and the kernel driver bound to it, None if there is none."""

    vendor: str
    device: str
    device_class: str
    driver: str | None = None

    @property
    def is_gpu(self) -> bool:
        """Whether the class is a display controller (VGA 0300, 3D 0302) or, as AMD's MI series, an accelerator (1200)."""
        return self.device_class[:2] in {"03", "12"}


def kernel_release(text: str) -> str | None:
    """Read /proc/sys/kernel/osrelease or `uname -r`: `6.5.0-1017-aws`."""
    release = text.strip()
    return release if _KERNEL.fullmatch(release) else None


def kernel_banner(text: str) -> str | None:
    """Return the kernel release in /proc/version, None without one: `Linux version 6.5.0-1017-aws (…)` -> `6.5.0-1017-aws`."""
    return kernel_release(_found(r"^Linux version (\S+)", text) or "")


def kernel_gcc(text: str) -> str | None:
    """Return the version of the GCC that compiled the kernel, from /proc/version; None if the kernel was compiled with clang.

    Ubuntu: `(x86_64-linux-gnu-gcc-11 (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (…) 2.38)`. Debian: `(gcc-12 (Debian
    12.2.0-14) 12.2.0, …)`. RHEL 8: `(gcc version 8.5.0 20210514 (Red Hat 8.5.0-4) (GCC))`. Plain: `(gcc (GCC) 15.3.0, GNU ld
    (GNU Binutils) 2.46)`. Jetson: `(aarch64-buildroot-linux-gnu-gcc.br_real (Buildroot 2022.08) 11.3.0, …)`.
    """
    older = _found(r"\(gcc version (\d+(?:\.\d+)+)", text)
    return older or _found(r"\((?:[\w-]+-)?gcc[\w.-]* \([^)]*\) (\d+(?:\.\d+)+)", text)


def os_release(text: str) -> tuple[str, str | None] | None:
    """Read `ID` and `VERSION_ID` of /etc/os-release: `ID=ubuntu`, `VERSION_ID="22.04"`.

    The version is None for a rolling release; the result is None when the text has no `ID`.
    """
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and re.fullmatch(r"[A-Z_]+", key):
            fields[key] = value.strip().strip("\"'")
    identity = fields.get("ID", "")
    return (identity, fields.get("VERSION_ID") or None) if identity else None


def os_like(text: str) -> str | None:
    """Return the system that a distribution is derived from, as /etc/os-release shows; None if there is none or it is unknown.

    Linux Mint: `ID_LIKE="ubuntu debian"`, `UBUNTU_CODENAME=jammy` -> `ubuntu 22.04`. Pop!_OS has `VERSION_ID="22.04"`. Rocky
    Linux: `ID_LIKE="rhel centos fedora"`, `PLATFORM_ID="platform:el9"`, `VERSION_ID="9.4"` -> `rhel 9.4`.
    """
    fields = dict(re.findall(r"(?m)^\s*([A-Z_]+)=[\"']?(.*?)[\"']?\s*$", text))
    bases, version = fields.get("ID_LIKE", "").split(), fields.get("VERSION_ID", "")
    platform = re.fullmatch(r"platform:(el|f)(\d+)", fields.get("PLATFORM_ID", ""))
    if platform is not None:
        release = version if version.partition(".")[0] == platform[2] else platform[2]
        return f"rhel {release}" if platform[1] == "el" else f"fedora {platform[2]}"
    if "ubuntu" in bases:
        release = _UBUNTU.get(fields.get("UBUNTU_CODENAME", ""), version if re.fullmatch(r"\d\d\.\d\d", version) else "")
        return f"ubuntu {release}" if release else None
    codename = fields.get("DEBIAN_CODENAME") or fields.get("VERSION_CODENAME", "")
    if "debian" in bases and codename in _DEBIAN:
        return f"debian {_DEBIAN[codename]}"
    if {"rhel", "centos"} & set(bases) and re.fullmatch(r"\d(?:\.\d+)?", version):
        return f"rhel {version}"
    return "arch" if "arch" in bases else None


def glibc_banner(content: bytes) -> str | None:
    """Find the version in a libc.so.6: `GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3.4) stable release version 2.35.`."""
    match = _GLIBC_BANNER.search(content)
    return match[1].decode() if match else None


def glibc_file_name(name: str) -> str | None:
    """Read the version in the file name that older distributions give their C library: `libc-2.31.so`."""
    return _whole(r"libc-(\d+\.\d+)\.so", name)


def glibc_confstr(text: str) -> str | None:
    """Read `confstr(CS_GNU_LIBC_VERSION)`: `glibc 2.36`."""
    return _whole(r"glibc (\d+\.\d+)(?:\.\d+)?", text)


def pci_id(text: str) -> str | None:
    """Read /sys/bus/pci/devices/*/vendor or device: `0x10de` -> `10DE`."""
    return (_whole(r"0x([0-9a-fA-F]{4})", text) or "").upper() or None


def pci_class(text: str) -> str | None:
    """Read /sys/bus/pci/devices/*/class: `0x030200` -> `0302` (the last byte is a programming interface)."""
    return (_whole(r"0x([0-9a-fA-F]{4})[0-9a-fA-F]{2}", text) or "").upper() or None


def modules(text: str) -> tuple[str, ...]:
    """Read the names in /proc/modules: `nouveau 2596864 1 - Live 0x0000000000000000`."""
    names = (line.split(maxsplit=2) for line in text.splitlines())
    return tuple(sorted({name[0].replace("-", "_") for name in names if len(name) > 1 and name[1].isdecimal()}))


def efi_flag(content: bytes) -> bool | None:
    """Read a one-byte EFI variable such as SecureBoot-8be4df61-…: four bytes of attributes, then 0 or 1."""
    if len(content) != 5 or content[4] > 1:
        return None
    return content[4] == 1


def elf_machine(content: bytes) -> str | None:
    """Read the architecture of an ELF file from its first 20 bytes: `x86_64`, `aarch64`, …, as `uname -m` spells them."""
    if len(content) < 20 or content[:4] != b"\x7fELF" or content[5] not in {1, 2}:
        return None
    order = "<" if content[5] == 1 else ">"
    (machine,) = struct.unpack_from(f"{order}H", content, 18)
    return _MACHINES.get(machine)


def kernel_architecture(release: str) -> str | None:
    """Return the architecture at the end of some kernel releases, else None: `6.1.0-18-amd64`, `5.14.0-362.el9.x86_64`."""
    return _found(r"[.-](x86_64|amd64|aarch64|arm64)$", release.strip())


def wsl(release: str) -> Literal["wsl1", "wsl2"] | None:
    """Return the version of WSL that a kernel release shows; None if the machine is not WSL.

    `5.15.153.1-microsoft-standard-WSL2` -> wsl2, `4.4.0-19041-Microsoft` -> wsl1. WSL1 has no Linux kernel; it reports 4.4.0
    and `Microsoft` with a capital M. Source: microsoft/WSL issue 4555.
    """
    if "microsoft" not in release.lower():
        return None
    return "wsl1" if re.match(r"\s*[0-4]\.4\.0-\d+-Microsoft", release) else "wsl2"


def container_cgroup(text: str) -> bool:
    """Return whether /proc/1/cgroup is that of a container.

    `0::/docker/4fd5…`, `0::/system.slice/docker-4fd5….scope`, `…/kubepods.slice/kubepods-burstable.slice/…`, `…/lxc/…`, but not
    the service of the engine itself, `…/docker.service`.
    """
    return _CONTAINER_GROUP.search(text) is not None


def init_environment(text: str) -> bool:
    r"""Return whether /proc/1/environ names a container manager, by systemd's interface: `container=podman\0`."""
    return any(entry.startswith("container=") and entry != "container=" for entry in text.split("\0"))


def hypervisor(cpuinfo: str) -> bool | None:
    """Return whether /proc/cpuinfo shows an x86 processor under a hypervisor: `flags : fpu vme … hypervisor lahf_lm`.

    None if the file has no `flags` line, as on other architectures.
    """
    flags = _found(r"(?m)^flags\s*:(.*)$", cpuinfo)
    return "hypervisor" in flags.split() if flags is not None else None


def cpu_machine(cpuinfo: str) -> str | None:
    """Return the architecture that /proc/cpuinfo shows: x86 has the flag `lm` (long mode), Arm `CPU architecture: 8`."""
    flags = _found(r"(?m)^flags\s*:(.*)$", cpuinfo)
    if flags is not None:
        return "x86_64" if "lm" in flags.split() else None
    return "aarch64" if re.search(r"(?m)^CPU architecture\s*:\s*8\s*$", cpuinfo) else None


def dpkg_status(text: str) -> dict[str, str]:
    """Return the installed packages and their versions, from /var/lib/dpkg/status.

    A stanza: `Package: nvidia-container-toolkit`, `Status: install ok installed`, …, `Version: 1.17.4-1`. A package that was
    removed but not purged has a stanza with another status, and is left out.
    """
    found: dict[str, str] = {}
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"(?m)^(Package|Status|Version): *(\S.*?)\s*$", stanza))
        if "Package" in fields and "Version" in fields and fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields["Version"]
    return found


def package_version(text: str) -> str | None:
    """Return a Debian version without the packager's part: `1:12.3.0-1ubuntu1~22.04` -> `12.3.0`, `6.2+b77` -> `6.2`."""
    return _found(r"^(?:\d+:)?(\d+(?:\.\d+)*)", text.strip())


def amdgpu_release(text: str) -> str | None:
    """Return the release of AMD's driver that a version of its package or module tells; None if it tells none (`6.16.6`).

    A package has the release behind the module's version, in two digits a number: `1:6.12.12.60404-2202139.24.04` is 6.4.4,
    `1:6.16.6.30200100-2255209.24.04` is 30.20.1; from 31.40 on the module has it, too (`6.19.14.31400000`).
    """
    packaged = re.search(r"\.(\d{1,2})(\d\d)(\d\d)(?:\d\d)?(?=-|$)", text)
    if packaged is not None:
        return ".".join(str(int(part)) for part in packaged.groups())
    return _whole(r"(\d\d+(?:\.\d+)+)", text)  # from 30 on drivers have numbers of their own; modules are numbered like kernels


def gcc_version(text: str) -> str | None:
    """Read `gcc -dumpfullversion`: `12.2.0`."""
    return _whole(r"(\d+(?:\.\d+){0,2})", text)


def library_file_name(name: str, stem: str) -> str | None:
    """Read the version in a library's file name: `libcudnn.so.8.9.2` with stem `libcudnn` -> `8.9.2`.

    None for a link with the ABI number only (`libcudnn.so.8`, `libcuda.so.1.1` on WSL).
    """
    return _whole(re.escape(stem) + r"\.so\.(\d+\.\d+(?:\.\d+)+|\d{3,}\.\d+)", name)


def plist_string(text: str, key: str) -> str | None:
    """Read one string of an XML property list: `<key>ProductVersion</key> <string>10.13.6</string>`."""
    return (_found(rf"<key>{re.escape(key)}</key>\s*<string>([^<]+)</string>", text) or "").strip() or None


def web_driver(text: str) -> str | None:
    """Return the version of NVIDIA's Web Driver in its bundle's information: `NVDAStartupWeb 10.3.10 387.10.10.10.40.105`."""
    return _found(r"(?:^|\s)(\d{3}\.\d+(?:\.[\w.]+)?)\s*$", text)


def sip(text: str) -> str | None:
    """Read `csrutil status`: `System Integrity Protection status: enabled.` -> `enabled`.

    A custom configuration with some protections off is `partial`.
    """
    if "Custom Configuration" in text:
        return "partial"
    return _found(r"status: (enabled|disabled)", text)


class KernelModule(Struct, frozen=True, kw_only=True):
    """The loaded NVIDIA kernel module; `machine` is the architecture that it was built for, None if not shown."""

    version: str
    flavour: Flavour
    machine: str | None = None


class SeenGpu(Struct, frozen=True, kw_only=True):
    """One GPU as NVML or `nvidia-smi` describes it; `pci_device_id` is four upper-case hexadecimal digits.

    `memory` is in MiB. `is_divided` is whether MIG is enabled, None for a GPU that cannot be divided. `has_slices` is whether a
    GPU for which MIG is enabled has an instance, None if that is not known.
    """

    name: str | None = None
    compute_capability: str | None = None
    pci_device_id: str | None = None
    driver: str | None = None
    memory: int | None = None
    is_divided: bool | None = None
    has_slices: bool | None = None


def kernel_module(text: str) -> KernelModule | None:
    """Read the NVRM line of /proc/driver/nvidia/version.

    Proprietary: `NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024`. Open:
    `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)  Tue Sep 23 …`.
    """
    match = re.search(rf"(?m)^NVRM version:\s*NVIDIA UNIX (.*?)\s+({_VERSION})(?:\s|$)", text)
    if match is None:
        return None
    machine = re.search(r"x86_64|aarch64", match[1])
    return KernelModule(
        version=match[2],
        flavour="open" if "Open Kernel Module" in match[1] else "proprietary",
        machine=machine[0] if machine else None,
    )


def module_version(text: str) -> str | None:
    """Read /sys/module/nvidia/version: `535.104.05`."""
    return _whole(rf"({_VERSION})", text)


def module_license(text: str) -> Flavour | None:
    """Read the flavour of the kernel module from its license: `Dual MIT/GPL` is the open one, `NVIDIA` the proprietary one.

    Reads `modinfo -F license nvidia` and the line `license: NVIDIA` of `modinfo nvidia`.
    """
    match = re.search(r"(?m)^(?:license:\s*)?(Dual MIT/GPL|NVIDIA)\s*$", text)
    if match is None:
        return None
    return "open" if match[1] == "Dual MIT/GPL" else "proprietary"


def module_file(content: bytes) -> tuple[str | None, Flavour | None]:
    r"""Read version and flavour out of nvidia.ko, whose `.modinfo` section holds `license=NVIDIA\0…\0version=535.104.05\0`."""
    fields = {key: value.decode("utf-8", "replace") for key, value in _MODINFO.findall(content)}
    return module_version(fields.get(b"version", "")), module_license(fields.get(b"license", ""))


def smi_csv(text: str) -> tuple[SeenGpu, ...]:
    """Read `nvidia-smi --query-gpu=name,driver_version,pci.device_id[,compute_cap] --format=csv,noheader`.

    A line: `NVIDIA H100 80GB HBM3, 535.104.05, 0x233010DE, 9.0`. Values that a GPU does not report are `[N/A]` or `[Not
    Supported]`. Lines that are not GPUs (`No devices were found`, an error message) are left out.
    """
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) not in {3, 4} or not re.fullmatch(_VERSION, fields[1]):
            continue
        capability = fields[3] if len(fields) == 4 and re.fullmatch(r"\d+\.\d+", fields[3]) else None
        found.append(
            SeenGpu(
                name=_product(fields[0]),
                compute_capability=capability,
                pci_device_id=smi_device_id(fields[2]),
                driver=fields[1],
            )
        )
    return tuple(found)


def _product(text: str) -> str | None:
    return None if not text or text.startswith("[") else text


def smi_device_id(text: str) -> str | None:
    """Return the device id in nvidia-smi's `pci.device_id`, the device and vendor in one number: `0x233010DE` -> `2330`.

    The XML report has the number without `0x`.
    """
    match = re.fullmatch(r"(?:0x)?([0-9a-fA-F]{4})10[dD][eE]", text)
    return match[1].upper() if match else None


def smi_banner(text: str) -> tuple[str, str | None] | None:
    """Return the driver and the newest CUDA that it supports (None if not printed), from the header of nvidia-smi's table.

    Up to R595: `| NVIDIA-SMI 535.104.05 Driver Version: 535.104.05 CUDA Version: 12.2 |`. From R610: `| NVIDIA-SMI 610.57.04
    KMD Version: 610.57.04 CUDA UMD Version: 13.3 |`. The CUDA version is not that of an installed toolkit; drivers before R410
    do not print it. None if the text has no such header.
    """
    driver = re.search(rf"(?:Driver|KMD) Version:\s*({_VERSION})", text)
    if driver is None:
        return None
    cuda = re.search(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)", text)
    return driver[1], cuda[1] if cuda else None


def nvml_version(text: str) -> str | None:
    """Return the user-space driver in `nvmlSystemGetNVMLVersion`: `12.550.54.14` -> `550.54.14` (12 is the CUDA major)."""
    return _whole(rf"(?:\d{{1,2}}\.)?(\d{{3,4}}(?:\.\d+){{1,2}}|{_VERSION})", text)


def container_toolkit(text: str) -> str | None:
    """Read `nvidia-ctk --version`: `NVIDIA Container Toolkit CLI version 1.17.4`, then `commit: …`."""
    return _found(r"NVIDIA Container Toolkit CLI version (\d+(?:\.\d+)+)", text)


def cuda_json(text: str) -> str | None:
    """Read /usr/local/cuda/version.json: `{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, …}`."""
    try:
        value = json.loads(text)
    # A file of opening brackets only exhausts the decoder's recursion; that is no version either.
    except (ValueError, RecursionError):
        return None
    for part in ("cuda", "version"):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) and re.fullmatch(r"\d+(?:\.\d+)+", value) else None


def cuda_text(text: str) -> str | None:
    """Read /usr/local/cuda/version.txt, which CUDA had up to 11.0: `CUDA Version 10.2.89`."""
    return _found(r"CUDA Version (\d+(?:\.\d+)+)", text)


def nvcc(text: str) -> str | None:
    """Read `nvcc --version`: `Cuda compilation tools, release 12.4, V12.4.131` -> `12.4`.

    The number after V is nvcc's own and not the toolkit's (12.4.1), with which it must not be compared.
    """
    return _found(r"release (\d+\.\d+), V\d", text)


def fabric_manager(text: str) -> str | None:
    """Read `nv-fabricmanager --version`: `Fabric Manager version is : 535.104.05`."""
    return _found(rf"Fabric Manager version is\s*:\s*({_VERSION})", text)


def tegra_release(text: str) -> str | None:
    """Return the release of Linux for Tegra in /etc/nv_tegra_release: `# R36 (release), REVISION: 4.3, GCID: …` -> `36.4.3`."""
    match = re.search(r"#\s*R(\d+) \(release\), REVISION:\s*(\d+(?:\.\d+)*)", text)
    return f"{match[1]}.{match[2]}" if match else None


def tegra_model(text: str) -> str | None:
    r"""Return the product in /proc/device-tree/model: `NVIDIA Jetson AGX Orin Developer Kit\0` -> `Jetson AGX Orin`.

    Boards add words that are not part of the product name (`Engineering Reference Developer Kit Super`).
    """
    match = re.search(r"Jetson (?:AGX |Orin |Xavier )?\w+", text)
    return match[0] if match else None


def kfd_target(text: str) -> str | None:
    """Return the target of an AMD GPU, from its node's `properties` file: `gfx_target_version 90402` -> `gfx942`.

    The file is /sys/class/kfd/kfd/topology/nodes/*/properties. The number is major, minor and stepping with two digits each,
    and the last two are printed in hexadecimal: 90010 is gfx90a. The node of a processor has the number 0, for which the result
    is None.
    """
    match = re.search(r"(?m)^gfx_target_version (\d{1,6})\s*$", text)
    number = int(match[1]) if match else 0
    if not number:
        return None
    major, minor, stepping = number // 10000, number // 100 % 100, number % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _found(pattern: str, text: str) -> str | None:
    """Return the first group of the first match of a pattern in a text; None if there is no match."""
    match = re.search(pattern, text)
    return match[1] if match else None


def _whole(pattern: str, text: str) -> str | None:
    """Return the first group of a pattern that must match the whole text, ignoring surrounding white space; else None."""
    match = re.fullmatch(pattern, text.strip())
    return match[1] if match else None


def cdi_driver(text: str, kind: str) -> tuple[bool, str | None]:
    """Read a CDI specification: whether it is for devices of `kind`, and the driver in the names of the files it mounts.

    `kind: nvidia.com/gpu` and `hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05`, in YAML or JSON (Container Device
    Interface, SPEC.md). The driver is None if no mounted libcuda has a version in its name.
    """
    is_of_kind = re.search(rf"""(?m)^[\s{{]*["']?kind["']?\s*:\s*["']?{re.escape(kind)}["']?\s*,?\s*$""", text) is not None
    return is_of_kind, _found(rf"/libcuda\.so\.({_VERSION})", text)


def groups_numbered(text: str, number: int) -> tuple[str, ...]:
    """Return the names of the groups with a number, from /etc/group: `render:x:993:ann,bob`."""
    return tuple(re.findall(rf"(?m)^([^:\n]+):[^:\n]*:{number}:", text))


def environment_python(text: str) -> str | None:
    """Return the Python in a pyvenv.cfg: `version = 3.11.9`, or `version_info = 3.11.9.final.0`."""
    return _found(r"(?m)^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", text)


def conda_python(name: str) -> str | None:
    """Return the Python of a conda environment from the name of a file in conda-meta: `python-3.11.9-h955ad1f_0.json`."""
    return _whole(r"python-(\d+\.\d+\.\d+)-[^-]+\.json", name)


class TorchBuild(Struct, frozen=True, kw_only=True):
    """The release and the build of an installed PyTorch; `cuda` and `hip` are what it was built with, "" for neither."""

    version: str
    cuda: str = ""
    hip: str = ""

    @property
    def build(self) -> str:
        """The name of the build, as in the matrix: `cu126`, `rocm6.2`, `cpu`."""
        if self.cuda:
            return f"cu{self.cuda.replace('.', '')}"
        return f"rocm{'.'.join(self.hip.split('.')[:2])}" if self.hip else "cpu"


def torch_version(text: str) -> TorchBuild | None:
    """Read torch/version.py: `__version__ = '2.7.1+cu126'`, `cuda: Optional[str] = '12.6'`, `hip: Optional[str] = None`."""
    version = _found(r"""(?m)^__version__\s*=\s*["']([^"']+)["']""", text)
    if version is None:
        return None
    built = {name: _found(rf"""(?m)^{name}\s*(?::[^=\n]*)?=\s*["'](\d[^"']*)["']""", text) or "" for name in ("cuda", "hip")}
    return TorchBuild(version=version, **built)
