"""Logs of public reports, with the row that each is told by, and what was measured on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from provisioner.diagnose.diagnosis import diagnose
from provisioner.diagnose.log import log_of
from tests.shipped import shipped

ROOT = Path(__file__).parents[1]


def logs(name: str) -> list[dict[str, Any]]:
    """The logs of a file in `tests/fixtures/logs`."""
    found: list[dict[str, Any]] = YAML(typ="safe").load((ROOT / "tests/fixtures/logs" / name).read_text(encoding="utf-8"))
    return found


def source_of(one: dict[str, Any]) -> str:
    """Where a log was published, for the name of its test."""
    return str(one["source"]).partition("//")[2]


def first_told(one: dict[str, Any]) -> str:
    """The name of the first failure, else of the first harmless message, that a log is told by; "" for none."""
    found = diagnose(log_of(one["log"]), shipped())
    told = [finding.main.failure.name for finding in found.findings] + [benign.failure.name for benign in found.harmless]
    return (told or [""])[0]


def page() -> str:
    """The text of the page that states what was measured, in one line."""
    return " ".join((ROOT / "docs/diagnose.md").read_text(encoding="utf-8").split())
