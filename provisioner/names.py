"""Names people write: of distributions that are components of the matrix, and the known name nearest to a typo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.components import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION_OF_COMPONENT = {row.name: row.distribution for row in COMPONENTS.values() if row.distribution}
"""Components whose release *is* a Python distribution: `pytorch ==2.7.1` and `torch==2.7.1` must never disagree."""

COMPONENT_OF_DISTRIBUTION = {name: component for component, name in DISTRIBUTION_OF_COMPONENT.items()}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`, or None when nothing is close."""
    from difflib import get_close_matches

    matches = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return matches[0] if matches else None
