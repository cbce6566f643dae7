"""Remarks on a machine: why a fact could not be determined, facts that contradict each other, and facts easily overlooked."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Builder = Literal["DKMS", "akmods"]
"""What builds the modules of drivers on a machine, and signs them with a key of its own."""


class GpusUnknown(Struct, frozen=True):
    """The remark that the GPUs of the machine could not be determined.

    `cause` is `macos`: GPUs are not read on macOS; `wsl`: WSL hides them, and the driver's library did not answer; `pci`: the
    PCI bus cannot be read; `amdgpu`: an AMD GPU is on the PCI bus, but its driver does not offer it for computing.
    """

    cause: Literal["macos", "wsl", "pci", "amdgpu"]


class AmdGpusLeftOut(Struct, frozen=True):
    """The remark that the profile lists only the NVIDIA GPUs of the machine, without its `count` AMD GPUs."""

    count: int


class GpusNotRun(Struct, frozen=True):
    """The remark that NVIDIA's driver runs none of the `count` NVIDIA GPUs on the PCI bus."""

    count: int


class UnknownGpus(Struct, frozen=True):
    """The remark that the products of some GPUs are unknown; `devices` are their PCI device ids."""

    devices: tuple[str, ...]


class GpusDivided(Struct, frozen=True):
    """The remark that MIG divides `count` of the machine's `total` GPUs."""

    count: int
    total: int


class GpusWithoutSlices(Struct, frozen=True):
    """The remark that `count` of the machine's `total` GPUs are in MIG mode without an instance: no program runs there.

    Source: NVIDIA Multi-Instance GPU User Guide, "Creating GPU Instances": without GPU and compute instances CUDA workloads
    cannot be run on the GPU.
    """

    count: int
    total: int


class GpusNotListed(Struct, frozen=True):
    """The remark that a report describes only `listed` of the `attached` GPUs of its machine."""

    listed: int
    attached: int


class GpuMemory(Struct, frozen=True):
    """The remark on the memory of the GPUs, which no rule reads; `sizes` are pairs of a number of GPUs and the MiB of each."""

    sizes: tuple[tuple[int, int], ...]


class DriverNotLoaded(Struct, frozen=True):
    """The remark that an NVIDIA driver is installed for the running kernel, but not loaded; `kernel` is None if unknown.

    `built_by` is what built the module on this machine, by the place in which it lies.
    """

    version: str
    kernel: str | None
    built_by: Builder | None = None


class WindowsDriver(Struct, frozen=True):
    """The remark that the driver version found is that of the Windows driver, which serves Linux under WSL."""

    version: str


class AmdgpuModule(Struct, frozen=True):
    """The remark that only the version of the amdgpu module is known, which is another number than the driver's release."""

    version: str


class SeveralLibcuda(Struct, frozen=True):
    """The remark that user-space drivers of several versions are installed, and it is unknown which of them is in use."""

    versions: tuple[str, ...]


class DriverMismatch(Struct, frozen=True):
    """The remark that the versions of the user-space driver (libcuda) and of the loaded kernel module differ."""

    userspace: str
    module: str


class NvmlNotLoadable(Struct, frozen=True):
    """The remark that NVIDIA's management library cannot be loaded; `problem` is the message of the dynamic loader."""

    problem: str


class NvmlFailed(Struct, frozen=True):
    """The remark that NVML could not be initialised, or could not count the GPUs; `code` is its return code (nvmlReturn_t)."""

    step: Literal["initialise", "count"]
    code: int


class GpuSilent(Struct, frozen=True):
    """The remark that NVML returned the error `code` (nvmlReturn_t) for the GPU at `index`, of `count`."""

    index: int
    count: int
    code: int


class UnlabelledGpus(Struct, frozen=True):
    """The remark that a Kubernetes node has GPUs of a vendor, but no label that names their product."""

    vendor: Literal["nvidia", "amd"]


class MigSlices(Struct, frozen=True):
    """The remark that a node's GPUs are divided into MIG slices of one profile (`1g.10gb`), and its labels count the slices."""

    profile: str


class MigNotOffered(Struct, frozen=True):
    """The remark that a node offers no pod its GPUs: the strategy `single` is for instances of one profile on every GPU."""


class MigChanging(Struct, frozen=True):
    """The remark that the MIG manager is changing a node's instances, or could not: the labels may tell what was before."""

    state: Literal["pending", "rebooting", "failed"]


class VirtualGpu(Struct, frozen=True):
    """The remark that a Kubernetes node has a virtual GPU; `host_driver` is its hypervisor's driver version, "" if unknown."""

    host_driver: str


class UnknownAcceleratorLabel(Struct, frozen=True):
    """The remark that the `value` of a GKE accelerator label, whose name is `label`, is no GPU of the matrix."""

    label: str
    value: str


class MoreGpusThanLabelled(Struct, frozen=True):
    """The remark that a node's kubelet counts more GPUs (`counted`) than the node's labels describe (`labelled`)."""

    counted: int
    labelled: int


class NodeUnavailable(Struct, frozen=True):
    """The remark that a node runs nothing new: it is not ready or cordoned in Kubernetes, down or drained in Slurm."""

    cause: Literal["not-ready", "cordoned", "down", "drained"]


class UntypedGres(Struct, frozen=True):
    """The remark that a Slurm node offers GPUs without saying which (`gpu:4`)."""

    gres: str


class UnknownGresType(Struct, frozen=True):
    """The remark that the type of a Slurm node's GPUs names no GPU of the matrix, or several of different targets."""

    kind: str


class MigGres(Struct, frozen=True):
    """The remark that a Slurm node offers MIG slices of one profile (`1g.10gb`), and its Gres counts the slices."""

    profile: str


class GroupedNodes(Struct, frozen=True):
    """The remark that `sinfo` tells the GPUs of only the first of `count` nodes that it lists together."""

    count: int


class VariablesElsewhere(Struct, frozen=True):
    """The remark that a folder of variables stands beside an Ansible inventory, which `ansible-inventory` alone reads."""

    folder: str


class VariablesNotRead(Struct, frozen=True):
    """The remark that variables of an Ansible inventory look like facts of the host, and are none that are read."""

    names: tuple[str, ...]


class LabelsNotRead(Struct, frozen=True):
    """The remark that labels of a Kubernetes node without known GPUs look as if they named one, and are none that are read."""

    names: tuple[str, ...]


NvmlProblem = NvmlNotLoadable | NvmlFailed | GpuSilent
"""Failures of NVIDIA's management library (NVML)."""

NodeRemark = (
    UnlabelledGpus
    | AmdgpuModule
    | MigSlices
    | MigNotOffered
    | MigChanging
    | VirtualGpu
    | UnknownAcceleratorLabel
    | MoreGpusThanLabelled
    | NodeUnavailable
    | UntypedGres
    | UnknownGresType
    | MigGres
    | GroupedNodes
    | VariablesElsewhere
    | VariablesNotRead
    | LabelsNotRead
)
"""Remarks on a host of an inventory: a node of Kubernetes or Slurm, or a host of Ansible."""

Remark = (
    GpusUnknown
    | AmdGpusLeftOut
    | GpusNotRun
    | UnknownGpus
    | GpusDivided
    | GpusWithoutSlices
    | GpusNotListed
    | GpuMemory
    | DriverNotLoaded
    | WindowsDriver
    | SeveralLibcuda
    | DriverMismatch
    | NvmlProblem
    | NodeRemark
)
