"""Logs that fixed questions drew from public issues; the page tells what the program said of them before they had rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from provisioner.diagnose.diagnosis import diagnose
from provisioner.diagnose.log import log_of
from tests.shipped import shipped

ROOT = Path(__file__).parents[3]
LOGS: list[dict[str, Any]] = YAML(typ="safe").load((ROOT / "tests/fixtures/logs/drawn.yaml").read_text(encoding="utf-8"))
SENTENCE = (
    "Of these {count} it told the right cause of {right}, only the kind of failure of {kind}, "
    "a wrong cause of {wrong}, and nothing of {nothing}."
)


@pytest.mark.parametrize("one", LOGS, ids=lambda one: one["source"].partition("//")[2])
def test_the_first_finding_of_a_log_is_what_it_was(one: dict[str, Any]) -> None:
    found = diagnose(log_of(one["log"]), shipped())
    names = [finding.main.failure.name for finding in found.findings] + [benign.failure.name for benign in found.harmless]
    assert (names or [""])[0] == one["first"], one["cause"]


@pytest.mark.parametrize(("part", "count"), [("first", 30), ("second", 8)])
def test_the_page_states_what_was_measured_before_rows_were_written_for_them(part: str, count: int) -> None:
    measured = Counter(one["measured"] for one in LOGS if one["part"] == part)
    page = " ".join((ROOT / "docs/diagnose.md").read_text(encoding="utf-8").split())
    assert sum(measured.values()) == count
    assert SENTENCE.format(count=count, **{"wrong": 0, **measured}) in page
