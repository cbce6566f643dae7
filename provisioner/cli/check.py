"""`provision check`: check locks and the files rendered from them, and preview what solving again would change."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.display import Paint
from provisioner.cli.options import (  # noqa: TC001 - Typer reads the annotations
    ExcludeNewerOption,
    HostOption,
    MatrixOption,
    OfflineOption,
    StrictOption,
)
from provisioner.errors import EXIT_CODES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from provisioner.cli.check_formats.remark import Said
    from provisioner.cli.display import Line
    from provisioner.grounds.finding import Finding
    from provisioner.workflow.checking import Report
    from provisioner.workflow.mending import Mended


class CheckFormat(StrEnum):
    """An output format of a check: those of every command, and `check_formats.NAMES`."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"


PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH...",
        readable=False,
        help="Folders with environments below them; or locks, specs, hosts and rendered files; default: this folder.",
    ),
]

CheckFormatOption = Annotated[
    CheckFormat,
    typer.Option(
        "--format", help="Report as text for people, as JSON, or as a tool of CI reads it: lines of a change are annotated."
    ),
]

ReportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="FORMAT=FILE",
        help="Write a report for a tool of CI as well, such as sarif=check.sarif; give it several times.",
    ),
]

FixOption = Annotated[
    bool,
    typer.Option("--fix", help="Render files again that are missing or merely stale; never what may be edited by hand."),
]

HostsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--hosts",
        metavar="PATH",
        readable=False,
        help="An inventory: which of its hosts do the locks, as they are now, not run on?",
    ),
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

PAINTS = {"error": Paint.BAD, "no": Paint.BAD, "unverified": Paint.UNSURE, "warning": Paint.UNSURE, "yes": Paint.GOOD}

_LISTED = 3
"""How many of the locks that share a warning, and of the files that are left alone, are named."""

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
    fix: FixOption = False,
    hosts: HostsOption = None,
    format: CheckFormatOption = CheckFormat.TEXT,  # noqa: A002 - the option is called --format
    report: ReportOption = None,
) -> int:
    """Say whether locks and rendered files still hold; works offline, unless --changes asks what solving again would change."""
    from provisioner.cli.check_formats.asked import reports_asked, write_reports
    from provisioner.cli.display import commands, data, json_data, step, talk, warn
    from provisioner.processes import processors
    from provisioner.words.notice import notice_words
    from provisioner.workflow.checking import Question, worst
    from provisioner.workflow.mending import mend
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.repository import check_repository, with_stranded

    asked = reports_asked(report or ())
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
    with step("Checking", (progress := Progress()).__str__):
        checked = check_repository(paths or [Path()], question, progress, processes=processors())
        reports = checked.reports
        if fix:
            fixed = {report.path: mend(report) for report in reports}
            again = [path for path, one in fixed.items() if one.written]
            if again:
                anew = {one.path: one for one in check_repository(again, question, progress).reports}
                reports = tuple(anew.get(report.path, report) for report in reports)
        if hosts:
            reports = with_stranded(reports, hosts, checked.matrix)
    write_reports(asked, reports)
    if format in {CheckFormat.TEXT, CheckFormat.JSON}:  # other formats say at which line an error stands
        _raise_if_all_failed(reports)
    for path in checked.skipped:
        talk(f"{path} belongs to no environment, so it is skipped")
    for notice in dict.fromkeys(notice for one in reports if one.preview is not None for notice in one.preview.notices):
        warn(notice_words(notice))
    if fix:
        _tell_fixed(fixed.values())
    overall = worst([report.verdict for report in reports])
    if format is CheckFormat.JSON:
        locks = [{_kind(report): str(report.path), **_as_json(report)} for report in reports]
        json_data({"status": "checked", "verdict": overall, "locks": locks})
    elif format is CheckFormat.TEXT:
        _tell(reports)
    else:
        from provisioner.cli.check_formats.asked import report_text

        (commands if format is CheckFormat.GITHUB else data)(report_text(format, reports))
    errors = [report.error.exit_code for report in reports if report.error is not None]
    return max(errors, key=SEVERITY.index) if errors else EXIT_CODES[overall]


def _kind(report: Report) -> str:
    """Return what the path of a report is: a lock, a spec without one, a rendered file without one, or no file at all."""
    from provisioner.grounds.finding import OrphanedOutput, UnsolvedSpec

    if report.error is not None and not report.path.exists():
        return "file"
    kinds = {UnsolvedSpec: "spec", OrphanedOutput: "file"}
    return next((kinds[type(one)] for one in report.findings if type(one) in kinds), "lock")


def _tell_fixed(fixed: Iterable[Mended]) -> None:
    """Say which files were rendered again, and which ones were left to a person."""
    from provisioner.cli.display import talk

    written = [str(file) for one in fixed for file in one.written]
    left = [finding.file for one in fixed for finding in one.left]
    if written:
        talk(f"rendered again: {', '.join(written)}")
    if left:
        talk(f"left alone, for it may be edited by hand: {_listed(left)}")
    if not written and not left:
        talk("there was nothing to render again")


def _raise_if_all_failed(reports: Sequence[Report]) -> None:
    """If every lock failed with the same error, such as a missing matrix, and has no finding, raise this error once for all."""
    from provisioner.cli.display import failure_data

    errors = {str(failure_data(report.error)): report.error for report in reports if report.error is not None}
    if len(errors) == 1 and all(report.error is not None and not report.findings for report in reports):
        raise next(iter(errors.values()))


def _as_json(result: Report) -> dict[str, object]:
    from provisioner.cli.display import failure_data

    findings = [
        {**finding_data(finding, result.path, spec=result.spec), "file": place.file, "line": place.line, "column": place.column}
        for finding, place in zip(result.findings, result.places, strict=True)
    ]
    report: dict[str, object] = {"verdict": result.verdict, "findings": findings}
    if result.error is not None:
        report["error"] = {key: value for key, value in failure_data(result.error).items() if key != "status"}
    if result.preview is not None:
        from provisioner.cli.changes_report import preview_data

        report["changes"] = preview_data(result.preview)
    return report


def finding_data(finding: Finding, lock: Path, *, spec: str = "") -> dict[str, object]:
    """Return a finding as JSON: its text and its fields; `where` is the file and line it is about, else the path `lock`.

    `spec` is the file that a command solves.
    """
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
        "hints": list(finding_hints(finding, spec=spec)),
        **to_builtins(finding_fields(finding)),
        **more,
        "command": command_words(finding.command, spec=spec) if finding.command is not None else "",
    }


def _tell(reports: Sequence[Report]) -> None:
    """Print what there is to say about locks, the worst lock and of each its worst finding first; of several, a summary first.

    A warning that several locks share is printed once, at the end.
    """
    from provisioner.cli.display import Line, report, verdict_line
    from provisioner.words.notation import counted, listed
    from provisioner.workflow.checking import VERDICTS

    if len(reports) > 1:
        overall = next(verdict for verdict in VERDICTS if any(one.verdict == verdict for one in reports))
        counts = [(sum(one.verdict == verdict for one in reports), verdict) for verdict in VERDICTS]
        verdict_counts = ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
        kinds = Counter(map(_kind, reports))
        nouns = listed([counted(kinds[kind], kind) for kind in ("lock", "spec", "file") if kinds[kind]])
        report([verdict_line("no" if overall == "error" else overall, f"{nouns}: {verdict_counts}")])
    if not reports:
        report([Line("nothing to check: none of these files belongs to an environment")])
    shared = _shared_warnings(reports)
    shown = []
    for result in sorted(reports, key=lambda one: VERDICTS.index(one.verdict)):
        details = list(_details(result, without=shared))
        if len(reports) == 1 or result.verdict != "yes" or details:
            shown.append([Line(result.verdict, f"{result.path}:", text_paint=PAINTS[result.verdict]), *details])
    if len(reports) > 1 and (shown or shared):
        report([Line("")])
    for lines in shown:
        report(lines)
    for said, paths in shared.items():
        report([*_of_finding(said, "warning"), Line(_listed(paths), "in", indent=2)])


def _shared_warnings(reports: Sequence[Report]) -> dict[Said, list[Path]]:
    """Return what several locks are warned of, with the paths of these locks."""
    from provisioner.cli.check_formats.remark import distinct

    found: dict[Said, list[Path]] = {}
    for result in reports:
        for finding, _, said in distinct(result):
            if finding.verdict == "warning":
                found.setdefault(said, []).append(result.path)
    return {said: paths for said, paths in found.items() if len(paths) > 1}


def _listed(paths: Sequence[Path | str]) -> str:
    """Return the first of some paths, and how many more there are."""
    first = ", ".join(str(path) for path in paths[:_LISTED])
    return first if len(paths) <= _LISTED else f"{first} and {len(paths) - _LISTED} more"


def _of_finding(said: Said, verdict: str, indent: int = 0) -> Iterator[Line]:
    from provisioner.cli.display import Line

    yield Line(f"{said.text}  [{said.code}]", f"{verdict}:", PAINTS[verdict], indent)
    yield from (Line(detail, indent=indent + 2) for detail in said.details)
    yield from (Line(hint, "hint:", Paint.NEXT, indent + 2) for hint in said.hints)


def _details(result: Report, *, without: Collection[Said] = ()) -> Iterator[Line]:
    """Yield the lines below the name of a lock, but not what is said elsewhere (`without`)."""
    from provisioner.cli.check_formats.remark import distinct, next_command
    from provisioner.cli.display import Line

    if result.error is not None:
        yield Line(f"{result.error.message}  [{result.error.code}]", "error:", Paint.BAD, 2)
        yield from (Line(detail, indent=4) for detail in result.error.causes)
        yield from (Line(hint, "hint:", Paint.NEXT, 4) for hint in result.error.hints)
    commands: dict[str, None] = {}
    for finding, _, said in distinct(result):
        if said in without:
            continue
        yield from _of_finding(said, finding.verdict, 2)
        if command := next_command(finding, result):
            commands[command] = None
    if result.preview is not None:
        from provisioner.cli.changes_report import preview_lines

        yield from (Line(line, indent=2) for line in preview_lines(result.preview))
    yield from (Line(command, "next:", Paint.NEXT, 2) for command in commands)
