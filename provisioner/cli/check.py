"""`provision check`: check locks and the files rendered from them, and preview what solving again would change."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.display import Paint
from provisioner.cli.options import (
    ExcludeNewerOption,
    FormatOption,
    HostOption,
    MatrixOption,
    OfflineOption,
    OutputFormat,
    StrictOption,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.cli.display import Line
    from provisioner.grounds.finding import Finding
    from provisioner.workflow.checking import Report

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", readable=False, help="Locks, or folders that hold some; default: this folder."),
]

ChangesOption = Annotated[
    bool,
    typer.Option(
        "--changes", help="Ask the indexes as well: what solving again would change, and why; with --offline, the cache."
    ),
]

FilesOption = Annotated[
    bool,
    typer.Option(
        "--files", help="Read what is in every locked wheel as well: do two of them write the same file? Nothing is downloaded."
    ),
]

EvidenceOption = Annotated[
    int | None,
    typer.Option(
        "--require-evidence",
        metavar="LEVEL",
        min=0,
        max=5,
        help="Refuse a lock without evidence beside it that this level of `provision validate`, or a higher one, was a yes.",
    ),
]

EXIT_CODES = {"yes": 0, "no": 1, "unverified": 3}

PAINTS = {"error": Paint.BAD, "no": Paint.BAD, "unverified": Paint.UNSURE, "warning": Paint.UNSURE, "yes": Paint.GOOD}

SEVERITY = (0, 3, 1, 2)
"""The exit codes of several locks, from best to worst; the worst becomes the exit code of the command.

Bad input (2) ranks last: a file that cannot be read gives no answer at all and must be corrected first.
"""


def check(
    paths: PathsArgument = None,
    host: HostOption = None,
    *,
    changes: ChangesOption = False,
    files: FilesOption = False,
    require_evidence: EvidenceOption = None,
    offline: OfflineOption = False,
    exclude_newer: ExcludeNewerOption = None,
    strict: StrictOption = False,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say whether locks and rendered files still hold; works offline, unless --changes asks what solving again would change."""
    from provisioner.cli.display import json_data, step, warn
    from provisioner.words.notice import notice_words
    from provisioner.workflow.checking import Question, check_lock, locks_in, worst
    from provisioner.workflow.progress import Progress

    question = Question(
        hosts=tuple(host or ()),
        matrix=matrix,
        exclude_newer=exclude_newer,
        asks_changes=changes,
        reads_wheels=files,
        required_level=require_evidence,
        is_offline=offline,
        is_strict=strict,
    )
    progress = Progress()
    with step("Checking", progress.__str__):
        reports = [check_lock(path, question, progress) for path in locks_in(paths or [Path()])]
    _raise_if_all_failed(reports)
    for notice in dict.fromkeys(notice for one in reports if one.preview is not None for notice in one.preview.notices):
        warn(notice_words(notice))
    overall = worst([report.verdict for report in reports])
    if format is OutputFormat.JSON:
        locks = [{"lock": str(report.path), **_as_json(report)} for report in reports]
        json_data({"status": "checked", "verdict": overall, "locks": locks})
    else:
        _tell(reports)
    errors = [report.error.exit_code for report in reports if report.error is not None]
    return max(errors, key=SEVERITY.index) if errors else EXIT_CODES[overall]


def _raise_if_all_failed(reports: Sequence[Report]) -> None:
    """If every lock failed with the same error, such as a missing matrix, and has no finding, raise this error once for all."""
    from provisioner.cli.display import failure_data

    errors = {str(failure_data(report.error)): report.error for report in reports if report.error is not None}
    if len(errors) == 1 and all(report.error is not None and not report.findings for report in reports):
        raise next(iter(errors.values()))


def _as_json(result: Report) -> dict[str, object]:
    from provisioner.cli.display import failure_data

    findings = [finding_data(finding, result.path) for finding in result.findings]
    report: dict[str, object] = {"verdict": result.verdict, "findings": findings}
    if result.error is not None:
        report["error"] = {key: value for key, value in failure_data(result.error).items() if key != "status"}
    if result.preview is not None:
        from provisioner.cli.changes_report import preview_data

        report["changes"] = preview_data(result.preview)
    return report


def finding_data(finding: Finding, lock: Path) -> dict[str, object]:
    """Return a finding as JSON: its text and its fields; `where` is the file and line it is about, else the path `lock`."""
    from msgspec import to_builtins

    from provisioner.grounds.finding import AboutEvidence, Contradiction, EditedOutput, evidence_fields, finding_fields
    from provisioner.words.finding import command_words, finding_details, finding_hints, finding_words

    if isinstance(finding, AboutEvidence):
        where, more = finding.file, evidence_fields(finding)
    else:
        is_placed = isinstance(finding, Contradiction | EditedOutput) and finding.place is not None
        where, more = str(finding.place if is_placed else lock), {}
    return {
        "code": finding.code,
        "verdict": finding.verdict,
        "text": finding_words(finding),
        "where": where,
        "details": list(finding_details(finding)),
        "hints": list(finding_hints(finding)),
        **to_builtins(finding_fields(finding)),
        **more,
        "command": command_words(finding.command) if finding.command is not None else "",
    }


def _tell(reports: Sequence[Report]) -> None:
    """Print each lock with its verdict and its findings, the worst finding of the lock first."""
    from provisioner.cli.display import Line, report, verdict_line
    from provisioner.workflow.checking import VERDICTS

    if len(reports) > 1:
        overall = next(verdict for verdict in VERDICTS if any(one.verdict == verdict for one in reports))
        counts = [(sum(one.verdict == verdict for one in reports), verdict) for verdict in VERDICTS]
        verdict_counts = ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
        report([verdict_line("no" if overall == "error" else overall, f"{len(reports)} locks: {verdict_counts}"), Line("")])
    for result in reports:
        report([Line(result.verdict, f"{result.path}:", text_paint=PAINTS[result.verdict]), *_details(result)])


def _details(result: Report) -> Iterator[Line]:
    from provisioner.cli.display import Line
    from provisioner.words.finding import command_words, finding_details, finding_hints, finding_words
    from provisioner.workflow.checking import VERDICTS

    if result.error is not None:
        yield Line(f"{result.error.message}  [{result.error.code}]", "error:", Paint.BAD, 2)
        yield from (Line(detail, indent=4) for detail in result.error.causes)
        yield from (Line(hint, "hint:", Paint.NEXT, 4) for hint in result.error.hints)
    findings: dict[tuple[object, ...], Finding] = {}  # once for all platforms
    for finding in result.findings:
        texts = finding_words(finding), finding_details(finding), finding_hints(finding)
        findings.setdefault((finding.code, *texts, finding.command), finding)
    commands: dict[str, None] = {}
    for finding in sorted(findings.values(), key=lambda one: VERDICTS.index(one.verdict)):
        hints = finding_hints(finding)
        yield Line(f"{finding_words(finding)}  [{finding.code}]", f"{finding.verdict}:", PAINTS[finding.verdict], 2)
        yield from (Line(detail, indent=4) for detail in finding_details(finding))
        yield from (Line(hint, "hint:", Paint.NEXT, 4) for hint in hints)
        if finding.command is not None and not hints:
            commands[command_words(finding.command)] = None
    if result.preview is not None:
        from provisioner.cli.changes_report import preview_lines

        yield from (Line(line, indent=2) for line in preview_lines(result.preview))
    for command in commands:
        folder = result.path.parent
        yield Line(command if folder == Path() else f"cd {quote(str(folder))} && {command}", "next:", Paint.NEXT, 2)
