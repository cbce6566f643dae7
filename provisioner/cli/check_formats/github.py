"""Findings as workflow commands of GitHub Actions, which annotate lines of a pull request.

Source of commands and escapes: docs.github.com, "Workflow commands for GitHub Actions", and `packages/core/src/command.ts` of
actions/toolkit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.cli.display import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.cli.check_formats.remark import Environment, Remark

_COMMANDS = {"error": "error", "no": "error", "unverified": "warning", "warning": "notice"}


def text(environments: Sequence[Environment]) -> str:
    """Return one command for each remark, and a last line that counts the environments by verdict."""
    lines = [_command(remark) for one in environments for remark in one.remarks]
    count = len(environments)
    good = sum(one.verdict == "yes" for one in environments)
    lines.append(f"provision check: {good} of {count} environment{'' if count == 1 else 's'} hold{'s' if good == 1 else ''}")
    return "\n".join(lines)


def _command(remark: Remark) -> str:
    properties = {
        "file": remark.file,
        "line": str(remark.line),
        "col": str(remark.column),
        "title": f"provision: {remark.code}",
    }
    words = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[remark.level]} {words}::{_data(chr(10).join((remark.text, *remark.more)))}"


def _data(value: str) -> str:
    return shown(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
