"""Pure parsers of what an operating system says about itself: any text in, a fact or None out, never an exception."""

from __future__ import annotations

import re
import struct

from msgspec import Struct

_KERNEL = re.compile(r"\d+\.\d+[\w.+~-]*")
_GLIBC_BANNER = re.compile(rb"GNU C Library [^\n]{0,200}?release version (\d+\.\d+)")
_CONTAINER_GROUP = re.compile(
    r"(?m)^\d+:[^:]*:.*/(?:docker[/-]|kubepods(?:[./-]|$)|lxc(?:\.payload)?[./]|libpod-|crio-|cri-containerd-|buildkit/)"
)
_MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 21: "ppc64le", 243: "riscv64"}
_PLATFORMS = {"x86_64": "linux/amd64", "aarch64": "linux/arm64", "arm64": "linux/arm64", "amd64": "linux/amd64"}

GPU_HOLDERS = ("nouveau", "nova_core", "nvidiafb", "rivafb", "vfio_pci")
"""Kernel modules that bind an NVIDIA GPU in place of NVIDIA's own: while one holds it, the driver cannot."""


class PciDevice(Struct, frozen=True, kw_only=True):
    """One device of the PCI bus: upper-case hexadecimal ids, and the kernel's driver that holds it, if any."""

    vendor: str
    device: str
    device_class: str
    driver: str | None = None

    @property
    def is_gpu(self) -> bool:
        """Whether the class is a display controller (VGA 0300, 3D 0302) or, as AMD's MI series, an accelerator (1200)."""
        return self.device_class[:2] in {"03", "12"}


def parse_kernel_release(text: str) -> str | None:
    """Read /proc/sys/kernel/osrelease or `uname -r`: `6.5.0-1017-aws`."""
    release = text.strip()
    return release if _KERNEL.fullmatch(release) else None


def parse_kernel_banner(text: str) -> str | None:
    """Read the release out of /proc/version: `Linux version 6.5.0-1017-aws (buildd@lcy02-amd64-036) (…) #17~22.04.2-Ubuntu`."""
    match = re.search(r"^Linux version (\S+)", text)
    return parse_kernel_release(match[1]) if match else None


def parse_kernel_gcc(text: str) -> str | None:
    """Read the compiler that built the kernel out of /proc/version; None when it was clang.

    Ubuntu: `(x86_64-linux-gnu-gcc-11 (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (…) 2.38)`. Debian:
    `(gcc-12 (Debian 12.2.0-14) 12.2.0, …)`. RHEL 8: `(gcc version 8.5.0 20210514 (Red Hat 8.5.0-4) (GCC))`.
    Plain: `(gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46)`. Jetson: `(aarch64-buildroot-linux-gnu-gcc.br_real (Buildroot
    2022.08) 11.3.0, …)`.
    """
    older = re.search(r"\(gcc version (\d+(?:\.\d+)+)", text)
    if older:
        return older[1]
    match = re.search(r"\((?:[\w-]+-)?gcc[\w.-]* \([^)]*\) (\d+(?:\.\d+)+)", text)
    return match[1] if match else None


def parse_os_release(text: str) -> tuple[str, str | None] | None:
    """Read `ID` and `VERSION_ID` of /etc/os-release: `ID=ubuntu` and `VERSION_ID="22.04"`; rolling ones have no version."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and re.fullmatch(r"[A-Z_]+", key):
            fields[key] = value.strip().strip("\"'")
    identity = fields.get("ID", "")
    return (identity, fields.get("VERSION_ID") or None) if identity else None


def parse_glibc_banner(content: bytes) -> str | None:
    """Find the version in a libc.so.6: `GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3.4) stable release version 2.35.`."""
    match = _GLIBC_BANNER.search(content)
    return match[1].decode() if match else None


def parse_glibc_file_name(name: str) -> str | None:
    """Read the version in the file name that older distributions give their C library: `libc-2.31.so`."""
    match = re.fullmatch(r"libc-(\d+\.\d+)\.so", name.strip())
    return match[1] if match else None


def parse_glibc_confstr(text: str) -> str | None:
    """Read `confstr(CS_GNU_LIBC_VERSION)`: `glibc 2.36`."""
    match = re.fullmatch(r"glibc (\d+\.\d+)(?:\.\d+)?", text.strip())
    return match[1] if match else None


def parse_pci_id(text: str) -> str | None:
    """Read /sys/bus/pci/devices/*/vendor or device: `0x10de` -> `10DE`."""
    match = re.fullmatch(r"0x([0-9a-fA-F]{4})", text.strip())
    return match[1].upper() if match else None


def parse_pci_class(text: str) -> str | None:
    """Read /sys/bus/pci/devices/*/class: `0x030200` -> `0302` (the last byte is a programming interface)."""
    match = re.fullmatch(r"0x([0-9a-fA-F]{4})[0-9a-fA-F]{2}", text.strip())
    return match[1].upper() if match else None


def parse_modules(text: str) -> tuple[str, ...]:
    """Read the names in /proc/modules: `nouveau 2596864 1 - Live 0x0000000000000000`."""
    names = (line.split(maxsplit=2) for line in text.splitlines())
    return tuple(sorted({name[0].replace("-", "_") for name in names if len(name) > 1 and name[1].isdecimal()}))


def parse_efi_flag(content: bytes) -> bool | None:
    """Read a one-byte EFI variable such as SecureBoot-8be4df61-…: four bytes of attributes, then 0 or 1."""
    if len(content) != 5 or content[4] > 1:
        return None
    return content[4] == 1


def parse_elf_machine(content: bytes) -> str | None:
    """Read the architecture of an ELF file from its first 20 bytes: `x86_64`, `aarch64`, …, as `uname -m` spells them."""
    if len(content) < 20 or content[:4] != b"\x7fELF" or content[5] not in {1, 2}:
        return None
    order = "<" if content[5] == 1 else ">"
    (machine,) = struct.unpack_from(f"{order}H", content, 18)
    return _MACHINES.get(machine)


def parse_platform(machine: str) -> str | None:
    """Turn `uname -m` of a Linux into a platform: `x86_64` -> `linux/amd64`; None for one that is not supported."""
    return _PLATFORMS.get(machine.strip())


def parse_kernel_architecture(release: str) -> str | None:
    """Read the architecture some kernels carry in their release: `6.1.0-18-amd64`, `5.14.0-362.el9.x86_64`."""
    match = re.search(r"[.-](x86_64|amd64|aarch64|arm64)$", release.strip())
    return match[1] if match else None


def parse_wsl(release: str) -> str | None:
    """Tell WSL by its kernel release: `5.15.153.1-microsoft-standard-WSL2` -> wsl2, `4.4.0-19041-Microsoft` -> wsl1.

    WSL1 has no Linux kernel at all; it answers 4.4.0 with a capital M. Source: microsoft/WSL issue 4555.
    """
    if "microsoft" not in release.lower():
        return None
    return "wsl1" if re.match(r"\s*[0-4]\.4\.0-\d+-Microsoft", release) else "wsl2"


def parse_container_cgroup(text: str) -> bool:
    """Whether /proc/1/cgroup is that of a container.

    `0::/docker/4fd5…`, `0::/system.slice/docker-4fd5….scope`, `…/kubepods.slice/kubepods-burstable.slice/…`, `…/lxc/…`; the
    engine's own service, `…/docker.service`, is none.
    """
    return _CONTAINER_GROUP.search(text) is not None


def parse_init_environment(text: str) -> bool:
    r"""Whether /proc/1/environ names a container manager, as systemd's container interface asks: `container=podman\0`."""
    return any(entry.startswith("container=") and entry != "container=" for entry in text.split("\0"))


def parse_hypervisor(cpuinfo: str) -> bool | None:
    """Whether /proc/cpuinfo shows an x86 processor under a hypervisor: `flags : fpu vme … hypervisor lahf_lm`.

    None where the file has no `flags` line (other architectures do not tell).
    """
    match = re.search(r"(?m)^flags\s*:(.*)$", cpuinfo)
    return "hypervisor" in match[1].split() if match else None


def parse_cpu_platform(cpuinfo: str) -> str | None:
    """Read the platform out of /proc/cpuinfo: x86 lists the flag `lm` (long mode), 64-bit Arm `CPU architecture: 8`."""
    flags = re.search(r"(?m)^flags\s*:(.*)$", cpuinfo)
    if flags:
        return "linux/amd64" if "lm" in flags[1].split() else None
    return "linux/arm64" if re.search(r"(?m)^CPU architecture\s*:\s*8\s*$", cpuinfo) else None


def parse_dpkg_status(text: str) -> dict[str, str]:
    """Read the installed packages and their versions out of /var/lib/dpkg/status.

    A stanza: `Package: nvidia-container-toolkit`, `Status: install ok installed`, …, `Version: 1.17.4-1`. A package that was
    removed but not purged keeps its stanza with another status, and does not count.
    """
    found: dict[str, str] = {}
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"(?m)^(Package|Status|Version): *(\S.*?)\s*$", stanza))
        if "Package" in fields and "Version" in fields and fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields["Version"]
    return found


def parse_package_version(text: str) -> str | None:
    """Drop the packager's part of a Debian version: `1:12.3.0-1ubuntu1~22.04` -> `12.3.0`, `6.2+b77` -> `6.2`."""
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", text.strip())
    return match[1] if match else None


def parse_gcc_version(text: str) -> str | None:
    """Read `gcc -dumpfullversion`: `12.2.0`."""
    match = re.fullmatch(r"\d+(?:\.\d+){0,2}", text.strip())
    return match[0] if match else None


def parse_library_file_name(name: str, stem: str) -> str | None:
    """Read the version in a library's file name: `libcudnn.so.8.9.2` with stem `libcudnn` -> `8.9.2`.

    A link that carries only the ABI number (`libcudnn.so.8`, `libcuda.so.1.1` on WSL) tells no version.
    """
    match = re.fullmatch(re.escape(stem) + r"\.so\.(\d+\.\d+(?:\.\d+)+|\d{3,}\.\d+)", name)
    return match[1] if match else None


def parse_plist_string(text: str, key: str) -> str | None:
    """Read one string of an XML property list: `<key>ProductVersion</key> <string>10.13.6</string>`."""
    match = re.search(rf"<key>{re.escape(key)}</key>\s*<string>([^<]+)</string>", text)
    return match[1].strip() or None if match else None


def parse_web_driver(text: str) -> str | None:
    """Read NVIDIA's Web Driver out of its bundle's information: `NVDAStartupWeb 10.3.10 387.10.10.10.40.105`."""
    match = re.search(r"(?:^|\s)(\d{3}\.\d+(?:\.[\w.]+)?)\s*$", text)
    return match[1] if match else None


def parse_sip(text: str) -> str | None:
    """Read `csrutil status`: `System Integrity Protection status: enabled.` -> `enabled`.

    A custom configuration with some protections off is `partial`.
    """
    if "Custom Configuration" in text:
        return "partial"
    match = re.search(r"status: (enabled|disabled)", text)
    return match[1] if match else None
