"""What a change costs a person: the order in which ways out of a conflict are looked for and shown."""

from __future__ import annotations

ORDER = (
    ("build", "pytorch_build"),
    ("pytorch", "tensorflow", "jax", "package", "cudnn", "nccl", "triton", "tensorrt"),
    ("python", "python_arch"),
    ("arch_list", "cuda", "rocm", "nvcc", "gcc", "clang", "xcode"),
    ("policy", "accelerator"),
    ("image", "glibc", "container_toolkit"),
    (
        "fabric_manager", "userspace_driver", "loaded_modules", "kernel_headers", "kernel_gcc", "driver_module",
        "cuda_driver", "webdriver", "driver", "amdgpu", "jetson",
    ),
    ("sip", "secure_boot", "kernel"),
    ("os", "macos"),
    ("target",),
    ("left out",),
    ("gpu",),
)  # fmt: skip
"""Cheapest first: another build of the same version, another version, Python, CUDA and compilers, the policy, the container,
the driver and what stands beside it, the kernel and the firmware's settings, the operating system, giving up a host,
giving up a part of the request, the hardware."""

LEFT_OUT = "left out"
"""What has the cost of giving up a part of what was asked for."""

Cost = tuple[int, int]

_COSTS: dict[str, Cost] = {name: (level, place) for level, names in enumerate(ORDER) for place, name in enumerate(names)}


def cost_of(component: str) -> Cost:
    """The level of a change and its place there; what has no row is a package."""
    return _COSTS.get(component, _COSTS["package"])


def rank(costs: list[Cost]) -> tuple[int, int, list[Cost]]:
    """What several changes cost together: the dearest decides, then how many they are."""
    return max(level for level, _ in costs), len(costs), sorted(costs)
