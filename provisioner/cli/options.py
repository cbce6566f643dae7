"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class OutputFormat(StrEnum):
    """The output format of a command: text for people, or one JSON document for programs."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[OutputFormat, typer.Option("--format", help="Report as text for people or as JSON for programs.")]

# `readable=False`, here and wherever a path is given: `provisioner.document` has the message about an unreadable file.
SpecArgument = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC", readable=False, help="The request: a provision.yaml, a pyproject.toml, or a requirements.txt."
    ),
]

SpecsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[SPEC]...",
        readable=False,
        help="Requests: a provision.yaml, a pyproject.toml, a requirements.txt, or a folder of specs.",
    ),
]

WithOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="REQUIREMENT",
        help="A package to solve for, such as vllm or 'numpy>=2'; give it several times. Without SPEC and provision.yaml it "
        "needs no file, and is for this machine or --host; beside a spec nothing is written.",
    ),
]

HostOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--host",
        metavar="FILE",
        readable=False,
        help="A host profile, or INVENTORY#NAME for one host of many; give it several times to fit all of them at once.",
    ),
]

TargetsOption = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="NAME", help="Of a spec with several targets, this one; give it several times."),
]

TargetOption = Annotated[
    str | None, typer.Option("--target", metavar="NAME", help="Of a spec with several targets, the one that is meant.")
]

OfflineOption = Annotated[bool, typer.Option("--offline", help="Use only what is cached; never open a connection.")]

OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", file_okay=False, help="Write here instead of beside the spec.")
]

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")]

StackOnlyOption = Annotated[bool, typer.Option("--stack-only", help="Solve the system stack only; no package index is needed.")]

UpgradeOption = Annotated[bool, typer.Option("--upgrade", help="Prefer newer versions over the locked ones.")]

UpgradePackageOption = Annotated[
    list[str] | None,
    typer.Option(
        "--upgrade-package",
        metavar="NAME",
        help="Let this package or component move (NAME, or NAME==VERSION); the others stay as locked.",
    ),
]

ExcludeNewerOption = Annotated[
    str | None,
    typer.Option("--exclude-newer", metavar="DATE", help="Ignore files uploaded after this day, such as 2026-09-01."),
]

StrictOption = Annotated[
    bool, typer.Option("--strict", help="Take nothing for granted: each assumption is unverified, an unpinned image an error.")
]

MatrixOption = Annotated[
    Path | None,
    typer.Option("--matrix", metavar="DIR", help="Read the matrix from here instead of the one that is shipped."),
]

DEFAULT_SPEC = Path("provision.yaml")
"""The spec that a command reads if its argument SPEC is omitted."""
