"""Findings as SARIF 2.1.0, which code scanning of GitHub, Azure DevOps and editors read.

Source: docs.oasis-open.org/sarif/sarif/v2.1.0, and "SARIF support for code scanning" of docs.github.com for what is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from provisioner import __version__
from provisioner.cli.display import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.cli.check_formats.remark import Environment, Remark

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "no": "error", "unverified": "warning", "warning": "note"}


def text(environments: Sequence[Environment]) -> str:
    """Return one run with a result for each remark, and a rule for each code; nothing in it depends on time or machine."""
    remarks = [remark for one in environments for remark in one.remarks]
    codes = sorted({remark.code for remark in remarks})
    driver = {"name": "provision", "version": __version__, "rules": [_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the root of the repository"}}},
        "results": [_result(remark, codes.index(remark.code)) for remark in remarks],
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, is_ascii=True)


def _rule(code: str) -> dict[str, object]:
    return {"id": code, "shortDescription": {"text": code.replace("-", " ").capitalize()}}


def _result(remark: Remark, rule: int) -> dict[str, object]:
    location = {
        "artifactLocation": {"uri": quote(remark.file), "uriBaseId": "SRCROOT"},
        "region": {"startLine": remark.line, "startColumn": remark.column},
    }
    return {
        "ruleId": remark.code,
        "ruleIndex": rule,
        "level": _LEVELS[remark.level],
        "message": {"text": "\n".join((remark.text, *remark.more))},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"provision/v1": remark.fingerprint},
    }
