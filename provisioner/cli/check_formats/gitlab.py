"""Findings as a Code Quality report of GitLab, which its merge requests show at the lines.

Source: docs.gitlab.com/ci/testing/code_quality, "Code Quality report format": required are description, check_name,
fingerprint, location and severity (info, minor, major, critical, blocker).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.display import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.cli.check_formats.remark import Environment

_SEVERITIES = {"error": "critical", "no": "major", "unverified": "minor", "warning": "info"}


def text(environments: Sequence[Environment]) -> str:
    """Return the remarks as one JSON list, `[]` when there is nothing to say."""
    found = [
        {
            "description": "\n".join((remark.text, *remark.more)),
            "check_name": f"provision/{remark.code}",
            "fingerprint": remark.fingerprint,
            "severity": _SEVERITIES[remark.level],
            "location": {"path": remark.file, "lines": {"begin": remark.line}},
        }
        for one in environments
        for remark in one.remarks
    ]
    return json_text(found, is_ascii=True)
