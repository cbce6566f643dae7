"""The vocabulary: component names, the distributions that are the same thing, and the nearest known name to a typo."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION_OF_COMPONENT = {"pytorch": "torch"}
"""Components whose release *is* a Python distribution: `pytorch ==2.7.1` and `torch==2.7.1` must never disagree."""

COMPONENT_OF_DISTRIBUTION = {name: component for component, name in DISTRIBUTION_OF_COMPONENT.items()}

HOST_COMPONENTS = ("driver", "driver_module", "kernel", "glibc", "gpu")
"""Virtual components: the host provides them and no image installs them (glibc only when running on the host)."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, or None when nothing is close."""
    matches = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
