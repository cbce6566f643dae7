"""`provision doctor`: examine this machine, or a recorded one, layer by layer, beside what shall run on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from provisioner.cli.options import FormatOption, MatrixOption, OutputFormat, StrictOption
from provisioner.errors import EXIT_CODES

WantedArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[LOCK]",
        readable=False,
        help="What shall run: a lock, a folder with one lock, or a spec; default: what is here.",
    ),
]

OneHostOption = Annotated[
    Path | None,
    typer.Option(
        "--host", metavar="FILE", readable=False, help="A recorded host profile, or INVENTORY#NAME, instead of this machine."
    ),
]

RootOption = Annotated[
    Path | None, typer.Option("--root", metavar="DIR", help="A saved tree, or a mounted machine, instead of this one.")
]

PythonOption = Annotated[
    Path | None,
    typer.Option(
        "--python", metavar="FILE", help="The interpreter of the environment to look at; default: the one that is active."
    ),
]


def doctor(
    wanted: WantedArgument = None,
    host: OneHostOption = None,
    root: RootOption = None,
    python: PythonOption = None,
    *,
    strict: StrictOption = False,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say layer by layer what is found, what is wanted, and what to do, from GPU and kernel to framework and packages.

    Works offline and needs no root. Without LOCK it judges whether what is installed goes together.
    """
    from provisioner.cli.display import json_data, step, warn
    from provisioner.cli.doctor_report import examination_data, tell
    from provisioner.words.remark import remark_words
    from provisioner.workflow.examining import examine_machine

    with step("Examining"):
        found = examine_machine(wanted, host=host, root=root, python=python, matrix=matrix, is_strict=strict)
    for remark in found.examination.remarks:
        warn(remark_words(remark))
    if format is OutputFormat.JSON:
        json_data(examination_data(found))
    else:
        tell(found)
    return EXIT_CODES[found.examination.verdict]
