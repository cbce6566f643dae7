"""PEP 508 markers, judged for a target environment and never for the machine this program runs on; pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.markers import Marker

from provisioner.index.model import Environment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


PATCHED = ("python_full_version", "implementation_version")
"""Variables that tell patch releases of a Python apart."""

NEWEST_PATCH = 99
"""Stands for the newest patch release of a Python, which is what images and installers of a series bring."""


def marker_environment(environment: Environment) -> dict[str, str]:
    """Return the PEP 508 variables of the target.

    The patch release of its Python is unknown until it is installed, so `.0` stands for it; `Markers` tries the newest as well.
    The release of a Linux kernel is the host's on the day, and stays empty, on which versions compare as no; that of macOS
    follows from the deployment target.
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
    """Return the major release of Darwin, as `uname -r` reports it on a macOS: 19 in 10.15, 20 in 11, 24 in 15, 25 in 26."""
    major, minor = macos
    if major == 10:
        return minor + 4
    return major + 9 if major < 26 else major - 1


class Markers:
    """Judges markers by the variables of one target; each marker once, for the packages of an environment repeat them.

    The target's Python is a series, and its patch release unknown until it is installed. A marker that tells patch releases
    apart holds where it holds for the first or for the newest: a backport that is not needed does no harm, one that is
    missing does.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        newest = {name: f"{variables['python_version']}.{NEWEST_PATCH}" for name in PATCHED if name in variables}
        self._newest = {**variables, **newest}
        self._known: dict[tuple[str, str], bool] = {}

    def hold(self, marker: Marker | None, extras: Iterable[str] = ("",)) -> bool:
        """Whether a requirement with this marker applies when one of some extras is requested ("": none is)."""
        return marker is None or self.hold_text(str(marker), extras)

    def hold_text(self, marker: str, extras: Iterable[str] = ("",)) -> bool:
        """Whether the text of a marker, "" for none, holds as in `hold`; raises `InvalidMarker`."""
        return not marker or any(self._holds(marker, extra) for extra in extras)

    def _holds(self, marker: str, extra: str) -> bool:
        known = self._known.get((marker, extra))
        if known is None:
            parsed = _parsed(marker)
            known = parsed.evaluate({**self._variables, "extra": extra})
            if not known and any(name in marker for name in PATCHED):
                known = parsed.evaluate({**self._newest, "extra": extra})
            self._known[marker, extra] = known
        return known


_parsed = lru_cache(maxsize=16384)(Marker)


def holds_for(marker: Marker, platform: str, pythons: Collection[str]) -> bool | None:
    """Return whether a marker holds on a platform with each of some Pythons (`3.12`); None where that turns on the Python."""
    found = {Markers(marker_environment(Environment(platform=platform, python=one))).hold(marker) for one in pythons}
    return found.pop() if len(found) == 1 else None
