"""Logs that were held out and then taught: what was told of them before, as the page states, and what is told today."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.public_logs import first_told, logs, page, source_of

LOGS = logs("held.yaml")
SENTENCE = (
    "{count} logs: the right cause of {right}, only the kind of {kind}, a wrong cause of {wrong}, and nothing of {nothing}."
)


@pytest.mark.parametrize("one", LOGS, ids=source_of)
def test_the_first_finding_of_a_log_is_what_it_was(one: dict[str, Any]) -> None:
    assert first_told(one) == one["first"], one["cause"]


@pytest.mark.parametrize("part", ["first", "second", "third"])
def test_the_page_states_what_was_measured_on_each_part(part: str) -> None:
    measured = Counter(one["measured"] for one in LOGS if one["part"] == part)
    figures = {kind: measured[kind] for kind in ("right", "kind", "wrong", "nothing")}
    assert f"The {part} set, {SENTENCE.format(count=measured.total(), **figures)}" in page()
