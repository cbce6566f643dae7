"""Sixty logs of public reports: half of them taught the rows, the other half measured whether the rows tell what is new."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.public_logs import first_told, logs, page, source_of

LOGS = logs("unseen.yaml")
HELD_OUT = [one for one in LOGS if one["part"] == "held out"]
SENTENCE = (
    "Of the 30 that were held out it told the right cause of {right}, only the kind of failure of {kind}, "
    "a wrong cause of {wrong}, and nothing of {nothing}."
)


@pytest.mark.parametrize("one", LOGS, ids=source_of)
def test_the_first_finding_of_a_log_is_what_it_was(one: dict[str, Any]) -> None:
    assert first_told(one) == one["first"], one["cause"]


def test_rows_were_written_for_half_of_the_logs_and_all_of_these_are_told() -> None:
    assert (len(LOGS), len(HELD_OUT)) == (60, 30)
    assert all(one["first"] for one in LOGS if one["part"] == "learnt")


def test_the_page_states_what_was_measured_on_logs_that_no_row_was_written_for() -> None:
    assert SENTENCE.format(**Counter(one["measured"] for one in HELD_OUT)) in page()
