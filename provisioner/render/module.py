"""Render a lock as a modulefile in Tcl, which Environment Modules and Lmod read alike.

Source: modules.readthedocs.io/en/latest/modulefile.html, and lmod.readthedocs.io/en/latest/095_tcl2lua.html, 2026-11-23.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.platforms import PLATFORMS
from provisioner.render.container import repository
from provisioner.render.header import header
from provisioner.render.shell import variables

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock, LockedStack


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the modulefile of a lock, for the folder that has the lock and its virtual environment `.venv`.

    Raises `UnrenderableError` for a variable name or value that a shell cannot have.
    """
    packages = ", ".join(f"{name} {version}" for name, version in lock.stacks[0].components.items())
    use = "Beside .venv (uv venv && uv pip install -r LOCK), or with PROVISION_PREFIX=/path/of/the/virtual/environment"
    branches = "".join(_branch(stack) for stack in lock.stacks)
    platforms = _quoted(f"{lock_file_name} is for {', '.join(lock.platforms)}; this is ")
    absent = _quoted(f"{lock_file_name} is not installed: there is no bin/python in ")
    return f"""\
#%Module1.0
{header(lock, lock_file_name, use)}
module-whatis {_quoted(f"{repository(lock)}: {packages}")}

if {{[info exists ::env(PROVISION_PREFIX)]}} {{
    set prefix $::env(PROVISION_PREFIX)
}} else {{
    set prefix [file join [file dirname [file normalize $ModulesCurrentModulefile]] .venv]
}}
# Without its environment `python` would be another one on PATH.
if {{[module-info mode load] && ![file executable [file join $prefix bin python]]}} {{
    puts stderr [string cat {absent} $prefix]
    break
}}
switch -- "$::tcl_platform(os) $::tcl_platform(machine)" {{
{branches}    default {{
        puts stderr [string cat {platforms} "$::tcl_platform(os) $::tcl_platform(machine)"]
        break
    }}
}}
setenv VIRTUAL_ENV $prefix
prepend-path PATH [file join $prefix bin]
"""


def _branch(stack: LockedStack) -> str:
    """Return the branch of a `switch` for one platform, which Tcl names as `uname` does."""
    platform = PLATFORMS[stack.platform]
    lines = "".join(f"        setenv {name} {_quoted(value)}\n" for name, value in variables(stack).items())
    return f"    {_quoted(f'{platform.sys_platform.capitalize()} {platform.machine}')} {{\n{lines}    }}\n"


def _quoted(text: str) -> str:
    r"""Quote a text for Tcl: in double quotes `\`, `"`, `$`, `[` are special, and braces must match wherever they are.

    Other characters than those of ASCII are escaped: Tcl reads them by the locale of whoever loads the module.
    """
    escaped = re.sub(r'[\\"$\[\]{}]', r"\\\g<0>", text)
    return '"' + re.sub(r"[^ -~]", lambda found: f"\\U{ord(found[0]):08x}", escaped) + '"'
