"""Read what AMD's tools print as JSON of a machine: `rocm-smi --showallinfo --json` and `amd-smi static --json`.

Reports were read of rocm-smi of ROCm 4.3 to 6.1 and of amd-smi of ROCm 6.4 to 7.14; their keys changed between releases
(`Card series`, `Card Series`), so that they are compared without regard to case. A report names its machine by serial numbers
and identities of its GPUs, none of which is read.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS
from provisioner.host.inspect import Inspection
from provisioner.host.model import Driver, Host, HostGpu
from provisioner.host.parse import amdgpu_release
from provisioner.host.remark import AmdgpuModule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.host.catalogue import Catalogue
    from provisioner.host.remark import Remark

_CARD = re.compile(r"card\d+")
_TARGET = re.compile(ACCELERATORS["rocm"].target)
_DEVICE = re.compile(r"0x([0-9a-fA-F]{4})")
_MODULE = re.compile(r"\d+(?:\.\d+)+")
_KERNEL = re.compile(r"(?:Linux\s*version\s*)?(\d+\.\d+\.\d+-[\w.+~-]+)")
"""A kernel, which both tools print in place of a driver that came with the kernel: `6.8.0-40-generic`, or all of its banner."""


def is_rocm_report(data: object) -> bool:
    """Return whether a JSON document is a report of `rocm-smi` or `amd-smi`."""
    if isinstance(data, dict):
        return any(_CARD.fullmatch(key) for key in data) or isinstance(data.get("gpu_data"), list)
    return (
        isinstance(data, list) and bool(data) and all(isinstance(one, dict) and "gpu" in one and "asic" in one for one in data)
    )


def inspect_rocm_report(data: object, *, catalogue: Catalogue) -> Inspection:
    """Return the facts in a report for which `is_rocm_report` holds: the GPUs, the driver, and the kernel where it is told.

    Both tools tell the number of the driver's module; it becomes the series of the driver where `catalogue` knows it.
    """
    cards = list(_of_rocm_smi(data) if isinstance(data, dict) and "gpu_data" not in data else _of_amd_smi(data))
    gpus = Counter(gpu for gpu, _ in cards)
    told = next((text for _, text in cards if text), "")
    kernel = _KERNEL.match(told)
    module = told if _MODULE.fullmatch(told) else ""
    release = amdgpu_release(module) or catalogue.modules.get(module)
    remarks: tuple[Remark, ...] = (AmdgpuModule(module),) if module and release is None else ()
    host = Host(
        kernel=kernel[1] if kernel is not None else None,
        driver=Driver(kind="amdgpu", version=release),
        gpus=tuple(replace(gpu, count=count) for gpu, count in gpus.items()) or None,
    )
    return Inspection(host=catalogue.identify(host), remarks=remarks)


def _of_rocm_smi(data: Mapping[str, Any]) -> Iterator[tuple[HostGpu, str]]:
    """Yield each card of `rocm-smi`, with the driver."""
    system = data.get("system")
    driver = _text(_lower(system).get("driver version"))
    for key, card in data.items():
        if _CARD.fullmatch(key) and isinstance(card, dict):
            values = _lower(card)
            names = (_text(values.get(one)) for one in ("card series", "device name", "card model"))
            device = _text(values.get("device id")) or _text(values.get("gpu id"))
            yield HostGpu(name=_name(*names), gfx=_target(values.get("gfx version")), pci_device_id=_device(device)), driver


def _of_amd_smi(data: object) -> Iterator[tuple[HostGpu, str]]:
    """Yield each GPU of `amd-smi static`, with the driver."""
    listed = data["gpu_data"] if isinstance(data, dict) else data
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict):
            asic, driver = _lower(one.get("asic")), _lower(one.get("driver"))
            version = driver.get("version") or driver.get("driver_version")
            name, device = _name(_text(asic.get("market_name"))), _device(_text(asic.get("device_id")))
            target = _target(asic.get("target_graphics_version"))
            yield HostGpu(name=name, gfx=target, pci_device_id=device), _text(version)


def _lower(values: object) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in values.items()} if isinstance(values, dict) else {}


def _text(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    return "" if text in {"N/A", "Unknown"} else text


def _name(*names: str) -> str | None:
    """Return the first text that is a name, and no number of a device (`0x73df`)."""
    return next((name for name in names if name and not name.lower().startswith("0x")), None)


def _device(text: str) -> str | None:
    found = _DEVICE.fullmatch(text)
    return found[1].upper() if found is not None else None


def _target(value: object) -> str | None:
    found = _TARGET.search(_text(value).lower())
    return found[0] if found is not None else None
