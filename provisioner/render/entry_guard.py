"""The entry point of CUDA images: a script that holds the host against the image's requirement before the command runs.

The script, `scripts/guard.py`, is written into the image line by line, so that whoever reads the Dockerfile reads it too, and
builders without heredocs and without any build context can make it.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from provisioner.render.instruction import Comment, Entrypoint, Run

if TYPE_CHECKING:
    from provisioner.lock.model import LockedStack

GUARD = "/opt/provision/guard.py"
"""Where the script is in the image."""

REFUSED = 78
"""What the script ends with when the host does not meet the requirement: EX_CONFIG of sysexits.h."""

SAID_BY = "provision: "
"""What each line of the script on stderr starts with."""

_REVIEW = f"""The image starts through this script: it holds the host against NVIDIA_REQUIRE_*, which container runtimes that
hand over GPUs by CDI do not, says which clause fails (exit code {REFUSED}), and else becomes the command. It is plain Python
and here in full, for whoever reviews this file. NVIDIA_DISABLE_REQUIRE=true turns the check off."""

_FOR_TOOLS = re.compile(r"^# (?:ruff|mypy): .*\n|  # fmt: .*", re.MULTILINE)
_CANNOT = f"{SAID_BY}this image cannot run on "


def guard_script() -> str:
    """The text of the script, without what only tools of this package's source read."""
    text = (files("provisioner.render") / "scripts" / "guard.py").read_text(encoding="utf-8")
    return _FOR_TOOLS.sub("", text)


def refusal(exit_code: int, stderr: str) -> str:
    """Why the script of a container that ended so did not start the command; "" when it did."""
    said = (line.removeprefix(SAID_BY) for line in stderr.splitlines() if line.startswith(_CANNOT))
    return next(said, "") if exit_code == REFUSED else ""


def has_guard(stack: LockedStack) -> bool:
    """Whether the image of a stack has a requirement that somebody must check."""
    return stack.accelerator == "cuda" and bool(stack.require_cuda)


def install_guard() -> tuple[Comment, Run]:
    """Write the script into the image, after words on what it is; it has no single quotes, so each line can stand in some.

    It belongs after the large layer: a new version of the script then leaves that one as it is, in caches and on machines.
    """
    lines = [f"'{line}'" for line in guard_script().splitlines()]
    printed = " \\\n      ".join(("printf '%s\\n'", *lines, f"> {GUARD}"))
    folder = GUARD.rpartition("/")[0]
    # ShellCheck takes the `$` of the script for the shell's.
    return Comment(f"{_REVIEW}\nhadolint ignore=SC2016"), Run((f"mkdir -p {folder}", printed, f"chmod 0644 {GUARD}"))


def entrypoint(environment: str) -> Entrypoint:
    """Start the script with the interpreter of the image's environment, isolated from it: no site, no variables."""
    return Entrypoint((f"{environment}/bin/python", "-I", "-S", GUARD))
