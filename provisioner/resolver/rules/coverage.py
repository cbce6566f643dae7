"""Which GPUs a build's compiled code runs on, and through what.

Rules, from the CUDA C++ Programming Guide, sections "Binary Compatibility" and "PTX Compatibility" and the family- and
architecture-specific targets of "Feature Availability": a cubin for X.y runs on X.z with z >= y, never on another major;
`a` targets run on exactly that capability, `f` targets on the same family (same major, z >= y); PTX for X.y compiles for
any capability >= X.y, except `a` (exact) and `f` (family) PTX. Desktop cubins do not run on Tegra of the same major
(5.3, 6.2, 7.2, 8.7), nor the other way round.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

TARGET = re.compile(r"(?:sm|compute)_(\d+)(\d)([af]?)")

TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7)})
"""Compute capabilities of Tegra integrated GPUs whose cubins are not interchangeable with desktop ones."""

Capability = tuple[int, int]


class Target(Struct, frozen=True):
    """One compiled target: capability and its suffix (`a`, `f` or "")."""

    capability: Capability
    suffix: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read `sm_90a` or `compute_100f`; raises `ValueError` naming the text."""
        return _target(text)


@lru_cache(maxsize=1024)  # builds are compiled for the same few
def _target(text: str) -> Target:
    match = TARGET.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a compiled target: write for example sm_90, sm_90a or compute_100f")
    return Target((int(match[1]), int(match[2])), match[3])


def capability(text: str) -> Capability:
    """Read a compute capability such as `9.0`."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def runs_natively(target: Target, device: Capability) -> bool:
    """Whether machine code compiled for `target` runs on `device`."""
    if target.suffix == "a":
        return target.capability == device
    if (target.capability in TEGRA) != (device in TEGRA):
        return False
    return target.capability[0] == device[0] and target.capability[1] <= device[1]


def compiles_for(target: Target, device: Capability) -> bool:
    """Whether PTX for `target` can be compiled by the driver for `device`."""
    if target.suffix == "a":
        return target.capability == device
    if target.suffix == "f":
        return target.capability[0] == device[0] and target.capability[1] <= device[1]
    return target.capability <= device


def coverage(sass: tuple[str, ...], ptx: tuple[str, ...], device: Capability) -> str:
    """How a build with these targets serves a device: `native`, `ptx` (compiled by the driver at start) or `none`."""
    if any(runs_natively(Target.parse(target), device) for target in sass):
        return "native"
    if any(compiles_for(Target.parse(target), device) for target in ptx):
        return "ptx"
    return "none"
