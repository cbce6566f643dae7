"""The table of layers: which components belong to each, and which layers below it one needs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from provisioner.accelerators import GPU_DRIVERS, RUNTIMES
from provisioner.components import CUDA_LIBRARIES, FRAMEWORKS

LayerName = Literal["gpu", "system", "kernel", "driver", "cuda", "container", "libraries", "python", "framework", "packages"]
"""The layers of a stack, from the hardware up to what a script imports."""


class LayerRow(Struct, frozen=True, kw_only=True):
    """One layer: its `components`, and the layers that it `needs`, which are below it."""

    name: LayerName
    components: tuple[str, ...]
    needs: tuple[LayerName, ...] = ()


LAYERS = (
    LayerRow(name="gpu", components=("gpu", "mig", "nvswitch")),
    LayerRow(name="system", components=("platform", "os", "macos", "glibc", "gcc", "clang", "xcode")),
    LayerRow(
        name="kernel",
        components=("kernel", "kernel_headers", "kernel_gcc", "host_gcc", "secure_boot", "sip", "virtualization"),
    ),
    LayerRow(
        name="driver",
        components=(
            *(name for name in GPU_DRIVERS if name != "cuda_driver"),
            "driver_module", "userspace_driver", "loaded_modules", "fabric_manager", "dcgm", "jetson",
        ),
        needs=("kernel",),
    ),
    LayerRow(name="cuda", components=(*RUNTIMES, "cuda_driver", "cuda_compat", "nvcc", "rocr", "hip"), needs=("gpu", "driver")),
    LayerRow(name="container", components=("container_toolkit", "image"), needs=("driver",)),
    LayerRow(name="libraries", components=("libraries", *CUDA_LIBRARIES, "cusparselt", "nvshmem"), needs=("cuda",)),
    LayerRow(name="python", components=("python", "python_arch"), needs=("system",)),
    LayerRow(
        name="framework",
        components=(*FRAMEWORKS, "pytorch_build", "triton", "arch_list"),
        needs=("system", "cuda", "container", "libraries", "python"),
    ),
    LayerRow(name="packages", components=("package",), needs=("framework",)),
)  # fmt: skip
"""Every layer, from the hardware up to what a script imports."""

_LAYER_OF: dict[str, LayerName] = {component: row.name for row in LAYERS for component in row.components}


def layer_of(component: str) -> LayerName:
    """Return the layer of a component; that of packages for a distribution, and for a line of the spec."""
    return _LAYER_OF.get(component, "packages")


def has_layer(component: str) -> bool:
    """Return whether a name is a component of some layer, and no distribution or key of the spec."""
    return component in _LAYER_OF
