"""`provision solve`: the main job: solve, lock, render, write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

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

    from provisioner.grounds.choice import Move
    from provisioner.resolver.stack import Stack
    from provisioner.workflow.earlier import Upgrades
    from provisioner.workflow.inputs import Inputs
    from provisioner.workflow.solving import Solution


class Run(Struct, frozen=True, kw_only=True):
    """How to lock: where to write, what may move away from an earlier lock (None: everything), and what may be done."""

    folder: Path
    upgrades: Upgrades | None
    is_offline: bool
    is_dry_run: bool


class Answer(Struct, frozen=True):
    """The stacks of one target, one a platform, and the files that were written for it; `target` is "" of a spec with one."""

    target: str
    stacks: tuple[Stack, ...]
    written: tuple[str, ...] = ()


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
    from provisioner.resolver.joint import NoStackError
    from provisioner.workflow.earlier import read_upgrades
    from provisioner.workflow.inputs import read_targets

    targets = read_targets(spec, hosts=host, exclude_newer=exclude_newer, matrix=matrix, wanted=target or ())
    folder = out if out is not None else spec.parent
    upgrades = None if upgrade else read_upgrades(sorted(upgrade_package or ()))
    run = Run(folder=folder, upgrades=upgrades, is_offline=offline, is_dry_run=dry_run)
    answered: list[str] = []
    try:
        answers = _stacks(targets, answered) if stack_only else _locked(targets, run, answered)
    except NoStackError as error:
        name = targets[len(answered)].target
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


def _stacks(targets: Sequence[Inputs], answered: list[str]) -> list[Answer]:
    """Solve the system stack of every target; `answered` grows with the name of each that has one."""
    from provisioner.workflow.solving import solve_stacks

    answers = []
    for inputs in targets:
        answers.append(Answer(inputs.target, solve_stacks(inputs)))
        answered.append(inputs.target)
    return answers


def _locked(targets: Sequence[Inputs], run: Run, answered: list[str]) -> list[Answer]:
    """Solve every target, then write all; `answered` grows with the name of each that has an answer.

    Raises `NoStackError` for the first that has none: nothing is written then.
    """
    from provisioner.cli.display import step, warn
    from provisioner.words.notice import notice_words
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.session import Session
    from provisioner.workflow.solving import job_of, require_place, solve_job

    solutions: list[Solution] = []
    told: dict[str, None] = {}
    progress = Progress()
    try:
        for inputs in targets:
            job = job_of(inputs, run.folder / inputs.target, upgrades=run.upgrades, is_offline=run.is_offline)
            told.update(dict.fromkeys(map(notice_words, job.notices)))
            told.update(dict.fromkeys(map(notice_words, require_place(job, is_dry_run=run.is_dry_run))))
            session = Session(inputs, job.settings, progress)
            try:
                with session, step("Solving", progress.__str__):
                    solutions.append(solve_job(job, session))
            finally:
                told.update(dict.fromkeys(map(notice_words, session.notices)))
            answered.append(inputs.target)
    finally:
        for text in told:
            warn(text)
    if not run.is_dry_run:
        for solution in solutions:
            solution.write()
    return [Answer(solution.target, solution.stacks, solution.names) for solution in solutions]


def _moved(move: Move) -> str:
    """One line of what an upgrade by name did, and why."""
    from provisioner.words.choice import move_reason_words, move_source

    source = move_source(move)
    because = f"{move_reason_words(move.reason)}{f'  ({source})' if source else ''}"
    if move.before == move.after:
        return f"stays: {move.name} {move.before}: {because}"
    return f"moved: {move.name} {move.before} -> {move.after}: {because}"


def _tell(answer: Answer, *, heading: str, is_dry_run: bool) -> None:
    """The stack as a table on stdout; what was written, and what is unverified, as talk."""
    from provisioner.cli.display import table, talk, warn
    from provisioner.cli.stack_words import stack_rows, summary
    from provisioner.words.choice import caution_words, held_back_words
    from provisioner.words.doubt import doubt_words
    from provisioner.words.relaxation import relaxation_words

    told: dict[str, None] = {}
    for stack in answer.stacks:
        names = [*([f"target {heading}"] if heading else []), *([stack.platform] if len(answer.stacks) > 1 else [])]
        if names:
            talk(f"{', '.join(names)}:")
        rows = [("target", heading, ""), *stack_rows(stack)] if heading else stack_rows(stack)
        table(("component", "chosen", "because"), rows)
        for relaxation in stack.relaxations:
            talk(f"relaxed: {relaxation.name}: {relaxation_words(relaxation)}")
        for held in stack.held_back:
            talk(f"held back: {held_back_words(held)}")
        for doubt in stack.doubts:
            warn(f"unverified: {doubt_words(doubt)}")
        cautions = [caution_words(caution) for caution in stack.warnings]
        for text in cautions:
            if text not in told:  # what is true of the packages of several platforms
                warn(text)
        told.update(dict.fromkeys(cautions))
        for move in stack.moves:
            talk(_moved(move))
        talk(summary(stack))
    if answer.written:
        talk(f"{'would write' if is_dry_run else 'wrote'} {', '.join(answer.written)}")
