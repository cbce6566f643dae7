"""The vocabulary: component names, the distributions that are the same thing, and the nearest known name to a typo."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION_OF_COMPONENT = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}
"""Components whose release *is* a Python distribution: `pytorch ==2.7.1` and `torch==2.7.1` must never disagree."""

COMPONENT_OF_DISTRIBUTION = {name: component for component, name in DISTRIBUTION_OF_COMPONENT.items()}

HOST_COMPONENTS = (
    "amdgpu", "container_toolkit", "cuda_driver", "dcgm", "driver", "driver_module", "fabric_manager", "gpu", "jetson",
    "kernel", "kernel_gcc", "kernel_headers", "libraries", "loaded_modules", "macos", "os", "platform", "python_arch",
    "secure_boot", "sip", "userspace_driver", "webdriver", "xcode",
)  # fmt: skip
"""What a machine states about itself and no image brings along; what an image does bring (glibc, compilers) is not here."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, or None when nothing is close."""
    from difflib import get_close_matches

    matches = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
