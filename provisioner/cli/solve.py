"""`provision solve`: the main job: solve, lock, render, write."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec import Struct, field

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
    TargetsOption,
    UpgradeOption,
    UpgradePackageOption,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from provisioner.cli.inputs import Inputs
    from provisioner.solve.stack import Move, Stack


class Answer(Struct, frozen=True):
    """The stacks of one target, one a platform, and the files that were written for it; `target` is "" of a spec with one."""

    target: str
    stacks: list[Stack]
    written: list[str] = field(default_factory=list)


class Run(Struct, frozen=True, kw_only=True):
    """How to lock: where to write, what may move away from an earlier lock (None: everything), and what may be done."""

    folder: Path
    keep: set[str] | None
    is_offline: bool
    is_dry_run: bool


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
    target: TargetsOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Find a stack and its packages, lock them, write what is asked for."""
    from provisioner.cli import report
    from provisioner.cli.display import failure, json_data, talk
    from provisioner.cli.inputs import read_targets
    from provisioner.solve.joint import NoStackError

    targets = read_targets(spec, hosts=host, exclude_newer=exclude_newer, matrix=matrix, wanted=target or ())
    folder = out if out is not None else spec.parent
    answers: list[Answer] = []
    try:
        if stack_only:
            for inputs in targets:
                answers.append(Answer(inputs.target, _system(inputs)))  # noqa: PERF401 - what was answered before an error counts
        else:
            keep = None if upgrade else set(upgrade_package or ())
            _lock(targets, answers, Run(folder=folder, keep=keep, is_offline=offline, is_dry_run=dry_run))
    except NoStackError as error:
        name = targets[len(answers)].target
        if format is OutputFormat.JSON:
            json_data({**report.no_stack(error.conflict), **({"target": name} if name else {})})
        if name:
            talk(f"target {name}:")
        failure(error)
        return error.exit_code
    if format is OutputFormat.JSON:
        json_data(report.solved_targets([(answer.target, answer.stacks, answer.written) for answer in answers]))
        return 0
    for answer in answers:
        _tell(answer, heading=answer.target if len(answers) > 1 else "", is_dry_run=dry_run)
    return 0


def _lock(targets: Sequence[Inputs], answers: list[Answer], run: Run) -> None:
    """Solve every target, then write all; `answers` grows with each that has one.

    Raises `NoStackError` for the first that has none: nothing is written then.
    """
    from provisioner.cli.display import step
    from provisioner.cli.locking import Locking

    lockings: list[Locking] = []
    try:
        for inputs in targets:
            locking = Locking(inputs, run.folder / inputs.target, offline=run.is_offline, keep=run.keep)
            lockings.append(locking)
            locking.require_own_files(is_dry_run=run.is_dry_run)
            locking.warned = lockings[0].warned
            with step("Solving", locking.progress):
                answers.append(Answer(inputs.target, locking.solve()))
        for locking, answer in zip(lockings, answers, strict=True):
            paths = locking.write(answer.stacks, is_dry_run=run.is_dry_run)
            answer.written.extend(f"{answer.target}/{path}" if answer.target else path for path in paths)
    finally:
        if not isinstance(sys.exception(), KeyboardInterrupt):  # who interrupts does not wait for requests under way
            for locking in lockings:
                locking.close()


def _system(inputs: Inputs) -> list[Stack]:
    from provisioner.solve.joint import solve_system
    from provisioner.solve.problem import join

    return [solve_system(join(inputs.matrix, inputs.request(platform))) for platform in inputs.platforms]


def _moved(move: Move) -> str:
    """One line of what an upgrade by name did, and why."""
    where = f"  ({move.where})" if move.where else ""
    if move.before == move.after:
        return f"stays: {move.name} {move.before}: {move.because}{where}"
    return f"moved: {move.name} {move.before} -> {move.after}: {move.because}{where}"


def _tell(answer: Answer, *, heading: str, is_dry_run: bool) -> None:
    """The stack as a table on stdout; what was written, and what is unverified, as talk."""
    from provisioner.cli.display import table, talk, warn
    from provisioner.solve.explain.words import stack_rows, summary

    told: dict[str, None] = {}
    for stack in answer.stacks:
        names = [*([f"target {heading}"] if heading else []), *([stack.platform] if len(answer.stacks) > 1 else [])]
        if names:
            talk(f"{', '.join(names)}:")
        rows = [("target", heading, ""), *stack_rows(stack)] if heading else stack_rows(stack)
        table(("component", "chosen", "because"), rows)
        for relaxation in stack.relaxations:
            talk(f"relaxed: {relaxation.name}: {relaxation.text}")
        for held in stack.held_back:
            talk(f"held back: {held.text}")
        for text in stack.unverified:
            warn(f"unverified: {text}")
        for text in stack.warnings:
            if text not in told:  # what is true of the packages of several platforms
                warn(text)
        told.update(dict.fromkeys(stack.warnings))
        for move in stack.moves:
            talk(_moved(move))
        talk(summary(stack))
    if answer.written:
        talk(f"{'would write' if is_dry_run else 'wrote'} {', '.join(answer.written)}")
