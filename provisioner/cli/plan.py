"""`provision plan`: the ordered steps from today's stack to the wanted one, and the hosts that cannot follow, with reasons."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import (
    DEFAULT_SPEC,
    ExcludeNewerOption,
    HostOption,
    MatrixOption,
    SpecArgument,
    StrictOption,
    TargetOption,
)
from provisioner.errors import EXIT_CODES, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.plan.model import Plan

ToOption = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="WANTED", help="A requirement laid over SPEC ('pytorch>=2.9'), another spec, or a lock."),
]
FromOption = Annotated[
    Path | None,
    typer.Option("--from", metavar="LOCK", readable=False, help="Today's lock; default: the one beside SPEC, if there is any."),
]
HostsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--hosts",
        metavar="PATH",
        readable=False,
        help="An inventory: profiles, a .csv, nodes of kubectl, scontrol or sinfo, Ansible's.",
    ),
]
KeepOption = Annotated[
    list[str] | None, typer.Option("--keep", metavar="NAME", help="Leave this as it is on every host: driver, kernel, ….")
]
MayChangeOption = Annotated[
    list[str] | None, typer.Option("--may-change", metavar="NAME", help="Allow this to change too: os (its release).")
]


FilesOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Write the plan of each host here too, as Markdown: HOST.md.")
]


class PlanFormat(StrEnum):
    """An output format of a plan: those of every command, and a comment on a pull or merge request."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


PlanFormatOption = Annotated[
    PlanFormat,
    typer.Option("--format", help="Report as text for people, as JSON for programs, or as Markdown for a merge request."),
]


def plan(
    spec: SpecArgument = DEFAULT_SPEC,
    to: ToOption = None,
    lock: FromOption = None,
    host: HostOption = None,
    *,
    hosts: HostsOption = None,
    target: TargetOption = None,
    keep: KeepOption = None,
    may_change: MayChangeOption = None,
    out: FilesOption = None,
    exclude_newer: ExcludeNewerOption = None,
    matrix: MatrixOption = None,
    strict: StrictOption = False,
    format: PlanFormatOption = PlanFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say in which order hosts get from today's stack to the wanted one, and which of them cannot."""
    from provisioner.cli.display import data, json_data, shown, step, talk, warn
    from provisioner.cli.plan_inputs import package_changes, questions, read_going, read_hosts, read_today, with_changes
    from provisioner.cli.plan_report import plan_data, verdict_of
    from provisioner.plan.planner import make_plan
    from provisioner.workflow.inputs import read_inputs

    if host and hosts:
        raise UsageError("--host and --hosts cannot be given together", hints=("put the profile into the inventory",))
    inputs = read_inputs(spec, hosts=host, exclude_newer=exclude_newer, matrix=matrix, target=target)
    going = read_going(to or (), inputs, is_strict=strict)
    for text in going.packages:
        told = f"--to `{text}` was not weighed: a plan orders components, not packages"
        warn(f"{told}; `provision solve`, then --to LOCK, weighs both")
    today = read_today(spec, inputs, lock)
    requests = questions(inputs, going, lock=today, hosts=read_hosts(inputs, hosts))
    with step("Planning"):
        plans = [make_plan(inputs.matrix, with_changes(one, keep=keep, may_change=may_change)) for one in requests]
    packages = package_changes(today[0], going.lock, plans[0].platform)
    if out is not None:
        from provisioner.cli.plan_markdown import host_files
        from provisioner.document import write_together

        files = host_files(plans)
        write_together({out / name: shown(text).encode() for name, text in files.items()})
        talk(f"wrote {len(files)} file{'' if len(files) == 1 else 's'} to {out}")
    if format is PlanFormat.JSON:
        json_data(plan_data(plans, packages))
    elif format is PlanFormat.MARKDOWN:
        from provisioner.cli.plan_markdown import plan_markdown

        data(plan_markdown(plans, packages))
    else:
        _tell(plans, packages)
    return EXIT_CODES[verdict_of(plans)]


def _tell(plans: Sequence[Plan], packages: Sequence[tuple[str, str, str]]) -> None:
    from provisioner.cli.display import Line, report, table, wants_details
    from provisioner.cli.plan_report import COLUMNS, plan_head, plan_lines, plan_rows

    report(plan_head(plans, packages))
    if sum(len(one.hosts) for one in plans) > 1:
        report([Line("")])
        table(COLUMNS, plan_rows(plans))
    report(plan_lines(plans))
    if not wants_details() and any(step.details for plan in plans for one in plan.hosts for step in one.steps):
        report([Line(""), Line("-v tells how each step is done, checked and undone")])
