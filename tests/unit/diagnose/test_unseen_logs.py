"""Sixty logs of public reports: half of them taught the rows, the other half measured whether the rows tell what is new."""

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
LOGS: list[dict[str, Any]] = YAML(typ="safe").load((ROOT / "tests/fixtures/logs/unseen.yaml").read_text(encoding="utf-8"))
HELD_OUT = [one for one in LOGS if one["part"] == "held out"]
SENTENCE = (
    "Of the 30 that were held out it told the right cause of {right}, only the kind of failure of {kind}, "
    "a wrong cause of {wrong}, and nothing of {nothing}."
)


@pytest.mark.parametrize("one", LOGS, ids=lambda one: one["source"].partition("//")[2])
def test_the_first_finding_of_a_log_is_what_it_was(one: dict[str, Any]) -> None:
    found = diagnose(log_of(one["log"]), shipped())
    names = [finding.main.failure.name for finding in found.findings] + [benign.failure.name for benign in found.harmless]
    assert (names or [""])[0] == one["first"], one["cause"]


def test_rows_were_written_for_half_of_the_logs_and_all_of_these_are_told() -> None:
    assert (len(LOGS), len(HELD_OUT)) == (60, 30)
    assert all(one["first"] for one in LOGS if one["part"] == "learnt")


def test_the_page_states_what_was_measured_on_logs_that_no_row_was_written_for() -> None:
    page = " ".join((ROOT / "docs/diagnose.md").read_text(encoding="utf-8").split())
    assert SENTENCE.format(**Counter(one["measured"] for one in HELD_OUT)) in page
