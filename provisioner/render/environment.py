"""Render a lock as a POSIX shell file that sets environment variables, to be sourced before programs run.

It exports the variables that the stack requires and, as `PROVISION_*`, the facts that are labels of an image of the lock.
`PROVISION_VARIABLES` lists the exported names, so that a file sourced later, also in a child process, first unsets them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.lock.format.file import lock_digest
from provisioner.platforms import PLATFORMS
from provisioner.render.header import header
from provisioner.render.shell import quoted, variables

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedStack

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
    platforms = quoted(f"{lock_file_name} is for {', '.join(lock.platforms)}; this is")
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
    own = _variables(lock, stack)
    exports = {**own, "PROVISION_VARIABLES": " ".join(own)}
    lines = "".join(f"        export {name}={quoted(value)}\n" for name, value in exports.items())
    return f"    {quoted(f'{platform.sys_platform.capitalize()} {platform.machine}')})\n{lines}        ;;\n"


def _variables(lock: Lock, stack: LockedStack) -> dict[str, str]:
    """Return the variables of a stack by name, sorted; raises `UnrenderableError` for an invalid name or value."""
    facts = {
        "PROVISION_ACCELERATOR": stack.accelerator,
        "PROVISION_LOCK_DIGEST": lock_digest(lock),
        "PROVISION_NAME": lock.name,
        "PROVISION_PLATFORM": stack.platform,
    }
    for component, version in stack.components.items():
        facts["PROVISION_STACK_" + re.sub(r"[^A-Za-z0-9]", "_", component).upper()] = version
    return variables(stack, facts)
