"""What a rule may depend on: facts of the host and the request, settled before solving starts."""

from __future__ import annotations

from provisioner.accelerators import ACCELERATORS
from provisioner.components import ABSENT
from provisioner.platforms import PLATFORMS

SAME = "same"
"""In a requirement: the very version of the subject."""

NAMED_GUARDS: dict[str, tuple[str, ...]] = {
    "platform": tuple(PLATFORMS),
    "accelerator": tuple(ACCELERATORS),
    "runs": ("container", "host"),
    "build": (ABSENT, "extension", "pytorch"),
    "gpu_kind": ("datacenter", "workstation", "geforce", "jetson", "radeon", "apu"),
    "virtualization": (ABSENT, "wsl1", "wsl2", "vm", "container"),
}
"""Guards that are no components, with their values. Of any guard the value `none` asks for a host that states no such fact: a
driver that is not stated is one still to be installed."""
