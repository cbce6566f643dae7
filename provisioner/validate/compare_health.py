"""Compare what GPUs reached under load, and what their drivers counted meanwhile, with what healthy boards do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.evidence.report import FieldReport, agreement, outcome, unverified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.validate.measurement import DeviceHealth, Load, Measurement


class Figures(Struct, frozen=True, kw_only=True):
    """The least that healthy boards reach: GB/s of memory and TFLOP/s of float32 products; None for what nobody published."""

    memory_bandwidth: float | None = None
    float32: float | None = None


def compare_health(measurement: Measurement, figures: Mapping[str, Figures], *, no_device: str) -> Iterator[FieldReport]:
    """Yield the fields about the health of each device; `figures` are those of healthy boards by PCI device id.

    `no_device` is the engine's message if it could not provide the requested GPUs, else "".
    """
    health = measurement.health
    if health is None or not health.devices:
        errors = [] if health is None else list(health.errors.values())
        note = no_device or measurement.error("health") or "; ".join(errors) or "no device to run it on"
        yield unverified("load", "correct", note)
        return
    for device in health.devices:
        yield _load(device)
        if device.load is not None:
            yield from _figures(device, device.load, figures.get(device.pci_device_id))
        yield from _counters(device)


def _load(device: DeviceHealth) -> FieldReport:
    name, error = f"load {device.device}", device.errors.get("load", "")
    if device.load is None and not error:
        return unverified(name, "correct", "the lock has no PyTorch to load the GPU with")
    is_correct = None if device.load is None else device.load.stable and device.load.memory_held
    return outcome(name, is_correct, error)


def _figures(device: DeviceHealth, load: Load, least: Figures | None) -> Iterator[FieldReport]:
    """Yield what a device reached beside what healthy boards with its PCI device id reach; a part of a GPU is not compared."""
    for name, reached, wanted, unit in (
        ("memory bandwidth", load.memory_bandwidth, None if least is None else least.memory_bandwidth, "GB/s"),
        ("float32 products", load.float32, None if least is None else least.float32, "TFLOP/s"),
    ):
        field = f"{name} {device.device}"
        measured = f"{reached:,.4g} {unit}" if reached < 10_000 else f"{reached:,.0f} {unit}"
        if wanted is None or device.part:
            board = f"PCI device {device.pci_device_id}" if device.pci_device_id else "this device"
            note = f"a part of a GPU ({device.part})" if device.part else f"nobody published what {board} reaches"
            yield FieldReport(name=field, locked="as healthy boards", measured=measured, verdict="unverified", note=note)
        else:
            yield agreement(field, f">={wanted:g} {unit}", measured, agrees=reached >= wanted)


def _counters(device: DeviceHealth) -> Iterator[FieldReport]:
    """Yield what the driver counted; what a device has no counter for is left out."""
    name = device.device
    if device.uncorrected is not None:
        before = device.uncorrected_before or 0
        note = f"{before} of them before the load" if before else ""
        measured = f"{device.uncorrected} uncorrected errors"
        yield agreement(f"ecc {name}", "0 uncorrected errors", measured, agrees=not device.uncorrected, note=note)
    elif "ecc" in device.errors:
        yield unverified(f"ecc {name}", "0 uncorrected errors", device.errors["ecc"])
    if device.repairs is not None:
        measured = ", ".join(device.repairs) or "none"
        yield agreement(f"memory repairs {name}", "none", measured, agrees=not device.repairs)
    elif "repairs" in device.errors:
        yield unverified(f"memory repairs {name}", "none", device.errors["repairs"])
    if device.xids is not None:
        measured = ", ".join(f"Xid {number}" for number in device.xids) or "none"
        yield agreement(f"errors {name}", "none", measured, agrees=not device.xids)
    elif "xids" in device.errors:
        yield unverified(f"errors {name}", "none", device.errors["xids"])
    if device.slowdowns:
        note = "the GPU was slowed down under load"
        yield agreement(f"clocks {name}", "not slowed down", ", ".join(device.slowdowns), agrees=False, note=note)
