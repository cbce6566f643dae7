"""`provision diagnose`: an error log → cause → remedy, through the same matrix."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Annotated, TextIO, cast

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat, TargetOption
from provisioner.document import STDIN, told

LogArgument = Annotated[
    Path,
    typer.Argument(metavar="[LOG]", readable=False, help="A file, gzip too; `-`, the default, is stdin.", show_default=False),
]
HostOption = Annotated[
    str,
    typer.Option(
        "--host", metavar="FILE", help="The profile of the log's machine, or INVENTORY#NAME; `auto` for this machine."
    ),
]
LockOption = Annotated[
    Path | None, typer.Option("--lock", metavar="LOCK", readable=False, help="The lock that is to run: remedies fit it.")
]
SpecOption = Annotated[
    Path | None, typer.Option("--spec", metavar="SPEC", readable=False, help="The spec that is to be met: remedies fit it.")
]
LastOption = Annotated[int, typer.Option("--last", metavar="MB", min=1, help="Read this much of the end of a long log.")]


def diagnose(
    log: LogArgument = STDIN,
    *,
    host: HostOption = "",
    lock: LockOption = None,
    spec: SpecOption = None,
    target: TargetOption = None,
    last: LastOption = 16,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say what an error log means: the cause, and what to do.

    The root cause comes first, then what follows from it, other findings, and messages that are harmless.
    """
    from provisioner.cli.diagnose_report import diagnosis_data, diagnosis_lines
    from provisioner.cli.display import json_data, report, step
    from provisioner.cli.inspect import tell_remarks
    from provisioner.diagnose.diagnosis import EXIT_CODES
    from provisioner.workflow.diagnosing import Question, diagnose_log

    question = Question(host=host, lock=lock, spec=spec, target=target)
    with step("Diagnosing"):
        found = diagnose_log(_stdin() if log == STDIN else log, question, matrix=matrix, last=last * 2**20)
    if found.inspection is not None:
        tell_remarks(found.inspection)
    name = told(Path(log.name))
    if format is OutputFormat.JSON:
        json_data(diagnosis_data(found.diagnosis, found.matrix, name=name))
    else:
        report(diagnosis_lines(found.diagnosis, found.matrix, name=name))
    return EXIT_CODES[found.diagnosis.verdict]


def _stdin() -> IO[bytes]:
    from provisioner.errors import UsageError

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("no log is given", hints=("provision diagnose build.log", "dmesg | provision diagnose"))
    return cast("TextIO", sys.stdin).buffer
