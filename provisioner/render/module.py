"""Render a lock as a modulefile in Tcl, which Environment Modules and Lmod read alike.

Source: modules.readthedocs.io/en/latest/modulefile.html, and lmod.readthedocs.io/en/latest/095_tcl2lua.html, 2026-11-23.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.platforms import PLATFORMS
from provisioner.render.container import repository
from provisioner.render.gpu_check import as_number
from provisioner.render.header import header
from provisioner.render.node_affinity import intervals, ranges_of_lock
from provisioner.render.shell import variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.lock.format.model import Lock, LockedStack

DRIVER_FILE = "/proc/driver/nvidia/version"
"""What NVIDIA's kernel module says of itself."""


def render(lock: Lock, lock_file_name: str) -> str:
    """Return the modulefile of a lock, for the folder that has the lock and its virtual environment `.venv`.

    Raises `UnrenderableError` for a variable name or value that a shell cannot have, and for a driver version of more
    than three numbers.
    """
    packages = ", ".join(f"{name} {version}" for name, version in lock.stacks[0].components.items())
    use = "Beside .venv (uv venv && uv pip install -r LOCK), or with PROVISION_PREFIX=/path/of/the/virtual/environment"
    branches = "".join(_branch(stack, lock_file_name) for stack in lock.stacks)
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


def _branch(stack: LockedStack, lock_file_name: str) -> str:
    """Return the branch of a `switch` for one platform, which Tcl names as `uname` does."""
    platform = PLATFORMS[stack.platform]
    found = (
        *_driver_check(stack, lock_file_name),
        *(f"setenv {name} {_quoted(text)}" for name, text in variables(stack).items()),
    )
    lines = "".join(f"        {line}\n" for line in found)
    return f"    {_quoted(f'{platform.sys_platform.capitalize()} {platform.machine}')} {{\n{lines}    }}\n"


def _driver_check(stack: LockedStack, lock_file_name: str) -> Iterator[str]:
    """Yield the lines that keep the module from being loaded beside a NVIDIA driver that the lock excludes."""
    wanted = stack.host_requirements.get("driver", "")
    if not wanted or ACCELERATORS[stack.accelerator].target_key != "compute_capability":
        return
    ways = []
    for low, high in (one for some in ranges_of_lock(wanted) for one in intervals(some)):
        ways.append(f"$driver >= {as_number(low)}" + (f" && $driver < {as_number(high)}" if high else ""))
    refused = _quoted(f"{lock_file_name} needs driver {wanted}; this node has ")
    yield from (
        "# A login node may have no GPU: where no driver is loaded, none is compared.",
        f"if {{[module-info mode load] && [file readable {DRIVER_FILE}]}} {{",
        f"    set file [open {DRIVER_FILE}]",
        "    set said [read $file]",
        "    close $file",
        "    set revision 0",
        "    if {[regexp {NVRM version:[^\\n]* ([0-9]+[.][0-9.]+) } $said -> found]",
        "        && [scan $found %d.%d.%d major minor revision] >= 2} {",
        "        set driver [format %d%04d%04d $major $minor $revision]",
        f"        if {{!({' || '.join(ways) or '0'})}} {{",
        f"            puts stderr [string cat {refused} $found]",
        "            break",
        "        }",
        "    }",
        "}",
    )


def _quoted(text: str) -> str:
    r"""Quote a text for Tcl: in double quotes `\`, `"`, `$`, `[` are special, and braces must match wherever they are.

    Other characters than those of ASCII are escaped: Tcl reads them by the locale of whoever loads the module.
    """
    escaped = re.sub(r'[\\"$\[\]{}]', r"\\\g<0>", text)
    return '"' + re.sub(r"[^ -~]", lambda found: f"\\U{ord(found[0]):08x}", escaped) + '"'
