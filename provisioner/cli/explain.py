"""`provision explain`: why this version and not a newer one, or why nothing fits."""

from __future__ import annotations

import sys
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
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.cli.inputs import Inputs
    from provisioner.solve.stack import Stack
    from provisioner.solve.why import Why

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


def explain(
    spec: SpecArgument = DEFAULT_SPEC,
    component: ComponentArgument = None,
    host: HostOption = None,
    *,
    platform: PlatformOption = None,
    target: TargetOption = None,
    stack_only: StackOnlyOption = False,
    offline: OfflineOption = False,
    diff: DiffOption = None,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say why this version and not a newer one, or why nothing fits; with --diff, what changed between two locks."""
    if diff is not None:
        from provisioner.cli.explain_diff import explain_diff

        return explain_diff(*diff, format)
    from provisioner.cli import report
    from provisioner.cli.display import failure, json_data
    from provisioner.cli.inputs import read_inputs
    from provisioner.solve.joint import NoStackError

    if component is None and spec != DEFAULT_SPEC and not spec.exists() and DEFAULT_SPEC.exists() and not spec.suffix:
        spec, component = DEFAULT_SPEC, str(spec)  # `provision explain pytorch`: both are optional
    inputs = read_inputs(spec, hosts=host, matrix=matrix, target=target)
    on = _platform(inputs, platform)
    try:
        if stack_only or not inputs.spec.packages:
            return _answer_system(inputs, on, component, format)
        return _answer_joint(inputs, on, component, format=format, is_offline=offline)
    except NoStackError as error:
        if format is OutputFormat.JSON:
            json_data(report.no_stack(error.conflict))
        failure(error)
        return error.exit_code


def _platform(inputs: Inputs, wanted: str | None) -> str:
    from provisioner.errors import UsageError

    if wanted is None:
        return inputs.platforms[0]
    if wanted not in inputs.platforms:
        raise UsageError(
            f"--platform `{wanted}` is not a platform of {inputs.document.file}",
            hints=(f"it has {', '.join(inputs.platforms)}",),
        )
    return wanted


def _answer_system(inputs: Inputs, platform: str, component: str | None, format: OutputFormat) -> int:  # noqa: A002
    """The system stack alone: nothing is asked of an index. Returns the exit code."""
    from provisioner.solve.joint import solve_system
    from provisioner.solve.problem import join
    from provisioner.solve.why import why

    problem = join(inputs.matrix, inputs.request(platform))
    if component is None:
        return _tell_stack(solve_system(problem), format)
    return _tell_component(inputs, why(problem, component), format)


def _answer_joint(
    inputs: Inputs,
    platform: str,
    component: str | None,
    *,
    format: OutputFormat,  # noqa: A002
    is_offline: bool,
) -> int:
    """System and packages as `solve` solves them, for a package may hold back what the system half alone would not.

    Returns the exit code.
    """
    from provisioner.cli.display import step
    from provisioner.cli.locking import Locking
    from provisioner.errors import UnavailableError
    from provisioner.solve.joint import solve_joint
    from provisioner.solve.why import why

    locking = Locking(inputs, inputs.path.parent, offline=is_offline, keep=set())
    try:
        problem = locking.problem(platform)
        with step("Solving", locking.progress):
            found = solve_joint(problem, locking.source) if component is None else why(problem, component, locking.source)
    except UnavailableError as error:
        # The system half alone may have another answer: it is not given in place of the whole one unless it is asked for.
        error.hints = (*error.hints, "--stack-only explains the system stack alone, without an index")
        raise
    finally:
        if not isinstance(sys.exception(), KeyboardInterrupt):  # who interrupts does not wait for requests under way
            locking.close()
    return _tell_component(inputs, found, format) if isinstance(found, tuple) else _tell_stack(found, format)


def _tell_stack(stack: Stack, format: OutputFormat) -> int:  # noqa: A002
    from provisioner.cli import report
    from provisioner.cli.display import json_data, table
    from provisioner.solve.explain.words import package_rows, stack_rows

    if format is OutputFormat.JSON:
        json_data(report.solved([stack], []))
    else:
        table(("component", "chosen", "because"), [*stack_rows(stack), *package_rows(stack)])
    return 0


def _tell_component(inputs: Inputs, whys: Sequence[Why], format: OutputFormat) -> int:  # noqa: A002
    """Tell why; 3 where it cannot be told whether the newest would work."""
    from provisioner.cli.display import data, json_data
    from provisioner.cli.why_report import why_data, why_lines
    from provisioner.errors import UnavailableError

    if format is OutputFormat.JSON:
        json_data({"status": "solved", **why_data(whys)})
    else:
        data("\n".join(why_lines(whys, names_platform=len(inputs.platforms) > 1)))
    return UnavailableError.exit_code if any(why.is_unknown for why in whys) else 0
