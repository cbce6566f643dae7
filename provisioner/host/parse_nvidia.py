"""Pure parsers of what NVIDIA's and AMD's software says about itself: any text in, a fact or None out, never an exception."""

from __future__ import annotations

import json
import re
from typing import Literal

from msgspec import Struct

Flavour = Literal["open", "proprietary"]

_VERSION = r"\d{2,4}(?:\.\d+){1,2}"
_MODINFO = re.compile(rb"\0(license|version)=([^\0]{1,80})(?=\0)")


class KernelModule(Struct, frozen=True, kw_only=True):
    """The loaded NVIDIA kernel module: its version, flavour, and the architecture it was built for (None: not said)."""

    version: str
    flavour: Flavour
    machine: str | None = None


class SeenGpu(Struct, frozen=True, kw_only=True):
    """One GPU as a tool named it; `pci_device_id` is four upper-case hexadecimal digits."""

    name: str | None = None
    compute_capability: str | None = None
    pci_device_id: str | None = None
    driver: str | None = None


def parse_kernel_module(text: str) -> KernelModule | None:
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


def parse_module_version(text: str) -> str | None:
    """Read /sys/module/nvidia/version: `535.104.05`."""
    match = re.fullmatch(_VERSION, text.strip())
    return match[0] if match else None


def parse_module_license(text: str) -> Flavour | None:
    """Tell the flavour by the module's license: `Dual MIT/GPL` is the open one, `NVIDIA` the proprietary one.

    Reads `modinfo -F license nvidia` and the line `license:        NVIDIA` of `modinfo nvidia`.
    """
    match = re.search(r"(?m)^(?:license:\s*)?(Dual MIT/GPL|NVIDIA)\s*$", text)
    if match is None:
        return None
    return "open" if match[1] == "Dual MIT/GPL" else "proprietary"


def parse_module_file(content: bytes) -> tuple[str | None, Flavour | None]:
    r"""Read version and flavour out of nvidia.ko, whose `.modinfo` section holds `license=NVIDIA\0…\0version=535.104.05\0`."""
    fields = {key: value.decode("utf-8", "replace") for key, value in _MODINFO.findall(content)}
    return parse_module_version(fields.get(b"version", "")), parse_module_license(fields.get(b"license", ""))


def parse_smi_csv(text: str) -> tuple[SeenGpu, ...]:
    """Read `nvidia-smi --query-gpu=name,driver_version,pci.device_id[,compute_cap] --format=csv,noheader`.

    A line: `NVIDIA H100 80GB HBM3, 535.104.05, 0x233010DE, 9.0`. Values a GPU does not know are `[N/A]` or
    `[Not Supported]`. Lines that are not GPUs (`No devices were found`, an error message) are left out.
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
                pci_device_id=_device_id(fields[2]),
                driver=fields[1],
            )
        )
    return tuple(found)


def _product(text: str) -> str | None:
    return None if not text or text.startswith("[") else text


def _device_id(text: str) -> str | None:
    """`pci.device_id` is device and vendor in one number: `0x233010DE`."""
    match = re.fullmatch(r"0x([0-9a-fA-F]{4})10[dD][eE]", text)
    return match[1].upper() if match else None


def parse_smi_banner(text: str) -> tuple[str, str | None] | None:
    """Read the driver and the newest CUDA it runs out of nvidia-smi's header, in the spelling of either age.

    Up to R595: `| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |`. From R610:
    `| NVIDIA-SMI 610.57.04   KMD Version: 610.57.04   CUDA UMD Version: 13.3 |`. The CUDA version is the driver's ceiling,
    not an installed toolkit; drivers before R410 do not print it.
    """
    driver = re.search(rf"(?:Driver|KMD) Version:\s*({_VERSION})", text)
    if driver is None:
        return None
    cuda = re.search(r"CUDA (?:UMD )?Version:\s*(\d+\.\d+)", text)
    return driver[1], cuda[1] if cuda else None


def parse_nvml_version(text: str) -> str | None:
    """Read the user-space driver out of `nvmlSystemGetNVMLVersion`: `12.550.54.14` -> `550.54.14` (CUDA's major leads)."""
    match = re.fullmatch(rf"(?:\d{{1,2}}\.)?(\d{{3,4}}(?:\.\d+){{1,2}}|{_VERSION})", text.strip())
    return match[1] if match else None


def parse_container_toolkit(text: str) -> str | None:
    """Read `nvidia-ctk --version`: `NVIDIA Container Toolkit CLI version 1.17.4`, then `commit: …`."""
    match = re.search(r"NVIDIA Container Toolkit CLI version (\d+(?:\.\d+)+)", text)
    return match[1] if match else None


def parse_cuda_json(text: str) -> str | None:
    """Read /usr/local/cuda/version.json: `{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, …}`."""
    try:
        value = json.loads(text)
    # A file of opening brackets only exhausts the decoder's recursion; that is no version either.
    except (ValueError, RecursionError):
        return None
    for part in ("cuda", "version"):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) and re.fullmatch(r"\d+(?:\.\d+)+", value) else None


def parse_cuda_text(text: str) -> str | None:
    """Read /usr/local/cuda/version.txt, which CUDA had up to 11.0: `CUDA Version 10.2.89`."""
    match = re.search(r"CUDA Version (\d+(?:\.\d+)+)", text)
    return match[1] if match else None


def parse_nvcc(text: str) -> str | None:
    """Read `nvcc --version`: `Cuda compilation tools, release 12.4, V12.4.131` -> `12.4`.

    The number after V is nvcc's own and not the toolkit's (12.4.1), with which it must not be compared.
    """
    match = re.search(r"release (\d+\.\d+), V\d", text)
    return match[1] if match else None


def parse_fabric_manager(text: str) -> str | None:
    """Read `nv-fabricmanager --version`: `Fabric Manager version is : 535.104.05`."""
    match = re.search(rf"Fabric Manager version is\s*:\s*({_VERSION})", text)
    return match[1] if match else None


def parse_tegra_release(text: str) -> str | None:
    """Read Linux for Tegra's release out of /etc/nv_tegra_release: `# R36 (release), REVISION: 4.3, GCID: …` -> `36.4.3`."""
    match = re.search(r"#\s*R(\d+) \(release\), REVISION:\s*(\d+(?:\.\d+)*)", text)
    return f"{match[1]}.{match[2]}" if match else None


def parse_tegra_model(text: str) -> str | None:
    r"""Read the product out of /proc/device-tree/model: `NVIDIA Jetson AGX Orin Developer Kit\0` -> `Jetson AGX Orin`.

    Boards name themselves with words the product does not have (`Engineering Reference Developer Kit Super`).
    """
    match = re.search(r"Jetson (?:AGX |Orin |Xavier )?\w+", text)
    return match[0] if match else None


def parse_kfd_target(text: str) -> str | None:
    """Read an AMD GPU's target out of /sys/class/kfd/kfd/topology/nodes/*/properties: `gfx_target_version 90402` -> `gfx942`.

    The number is major, minor and stepping with two digits each, and the last two are printed in hexadecimal: 90010 is
    gfx90a. A processor's node says 0 and is no GPU.
    """
    match = re.search(r"(?m)^gfx_target_version (\d{1,6})\s*$", text)
    number = int(match[1]) if match else 0
    if not number:
        return None
    major, minor, stepping = number // 10000, number // 100 % 100, number % 100
    return f"gfx{major}{minor:x}{stepping:x}"
