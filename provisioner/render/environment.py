"""Render a lock as a POSIX shell file that sets environment variables, to be sourced before programs run.

It exports the variables that the stack requires and, as `PROVISION_*`, the facts that are labels of an image of the lock.
`PROVISION_VARIABLES` lists the exported names, so that a file sourced later, also in a child process, first unsets them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.gate.grammar import PREFIX
from provisioner.lock.format.file import lock_digest
from provisioner.platforms import PLATFORMS
from provisioner.render.header import UnrenderableError, header

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedStack

_OF_IMAGES = (PREFIX, "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES")
"""Variables, or prefixes of their names, that only a container runtime reads, from the image that it starts."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_UNSET = """\
# Unset the variables of an environment that was sourced before.
while [ -n "${PROVISION_VARIABLES-}" ]; do
    unset "${PROVISION_VARIABLES%% *}"
    case $PROVISION_VARIABLES in
        *' '*) PROVISION_VARIABLES=${PROVISION_VARIABLES#* } ;;
        *) unset PROVISION_VARIABLES ;;
    esac
done
"""


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the shell file of a lock; on a machine of another platform the file prints an error and returns 1.

    Raises `UnrenderableError` for a variable name or value that a shell cannot have.
    """
    use = "Source it before programs of the environment start: . ./environment.sh"
    cases = "".join(_case(lock, stack) for stack in lock.stacks)
    platforms = _quoted(f"{lock_file_name} is for {', '.join(lock.platforms)}; this is")
    refusal = f"""\
    *)
        printf '%s %s\\n' {platforms} "$(uname -s) $(uname -m)" >&2
        return 1 2>/dev/null || exit 1
        ;;
"""
    return f"""\
{header(lock, lock_file_name, use, "shellcheck shell=sh disable=SC2317")}

{_UNSET}
case "$(uname -s) $(uname -m)" in
{cases}{refusal}esac
"""


def _case(lock: Lock, stack: LockedStack) -> str:
    """Return the `case` branch of one platform, for the output of `uname -s` and `uname -m`."""
    platform = PLATFORMS[stack.platform]
    variables = _variables(lock, stack)
    exports = {**variables, "PROVISION_VARIABLES": " ".join(variables)}
    lines = "".join(f"        export {name}={_quoted(value)}\n" for name, value in exports.items())
    return f"    {_quoted(f'{platform.sys_platform.capitalize()} {platform.machine}')})\n{lines}        ;;\n"


def _variables(lock: Lock, stack: LockedStack) -> dict[str, str]:
    """Return the variables of a stack by name, sorted; raises `UnrenderableError` for an invalid name or value."""
    variables = {name: value for name, value in stack.environment.items() if not name.startswith(_OF_IMAGES)}
    variables |= {
        "PROVISION_ACCELERATOR": stack.accelerator,
        "PROVISION_LOCK_DIGEST": lock_digest(lock),
        "PROVISION_NAME": lock.name,
        "PROVISION_PLATFORM": stack.platform,
    }
    for component, version in stack.components.items():
        variables["PROVISION_STACK_" + re.sub(r"[^A-Za-z0-9]", "_", component).upper()] = version
    for name, value in variables.items():
        if not _NAME.fullmatch(name):
            raise UnrenderableError(f"`{name}` in the environment of {stack.platform} cannot be the name of a shell variable")
        if _CONTROL.search(value):
            raise UnrenderableError(f"variable `{name}` of {stack.platform} holds a control character: {value!r}")
    return dict(sorted(variables.items()))


def _quoted(text: str) -> str:
    """Quote a text for POSIX shells in single quotes, inside which only the single quote itself is special."""
    return "'" + text.replace("'", "'\\''") + "'"
