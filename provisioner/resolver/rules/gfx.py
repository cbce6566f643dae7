"""Which AMD GPUs a build's compiled code runs on, and through what."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from provisioner.matrix.model import GfxOverride

GENERIC = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx940", "gfx941", "gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
    "gfx11-generic": ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}
"""The processors code for a generic target runs on: LLVM's "User Guide for AMDGPU Backend", table "AMDGPU Generic Processors"
(https://llvm.org/docs/AMDGPUUsage.html, read 2026-11-21). Other code runs on the processor it names and on no other."""


def runs_on(targets: Iterable[str], device: str) -> bool:
    """Whether code compiled for `targets` runs on `device` as it is."""
    return any(device == target or device in GENERIC.get(target, ()) for target in targets)


def override_for(
    targets: Collection[str], devices: Collection[str], overrides: Iterable[GfxOverride]
) -> tuple[GfxOverride, ...] | None:
    """What must be set so that every device runs this code: () for nothing, None when nothing helps.

    The variables of an override hold for every GPU of the process, so one setting must do for all devices: each is then of
    the targets that may pass for `runs_as`, or is `runs_as` itself.
    """
    left = [device for device in devices if not runs_on(targets, device)]
    if not left:
        return ()
    rows = tuple(overrides)
    for first in rows:
        same = [row for row in rows if row.variables == first.variables and row.runs_as == first.runs_as]
        passing = {gfx for row in same for gfx in row.gfx}
        if runs_on(targets, first.runs_as) and all(device in passing or device == first.runs_as for device in devices):
            return tuple(row for row in same if set(row.gfx) & set(left))
    return None
