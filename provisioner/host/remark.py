"""Remarks on a machine: why a fact could not be determined, facts that contradict each other, and what a reader may miss."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class GpusUnknown(Struct, frozen=True):
    """The GPUs of the machine could not be determined.

    `cause` is `macos`: GPUs are not read on macOS; `wsl`: WSL hides them, and the driver's library did not answer; `pci`: the
    PCI bus cannot be read; `amdgpu`: an AMD GPU is on the PCI bus, but its driver does not offer it for computing.
    """

    cause: Literal["macos", "wsl", "pci", "amdgpu"]


class AmdGpusLeftOut(Struct, frozen=True):
    """The profile has the NVIDIA GPUs of the machine alone, without its `count` AMD GPUs."""

    count: int


class GpusNotRun(Struct, frozen=True):
    """NVIDIA's driver runs none of the `count` NVIDIA GPUs on the PCI bus."""

    count: int


class UnknownGpus(Struct, frozen=True):
    """The PCI device ids of GPUs whose product is unknown."""

    devices: tuple[str, ...]


class DriverNotLoaded(Struct, frozen=True):
    """The version of an NVIDIA driver that is installed for the running kernel, but not loaded; `kernel` is None if unknown."""

    version: str
    kernel: str | None


class WindowsDriver(Struct, frozen=True):
    """The driver version that was found is that of the Windows driver, which serves Linux under WSL."""

    version: str


class SeveralLibcuda(Struct, frozen=True):
    """The versions of several installed user-space drivers, of which the one in use is unknown."""

    versions: tuple[str, ...]


class DriverMismatch(Struct, frozen=True):
    """The versions of the user-space driver (libcuda) and of the loaded kernel module, which differ."""

    userspace: str
    module: str


class NvmlNotLoadable(Struct, frozen=True):
    """The management library of NVIDIA's driver cannot be loaded; `problem` is the message of the dynamic loader."""

    problem: str


class NvmlFailed(Struct, frozen=True):
    """NVML could not be initialised, or could not count the GPUs; `code` is its return code (nvmlReturn_t)."""

    step: Literal["initialise", "count"]
    code: int


class GpuSilent(Struct, frozen=True):
    """NVML returned the error `code` (nvmlReturn_t) for the GPU at `index`, of `count`."""

    index: int
    count: int
    code: int


class UnlabelledGpus(Struct, frozen=True):
    """A Kubernetes node has GPUs of a vendor, and no label that names their product."""

    vendor: Literal["nvidia", "amd"]


class MigSlices(Struct, frozen=True):
    """The GPUs of a node are divided into MIG slices of one profile, such as `1g.10gb`, and its labels count the slices."""

    profile: str


class VirtualGpu(Struct, frozen=True):
    """A Kubernetes node has a virtual GPU; `host_driver` is the version of its hypervisor's driver, "" if unknown."""

    host_driver: str


class UnknownAcceleratorLabel(Struct, frozen=True):
    """The value of a GKE accelerator label (`label` is its name) that is no GPU of the matrix."""

    label: str
    value: str


class MoreGpusThanLabelled(Struct, frozen=True):
    """The kubelet of a node counts more GPUs than the labels of the node describe."""

    counted: int
    labelled: int


class NodeUnavailable(Struct, frozen=True):
    """A Kubernetes node is not ready, or takes no new pods because it is cordoned."""

    cause: Literal["not-ready", "cordoned"]


NvmlProblem = NvmlNotLoadable | NvmlFailed | GpuSilent
"""Failures of NVIDIA's management library (NVML)."""

NodeRemark = UnlabelledGpus | MigSlices | VirtualGpu | UnknownAcceleratorLabel | MoreGpusThanLabelled | NodeUnavailable
"""Remarks on a Kubernetes node."""

Remark = (
    GpusUnknown
    | AmdGpusLeftOut
    | GpusNotRun
    | UnknownGpus
    | DriverNotLoaded
    | WindowsDriver
    | SeveralLibcuda
    | DriverMismatch
    | NvmlProblem
    | NodeRemark
)
