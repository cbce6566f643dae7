"""Platforms as environment markers of PEP 508, by which installers select."""

from __future__ import annotations

MARKER_VALUES = {
    "linux/amd64": ("linux", "x86_64"),
    "linux/arm64": ("linux", "aarch64"),
    "macos/x86_64": ("darwin", "x86_64"),
    "macos/arm64": ("darwin", "arm64"),
}
"""`sys_platform` and `platform_machine` on each platform, as CPython reports them."""


def environment_marker(platform: str, *, python: str = "") -> str:
    """Return the marker that holds on this platform only, and with this Python series only when one is given (`3.12`)."""
    system, machine = MARKER_VALUES[platform]
    marker = f'sys_platform == "{system}" and platform_machine == "{machine}"'
    return f'{marker} and python_version == "{python}"' if python else marker


def package_marker(platforms: tuple[str, ...], among: tuple[str, ...]) -> str:
    """Return the shortest marker that tells `platforms` from the others of a lock; "" when they are all of them."""
    if set(platforms) == set(among):
        return ""
    systems = {MARKER_VALUES[platform][0] for platform in among}
    machines = [MARKER_VALUES[platform][1] for platform in among]
    if len(systems) == 1:
        return " or ".join(f'platform_machine == "{MARKER_VALUES[platform][1]}"' for platform in platforms)
    if len(set(machines)) == 1 or len(systems) == len(among):
        return " or ".join(f'sys_platform == "{MARKER_VALUES[platform][0]}"' for platform in platforms)
    return " or ".join(environment_marker(platform) for platform in platforms)
