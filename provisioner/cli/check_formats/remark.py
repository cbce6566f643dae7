"""Findings and errors of a check as remarks: a level, a text, a place in the repository, and a fingerprint that stays.

Every format for other programs is written from remarks alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from provisioner.document import Position
from provisioner.errors import InvalidDocumentError
from provisioner.grounds.finding import StaleStack, finding_fields
from provisioner.words.finding import command_words, finding_details, finding_hints, finding_words
from provisioner.workflow.git import work_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.errors import ProvisionError
    from provisioner.grounds.finding import Finding
    from provisioner.workflow.checking import Report

Level = Literal["error", "no", "unverified", "warning"]


class Remark(Struct, frozen=True, kw_only=True):
    """One thing to say about an environment: its code, text, the lines below it, and the place.

    `file` is relative to the root of the work tree of git, else to the working directory, with forward slashes; line and column
    are counted from 1. `fingerprint` depends neither on the line nor on the wording, so that a remark is known again.
    """

    level: Level
    code: str
    text: str
    more: tuple[str, ...]
    file: str
    line: int
    column: int
    fingerprint: str


class Environment(Struct, frozen=True, kw_only=True):
    """One environment, by the path of its lock, or of its spec if it has no lock, and what there is to say about it."""

    path: str
    verdict: str
    remarks: tuple[Remark, ...]


def environments_of(reports: Sequence[Report]) -> tuple[Environment, ...]:
    """Return reports as environments with remarks, without findings that answer yes."""
    root = work_tree(Path()) or Path.cwd()
    seen: dict[str, int] = {}
    return tuple(
        Environment(
            path=_relative(report.path, root),
            verdict=report.verdict,
            remarks=tuple(_counted(remark, seen) for remark in _remarks(report, root)),
        )
        for report in reports
    )


class Said(NamedTuple):
    """What is said of a finding: its code, its text, and the lines below that, details and hints."""

    code: str
    text: str
    details: tuple[str, ...]
    hints: tuple[str, ...]


def distinct(report: Report) -> Iterator[tuple[Finding, Position, Said]]:
    """Yield the findings of a report with their places and what is said of them, the worst first, once for all platforms."""
    from provisioner.workflow.checking import VERDICTS

    found: dict[tuple[object, ...], tuple[Finding, Position, Said]] = {}
    for finding, place in zip(report.findings, report.places, strict=True):
        hints = tuple(finding_hints(finding, spec=report.spec))
        said = Said(finding.code, finding_words(finding), tuple(finding_details(finding)), hints)
        found.setdefault((said, finding.command), (finding, place, said))
    yield from sorted(found.values(), key=lambda one: VERDICTS.index(one[0].verdict))


def next_command(finding: Finding, report: Report) -> str:
    """Return the command to run next for a finding; "" where a hint says what to do.

    A stale lock of which the system half has an answer can be solved again, whatever else the hints propose.
    """
    if finding.command is None:
        return ""
    can_solve = isinstance(finding, StaleStack) and report.preview is not None
    is_next = can_solve or not finding_hints(finding, spec=report.spec)
    return command_words(finding.command, spec=report.spec) if is_next else ""


def _remarks(report: Report, root: Path) -> Iterator[Remark]:
    lock = _relative(report.path, root)
    if report.error is not None:
        yield from _of_error(report.error, report, root)
    for finding, place, said in distinct(report):
        if finding.verdict == "yes":
            continue
        more = (*said.details, *said.hints)
        if command := next_command(finding, report):
            more = (*more, command)
        fields = finding_fields(finding)
        yield Remark(
            level=finding.verdict,  # type: ignore[arg-type]  # a class variable of each finding
            code=finding.code,
            text=said.text,
            more=more,
            file=_relative(Path(place.file), root),
            line=place.line,
            column=place.column,
            fingerprint=_hash(finding.code, lock, fields.type, fields.subject, fields.object, *fields.ranges),
        )


def _of_error(error: ProvisionError, report: Report, root: Path) -> Iterator[Remark]:
    """Yield a remark for each mistake in a file, or one for any other error."""
    lock = _relative(report.path, root)
    places = [(Position(1, 1, str(report.path)), error.message, error.causes, "")]
    if isinstance(error, InvalidDocumentError):
        places = [
            (Position(one.line, one.column, one.file), str(one.text), (), f"{one.path} {one.text}") for one in error.mistakes
        ]
    for place, text, causes, about in places:
        yield Remark(
            level="error",
            code=error.code,
            text=text,
            more=(*causes, *error.hints),
            file=_relative(Path(place.file), root),
            line=place.line,
            column=place.column,
            fingerprint=_hash(error.code, lock, about or text),
        )


def _relative(path: Path, root: Path) -> str:
    return Path(os.path.relpath(path, root)).as_posix()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _counted(remark: Remark, seen: dict[str, int]) -> Remark:
    """Return a remark whose fingerprint no earlier one has: some findings differ in nothing but their lines."""
    number = seen[remark.fingerprint] = seen.get(remark.fingerprint, 0) + 1
    if number == 1:
        return remark
    return replace(remark, fingerprint=_hash(remark.fingerprint, str(number)))
