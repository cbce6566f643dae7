"""Write the reports that `provision check` was asked for by `--format` and `--report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provisioner.cli.check_formats import NAMES
from provisioner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provisioner.workflow.checking import Report


def reports_asked(words: Iterable[str]) -> dict[Path, str]:
    """Return the format of each file that was asked for as `FORMAT=FILE`; raises `UsageError` that names every mistake."""
    found: dict[Path, str] = {}
    mistakes = []
    for word in words:
        name, _, file = word.partition("=")
        path = Path(file)
        if name not in NAMES or not file:
            mistakes.append(f"`--report {word}` is not FORMAT=FILE")
        elif path in found:
            mistakes.append(f"`--report {word}` names a file for a second time")
        else:
            found[path] = name
    if mistakes:
        hints = (f"formats are {', '.join(NAMES)}: --report {NAMES[0]}=check.{NAMES[0]}",)
        raise UsageError(mistakes[0], causes=tuple(mistakes[1:]), hints=hints)
    return found


def report_text(name: str, reports: Sequence[Report]) -> str:
    """Return the reports on some environments in the format `name`, without logins and control characters."""
    from provisioner.cli.check_formats import formatted
    from provisioner.cli.check_formats.remark import environments_of
    from provisioner.cli.display import shown

    return shown(formatted(name, environments_of(reports)))


def write_reports(asked: Mapping[Path, str], reports: Sequence[Report]) -> None:
    """Write each file that was asked for; raises `FileError` if one cannot be written."""
    from provisioner.document import write_text

    for path, name in asked.items():
        write_text(path, f"{report_text(name, reports).rstrip()}\n")
