"""The law of first hints: the patch of a first hint, applied by a program that knows nothing else of it, leads to an answer.

Of several conflicts the first hint of the first that has one is taken, and what is left is solved again, as a person does it.
Of the scenarios some are tried here; `test_hints_work.py` tries every hint of all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from provisioner.errors import UnavailableError
from provisioner.resolver.stack import Stack
from provisioner.words.conflict import fix_line
from tests.scenarios.applied import patched
from tests.scenarios.test_hints_work import CONFLICTS
from tests.scenarios.test_scenarios import HERE, outcome, read

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.grounds.conflict import Conflict, Fix


def first_hint(conflicts: tuple[Conflict, ...]) -> Fix | None:
    """Return the first fix of the first conflict that has one."""
    return next((one.fixes[0] for one in conflicts if one.fixes), None)


@pytest.mark.parametrize("path", CONFLICTS[::6], ids=lambda path: str(path.relative_to(HERE)))
def test_a_first_hint_leads_to_an_answer(path: Path, tmp_path: Path) -> None:
    scenario, is_unverified = read(path), False
    conflicts = outcome(scenario, tmp_path)
    assert isinstance(conflicts, tuple)
    told = sum(1 for one in conflicts if one.fixes)
    for _ in range(told):
        hint = first_hint(conflicts)
        assert hint is not None
        is_unverified |= hint.is_unverified
        after = patched(scenario, json.loads(json.dumps(hint.patch)))
        assert after != scenario, fix_line(hint)
        try:
            found = outcome(after, tmp_path)
        except UnavailableError:
            assert hint.is_unverified, fix_line(hint)
            return
        if isinstance(found, Stack):
            assert is_unverified or not found.doubts, fix_line(hint)
            return
        assert len(found) < len(conflicts), fix_line(hint)
        scenario, conflicts = after, found
    assert not told or any(not one.fixes for one in conflicts), "no hint led to an answer"
