"""The entry point of CUDA images: a script that checks the host against the image's requirement before the command starts.

The script, `scripts/guard.py`, is printed into the image line by line: whoever reviews the Dockerfile reviews it too, and
builders without heredocs or a build context can write it.
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
"""The exit code of the script where the host does not meet the requirement: EX_CONFIG of sysexits.h."""

_REVIEW = f"""The image starts through this script: it holds the host against NVIDIA_REQUIRE_*, which container runtimes that
hand over GPUs by CDI do not, says which clause fails (exit code {REFUSED}), and else becomes the command. It is plain Python
and here in full, for whoever reviews this file. NVIDIA_DISABLE_REQUIRE=true turns the check off."""

_FOR_TOOLS = re.compile(r"^# (?:ruff|mypy): .*\n|  # fmt: .*", re.MULTILINE)
_REFUSAL = re.compile(r"^provision: (this image cannot run on .*)$", re.MULTILINE)
"""The line of the script on stderr that says why it refused; a process in a container has no other channel."""


def guard_script() -> str:
    """Return the text of the script, without comments for the linters of this package."""
    text = (files("provisioner.render") / "scripts" / "guard.py").read_text(encoding="utf-8")
    return _FOR_TOOLS.sub("", text)


def refusal(exit_code: int, stderr: str) -> str:
    """Return why the script did not start the command of a container that has ended; "" where it did start it."""
    match = _REFUSAL.search(stderr) if exit_code == REFUSED else None
    return match[1] if match else ""


def has_guard(stack: LockedStack) -> bool:
    """Return whether the image of a stack states a requirement, which the script then checks."""
    return stack.accelerator == "cuda" and bool(stack.require_cuda)


def install_guard() -> tuple[Comment, Run]:
    """Write the script into the image, below a comment that explains it. It has no single quotes, so they quote its lines.

    It belongs after the large layer, which a new version of the script then leaves as it is, in caches and on machines.
    """
    lines = [f"'{line}'" for line in guard_script().splitlines()]
    printed = " \\\n      ".join(("printf '%s\\n'", *lines, f"> {GUARD}"))
    folder = GUARD.rpartition("/")[0]
    # ShellCheck takes the `$` of the script for the shell's.
    return Comment(f"{_REVIEW}\nhadolint ignore=SC2016"), Run((f"mkdir -p {folder}", printed, f"chmod 0644 {GUARD}"))


def entrypoint(environment: str) -> Entrypoint:
    """Start the script with the interpreter of the image's environment, isolated from it: no site, no variables."""
    return Entrypoint((f"{environment}/bin/python", "-I", "-S", GUARD))
