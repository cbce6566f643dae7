"""The accelerators a stack can compute on, one row each: what is true of CUDA, ROCm, Metal and plain processors as such.

What works with what is data of the matrix. A row names what belongs to one accelerator: its components, the keys that tell its
GPUs and the code compiled for them, its node labels, and how containers reach it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from provisioner.platforms import System

AcceleratorName = Literal["cuda", "rocm", "mps", "cpu"]


class Accelerator(Struct, frozen=True, kw_only=True):
    """One accelerator; what does not apply to it is empty.

    What is not said of it does not apply to it.
    """

    name: AcceleratorName
    label: str
    """Its name in sentences."""
    systems: frozenset[System]
    """The systems its frameworks run on."""
    vendor: str = ""
    """Who makes its GPUs; "" for processors alone."""
    runtime: str = ""
    """The component its frameworks are built with."""
    drivers: tuple[str, ...] = ()
    """The components that run its GPUs, on one system or another."""

    target_key: str = ""
    """The key of a GPU, in a host profile and in the matrix, that says which code it runs."""
    target: str = ""
    """What the values of that key look like: a regular expression."""
    compiled_keys: tuple[str, ...] = ()
    """The keys of a build that list what it is compiled for, machine code first."""
    image_kinds: tuple[str, ...] = ()
    """The kinds of base images with its runtime that a spec may ask for."""

    pci_vendor: str = ""
    """The vendor's id on the PCI bus. Source: the PCI ID repository, pci.ids."""
    node_labels: str = ""
    """How the labels begin that the vendor's software gives to Kubernetes nodes."""
    product_labels: tuple[str, ...] = ()
    """The labels that name the GPUs of a node, the most exact first, where no label tells their target."""
    driver_label: str = ""
    """The label that names the driver of a node as a whole."""

    device_files: tuple[str, ...] = ()
    """The files through which a container reaches its GPUs, where no runtime of the vendor hands them over."""
    device_groups: tuple[str, ...] = ()
    """The groups that may use those files."""
    container_variables: dict[str, str] = field(default_factory=dict)
    """The variables of an image that the vendor's container runtime reads."""
    cdi_kind: str = ""
    """What its devices are called in the Container Device Interface."""


ACCELERATORS: dict[str, Accelerator] = {
    row.name: row
    for row in (
        Accelerator(
            name="cuda",
            label="CUDA",
            vendor="NVIDIA",
            systems=frozenset({"linux", "macos"}),
            runtime="cuda",
            drivers=("driver", "webdriver", "cuda_driver"),
            target_key="compute_capability",
            target=r"\d+\.\d+",
            compiled_keys=("sass", "ptx"),
            image_kinds=("cuda-runtime", "cuda-devel"),
            pci_vendor="10DE",
            node_labels="nvidia.com/",
            container_variables={"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
            cdi_kind="nvidia.com/gpu",
        ),
        Accelerator(
            name="rocm",
            label="ROCm",
            vendor="AMD",
            systems=frozenset({"linux"}),
            runtime="rocm",
            drivers=("amdgpu",),
            target_key="gfx",
            target=r"gfx[0-9a-f]{3,5}",
            compiled_keys=("gfx",),
            pci_vendor="1002",
            node_labels="amd.com/",
            product_labels=("amd.com/gpu.device-id", "amd.com/gpu.product-name"),
            driver_label="amd.com/gpu.driver-version",
            device_files=("/dev/kfd", "/dev/dri"),
            device_groups=("video",),
        ),
        Accelerator(name="mps", label="MPS", vendor="Apple", systems=frozenset({"macos"})),
        Accelerator(name="cpu", label="CPU", systems=frozenset({"linux", "macos"})),
    )
}
"""Every accelerator by its name, in the order in which people are told of them."""

GPU_ACCELERATORS = tuple(row for row in ACCELERATORS.values() if row.target_key)
"""Accelerators whose GPUs differ in the code they run, so that hosts state them and builds are measured for them."""

IMAGE_KINDS = ("auto", "slim", *(kind for row in ACCELERATORS.values() for kind in row.image_kinds))
"""What a spec may say in place of a base image: the kind that is chosen for it."""

GPU_DRIVERS = tuple(driver for row in ACCELERATORS.values() for driver in row.drivers)
"""Every component that runs GPUs."""

COMPILED_KEYS = tuple(key for row in ACCELERATORS.values() for key in row.compiled_keys)
"""Every key of a build that lists targets it is compiled for."""

RUNTIMES = tuple(row.runtime for row in ACCELERATORS.values() if row.runtime)
"""The components that frameworks are built with, one of each accelerator that has any."""


def accelerator_of_target(target: str) -> Accelerator | None:
    """The accelerator whose GPUs run such code: `9.0` is CUDA's, `gfx942` ROCm's; None for what is no target of a GPU."""
    return next((row for row in GPU_ACCELERATORS if re.fullmatch(row.target, target)), None)
