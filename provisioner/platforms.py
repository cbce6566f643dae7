"""The platforms an environment can be locked for, one row each: how this program, installers and kernels spell each."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

System = Literal["linux", "macos"]
PlatformName = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]


class Platform(Struct, frozen=True, kw_only=True):
    """One platform.

    `machine` is what `uname -m` prints and PEP 508 calls `platform_machine`, `sys_platform` what CPython calls the system.
    `wheel_tags` is a regular expression over the platform tags of the wheels that are installed there.
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
"""Every platform by its name, in the order in which people are told of them."""

PLATFORM_NAMES = tuple(row.name for row in PLATFORMS.values())
LINUX_PLATFORMS = tuple(row.name for row in PLATFORMS.values() if row.system == "linux")
MACOS_PLATFORMS = tuple(row.name for row in PLATFORMS.values() if row.system == "macos")

DEFAULT_PLATFORM: PlatformName = "linux/amd64"
"""The platform of a spec that names none."""

_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}
"""Other names that Linux distributions have for a machine, and how `uname -m` spells it."""


def platform_of(system: System, machine: str) -> PlatformName | None:
    """The platform of a machine as `uname -m` or a Linux distribution names it (`aarch64`, `arm64`); None for any other."""
    found = _SAME_MACHINE.get(machine, machine) if system == "linux" else machine
    return next((row.name for row in PLATFORMS.values() if (row.system, row.machine) == (system, found)), None)
