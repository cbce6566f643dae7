"""Whether markers hold in one environment, each read once: the packages of an environment repeat themselves and each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.index.markers import marker_environment
from provisioner.index.metadata.requirement_text import ExtraMarker
from provisioner.index.model import Environment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from packaging.markers import Marker


PATCHED = ("python_full_version", "implementation_version")
"""Variables that tell patch releases of a Python apart."""

NEWEST_PATCH = 99
"""Stands for the newest patch release of a Python, which is what images and installers of a series bring."""


class Markers:
    """Markers of PEP 508, judged by the variables of one target.

    The target's Python is a series, and its patch release unknown until it is installed. A marker that tells patch releases
    apart holds where it holds for the first or for the newest: a backport that is not needed does no harm, one that is
    missing does.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        newest = {name: f"{variables['python_version']}.{NEWEST_PATCH}" for name in PATCHED if name in variables}
        self._newest = {**variables, **newest}
        self._is_patched: dict[int, tuple[Marker, bool]] = {}
        # Under the identity of the marker, for its hash is that of its text, which must be written first. The marker is kept
        # beside it: the identity of one that is gone may become another's.
        self._known: dict[tuple[int, str], tuple[Marker, bool]] = {}

    def hold(self, marker: Marker | None, extras: Iterable[str] = ("",)) -> bool:
        """Whether a requirement with this marker applies when one of some extras is asked for ("": none is)."""
        return marker is None or any(self._holds(marker, extra) for extra in extras)

    def _holds(self, marker: Marker, extra: str) -> bool:
        if isinstance(marker, ExtraMarker) and marker.extra != canonicalize_name(extra):
            return False
        known = self._known.get((id(marker), extra))
        if known is None:
            found = marker.evaluate({**self._variables, "extra": extra})
            if not found and self._tells_patches(marker):
                found = marker.evaluate({**self._newest, "extra": extra})
            known = self._known[id(marker), extra] = (marker, found)
        return known[1]

    def _tells_patches(self, marker: Marker) -> bool:
        known = self._is_patched.get(id(marker))
        if known is None:
            text = str(marker)
            known = self._is_patched[id(marker)] = (marker, any(name in text for name in PATCHED))
        return known[1]


def holds_for(marker: Marker, platform: str, pythons: Collection[str]) -> bool | None:
    """Return whether a marker holds on a platform with each of some Pythons (`3.12`); None where that turns on the Python."""
    found = {Markers(marker_environment(Environment(platform=platform, python=one))).hold(marker) for one in pythons}
    return found.pop() if len(found) == 1 else None
