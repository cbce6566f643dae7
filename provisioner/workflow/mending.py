"""Render again what is merely stale: files that are missing, or that have the hash of their content in their header.

A file without that hash, or with another, may have been edited by hand. It is left alone, and so is everything beside a lock
that no longer holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import read_text, write_together
from provisioner.grounds.finding import EditedOutput, MissingOutput
from provisioner.lock.format.file import KIND, parse_lock
from provisioner.render import render
from provisioner.render.helper import helper_files

if TYPE_CHECKING:
    from provisioner.lock.format.model import Lock
    from provisioner.workflow.checking import Report


class Mended(Struct, frozen=True, kw_only=True):
    """The files that were `written`, and the findings left for a person: files that may have been edited by hand."""

    written: tuple[Path, ...] = ()
    left: tuple[EditedOutput, ...] = ()


def mend(report: Report) -> Mended:
    """Write the rendered files of a lock that holds, if they are missing or merely stale.

    The files of one lock are written together or not at all. Raises `FileError` when they cannot be written.
    """
    outputs = tuple(one for one in report.findings if isinstance(one, MissingOutput))
    others = [one for one in report.findings if not isinstance(one, MissingOutput) and one.verdict == "no"]
    if not outputs or others or report.error is not None:
        return Mended()
    lock = parse_lock(read_text(report.path, kind=KIND), file=str(report.path))
    wanted: dict[Path, bytes] = {}
    left = []
    for finding in outputs:
        file = Path(finding.file)
        if isinstance(finding, EditedOutput) and not finding.is_unedited:
            left.append(finding)
        else:
            wanted[file] = _files(lock, finding, report.path)[file]
    write_together(wanted)
    return Mended(written=tuple(wanted), left=tuple(left))


def _files(lock: Lock, finding: MissingOutput, lock_path: Path) -> dict[Path, bytes]:
    """Return the rendered file of a finding, and the helper files beside the lock that it uses."""
    text = render(lock, finding.output, lock_file_name=lock_path.name)
    helpers = {lock_path.parent / name: helper.encode() for name, helper in helper_files(finding.output, text).items()}
    return {Path(finding.helped or finding.file): text.encode(), **helpers}
