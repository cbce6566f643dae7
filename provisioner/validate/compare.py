"""Compare a measurement with its lock, fact by fact: pure functions that return fields with verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.validate.compare_devices import compare_devices
from provisioner.validate.report import FieldReport
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock
    from provisioner.validate.measurement import Measurement, Torch
    from provisioner.validate.report import Verdict

ALWAYS_ALLOWED = frozenset({"pip", "setuptools", "wheel"})
"""Distributions that `venv` and `ensurepip` install, so that an environment may hold them though its lock does not."""


def compare(lock: Lock, measurement: Measurement, *, no_device: str = "") -> tuple[FieldReport, ...]:
    """Return every field of the comparison for a lock of one platform, in the order a reader looks for them.

    `no_device` is the engine's reason when it could not provide the requested GPUs.
    """
    fields = [_python(lock, measurement), *_glibc(lock, measurement)]
    if "torch" in {package.name for package in lock.packages}:
        fields += _torch(lock, measurement)
    fields += compare_packages(lock, measurement.distributions)
    if measurement.level >= 1:
        fields += [_cpu_matmul(measurement)] if measurement.torch is not None else []
        fields += compare_devices(lock, measurement, no_device=no_device)
    return tuple(fields)


def agreement(name: str, locked: str, measured: str, *, agrees: bool, note: str = "") -> FieldReport:
    """Return a field of which both sides are known."""
    verdict: Verdict = "yes" if agrees else "no"
    return FieldReport(name=name, locked=locked, measured=measured, verdict=verdict, note=note)


def _python(lock: Lock, measurement: Measurement) -> FieldReport:
    locked = lock.stack.components.get("python", lock.requires_python)
    return agreement("python", locked, measurement.python, agrees=_allows(locked, measurement.python))


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
    yield agreement("pytorch", locked, torch.version, agrees=public == locked.partition("+")[0])
    if build := lock.stack.components.get("pytorch_build", ""):
        measured = local or build_of(torch)
        yield agreement("pytorch_build", build, measured, agrees=measured == build)
    if cuda := lock.stack.components.get("cuda", ""):
        yield agreement("cuda", cuda, torch.cuda or "", agrees=series(cuda) == series(torch.cuda or ""))
    if rocm := lock.stack.components.get("rocm", ""):
        yield agreement("rocm", rocm, torch.hip or "", agrees=series(rocm) == series(torch.hip or ""))
    yield from _libraries(lock, measurement, torch)


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
        yield FieldReport(name="libraries", locked="all found", measured="", verdict="unverified", note=note)
    else:
        measured = ", ".join(torch.unresolved) or "all found"
        yield agreement("libraries", "all found", measured, agrees=not torch.unresolved)


def _nccl(locked: str, measurement: Measurement, torch: Torch) -> FieldReport:
    """Compare NCCL, whose version is unknown where it is linked statically: PyTorch's constant for it is no measurement."""
    if torch.nccl is None:
        note = measurement.error("nccl") or "libnccl.so is not loaded by this build, so its version cannot be read"
        return FieldReport(name="nccl", locked=locked, measured="", verdict="unverified", note=note)
    measured = library_version(torch.nccl)
    return agreement("nccl", locked, measured, agrees=locked.split("+", maxsplit=1)[0].split(".")[:3] == measured.split("."))


def _arch_list(locked: tuple[str, ...], measurement: Measurement, torch: Torch) -> FieldReport:
    """Compare the targets: all locked ones must be compiled in. The flags omit the suffix of `sm_90a`, given beside `sm_90`."""
    shown = " ".join(locked)
    if not torch.arch_flags:
        note = measurement.error("arch_flags") or "this build does not say what it was compiled for"
        return FieldReport(name="arch_list", locked=shown, measured="", verdict="unverified", note=note)
    compiled = {_without_suffix(flag) for flag in torch.arch_flags}
    wanted = {_without_suffix(target) for target in locked if not target.startswith("compute_")}
    missing = ", ".join(sorted(wanted - compiled))
    note = f"not compiled in: {missing}" if missing else ""
    return agreement("arch_list", shown, " ".join(torch.arch_flags), agrees=not missing, note=note)


def _without_suffix(target: str) -> str:
    return target.rstrip("af") if target.startswith("sm_") else target


def compare_packages(lock: Lock, installed: dict[str, str] | None) -> list[FieldReport]:
    """Return a field for all packages, and one for each that is missing, differs or is not in the lock."""
    locked = {package.name: package.version for package in lock.packages}
    total = f"{len(locked)} packages"
    if installed is None:
        note = "the list of installed packages could not be read"
        return [FieldReport(name="packages", locked=total, measured="", verdict="unverified", note=note)]
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
    """Return the version that a library encodes as a number: cuDNN's 90100 is 9.1.0 and 8902 is 8.9.2, NCCL's 22005 is 2.20.5.

    The factor of the major number changed with cuDNN 9 (cudnn_version.h, CUDNN_VERSION) and NCCL 2.9 (nccl.h, NCCL_VERSION).
    """
    major, rest = divmod(number, 10000 if number >= 10000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def series(version: str) -> tuple[str, ...]:
    """Return major and minor number, all that PyTorch reports of its CUDA: `12.6.3` and `12.6` are one series."""
    return tuple(version.split(".")[:2]) if version else ()


def build_of(torch: Torch) -> str:
    """Return the variant of a PyTorch whose version has no local label, as those of the default index."""
    if torch.cuda:
        return "cu" + torch.cuda.replace(".", "")
    return f"rocm{'.'.join(series(torch.hip))}" if torch.hip else "cpu"


def _allows(locked: str, measured: str) -> bool:
    from provisioner.versions import Version

    try:
        return Range.parse(locked).allows(Version.parse(measured))
    except ValueError:
        return False
