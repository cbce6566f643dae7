"""Logs that held-out questions drew from public issues; the page tells what the program said of them before they had rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.public_logs import first_told, logs, page, source_of

LOGS = logs("asked.yaml")
SENTENCE = (
    "Of these {count} it told the right cause of {right}, only the kind of failure of {kind}, "
    "a wrong cause of {wrong}, and nothing of {nothing}."
)


@pytest.mark.parametrize("one", LOGS, ids=source_of)
def test_the_first_finding_of_a_log_is_what_it_was(one: dict[str, Any]) -> None:
    assert first_told(one) == one["first"], one["cause"]


def test_the_page_states_what_was_measured_before_rows_were_written_for_them() -> None:
    measured = {"kind": 0, "wrong": 0, **Counter(one["measured"] for one in LOGS)}
    assert SENTENCE.format(count=len(LOGS), **measured) in page()
