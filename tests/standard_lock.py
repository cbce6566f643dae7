"""A lock as the reference implementation of PEP 751 reads it: `packaging.pylock`, told what an environment is.

Nothing here is shared with the code that writes locks, but for the names of platforms.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.pylock import Pylock
from packaging.tags import compatible_tags, cpython_tags, mac_platforms

from provisioner.lock.file import write_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.markers import Environment
    from packaging.tags import Tag

    from provisioner.lock.model import Lock
    from provisioner.resolver.stack import Stack

MACHINES = {
    "linux/amd64": ("linux", "Linux", "x86_64"),
    "linux/arm64": ("linux", "Linux", "aarch64"),
    "macos/x86_64": ("darwin", "Darwin", "x86_64"),
    "macos/arm64": ("darwin", "Darwin", "arm64"),
}
GLIBC = range(39, 4, -1)
OLDER_NAMES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""What a glibc 2.N was called before PEP 600; each is as good as the new name, and stands after it."""


def environment(platform: str, python: str) -> Environment:
    """What an installer's Python says of itself on a platform."""
    system, platform_system, machine = MACHINES[platform]
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{python}.9",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": platform_system,
        "platform_version": "",
        "python_full_version": f"{python}.9",
        "python_version": python,
        "sys_platform": system,
    }


@cache
def tags(platform: str, python: str) -> list[Tag]:
    """The tags that Python accepts there, the best first."""
    system, _, machine = MACHINES[platform]
    release = (int(python.split(".", maxsplit=1)[0]), int(python.split(".")[1]))
    names = [name for minor in GLIBC for name in (f"manylinux_2_{minor}", OLDER_NAMES.get(minor)) if name]
    platforms = (
        [f"{name}_{machine}" for name in (*names, "linux")] if system == "linux" else list(mac_platforms((15, 0), machine))
    )
    interpreter = f"cp{release[0]}{release[1]}"
    return [*cpython_tags(release, platforms=platforms), *compatible_tags(release, interpreter, platforms)]


def read(lock: Lock) -> Pylock:
    """The lock as written, read and validated by the reference implementation."""
    pylock = Pylock.from_dict(tomllib.loads(write_lock(lock)))
    pylock.validate()
    return pylock


def selected(lock: Lock, platform: str, python: str) -> Iterator[tuple[str, str, str]]:
    """Name, version and file of everything an installer takes on a platform; raises `PylockSelectError`."""
    for package, file in read(lock).select(environment=environment(platform, python), tags=tags(platform, python)):
        place = file.url or file.path or ""  # type: ignore[union-attr] # a checkout has no URL, and no lock of ours has one
        yield package.name, str(package.version), unquote(place.rpartition("/")[2])


def assert_selects_its_stacks(lock: Lock, *stacks: Stack) -> None:
    """On the platform of each stack, an installer takes the very files that were chosen for it, and nothing else."""
    for stack in stacks:
        wanted = {(one.name, one.version, one.file.filename) for one in stack.packages}
        assert set(selected(lock, stack.platform, series(stack))) == wanted


def series(stack: Stack) -> str:
    """`3.12` of a stack's Python, whatever its patch release."""
    return ".".join(stack.components["python"].split(".")[:2])
