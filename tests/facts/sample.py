"""Cases of which `make test` tries a third; `make test-all` tries all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest.mark import ParameterSet


def a_third_at_once(cases: Sequence[Any]) -> list[ParameterSet]:
    """Return all cases, of which two in every three are marked slow, so that each theme has some that are not."""
    return [pytest.param(case, marks=[pytest.mark.slow] if place % 3 else []) for place, case in enumerate(cases)]
