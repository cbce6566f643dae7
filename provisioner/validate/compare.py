"""Compare a measurement with its lock, fact by fact.

A field (`FieldReport`) is one fact with its locked and its measured value and a verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.evidence.report import FieldReport, agreement, at_level, outcome, unverified
from provisioner.validate.compare_files import compare_files
from provisioner.validate.compare_frameworks import compare_framework_devices, compare_frameworks
from provisioner.validate.compare_health import Figures, compare_health
from provisioner.validate.local_engine import ARCHITECTURES
from provisioner.validate.published import Published
from provisioner.versions import Range, Version, series, without_local
from provisioner.words.notation import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.lock.format.model import Lock
    from provisioner.validate.measurement import Device, Measurement, Torch

ALWAYS_ALLOWED = frozenset({"pip", "setuptools", "wheel"})
"""Distributions that `venv` and `ensurepip` install; an environment may contain them even if its lock does not."""


def compare(
    lock: Lock,
    measurement: Measurement,
    *,
    no_device: str = "",
    figures: Mapping[str, Figures] | None = None,
    engine_platform: str = "",
    published: Published | None = None,
) -> tuple[FieldReport, ...]:
    """Return the fields of the comparison with a lock of one platform, in the order of the report.

    `no_device` is the engine's message if it could not provide the requested GPUs, else "". `figures` are the figures of
    healthy boards, by PCI device id. `engine_platform` is the platform of the engine's machine, "" if unknown.
    `published` are the files that the locked wheels have as they are; None if no wheel was read.
    """
    fields = (_python(lock, measurement), _machine(lock, measurement, engine_platform), *_glibc(lock, measurement))
    found = at_level(2, (*fields, *compare_packages(lock, measurement.distributions)))
    found += at_level(2, compare_files(measurement, published or Published()))
    if measurement.level >= 3:
        torch = _torch(lock, measurement) if "torch" in {package.name for package in lock.packages} else ()
        found += at_level(3, (*torch, *compare_frameworks(lock, measurement)))
    if measurement.level >= 4:
        found += at_level(4, _devices(lock, measurement, no_device=no_device))
    if measurement.level >= 5:
        found += at_level(5, compare_health(measurement, figures or {}, no_device=no_device))
    return found


def _python(lock: Lock, measurement: Measurement) -> FieldReport:
    locked = lock.stack.components.get("python", lock.requires_python)
    return agreement("python", locked, measurement.python, agrees=_allows(locked, measurement.python))


def _machine(lock: Lock, measurement: Measurement, engine_platform: str) -> FieldReport:
    """Compare the architecture; where another one is emulated, a process sees the emulated one, and a note tells."""
    locked = lock.stack.platform.partition("/")[2]
    machine = measurement.machine.lower()
    measured = ARCHITECTURES.get(machine, machine)
    agrees = measured == ARCHITECTURES.get(locked, locked)
    is_emulated = agrees and engine_platform not in {"", lock.stack.platform}
    return agreement(
        "architecture", locked, measured, agrees=agrees, note=f"emulated on {engine_platform}" if is_emulated else ""
    )


def _glibc(lock: Lock, measurement: Measurement) -> Iterator[FieldReport]:
    locked = lock.stack.image.glibc if lock.stack.image is not None and lock.stack.runs == "container" else ""
    if locked:
        measured = measurement.glibc or ""
        yield agreement("glibc", locked, measured, agrees=measured == locked)


def _torch(lock: Lock, measurement: Measurement) -> Iterator[FieldReport]:
    versions = {package.name: package.version for package in lock.packages}
    locked = lock.stack.components.get("pytorch") or versions["torch"]
    torch = measurement.torch
    if torch is None:
        note = measurement.error("import torch", "torch") or "torch is not installed"
        yield agreement("pytorch", locked, "", agrees=False, note=note)
        return
    public, _, local = torch.version.partition("+")
    yield agreement("pytorch", locked, torch.version, agrees=public == without_local(locked))
    if build := lock.stack.components.get("pytorch_build", ""):
        measured = local or build_of(torch)
        yield agreement("pytorch_build", build, measured, agrees=measured == build)
    # PyTorch reports the first two numbers alone.
    if cuda := lock.stack.components.get("cuda", ""):
        yield agreement("cuda", cuda, torch.cuda or "", agrees=series(cuda) == series(torch.cuda or ""))
    if rocm := lock.stack.components.get("rocm", ""):
        yield agreement("rocm", rocm, torch.hip or "", agrees=series(rocm) == series(torch.hip or ""))
    yield from _libraries(lock, measurement, torch)
    yield _cpu_matmul(measurement)


def _libraries(lock: Lock, measurement: Measurement, torch: Torch) -> Iterator[FieldReport]:
    if cudnn := lock.stack.components.get("cudnn", ""):
        measured = library_version(torch.cudnn) if torch.cudnn is not None else ""
        agrees = bool(measured) and cudnn.split(".")[:3] == measured.split(".")
        note = "" if measured else measurement.error("cudnn") or "this build of PyTorch loads no cuDNN"
        yield agreement("cudnn", cudnn, measured, agrees=agrees, note=note)
    if nccl := lock.stack.components.get("nccl", ""):
        yield _nccl(nccl, measurement, torch)
    if lock.stack.arch_list:
        yield _arch_list(lock.stack.arch_list, measurement, torch)
    if torch.unresolved is None:
        note = measurement.error("unresolved") or "looked for on Linux only"
        yield unverified("libraries", "all found", note)
    else:
        measured = ", ".join(torch.unresolved) or "all found"
        yield agreement("libraries", "all found", measured, agrees=not torch.unresolved)


def _nccl(locked: str, measurement: Measurement, torch: Torch) -> FieldReport:
    """Compare the version of NCCL; unverified if NCCL is linked statically, as PyTorch's constant for it is no measurement."""
    if torch.nccl is None:
        note = measurement.error("nccl") or "libnccl.so is not loaded by this build, so its version cannot be read"
        return unverified("nccl", locked, note)
    measured = library_version(torch.nccl)
    return agreement("nccl", locked, measured, agrees=locked.split("+", maxsplit=1)[0].split(".")[:3] == measured.split("."))


def _arch_list(locked: tuple[str, ...], measurement: Measurement, torch: Torch) -> FieldReport:
    """Compare the GPU targets: PyTorch must be compiled for every locked one.

    PyTorch's flags omit the suffix of `sm_90a`, so suffixes are ignored.
    """
    shown = " ".join(locked)
    if not torch.arch_flags:
        note = measurement.error("arch_flags") or "this build does not say what it was compiled for"
        return unverified("arch_list", shown, note)
    compiled = {_without_suffix(flag) for flag in torch.arch_flags}
    wanted = {_without_suffix(target) for target in locked if not target.startswith("compute_")}
    missing = ", ".join(sorted(wanted - compiled))
    note = f"not compiled in: {missing}" if missing else ""
    return agreement("arch_list", shown, " ".join(torch.arch_flags), agrees=not missing, note=note)


def _without_suffix(target: str) -> str:
    return target.rstrip("af") if target.startswith("sm_") else target


def compare_packages(lock: Lock, installed: dict[str, str] | None) -> list[FieldReport]:
    """Return a field for all packages, and one for each package that is missing, has another version or is not in the lock.

    `installed` maps names to versions; None if they could not be read.
    """
    locked = {package.name: package.version for package in lock.packages}
    total = counted(len(locked), "package")
    if installed is None:
        note = "the list of installed packages could not be read"
        return [unverified("packages", total, note)]
    extra = sorted(set(installed) - set(locked) - ALWAYS_ALLOWED)
    different = []
    for name, version in sorted(locked.items()):
        if not _same_version(version, installed.get(name, "")):
            note = "" if name in installed else "not installed"
            different.append(agreement(f"package {name}", version, installed.get(name, ""), agrees=False, note=note))
    different += [agreement(f"package {name}", "", installed[name], agrees=False, note="not in the lock") for name in extra]
    matching = len(locked) - sum(1 for field in different if field.locked)
    measured = f"{matching} as locked" + (f", {len(extra)} more" if extra else "")
    return [agreement("packages", total, measured, agrees=not different), *different]


def _same_version(locked: str, installed: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(locked) == Version(installed)
    except InvalidVersion:
        return bool(installed) and locked == installed


def _cpu_matmul(measurement: Measurement) -> FieldReport:
    measured = {True: "exact", False: "wrong", None: ""}[measurement.cpu_matmul]
    note = measurement.error("cpu_matmul")
    return agreement("cpu compute", "exact", measured, agrees=bool(measurement.cpu_matmul), note=note)


def library_version(number: int) -> str:
    """Return the version that a library encodes as a number: 90100 of cuDNN is 9.1.0, 8902 is 8.9.2; 22005 of NCCL is 2.20.5.

    The factor of the major number changed with cuDNN 9 (cudnn_version.h, CUDNN_VERSION) and NCCL 2.9 (nccl.h, NCCL_VERSION).
    """
    major, rest = divmod(number, 10000 if number >= 10000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def build_of(torch: Torch) -> str:
    """Return the build name (`cu126`) of a PyTorch whose version has no local label, as on the default index."""
    if torch.cuda:
        return "cu" + torch.cuda.replace(".", "")
    return f"rocm{series(torch.hip)}" if torch.hip else "cpu"


def _allows(locked: str, measured: str) -> bool:
    try:
        return Range.parse(locked).allows(Version.parse(measured))
    except ValueError:
        return False


def _devices(lock: Lock, measurement: Measurement, *, no_device: str) -> Iterator[FieldReport]:
    """Yield the fields about driver, devices, and the computations on them; none if the lock needs no GPU.

    If no device is visible, the fields of computations are unverified.
    """
    if not ACCELERATORS[lock.stack.accelerator].vendor:
        return
    yield from _driver(lock, measurement, no_device)
    yield _visible_devices(lock, measurement, no_device)
    if not measurement.devices and "torch" in {package.name for package in lock.packages}:
        is_mps = lock.stack.accelerator == "mps"
        for name in ("compute",) if is_mps else ("compute", "convolution", "collective"):
            yield unverified(name, "correct", "no device to run it on")
    on_frameworks = tuple(compare_framework_devices(lock, measurement))
    yield from on_frameworks
    if "torch" not in {package.name for package in lock.packages} and not on_frameworks:
        yield unverified("compute", "correct", "no check of the lock's packages computes on a device")
    for device in measurement.devices:
        yield from _device(lock, measurement, device)
    if measurement.devices and lock.stack.accelerator != "mps":
        yield outcome("collective", measurement.all_reduce, measurement.error("all_reduce"))
        if len(measurement.devices) > 1:
            yield outcome("copies between devices", measurement.peers, measurement.error("peers"))


def _driver(lock: Lock, measurement: Measurement, no_device: str) -> Iterator[FieldReport]:
    locked = lock.stack.host_requirements.get("driver", "")
    if lock.stack.accelerator != "cuda" or not locked:
        return
    if measurement.nvml is None:
        yield unverified("driver", locked, no_device or measurement.error("nvml"))
        return
    found = measurement.nvml.driver
    try:
        is_met = Range.parse(locked).allows(Version.parse(found))
    except ValueError as error:
        yield FieldReport(name="driver", locked=locked, measured=found, verdict="unverified", note=str(error))
        return
    yield FieldReport(name="driver", locked=locked, measured=found, verdict="yes" if is_met else "no")


def _visible_devices(lock: Lock, measurement: Measurement, no_device: str) -> FieldReport:
    """Compare the visible devices.

    If the framework sees no device, the field is unverified, but a "no" if NVML (the management library) lists some.
    """
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
    return unverified("devices", locked, no_device or reason or "no device is visible")


def _described(device: Device) -> str:
    capability = device.compute_capability if not device.gfx else device.gfx
    return f"{device.name} ({capability})" if capability else device.name


def _device(lock: Lock, measurement: Measurement, device: Device) -> Iterator[FieldReport]:
    name = device.device
    yield outcome(f"compute {name}", device.matmul, measurement.error(f"{name} matmul", f"{name} synchronize"))
    yield outcome(f"float16 {name}", device.float16, measurement.error(f"{name} float16"))
    # Devices without bfloat16 units are skipped by the script, so there is no field about it.
    if device.bfloat16 is not None or f"{name} bfloat16" in measurement.errors:
        yield outcome(f"bfloat16 {name}", device.bfloat16, measurement.error(f"{name} bfloat16"))
    if lock.stack.accelerator == "mps":
        return
    yield outcome(f"convolution {name}", device.convolution, measurement.error(f"{name} convolution"))
    # PyTorch before 2.0 has no attention of its own, so there is no field about it.
    error = measurement.error(f"{name} attention")
    if device.attention is not None or error:
        yield outcome(f"attention {name}", device.attention, error)
