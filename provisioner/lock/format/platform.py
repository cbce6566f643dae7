"""Platforms as environment markers of PEP 508, by which installers select."""

from __future__ import annotations

from provisioner.platforms import PLATFORMS


def environment_marker(platform: str, *, python: str = "") -> str:
    """Return the marker that selects one platform, and one Python series such as `3.12` when `python` is not empty."""
    row = PLATFORMS[platform]
    marker = f'sys_platform == "{row.sys_platform}" and platform_machine == "{row.machine}"'
    return f'{marker} and python_version == "{python}"' if python else marker


def package_marker(platforms: tuple[str, ...], among: tuple[str, ...]) -> str:
    """Return the shortest marker that selects `platforms` among those of a lock (`among`); "" when both are the same."""
    if set(platforms) == set(among):
        return ""
    rows = [PLATFORMS[platform] for platform in among]
    systems, machines = {row.sys_platform for row in rows}, {row.machine for row in rows}
    if len(systems) == 1:
        return " or ".join(f'platform_machine == "{PLATFORMS[platform].machine}"' for platform in platforms)
    if len(machines) == 1 or len(systems) == len(among):
        return " or ".join(f'sys_platform == "{PLATFORMS[platform].sys_platform}"' for platform in platforms)
    return " or ".join(environment_marker(platform) for platform in platforms)
