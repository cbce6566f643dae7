"""The platforms an environment can be locked for, one row each, with their names and environment markers for installers."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

System = Literal["linux", "macos"]
PlatformName = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64"]
HostPlatform = Literal["linux/amd64", "linux/arm64", "macos/x86_64", "macos/arm64", "windows"]
"""The platform of a machine. Nothing can be locked for Windows; inventories list such machines beside others."""


class Platform(Struct, frozen=True, kw_only=True):
    """A platform that an environment can be locked for: an operating system and a kind of machine.

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

JETSON: PlatformName = "linux/arm64"
"""The platform of every Jetson that Jetson Linux 28 or newer runs on."""

DEFAULT_PLATFORM: PlatformName = "linux/amd64"
"""The platform of a spec that does not name one."""

_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}
"""Names that Linux distributions use for a machine, and the `uname -m` spelling of each."""


def platform_of(system: System, machine: str) -> PlatformName | None:
    """Return the platform of a machine named as by `uname -m` or a Linux distribution (`aarch64`, `arm64`); None if unknown."""
    found = _SAME_MACHINE.get(machine, machine) if system == "linux" else machine
    return next((row.name for row in PLATFORMS.values() if (row.system, row.machine) == (system, found)), None)


def environment_marker(platform: str, *, python: str = "") -> str:
    """Return the PEP 508 marker that is true on one platform, and if `python` is given (`3.12`) in that Python series alone."""
    row = PLATFORMS[platform]
    marker = f'sys_platform == "{row.sys_platform}" and platform_machine == "{row.machine}"'
    return f'{marker} and python_version == "{python}"' if python else marker


def package_marker(platforms: tuple[str, ...], among: tuple[str, ...]) -> str:
    """Return a short PEP 508 marker that selects `platforms` among those of a lock (`among`); "" when both are the same."""
    if set(platforms) == set(among):
        return ""
    rows = [PLATFORMS[platform] for platform in among]
    systems, machines = {row.sys_platform for row in rows}, {row.machine for row in rows}
    if len(systems) == 1:
        return " or ".join(f'platform_machine == "{PLATFORMS[platform].machine}"' for platform in platforms)
    if len(machines) == 1 or len(systems) == len(among):
        return " or ".join(f'sys_platform == "{PLATFORMS[platform].sys_platform}"' for platform in platforms)
    return " or ".join(environment_marker(platform) for platform in platforms)
