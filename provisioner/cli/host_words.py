"""Hosts in a few words, as the columns of a table of groups: their GPUs and their driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.host.model import Host, HostGpu

UNSTATED = "not stated"


def gpus_of(host: Host | None) -> str:
    """Return the products of a host's GPUs: `NVIDIA H100`, or `no GPU`."""
    if host is None or host.gpus is None:
        return "GPUs not stated"
    return " + ".join(dict.fromkeys(map(_gpu, host.gpus))) or "no GPU"


def _gpu(gpu: HostGpu) -> str:
    device = f"compute capability {gpu.compute_capability}" if gpu.compute_capability else gpu.gfx
    return gpu.name or device or "a GPU of unknown kind"


def driver_of(host: Host | None) -> str:
    """Return the version of a host's driver, with its kind where it is not NVIDIA's."""
    if host is None or host.driver is None or host.driver.version is None:
        return UNSTATED
    return f"{host.driver.version}" if host.driver.kind == "nvidia" else f"{host.driver.kind} {host.driver.version}"


def branch_of(host: Host | None) -> str:
    """Return the branch of a host's driver: `550`; of other vendors than NVIDIA the version."""
    driver = driver_of(host)
    is_branch = host is not None and host.driver is not None and host.driver.kind == "nvidia"
    return driver.split(".")[0] if is_branch else driver
