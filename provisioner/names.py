"""Names that people write: Python distributions that are components of the matrix, and corrections of typos."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from provisioner.components import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION_OF_COMPONENT = {row.name: row.distribution for row in COMPONENTS.values() if row.distribution}
"""The components that are Python distributions, with their names: `pytorch ==2.7.1` and `torch==2.7.1` mean the same."""

COMPONENT_OF_DISTRIBUTION = {name: component for component, name in DISTRIBUTION_OF_COMPONENT.items()}


DISTRIBUTION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""The name of a Python distribution, as PEP 508 has it."""


@lru_cache(maxsize=4096)
def pep508(text: str) -> Requirement:
    """Return the requirement that a text spells, which nobody may change; raises `InvalidRequirement`.

    The result is cached: a line of a spec is looked at for one question after another.
    """
    return Requirement(text)


def nearest(name: str, known: Iterable[str], *, similarity: float = 0.6) -> str | None:
    """Return the name in `known` most similar to `name`, for a hint about a typo; None when none is similar enough.

    `similarity` is the least ratio of `difflib`, from 0 to 1.
    """
    from difflib import get_close_matches

    matches = get_close_matches(name, sorted(known), n=1, cutoff=similarity)
    return matches[0] if matches else None
