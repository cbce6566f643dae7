"""Write values into POSIX shell scripts: quotes, and the variables of a stack, which are checked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.gate.grammar import PREFIX
from provisioner.render.header import UnrenderableError
from provisioner.render.instruction import CONTROL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import LockedStack

_OF_IMAGES = (PREFIX, "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
"""Variables, or prefixes of their names, that only a container runtime reads, from the image that it starts."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(text: str) -> str:
    """Quote a text for POSIX shells in single quotes, inside which only the single quote itself is special."""
    return "'" + text.replace("'", "'\\''") + "'"


def variables(stack: LockedStack, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a stack and `more` by name, sorted, without those that only container runtimes read.

    Raises `UnrenderableError` for a name or value that a shell cannot have.
    """
    found = {name: value for name, value in stack.environment.items() if not name.startswith(_OF_IMAGES)} | dict(more or {})
    for name, value in found.items():
        if not _NAME.fullmatch(name):
            raise UnrenderableError(f"`{name}` in the environment of {stack.platform} cannot be the name of a shell variable")
        if CONTROL.search(value):
            raise UnrenderableError(f"variable `{name}` of {stack.platform} holds a control character: {value!r}")
    return dict(sorted(found.items()))
