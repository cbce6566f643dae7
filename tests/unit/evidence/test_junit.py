from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from provisioner.evidence.junit import junit_text
from tests.unit.evidence.reports import gpu_report, report

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[2] / "golden/evidence"


def test_each_fact_is_a_case_and_each_report_a_suite(golden: Callable[[Path, str], None]) -> None:
    """The texts have all that breaks XML, and control characters that it cannot hold."""
    golden(GOLDEN / "gpu.junit.xml", junit_text([gpu_report(), report("yes", platform="linux/arm64")]))


def test_what_is_unverified_or_has_nothing_to_do_is_skipped_and_no_pass() -> None:
    root = ET.fromstring(junit_text([report("yes", "yes", "no", "unverified", idle=(0,))]))
    (suite,) = root.findall("testsuite")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "0", "skipped": "2"}
    found = {case.get("name"): [child.tag for child in case] for case in suite.findall("testcase")}
    assert found == {"static": ["skipped"], "fact 1": [], "fact 2": ["failure"], "fact 3": ["skipped"]}
