"""`provision solve`: the main job: solve, lock, render, write."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from provisioner.cli.options import (
    DEFAULT_SPEC,
    DryRunOption,
    ExcludeNewerOption,
    FormatOption,
    HostOption,
    MatrixOption,
    OfflineOption,
    OutOption,
    OutputFormat,
    SpecArgument,
    StackOnlyOption,
    UpgradeOption,
    UpgradePackageOption,
)

if TYPE_CHECKING:
    from provisioner.cli.inputs import Inputs
    from provisioner.solve.stack import Stack


def solve(
    spec: SpecArgument = DEFAULT_SPEC,
    host: HostOption = None,
    *,
    dry_run: DryRunOption = False,
    stack_only: StackOnlyOption = False,
    offline: OfflineOption = False,
    upgrade: UpgradeOption = False,
    upgrade_package: UpgradePackageOption = None,
    exclude_newer: ExcludeNewerOption = None,
    out: OutOption = None,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Find a stack and its packages, lock them, write what is asked for."""
    from provisioner.cli import report
    from provisioner.cli.display import failure, json_data, step
    from provisioner.cli.inputs import read_inputs
    from provisioner.solve.joint import NoStackError

    inputs = read_inputs(spec, hosts=host, exclude_newer=exclude_newer, matrix=matrix)
    folder = out if out is not None else spec.parent
    try:
        if stack_only:
            stacks = _system(inputs)
            written: list[str] = []
        else:
            from provisioner.cli.locking import Locking

            locking = Locking(inputs, folder, offline=offline, keep=None if upgrade else set(upgrade_package or ()))
            try:
                with step("Solving"):
                    stacks = locking.solve()
                written = locking.write(stacks, is_dry_run=dry_run)
            finally:
                if not isinstance(sys.exception(), KeyboardInterrupt):  # who interrupts does not wait for requests under way
                    locking.close()
    except NoStackError as error:
        if format is OutputFormat.JSON:
            json_data(report.no_stack(error.conflict))
        failure(error)
        return error.exit_code
    if format is OutputFormat.JSON:
        json_data(report.solved(stacks, written))
    else:
        _tell(stacks, written, is_dry_run=dry_run)
    return 0


def _system(inputs: Inputs) -> list[Stack]:
    from provisioner.solve.joint import solve_system
    from provisioner.solve.problem import join

    return [solve_system(join(inputs.matrix, inputs.wish(platform))) for platform in inputs.platforms]


def _tell(stacks: list[Stack], written: list[str], *, is_dry_run: bool) -> None:
    """The stack as a table on stdout; what was written, and what is unverified, as talk."""
    from provisioner.cli.display import table, talk, warn
    from provisioner.solve.explain import stack_rows, summary

    for stack in stacks:
        if len(stacks) > 1:
            talk(f"{stack.platform}:")
        table(("component", "chosen", "because"), stack_rows(stack))
        for relaxation in stack.relaxations:
            talk(f"relaxed: {relaxation.name}: {relaxation.text}")
        for text in stack.unverified:
            warn(f"unverified: {text}")
        talk(summary(stack))
    if written:
        talk(f"{'would write' if is_dry_run else 'wrote'} {', '.join(written)}")
