"""The entry point of CUDA images: a guard script that checks the host against NVIDIA_REQUIRE_* and then runs the command.

The Dockerfile writes the script, `scripts/guard.py`, into the image line by line. So a review of the Dockerfile includes the
script, and builders without heredocs or a build context can write it.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from provisioner.render.instruction import Comment, Entrypoint, Run

if TYPE_CHECKING:
    from provisioner.lock.format.model import LockedStack

GUARD = "/opt/provision/guard.py"
"""The path of the script in the image."""

REFUSED = 78
"""The exit code of the script when the host does not meet the requirement: EX_CONFIG of sysexits.h."""

_REVIEW = f"""The image starts through this script: it holds the host against NVIDIA_REQUIRE_*, which container runtimes that
hand over GPUs by CDI do not, says which clause fails (exit code {REFUSED}), and else becomes the command. It is plain Python
and here in full, for whoever reviews this file. NVIDIA_DISABLE_REQUIRE=true turns the check off."""

_FOR_TOOLS = re.compile(r"^# (?:ruff|mypy): .*\n|  # fmt: .*", re.MULTILINE)
_REFUSAL = re.compile(r"^provision: (this image cannot run on .*)$", re.MULTILINE)
"""The line that the script prints to stderr when it refuses a host; a container has no other channel for a reason."""


def guard_script() -> str:
    """Return the source of the script, without the comments for this package's linters."""
    text = (files("provisioner.render") / "scripts" / "guard.py").read_text(encoding="utf-8")
    return _FOR_TOOLS.sub("", text)


def refusal(exit_code: int, stderr: str) -> str:
    """Return the script's reason for not starting the command of a finished container; "" if the script did start it."""
    match = _REFUSAL.search(stderr) if exit_code == REFUSED else None
    return match[1] if match else ""


def has_guard(stack: LockedStack) -> bool:
    """Return whether a stack's image contains the guard script (`GUARD`): if the stack is for CUDA and restricts its hosts."""
    return stack.accelerator == "cuda" and bool(stack.require_cuda)


def install_guard() -> tuple[Comment, Run]:
    """Return the instruction that writes the script into the image, and a comment that explains it.

    The script has no single quotes, so its lines are quoted with them. The instruction comes after the large layer, which a new
    version of the script then does not invalidate.
    """
    lines = [f"'{line}'" for line in guard_script().splitlines()]
    printed = " \\\n      ".join(("printf '%s\\n'", *lines, f"> {GUARD}"))
    folder = GUARD.rpartition("/")[0]
    # ShellCheck takes the `$` of the script for the shell's.
    return Comment(f"{_REVIEW}\nhadolint ignore=SC2016"), Run((f"mkdir -p {folder}", printed, f"chmod 0644 {GUARD}"))


def entrypoint(environment: str) -> Entrypoint:
    """Return the entry point: the script, run by the environment's interpreter without site-packages or PYTHON* variables."""
    return Entrypoint((f"{environment}/bin/python", "-I", "-S", GUARD))
