"""Compare the accelerator with its lock. A fact that no device was there to show is unverified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.validate.report import FieldReport
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock
    from provisioner.validate.measurement import Device, Measurement
    from provisioner.validate.report import Verdict


def compare_devices(lock: Lock, measurement: Measurement, *, no_device: str = "") -> Iterator[FieldReport]:
    """Yield the fields about driver, devices and computations of the measured level; none for a lock that needs no GPU."""
    if not ACCELERATORS[lock.stack.accelerator].vendor:
        return
    yield from _driver(lock, measurement, no_device)
    yield _devices(lock, measurement, no_device)
    has_torch = measurement.torch is not None or "torch" in {package.name for package in lock.packages}
    no_torch = "the lock holds no PyTorch, and nothing else in it was asked to compute"
    reason = "no device to run it on" if has_torch else no_torch
    for name, level in (("compute", 2), ("convolution", 3), ("collective", 3), ("sustained load", 4)):
        is_included = measurement.level >= level and (level == 2 or lock.stack.accelerator != "mps")
        if is_included and not measurement.devices:
            yield _unverified(name, "correct", reason)
    for device in measurement.devices:
        yield from _device(lock, measurement, device)
    if measurement.level >= 3 and measurement.devices and lock.stack.accelerator != "mps":
        yield _outcome("collective", measurement.all_reduce, measurement.error("all_reduce"))


def _driver(lock: Lock, measurement: Measurement, no_device: str) -> Iterator[FieldReport]:
    locked = lock.stack.host_requirements.get("driver", "")
    if lock.stack.accelerator != "cuda" or not locked:
        return
    if measurement.nvml is None:
        yield _unverified("driver", locked, no_device or measurement.error("nvml"))
        return
    found = measurement.nvml.driver
    try:
        is_met = Range.parse(locked).allows(Version.parse(found))
    except ValueError as error:
        yield FieldReport(name="driver", locked=locked, measured=found, verdict="unverified", note=str(error))
        return
    yield FieldReport(name="driver", locked=locked, measured=found, verdict="yes" if is_met else "no")


def _devices(lock: Lock, measurement: Measurement, no_device: str) -> FieldReport:
    """Compare the devices. Where the framework sees none: unknown, but a no where the management library lists some."""
    locked = lock.stack.host_requirements.get("gpu", "") or "one or more"
    if measurement.devices:
        found = ", ".join(_described(device) for device in measurement.devices)
        return FieldReport(name="devices", locked=locked, measured=found, verdict="yes")
    if measurement.torch is None and measurement.cuda_driver is not None and measurement.cuda_driver.count:
        names = ", ".join(measurement.nvml.names) if measurement.nvml is not None else ""
        found = names or f"{measurement.cuda_driver.count}"
        return FieldReport(name="devices", locked=locked, measured=found, verdict="yes", note="as the driver counts them")
    reason = measurement.error("devices", "cuda_driver", "accelerator")
    if measurement.nvml is not None and measurement.nvml.names:
        found = f"{', '.join(measurement.nvml.names)} (listed by NVML, not usable)"
        return FieldReport(name="devices", locked=locked, measured=found, verdict="no", note=reason)
    return _unverified("devices", locked, no_device or reason or "no device is visible")


def _described(device: Device) -> str:
    capability = device.compute_capability if not device.gfx else device.gfx
    return f"{device.name} ({capability})" if capability else device.name


def _device(lock: Lock, measurement: Measurement, device: Device) -> Iterator[FieldReport]:
    name = device.device
    if measurement.level >= 2:
        yield _outcome(f"compute {name}", device.matmul, measurement.error(f"{name} matmul", f"{name} synchronize"))
        yield _outcome(f"float16 {name}", device.float16, measurement.error(f"{name} float16"))
        # Older devices have no bfloat16 units: the script skips them, and that is neither a yes nor a no.
        if device.bfloat16 is not None or f"{name} bfloat16" in measurement.errors:
            yield _outcome(f"bfloat16 {name}", device.bfloat16, measurement.error(f"{name} bfloat16"))
    if lock.stack.accelerator == "mps":
        return
    if measurement.level >= 3:
        yield _outcome(f"convolution {name}", device.convolution, measurement.error(f"{name} convolution"))
    if measurement.level >= 4:
        load = device.sustained
        is_correct = None if load is None else load.stable and load.memory_held
        yield _outcome(f"sustained load {name}", is_correct, measurement.error(f"{name} sustained"))


def _outcome(name: str, is_correct: bool | None, error: str) -> FieldReport:  # noqa: FBT001 - a measured value, not a switch
    """Return the field of a computation on a device that is there: a failure is a no, not an unknown."""
    verdict: Verdict = "yes" if is_correct and not error else "no"
    measured = "correct" if is_correct else "failed" if error or is_correct is None else "wrong"
    return FieldReport(name=name, locked="correct", measured=measured, verdict=verdict, note=error)


def _unverified(name: str, locked: str, note: str) -> FieldReport:
    return FieldReport(name=name, locked=locked, measured="", verdict="unverified", note=note)
