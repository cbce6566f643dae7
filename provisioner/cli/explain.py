"""`provision explain`: why this version and not a newer one, or why nothing fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import DEFAULT_SPEC, FormatOption, HostOption, MatrixOption, OutputFormat, SpecArgument

if TYPE_CHECKING:
    from provisioner.solve.why import Why

ComponentArgument = Annotated[
    str | None, typer.Argument(metavar="COMPONENT", help="A component of the stack, such as pytorch; default: all of them.")
]


def explain(
    spec: SpecArgument = DEFAULT_SPEC,
    component: ComponentArgument = None,
    host: HostOption = None,
    *,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say why this version and not a newer one, or why nothing fits."""
    from provisioner.cli import report
    from provisioner.cli.display import data, failure, json_data, table
    from provisioner.cli.inputs import read_inputs
    from provisioner.solve.explain import stack_rows
    from provisioner.solve.joint import NoStackError, solve_system
    from provisioner.solve.problem import join
    from provisioner.solve.why import why_not_newer

    if component is None and spec != DEFAULT_SPEC and not spec.exists() and DEFAULT_SPEC.exists() and not spec.suffix:
        spec, component = DEFAULT_SPEC, str(spec)  # `provision explain pytorch`: both are optional
    inputs = read_inputs(spec, hosts=host, matrix=matrix)
    problem = join(inputs.matrix, inputs.wish(inputs.platforms[0]))
    try:
        stack = solve_system(problem)
    except NoStackError as error:
        if format is OutputFormat.JSON:
            json_data(report.no_stack(error.conflict))
        failure(error)
        return error.exit_code
    if component is None:
        if format is OutputFormat.JSON:
            json_data(report.solved([stack], []))
        else:
            table(("component", "chosen", "because"), stack_rows(stack))
        return 0
    why = why_not_newer(problem, component)
    if format is OutputFormat.JSON:
        json_data({"status": "solved", **report.why(why)})
    else:
        data("\n".join(_lines(why)))
    return 0


def _lines(why: Why) -> list[str]:
    from provisioner.solve.explain import conflict_lines, hint_line

    lines = [f"{why.component} {why.chosen} is chosen"]
    lines.extend(f"  {text}" for text in why.reasons)
    if why.newer is None:
        return [*lines, "nothing newer is known to the matrix"]
    lines.append(f"not {why.component} {why.newer}, because these cannot hold together:")
    assert why.conflict is not None
    lines.extend(f"  {line}" for line in conflict_lines(why.conflict))
    lines.extend(f"hint: {hint_line(hint)}" for hint in why.conflict.hints)
    return lines
