"""What a rule may depend on: facts of the host and the request, settled before solving starts."""

from __future__ import annotations

SAME = "same"
"""In a requirement: the very version of the subject."""

ABSENT = "none"
"""In a guard: the host does not state this fact; a driver that is not stated is one still to be installed."""

PLATFORMS = ("linux/amd64", "linux/arm64", "macos/arm64", "macos/x86_64")

NAMED_GUARDS: dict[str, tuple[str, ...]] = {
    "platform": PLATFORMS,
    "accelerator": ("cuda", "rocm", "mps", "cpu"),
    "runs": ("container", "host"),
    "build": ("none", "extension", "pytorch"),
    "gpu_kind": ("datacenter", "workstation", "geforce", "jetson", "radeon", "apu"),
    "virtualization": ("none", "wsl1", "wsl2", "vm", "container"),
}
"""Guards that are no components, with their values."""
