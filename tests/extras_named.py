"""The extras of a distribution held in memory: those its requirements are guarded by."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.requirements import Requirement


def extras_named(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    """The names that markers compare `extra` with, normalized."""
    found = (re.findall(r'extra == "([^"]+)"', str(needed.marker or "")) for needed in requirements)
    return tuple(sorted({canonicalize_name(name) for names in found for name in names}))
