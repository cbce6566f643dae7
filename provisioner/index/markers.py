"""The variables of PEP 508 markers for a target; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.index.model import Environment


def marker_environment(environment: Environment) -> dict[str, str]:
    """PEP 508 variables of the target.

    The patch level of its Python is unknown until it is built, so `.0` stands for it; who judges markers by it looks at the
    newest as well (`solve.markers`). The release of a Linux kernel is the host's on the day, and stays empty, on which versions
    compare as no; that of macOS follows from the deployment target.
    """
    system, _, architecture = environment.platform.partition("/")
    machines = {("linux", "amd64"): "x86_64", ("linux", "arm64"): "aarch64"}
    is_linux = system == "linux"
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{environment.python}.0",
        "os_name": "posix",
        "platform_machine": machines.get((system, architecture), architecture),
        "platform_python_implementation": "CPython",
        "platform_release": "" if environment.macos is None else f"{darwin(environment.macos)}.0.0",
        "platform_system": "Linux" if is_linux else "Darwin",
        "platform_version": "",
        "python_full_version": f"{environment.python}.0",
        "python_version": environment.python,
        "sys_platform": "linux" if is_linux else "darwin",
        "extra": "",
    }


def darwin(macos: tuple[int, int]) -> int:
    """The major release of Darwin, as `uname -r` reports it on a macOS: 19 in 10.15, 20 in 11, 24 in 15, 25 in 26."""
    major, minor = macos
    if major == 10:
        return minor + 4
    return major + 9 if major < 26 else major - 1
