"""Which GPUs the compiled code of a build runs on: compute capabilities of NVIDIA, gfx targets of AMD.

NVIDIA's rules, from the CUDA C++ Programming Guide, sections "Binary Compatibility" and "PTX Compatibility" and the family- and
architecture-specific targets of "Feature Availability": a cubin for X.y runs on X.z with z >= y, never on another major;
`a` targets run on exactly that capability, `f` targets on the same family (same major, z >= y); PTX for X.y compiles for
any capability >= X.y, except `a` (exact) and `f` (family) PTX. Desktop cubins do not run on Tegra of the same major
(5.3, 6.2, 7.2, 8.7), nor the other way round.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from provisioner.matrix.model import GfxOverride


TARGET = re.compile(r"(?:sm|compute)_(\d+)(\d)([af]?)")

TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7)})
"""Compute capabilities of Tegra integrated GPUs whose cubins are not interchangeable with desktop ones."""

Capability = tuple[int, int]


class Target(Struct, frozen=True):
    """One compiled target: a compute capability and its `suffix` (`a`, `f` or "")."""

    capability: Capability
    suffix: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """Return the target that a name such as `sm_90a` or `compute_100f` means; raises `ValueError` for any other text."""
        return _target(text)


@lru_cache(maxsize=1024)  # all builds are compiled for the same few targets
def _target(text: str) -> Target:
    match = TARGET.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a compiled target: write for example sm_90, sm_90a or compute_100f")
    return Target((int(match[1]), int(match[2])), match[3])


def capability(text: str) -> Capability:
    """Return a compute capability such as `9.0` as its major and minor numbers."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def runs_natively(target: Target, device: Capability) -> bool:
    """Return whether machine code compiled for `target` runs on `device`."""
    if target.suffix == "a":
        return target.capability == device
    if (target.capability in TEGRA) != (device in TEGRA):
        return False
    return target.capability[0] == device[0] and target.capability[1] <= device[1]


def compiles_for(target: Target, device: Capability) -> bool:
    """Return whether the driver can compile PTX for `target` on `device`."""
    if target.suffix == "a":
        return target.capability == device
    if target.suffix == "f":
        return target.capability[0] == device[0] and target.capability[1] <= device[1]
    return target.capability <= device


@lru_cache(maxsize=16384)  # every build on every GPU is asked of, again and again
def coverage(sass: tuple[str, ...], ptx: tuple[str, ...], device: Capability) -> str:
    """Return how a build runs on a device: `native` (machine code), `ptx` (compiled by the driver at start) or `none`."""
    if any(runs_natively(Target.parse(target), device) for target in sass):
        return "native"
    if any(compiles_for(Target.parse(target), device) for target in ptx):
        return "ptx"
    return "none"


GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    "gfx11-generic": ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}
"""The AMD processors that code for each generic target runs on. Code for any other target runs on the processor of that name
only. Source: LLVM's "User Guide for AMDGPU Backend", table "AMDGPU Generic Processors" (https://llvm.org/docs/AMDGPUUsage.html,
read 2026-11-21)."""


def runs_on(targets: Iterable[str], device: str) -> bool:
    """Return whether code compiled for some gfx targets runs on an AMD device without an override."""
    return any(device == target or device in GENERIC.get(target, ()) for target in targets)


def override_for(
    targets: Collection[str], devices: Collection[str], overrides: Iterable[GfxOverride]
) -> tuple[GfxOverride, ...] | None:
    """Return the overrides with which all AMD devices run code for some gfx targets: () if none is needed, None if none helps.

    An override sets environment variables that make a GPU run as another target, `runs_as`. The variables hold for every GPU of
    the process, so one setting must suffice for all `devices`: each device must be `runs_as` itself, or a target that may run
    as `runs_as`.
    """
    left = [device for device in devices if not runs_on(targets, device)]
    if not left:
        return ()
    rows = tuple(overrides)
    for first in rows:
        same = [row for row in rows if row.set == first.set and row.runs_as == first.runs_as]
        passing = {gfx for row in same for gfx in row.gfx}
        if runs_on(targets, first.runs_as) and all(device in passing or device == first.runs_as for device in devices):
            return tuple(row for row in same if set(row.gfx) & set(left))
    return None
