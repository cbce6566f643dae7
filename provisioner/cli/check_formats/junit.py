"""Findings as JUnit XML, which the test dashboards of CI systems show.

There is no official schema; what is written here is the part on which Jenkins, GitLab and GitHub's readers agree
(github.com/testmoapp/junitxml, read 2026-11-23).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from provisioner.evidence.junit import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.cli.check_formats.remark import Environment, Remark

_ELEMENTS = {"error": "error", "no": "failure", "unverified": "skipped"}


def text(environments: Sequence[Environment]) -> str:
    """Return a suite for each environment, with a case for each remark, or one that passed.

    An error is an error, a no a failure. What is unverified is skipped, with the reason: it is no pass. A warning passes, with
    its text as output.
    """
    root = ET.Element("testsuites", name="provision check")
    for one in environments:
        levels = [remark.level for remark in one.remarks]
        suite = ET.SubElement(root, "testsuite", name=clean(one.path), tests=str(max(1, len(levels))))
        for name, element in (("failures", "no"), ("errors", "error"), ("skipped", "unverified")):
            suite.set(name, str(levels.count(element)))  # type: ignore[arg-type]  # a level
        for remark in one.remarks:
            _add(suite, one, remark)
        if not one.remarks:
            ET.SubElement(suite, "testcase", classname=clean(one.path), name="holds")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add(suite: ET.Element, one: Environment, remark: Remark) -> None:
    place = {"file": clean(remark.file), "line": str(remark.line)}
    case = ET.SubElement(suite, "testcase", place, classname=clean(one.path), name=clean(f"{remark.code}: {remark.text}"))
    at = f"{remark.file}:{remark.line}:{remark.column}"
    body = clean("\n".join((f"{at}: {remark.text}", *remark.more)))
    if remark.level == "warning":
        ET.SubElement(case, "system-out").text = body
        return
    ET.SubElement(case, _ELEMENTS[remark.level], message=clean(remark.text), type=remark.code).text = body
