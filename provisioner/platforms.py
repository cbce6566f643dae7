"""The platforms an environment can be locked for, one row each, with their names for installers and kernels."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

System = Literal["linux", "macos"]
PlatformName = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]


class Platform(Struct, frozen=True, kw_only=True):
    """One platform.

    `machine` is the output of `uname -m` and PEP 508's `platform_machine`; `sys_platform` is CPython's `sys.platform`.
    `wheel_tags` is a regular expression that matches the platform tags of the wheels installable there.
    """

    name: PlatformName
    system: System
    machine: str
    sys_platform: str
    wheel_tags: str


PLATFORMS: dict[str, Platform] = {
    row.name: row
    for row in (
        Platform(
            name="linux/amd64",
            system="linux",
            machine="x86_64",
            sys_platform="linux",
            wheel_tags=r"(?:many|musl)?linux\w*_x86_64",
        ),
        Platform(
            name="linux/arm64",
            system="linux",
            machine="aarch64",
            sys_platform="linux",
            wheel_tags=r"(?:many|musl)?linux\w*_aarch64",
        ),
        Platform(
            name="macos/x86_64",
            system="macos",
            machine="x86_64",
            sys_platform="darwin",
            wheel_tags=r"macosx_\w+_(?:x86_64|intel|universal|universal2|fat64)",
        ),
        Platform(
            name="macos/arm64",
            system="macos",
            machine="arm64",
            sys_platform="darwin",
            wheel_tags=r"macosx_\w+_(?:arm64|universal2)",
        ),
    )
}
"""Every platform by its name, in the order of messages."""

PLATFORM_NAMES = tuple(row.name for row in PLATFORMS.values())
LINUX_PLATFORMS = tuple(row.name for row in PLATFORMS.values() if row.system == "linux")
MACOS_PLATFORMS = tuple(row.name for row in PLATFORMS.values() if row.system == "macos")

DEFAULT_PLATFORM: PlatformName = "linux/amd64"
"""The platform of a spec that does not name one."""

_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}
"""Names that Linux distributions use for a machine, and the `uname -m` spelling of each."""


def platform_of(system: System, machine: str) -> PlatformName | None:
    """Return the platform of a machine named as by `uname -m` or a Linux distribution (`aarch64`, `arm64`), or None."""
    found = _SAME_MACHINE.get(machine, machine) if system == "linux" else machine
    return next((row.name for row in PLATFORMS.values() if (row.system, row.machine) == (system, found)), None)
