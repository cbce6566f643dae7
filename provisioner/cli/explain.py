"""`provision explain`: why a version was chosen and not a newer one, or why no stack fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import (
    DEFAULT_SPEC,
    FormatOption,
    HostOption,
    MatrixOption,
    OfflineOption,
    OutputFormat,
    SpecArgument,
    StackOnlyOption,
    TargetOption,
    WithOption,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.resolver.stack import Stack
    from provisioner.resolver.why import Why
    from provisioner.workflow.inputs import Inputs

ComponentArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="COMPONENT", help="A component of the stack or a package, such as pytorch or numpy; default: all of them."
    ),
]

PlatformOption = Annotated[
    str | None,
    typer.Option("--platform", metavar="PLATFORM", help="Of several platforms explain this one; default: the first."),
]

DiffOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option("--diff", metavar="OLD NEW", help="Say what changed from one lock to another, and why; nothing is solved."),
]

HtmlOption = Annotated[
    str,
    typer.Option("--html", metavar="FILE", help="Write the lock, explained, as a page to read, one file; - is stdout."),
]


def explain(
    spec: SpecArgument = DEFAULT_SPEC,
    component: ComponentArgument = None,
    host: HostOption = None,
    *,
    with_: WithOption = None,
    platform: PlatformOption = None,
    target: TargetOption = None,
    stack_only: StackOnlyOption = False,
    offline: OfflineOption = False,
    diff: DiffOption = None,
    html: HtmlOption = "",
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say why this version and not a newer one, or why nothing fits; with --diff, what changed between two locks."""
    if html:
        from provisioner.cli.explain_html import Wanted, explain_html

        _refuse_component(component)
        old, path = diff if diff is not None else (None, spec)
        wanted = Wanted(path=path, old=old, hosts=host or (), matrix=matrix, target=target, platform=platform)
        return explain_html(wanted, html, format)
    if diff is not None:
        from provisioner.cli.explain_diff import explain_diff

        return explain_diff(*diff, format)
    _refuse_lock(spec)
    from provisioner.cli import display, report
    from provisioner.cli.display import json_data
    from provisioner.cli.refusal import refusal
    from provisioner.resolver.joint import NoStackError
    from provisioner.spec.load import Asked
    from provisioner.workflow.inputs import platform_of, read_inputs

    has_default = DEFAULT_SPEC.exists()
    if component is None and spec != DEFAULT_SPEC and not spec.exists() and (has_default or with_) and not spec.suffix:
        spec, component = DEFAULT_SPEC, str(spec)  # `provision explain pytorch`: both are optional
    is_without_spec = bool(with_) and spec == DEFAULT_SPEC and not has_default
    inputs = read_inputs(
        Asked(path=None if is_without_spec else spec, packages=tuple(with_ or ())), hosts=host, matrix=matrix, target=target
    )
    on = platform_of(inputs, platform)
    try:
        if stack_only or not inputs.spec.packages:
            return _answer_system(inputs, on, component, format)
        return _answer_joint(inputs, on, component, format=format, is_offline=offline)
    except NoStackError as error:
        from provisioner.cli import why_report

        if format is OutputFormat.JSON:
            instead = {"instead": why_report.instead_data(error.instead)} if error.instead is not None else {}
            json_data({**report.no_stack(error.conflicts), **instead})
        refusal(error, inputs)
        if format is not OutputFormat.JSON and error.instead is not None:
            display.report(why_report.instead_lines(error.instead))
        return error.exit_code


def _refuse_lock(path: Path) -> None:
    """Raise `UsageError` if the spec is called like a lock."""
    from provisioner.cli.explain_html import is_lock
    from provisioner.errors import UsageError

    if is_lock(path):
        hints = (f"`provision explain {path} --html page.html` explains the lock", "or name the spec that it was solved from")
        raise UsageError(f"`{path}` is a lock, and `explain` without --html reads a spec", hints=hints)


def _refuse_component(component: str | None) -> None:
    """Raise `UsageError` if a component is named beside --html."""
    from provisioner.errors import UsageError

    if component is not None:
        hints = ("leave it out; each component has its part of the page",)
        raise UsageError(f"--html explains a whole lock, and `{component}` is a component", hints=hints)


def _answer_system(inputs: Inputs, platform: str, component: str | None, format: OutputFormat) -> int:  # noqa: A002
    """Explain the system stack without its packages, which needs no package index, and return the exit code."""
    from provisioner.workflow.system import explain_component, explain_stack

    if component is None:
        return _tell_stack(inputs, explain_stack(inputs, platform), format)
    return _tell_component(inputs, explain_component(inputs, platform, component), format)


def _answer_joint(
    inputs: Inputs,
    platform: str,
    component: str | None,
    *,
    format: OutputFormat,  # noqa: A002
    is_offline: bool,
) -> int:
    """Explain system and packages together, as `solve` chooses them, and return the exit code."""
    from provisioner.cli.display import step, warn
    from provisioner.words.notice import notice_words
    from provisioner.workflow.explaining import explain_joint_component, explain_joint_stack
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.session import Session
    from provisioner.workflow.solving import job_of

    job = job_of(inputs, inputs.path.parent / inputs.target, is_offline=is_offline)
    progress = Progress()
    session = Session(inputs, job.settings, progress)
    try:
        with session, step("Solving", progress.__str__):
            if component is None:
                stack = explain_joint_stack(job, platform, session)
            else:
                whys = explain_joint_component(job, platform, component, session=session)
    finally:
        for notice in (*job.notices, *session.notices):
            warn(notice_words(notice))
    return _tell_stack(inputs, stack, format) if component is None else _tell_component(inputs, whys, format)


def _tell_stack(inputs: Inputs, stack: Stack, format: OutputFormat) -> int:  # noqa: A002
    from provisioner.cli import report as json_report
    from provisioner.cli.check import PAINTS, finding_data
    from provisioner.cli.display import Line, json_data, report, table
    from provisioner.cli.stack_words import answer_lines, package_rows, stack_rows
    from provisioner.lock.format.file import lock_path
    from provisioner.words.finding import finding_words
    from provisioner.workflow.evidence import evidence_of

    lock = inputs.path.parent / inputs.target / lock_path(inputs.spec.name)
    findings = evidence_of(lock, stack.platform)
    if format is OutputFormat.JSON:
        evidence = {"evidence": [finding_data(one, lock) for one in findings]} if findings else {}
        json_data({**json_report.solved([stack], []), **evidence})
    else:
        told = [Line(finding_words(one), "evidence:", PAINTS[one.verdict], 2) for one in findings]
        report([*answer_lines(stack, inputs.spec), *told, Line("")])
        table(("component", "chosen", "because"), [*stack_rows(stack), *package_rows(stack)])
    return 0


def _tell_component(inputs: Inputs, whys: Sequence[Why], format: OutputFormat) -> int:  # noqa: A002
    """Print the explanations of one component; return 3 if it is unknown whether the newest version works, else 0."""
    from provisioner.cli.display import json_data, report
    from provisioner.cli.why_report import why_data, why_lines
    from provisioner.errors import UnavailableError

    if format is OutputFormat.JSON:
        json_data({"status": "solved", **why_data(whys)})
    else:
        report(why_lines(whys, names_platform=len(inputs.platforms) > 1))
    return UnavailableError.exit_code if any(why.is_unknown for why in whys) else 0
