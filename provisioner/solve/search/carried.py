"""Components that distributions carry: what is installed is the distribution's, so the stack must name that version.

A framework's build may take any cuDNN 9, and so may the distribution that brings it: chosen apart they need not agree.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from provisioner.solve.requirement import PACKAGE, PYTORCH, Key
from provisioner.solve.search.universe import violations
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.solve.requirement import Candidate
    from provisioner.solve.search.universe import Universe

CARRIED = {
    "cudnn": ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
    "nccl": ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    "triton": ("triton",),
}
"""Distributions that carry a component of the stack, so that their versions must agree with it."""


def as_carried(
    universe: Universe, pins: dict[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> dict[Key, Candidate]:
    """An answer with each component at the version of the distribution that carries it, where everything still holds then.

    The distribution is one of the answer, or of those that were chosen before it and stay `beside` it.
    PyTorch's own are left as they are: its builds name them exactly, and some are linked into its libraries.
    """
    for key in [key for key in pins if key.component in CARRIED and not key.is_package]:
        carrier = carrier_of(key, {**beside, **pins})
        # By the version alone: the label of a file that a requirement names has its address too.
        version = Version.parse(str(carrier.pep440)) if carrier is not None else pins[key].version
        if pins[key].version != version:
            fitting = (one for one in universe.candidates(key) if one.version == version)
            pins = next((found for one in fitting if not violations(universe, found := {**pins, key: one})), pins)
    return pins


def carrier_of(key: Key, pins: Mapping[Key, Candidate]) -> Candidate | None:
    """The one distribution that carries a component for a framework other than PyTorch; None for none, or several."""
    if key.is_package or (PYTORCH in pins and not key.slot):
        return None
    found = [pins[carrier] for name in CARRIED.get(key.component, ()) if (carrier := Key(name, PACKAGE)) in pins]
    return found[0] if len(found) == 1 else None
