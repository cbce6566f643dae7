"""The GPUs, the driver and the operating system of a host as short text, for tables of host groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.host.model import Host, HostGpu

UNSTATED = "not stated"


def gpus_of(host: Host | None) -> str:
    """Return the names of a host's GPUs, such as `NVIDIA H100`; `no GPU` without any, `GPUs not stated` if unknown."""
    if host is None or host.gpus is None:
        return "GPUs not stated"
    return " + ".join(dict.fromkeys(map(_gpu, host.gpus))) or "no GPU"


def _gpu(gpu: HostGpu) -> str:
    device = f"compute capability {gpu.compute_capability}" if gpu.compute_capability else gpu.gfx
    return gpu.name or device or "a GPU of unknown kind"


def driver_of(host: Host | None) -> str:
    """Return the version of a host's driver, after its kind unless that is NVIDIA's; `not stated` when it is unknown."""
    if host is None or host.driver is None or host.driver.version is None:
        return UNSTATED
    return f"{host.driver.version}" if host.driver.kind == "nvidia" else f"{host.driver.kind} {host.driver.version}"


def branch_of(host: Host | None) -> str:
    """Return the branch of a host's NVIDIA driver, such as `550`, or what `driver_of` returns for another or unknown driver."""
    driver = driver_of(host)
    is_branch = host is not None and host.driver is not None and host.driver.kind == "nvidia"
    return driver.split(".")[0] if is_branch else driver


def system_of(host: Host | None) -> str:
    """Return the operating system of a host and its release, such as `ubuntu 22.04`; `not stated` when it is unknown."""
    if host is None or host.os is None:
        return UNSTATED
    return f"{host.os.id} {host.os.version or ''}".strip()
