"""Evaluation of PEP 508 markers for a target environment, never for the machine this program runs on; pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from provisioner.index.model import Environment

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


PATCHED = ("python_full_version", "implementation_version")
"""Marker variables whose value includes the patch release of Python."""

_FOR_AN_EXTRA = re.compile(r"""(?P<others>.*\sand\s)?\s*extra\s*==\s*(["'])(?P<extra>[\w.-]+)\2\s*""", re.ASCII)
"""A marker that ends in the comparison of `extra` with one name."""

NEWEST_PATCH = 99
"""The number used for the newest patch release of a Python series (`3.12.99`), the one that images usually contain."""


def marker_environment(environment: Environment) -> dict[str, str]:
    """Return the PEP 508 marker variables of the target.

    The patch release of the target's Python is unknown until installation, so it is given as `.0`; `Markers` also evaluates
    with the newest one. `platform_release` is empty on Linux, where the host's kernel is unknown, so that version comparisons
    with it are false; on macOS it is the Darwin release of the deployment target.
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
    """Return the major version of Darwin (`uname -r`) of a macOS: 19 for 10.15, 20 for 11, 24 for 15, 25 for 26."""
    major, minor = macos
    if major == 10:
        return minor + 4
    return major + 9 if major < 26 else major - 1


class Markers:
    """Evaluates markers with the variables of one target; results are cached, because packages repeat the same markers.

    The patch release of the target's Python is unknown until installation. A marker that depends on it is true when it is true
    for the first or for the newest patch release: an unnecessary backport does no harm, a missing one does.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        newest = {name: f"{variables['python_version']}.{NEWEST_PATCH}" for name in PATCHED if name in variables}
        self._newest = {**variables, **newest}
        self._known: dict[tuple[str, str], bool] = {}

    def hold(self, marker: Marker | None, extras: Collection[str] = ("",)) -> bool:
        """Return whether a requirement with this marker applies with at least one of `extras`, which are normalized names.

        The extra "" stands for an installation without extras. A requirement without a marker (None) always applies.
        """
        return marker is None or self.hold_text(str(marker), extras)

    def hold_text(self, marker: str, extras: Collection[str] = ("",)) -> bool:
        """Evaluate the text of a marker ("" for no marker) as `hold` does; raises packaging's `InvalidMarker`.

        Most markers are of extras that nobody asks for: those are not even parsed.
        """
        if not marker:
            return True
        only = _only_extra(marker)
        if only:
            return only in extras and self._holds(marker, only)
        return any(self._holds(marker, extra) for extra in extras)

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


@lru_cache(maxsize=16384)
def _only_extra(marker: str) -> str:
    """Return the one extra, normalized, without which a marker is false; "" when that cannot be told at a glance."""
    found = _FOR_AN_EXTRA.fullmatch(marker)
    if found is None or re.search(r"\bor\b", found["others"] or ""):  # of alternatives, one may do without the extra
        return ""
    return canonicalize_name(found["extra"])


def holds_for(marker: Marker, platform: str, pythons: Collection[str]) -> bool | None:
    """Return whether a marker is true on `platform`; None when that differs between the Python versions in `pythons`."""
    found = {Markers(marker_environment(Environment(platform=platform, python=one))).hold(marker) for one in pythons}
    return found.pop() if len(found) == 1 else None
