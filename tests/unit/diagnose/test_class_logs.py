"""Logs that measured what rows for whole kinds of messages tell of failures that are new to them, as the page states."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.public_logs import first_told, logs, page, source_of

LOGS = logs("classes.yaml")
REST = "a wrong cause of {wrong}, and nothing of {nothing}."
SENTENCES = {
    "taught": f"Of the {{count}} it had told the right cause of {{right}}, only the kind of failure of {{kind}}, {REST}",
    "classes": f"Of {{count}} new ones it told the right cause of {{right}}, only the kind of {{kind}}, {REST}",
    "sentences": f"Of the last {{count}} it told the right cause of {{right}}, only the kind of {{kind}}, {REST}",
}


@pytest.mark.parametrize("one", LOGS, ids=source_of)
def test_the_first_finding_of_a_log_is_what_it_was(one: dict[str, Any]) -> None:
    assert first_told(one) == one["first"], one["cause"]


@pytest.mark.parametrize("part", SENTENCES)
def test_the_page_states_what_was_measured_on_each_part(part: str) -> None:
    measured = Counter(one["measured"] for one in LOGS if one["part"] == part)
    figures = {kind: measured[kind] for kind in ("right", "kind", "wrong", "nothing")}
    assert SENTENCES[part].format(count=measured.total(), **figures) in page()
