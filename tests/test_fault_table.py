from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.container.fault_table import FAULTS, STACKS, page

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_page_lists_every_fault(golden: Callable[[Path, str], None]) -> None:
    golden(Path(__file__).parents[1] / "docs" / "faults.md", page())


def test_each_fault_has_a_name_of_its_own_and_a_stack_that_is_described() -> None:
    assert {fault.stack for fault in FAULTS} == STACKS.keys()
    assert max(Counter((fault.stack, fault.name) for fault in FAULTS).values()) == 1
    assert {len([one for one in (fault.run, fault.instruction, fault.beside) if one]) for fault in FAULTS} == {1}
