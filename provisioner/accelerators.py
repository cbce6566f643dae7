"""The accelerators a stack can compute on (CUDA, ROCm, Metal, plain CPUs), one row each with its fixed properties.

The properties are its components, the keys that identify its GPUs and the code compiled for them, its Kubernetes node labels,
and how containers reach its devices. Which versions work together is data of the matrix.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from provisioner.platforms import System

AcceleratorName = Literal["cuda", "rocm", "mps", "cpu"]


class Accelerator(Struct, frozen=True, kw_only=True):
    """One way to run frameworks (CUDA, ROCm, MPS or the CPU alone), with its names, its components and the keys of its GPUs.

    A field that does not apply is empty.
    """

    name: AcceleratorName
    label: str
    """The name of the accelerator in messages."""
    systems: frozenset[System]
    """The operating systems on which frameworks can use the accelerator."""
    vendor: str = ""
    """The manufacturer of the GPUs; "" for plain CPUs."""
    runtime: str = ""
    """The component that frameworks for the accelerator are built with, such as `cuda`; "" for none."""
    drivers: tuple[str, ...] = ()
    """The driver components of the GPUs, over all systems and driver kinds."""

    target_key: str = ""
    """The key, in host profiles and in the matrix, of the target that a GPU runs code for, such as `compute_capability`."""
    target: str = ""
    """A regular expression that the values of `target_key` match."""
    compiled_keys: tuple[str, ...] = ()
    """The keys of a build (matrix row) that list the targets that the build is compiled for, machine code first."""
    image_kinds: tuple[str, ...] = ()
    """The kinds of base images that contain `runtime`; a spec may name a kind in place of an image."""

    pci_vendor: str = ""
    """The vendor's id on the PCI bus. Source: the PCI ID repository, pci.ids."""
    node_labels: str = ""
    """The prefix of the labels that the vendor's software gives to Kubernetes nodes."""
    product_labels: tuple[str, ...] = ()
    """The Kubernetes labels that name the GPUs of a node, the most exact first; read if no label states the GPUs' target."""
    driver_label: str = ""
    """The Kubernetes label whose value is the whole version of a node's driver; "" if no single label has it."""

    device_files: tuple[str, ...] = ()
    """The device files through which a container reaches the GPUs; empty if a container runtime of the vendor adds them."""
    device_groups: tuple[str, ...] = ()
    """The groups that may use `device_files`."""
    container_variables: dict[str, str] = field(default_factory=dict)
    """The environment variables of an image that the vendor's container runtime reads, with their values."""
    compose_driver: str = ""
    """The driver of which Compose reserves the GPUs, and `docker run --gpus` takes them; "" for `device_files`."""
    node_resource: str = ""
    """The resource of which a Kubernetes container requests as many as it needs GPUs."""
    apptainer_option: str = ""
    """The option with which Apptainer binds the host's driver libraries and device files into a container."""
    cdi_kind: str = ""
    """The kind of the GPUs in the Container Device Interface (CDI); "" if none is known."""
    wheel_prefixes: tuple[str, ...] = ()
    """The beginnings of the names under which the vendor's libraries are on package indexes."""


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
            compose_driver="nvidia",
            node_resource="nvidia.com/gpu",
            apptainer_option="--nv",
            cdi_kind="nvidia.com/gpu",
            wheel_prefixes=("nvidia-", "cuda-"),
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
            wheel_prefixes=("rocm-",),
            node_resource="amd.com/gpu",
            apptainer_option="--rocm",
        ),
        Accelerator(name="mps", label="MPS", vendor="Apple", systems=frozenset({"macos"})),
        Accelerator(name="cpu", label="CPU", systems=frozenset({"linux", "macos"})),
    )
}
"""Every accelerator by its name, in the order of messages."""

GPU_ACCELERATORS = tuple(row for row in ACCELERATORS.values() if row.target_key)
"""Accelerators with `target_key`: host profiles state the target of each GPU, and builds are measured for the targets."""

ON_GPUS = frozenset(row.name for row in GPU_ACCELERATORS)
"""The names of `GPU_ACCELERATORS`, for which builds have compiled code: `cuda` and `rocm`."""

IMAGE_KINDS = ("auto", "slim", *(kind for row in ACCELERATORS.values() for kind in row.image_kinds))
"""The names of kinds of base images, which a spec may write under `image.base` in place of an image."""

GPU_DRIVERS = tuple(driver for row in ACCELERATORS.values() for driver in row.drivers)
"""Every driver component."""

COMPILED_KEYS = tuple(key for row in ACCELERATORS.values() for key in row.compiled_keys)
"""The keys of all accelerators under which a build lists the targets it is compiled for."""

RUNTIMES = tuple(row.runtime for row in ACCELERATORS.values() if row.runtime)
"""The runtime components, such as `cuda`; an accelerator has one or none."""


def accelerator_of_target(target: str) -> Accelerator | None:
    """Return the accelerator of a target: CUDA for `9.0`, ROCm for `gfx942`; None if no GPU has such a target."""
    return next((row for row in GPU_ACCELERATORS if re.fullmatch(row.target, target)), None)


ROCM_LIBRARIES = ("libamdhip", "libhip", "libhsa", "libmiopen", "libMIOpen", "librccl", "libroc")
"""The beginnings of the names of ROCm's libraries."""
