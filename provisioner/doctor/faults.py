"""The faults that no rule of the matrix is about: what the inspection saw of a machine, and what is installed on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS, ON_GPUS
from provisioner.components import ABSENT, COMPONENTS, FOLLOWERS
from provisioner.grounds.doubt import Unstated
from provisioner.grounds.fault import (
    Doubted,
    ForbiddenDevices,
    KeyNotEnrolled,
    LinuxDriverInWsl,
    MissingDevices,
    NoContainerToolkit,
    NoDriver,
    NotBuilt,
    NoWslLibrary,
    Seen,
    StaleCdi,
    Unseen,
)
from provisioner.host import remark as of
from provisioner.host.facts import stated, with_fact
from provisioner.resolver.rules.facts import profile_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.doctor.model import Patient
    from provisioner.grounds.fault import Fault
    from provisioner.host.condition import Condition
    from provisioner.host.model import Host
    from provisioner.host.remark import Builder, Remark
    from provisioner.layers import LayerName
    from provisioner.request import Request, TargetHost

_BROKEN: dict[type[Remark], LayerName] = {
    of.GpusNotRun: "driver",
    of.DriverNotLoaded: "driver",
    of.NvmlFailed: "driver",
    of.GpuSilent: "gpu",
}
"""Remarks that tell of a GPU or driver that does not work, with the layer to mend."""

_UNKNOWN: dict[type[Remark], LayerName] = {
    of.GpusUnknown: "gpu",
    of.UnknownGpus: "gpu",
    of.AmdgpuModule: "driver",
    of.SeveralLibcuda: "driver",
    of.NvmlNotLoadable: "driver",
}
"""Remarks on what could not be determined, with the layer. Others are no faults, or the resolver judges what they tell of."""


def machine_faults(patient: Patient, request: Request) -> tuple[Fault, ...]:
    """Return the faults of a machine's GPUs, driver and containers; a machine whose request computes on the CPU has none."""
    if request.accelerator not in ON_GPUS:
        return ()
    found = (
        *_of_key(patient),
        *_of_remarks(patient),
        *_of_driver(patient, request),
        *_of_devices(patient),
        *_of_containers(patient, request),
    )
    return tuple(dict.fromkeys(found))


def _of_remarks(patient: Patient) -> Iterator[Fault]:
    for remark in patient.remarks:
        if type(remark) in _BROKEN:
            yield Seen(layer=_BROKEN[type(remark)], remark=remark)
        elif type(remark) in _UNKNOWN:
            yield Unseen(layer=_UNKNOWN[type(remark)], remark=remark)


def _of_key(patient: Patient) -> Iterator[Fault]:
    """Yield the fault of a module that was built here for the running kernel, and that Secure Boot refuses to load."""
    host, condition = patient.target.host, patient.condition
    if condition is None or host.kernel is None or stated(host, "secure_boot") != "enforced":
        return
    of_dkms: Builder | None = "DKMS" if any(host.kernel in one.kernels for one in condition.dkms or ()) else None
    for remark in patient.remarks:
        builder = (remark.built_by or of_dkms) if isinstance(remark, of.DriverNotLoaded) else None
        if isinstance(remark, of.DriverNotLoaded) and builder is not None:
            yield KeyNotEnrolled(layer="kernel", version=remark.version, builder=builder)


def missing_driver(host: Host, request: Request) -> str:
    """Return the driver that the GPUs of a request need and that a host does not state; "" if it states one.

    A Jetson's is a part of Jetson Linux.
    """
    drivers = [
        name
        for name in ACCELERATORS[request.accelerator].drivers
        if request.system in COMPONENTS[name].systems and COMPONENTS[name].driver_kind
    ]
    has_some = host.jetson is not None or (
        host.driver is not None and host.driver.kind in {COMPONENTS[name].driver_kind for name in drivers}
    )
    return "" if has_some or not drivers else drivers[0]


def _of_driver(patient: Patient, request: Request) -> Iterator[Fault]:
    host, condition = patient.target.host, patient.condition
    component = missing_driver(host, request)
    if not component:
        return
    if host.virtualization == "wsl2":
        if condition is not None and condition.linux_driver:
            yield LinuxDriverInWsl(layer="driver", files=condition.linux_driver, packages=condition.linux_driver_packages)
            return
        if condition is not None and condition.wsl_library is False:
            yield NoWslLibrary(layer="driver")
            return
        yield Doubted(layer="driver", doubt=Unstated(fact=component, host=patient.target.label, profile_key="driver"))
        return
    not_built = _not_built(host, condition, component)
    if not_built is not None:
        yield not_built
    elif any(isinstance(remark, of.DriverNotLoaded | of.NvmlFailed) for remark in patient.remarks):
        return  # which says more of it
    elif host.loaded_modules is not None or (patient.is_seen and request.system == "macos"):
        # Whoever listed the loaded modules, or read the bundles of a Mac, would have seen the driver.
        yield NoDriver(layer="driver", component=component)
    else:
        key = profile_key(component)
        yield Doubted(layer="driver", doubt=Unstated(fact=component, host=patient.target.label, profile_key=key))


def without_followers(patient: Patient) -> TargetHost:
    """Return the target without what came with a driver that is not built for its kernel: the next driver brings its own."""
    target = patient.target
    host = target.host
    if host.driver is None and _not_built(host, patient.condition, "driver") is not None:
        for name in FOLLOWERS["driver"]:
            host = with_fact(host, name, None)
    return replace(target, host=host)


def _not_built(host: Host, condition: Condition | None, component: str) -> NotBuilt | None:
    """Return the fault of a driver that DKMS has, and has not built for the running kernel; None if there is no such driver."""
    kernel = host.kernel
    if condition is None or kernel is None:
        return None
    kind = "amdgpu" if component == "amdgpu" else "nvidia"
    ours = [one for one in condition.dkms or () if one.name.startswith(kind)]
    if not ours or any(kernel in one.kernels for one in ours):
        return None
    return NotBuilt(
        layer="driver",
        component=component,
        version=ours[-1].version,
        kernel=kernel,
        kernels=tuple(sorted({other for one in ours for other in one.kernels})),
        lacks_headers=host.kernel_headers == ABSENT,
    )


def _of_devices(patient: Patient) -> Iterator[Fault]:
    condition, host = patient.condition, patient.target.host
    if condition is None:
        return
    if condition.missing_devices:
        kinds = {gpu.accelerator for gpu in host.gpus or ()}
        yield MissingDevices(
            layer="driver",
            files=condition.missing_devices,
            accelerator="wsl" if host.virtualization == "wsl2" else "rocm" if "rocm" in kinds else "cuda",
            is_container=host.virtualization == "container",
        )
    if condition.forbidden_devices:
        yield ForbiddenDevices(layer="driver", files=condition.forbidden_devices, groups=condition.device_groups)


def _of_containers(patient: Patient, request: Request) -> Iterator[Fault]:
    host, condition = patient.target.host, patient.condition
    if request.accelerator not in COMPONENTS["container_toolkit"].accelerators:
        return
    if request.runs == "container" and host.container_toolkit == ABSENT:
        yield NoContainerToolkit(layer="container")
    driver = stated(host, "userspace_driver") or stated(host, "driver")
    for spec in (condition.cdi or ()) if condition is not None else ():
        if spec.driver is not None and driver is not None and spec.driver != driver:
            yield StaleCdi(layer="container", file=spec.file, mounts=spec.driver, driver=driver)
