"""Reports of validations as JUnit XML, which the test dashboards of CI systems show.

There is no official schema; what is written here is the part on which Jenkins, GitLab and GitHub's readers agree
(github.com/testmoapp/junitxml, read 2026-11-23).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from provisioner.evidence.report import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.evidence.report import FieldReport, Report

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped (section 2.2, Char)."""


def junit_text(reports: Sequence[Report]) -> str:
    """Return reports as one JUnit document: a suite for each report, a case for each fact and for each level without any.

    A `no` is a failure. What is unverified, or has nothing to do, is skipped, with the reason: it is no pass.
    """
    document = JUnitXml("provision validate")
    for report in reports:
        document.add_testsuite(_suite(report))
    document.update_statistics()  # type: ignore[no-untyped-call]  # the library annotates neither this nor the next
    content: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return f'<?xml version="1.0" encoding="utf-8"?>\n{_as_written_alone(content)}\n'


def _as_written_alone(content: bytes) -> str:
    """Return a document as it is written without lxml, which the library uses where it is installed: it has other spaces."""
    return ET.tostring(ET.fromstring(content), encoding="unicode")  # noqa: S314 - it was written just before


def _suite(report: Report) -> TestSuite:
    suite = TestSuite(clean(f"{report.lock_file} {report.platform}"))
    suite.timestamp = report.time.removesuffix("Z")
    for name, value in _properties(report):
        suite.add_property(name, clean(value))
    suite.add_testcases(list(_cases(report)))
    suite.time = round(sum(report.timing.get(name, 0.0) for name in ("build", "run")), 3)
    return suite


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what the facts were measured of and with."""
    yield "lock", report.lock_sha256
    yield "level", str(report.level)
    yield "verdict", report.verdict
    found = {
        "engine": report.engine.title,
        "image": report.image,
        "kernel": report.host.kernel,
        "driver": report.host.driver,
        "gpus": ", ".join(gpu.name for gpu in report.host.gpus),
    }
    yield from ((name, value) for name, value in found.items() if value)


def _cases(report: Report) -> Iterator[TestCase]:
    for level in report.levels:
        place = clean(f"{report.name}.{report.platform}.{level.level} {level.name}")
        facts = [field for field in report.fields if field.level == level.level]
        for field in facts:
            yield _case(field, place)
        if not facts:
            case = TestCase(LEVELS[level.level], place)
            case.result = Skipped(clean(f"{level.verdict}: {level.note}" if level.note else level.verdict))
            yield case


def _case(field: FieldReport, place: str) -> TestCase:
    case = TestCase(clean(field.name), place)
    if field.verdict == "no":
        failure = Failure(clean(f"expected {field.locked or 'nothing'}, found {field.measured or 'nothing'}"), "difference")
        failure.text = clean(field.note)
        case.result = failure
    elif field.verdict == "unverified":
        case.result = Skipped(clean(f"unverified: {field.note}" if field.note else "unverified"))
    return case


def clean(text: str) -> str:
    """Return a text without characters that XML cannot hold: each becomes U+FFFD."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
