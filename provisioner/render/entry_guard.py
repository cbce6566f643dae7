"""The entry point of CUDA images: a guard script that checks the host against NVIDIA_REQUIRE_* and then runs the command.

The script, `scripts/guard.py`, is a helper file beside the lock, which the image recipe copies into the image.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.render.instruction import Entrypoint

if TYPE_CHECKING:
    from provisioner.lock.format.model import LockedStack

GUARD = "/opt/provision/guard.py"
"""The path of the script in the image."""

REFUSED = 78
"""The exit code of the script when the host does not meet the requirement: EX_CONFIG of sysexits.h."""

_REFUSAL = re.compile(r"^provision: (this image cannot run on .*)$", re.MULTILINE)
"""The line that the script prints to stderr when it refuses a host; a container has no other channel for a reason."""


def refusal(exit_code: int, stderr: str) -> str:
    """Return the script's reason for not starting the command of a finished container; "" if the script did start it."""
    match = _REFUSAL.search(stderr) if exit_code == REFUSED else None
    return match[1] if match else ""


def has_guard(stack: LockedStack) -> bool:
    """Return whether a stack's image contains the guard script (`GUARD`): if the stack is for CUDA and restricts its hosts."""
    return stack.accelerator == "cuda" and bool(stack.require_cuda)


def entrypoint(environment: str) -> Entrypoint:
    """Return the entry point: the script, run by the environment's interpreter without site-packages or PYTHON* variables."""
    return Entrypoint((f"{environment}/bin/python", "-I", "-S", GUARD))
