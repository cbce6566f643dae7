"""Compare what frameworks, and the packages that a spec names, say and compute with what a lock states of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from provisioner.evidence.report import FieldReport, agreement, outcome, unverified
from provisioner.validate.programs import checked_packages, has_own_check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock
    from provisioner.validate.measurement import Framework, Measurement

_NEEDS_DRIVER = re.compile(
    r"lib(cuda|cudadebugger|nvcuvid|nvidia-[a-z-]+|nvoptix)\.so\.\d+: cannot open"
    r"|is an NVIDIA driver library and can only be found|CUDA driver version is insufficient|Found no NVIDIA driver"
    r"|cudaError(NoDevice|InsufficientDriver)|no CUDA-capable device|CUDA_ERROR_NO_DEVICE"
)
"""Errors for want of a driver or a GPU, which say nothing about the stack: no image has the libraries of the driver.

AMD's driver has none: those of ROCm, such as libamdhip64, are the image's, or the wheels'.
"""


def compare_frameworks(lock: Lock, measurement: Measurement) -> Iterator[FieldReport]:
    """Yield the fields about each package that is imported in a process of its own."""
    locked = {package.name: package.version for package in lock.packages}
    for name in checked_packages(lock):
        framework = measurement.frameworks.get(name)
        if framework is None:
            yield agreement(name, locked[name], "", agrees=False, note=measurement.error(name) or "it was not measured")
            continue
        yield _import(name, locked[name], framework)
        for computation, is_correct in framework.outcomes.items():
            yield _computed(f"{name} {computation}", is_correct, framework.errors.get(computation, ""))
        if framework.shadowed:
            note = "the environment has them, too: " + ", ".join(framework.shadowed)
            yield agreement(f"{name} libraries", "of the environment", "from elsewhere", agrees=False, note=note)


def compare_framework_devices(lock: Lock, measurement: Measurement) -> Iterator[FieldReport]:
    """Yield the fields about the devices of each framework whose check has something for them."""
    for name in checked_packages(lock):
        framework = measurement.frameworks.get(name)
        if framework is None or framework.devices is None:
            continue
        for computation, is_correct in framework.on_devices.items():
            yield _computed(f"{name} {computation}", is_correct, framework.errors.get(computation, ""))
        if not framework.on_devices:
            yield unverified(f"{name} on devices", "correct", framework.errors.get("devices", "") or "it sees no device")


def _import(name: str, locked: str, framework: Framework) -> FieldReport:
    """Compare the version that a framework states; other packages may state what they like, and need not state any.

    What such a package states, its note tells: what is installed is compared by its metadata, at level 2.
    """
    error = framework.errors.get("import", "")
    if _NEEDS_DRIVER.search(error):
        return unverified(name, locked, error)
    if error:
        return agreement(name, locked, framework.version or "", agrees=False, note=error)
    facts = [f"{fact} {value}" for fact, value in framework.facts.items() if value]
    if has_own_check(name):
        measured = framework.version or "imported"
        return agreement(name, locked, measured, agrees=_is_release(measured, locked), note=", ".join(facts))
    if framework.version and not _is_release(framework.version, locked):
        facts.append(f"it calls itself {framework.version}")
        return agreement(name, locked, "imported", agrees=True, note=", ".join(facts))
    return agreement(name, locked, framework.version or "imported", agrees=True, note=", ".join(facts))


def _is_release(measured: str, locked: str) -> bool:
    """Return whether two versions are of one release; only some builds state their local label."""
    try:
        return Version(measured).public == Version(locked).public
    except InvalidVersion:
        return measured == locked


def _computed(name: str, is_correct: bool | None, error: str) -> FieldReport:  # noqa: FBT001 - a measured value, not a switch
    return unverified(name, "correct", error) if _NEEDS_DRIVER.search(error) else outcome(name, is_correct, error)
