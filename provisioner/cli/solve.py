"""`provision solve`: solve a spec, lock the solution, render the outputs, write the files."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
    SpecsArgument,
    StackOnlyOption,
    StrictOption,
    TargetsOption,
    UpgradeOption,
    UpgradePackageOption,
    WithOption,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from provisioner.cli.display import Line
    from provisioner.grounds.choice import Move
    from provisioner.resolver.stack import Stack
    from provisioner.workflow.earlier import Upgrades
    from provisioner.workflow.inputs import Inputs
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.solving import Solution


class Run(Struct, frozen=True, kw_only=True):
    """The options of `provision solve`.

    `packages` are those of `--with`; `out` is the output folder, None for that of each spec; `upgrades` are the packages that
    may differ from the earlier lock, None for all.
    """

    packages: tuple[str, ...]
    hosts: Sequence[Path]
    targets: Sequence[str]
    exclude_newer: str | None
    matrix: Path | None
    out: Path | None
    upgrades: Upgrades | None
    is_stack_only: bool
    is_strict: bool
    is_offline: bool
    is_dry_run: bool
    is_json: bool


class Answer(Struct, frozen=True):
    """The stacks of one target, one per platform, and the files written for it.

    `label` is the name of the target, and the place where it runs if the spec lists several; "" for a spec of one target.
    `folder` is the output folder.
    """

    label: str
    stacks: tuple[Stack, ...]
    folder: Path
    written: tuple[str, ...] = ()


def solve(
    spec: SpecsArgument = None,
    host: HostOption = None,
    *,
    with_: WithOption = None,
    dry_run: DryRunOption = False,
    stack_only: StackOnlyOption = False,
    offline: OfflineOption = False,
    upgrade: UpgradeOption = False,
    upgrade_package: UpgradePackageOption = None,
    exclude_newer: ExcludeNewerOption = None,
    out: OutOption = None,
    matrix: MatrixOption = None,
    target: TargetsOption = None,
    strict: StrictOption = False,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Find a stack and its packages, lock them, write what is asked for."""
    from provisioner.workflow.earlier import read_upgrades
    from provisioner.workflow.inputs import specs_in

    run = Run(
        packages=tuple(with_ or ()),
        hosts=host or (),
        targets=target or (),
        exclude_newer=exclude_newer,
        matrix=matrix,
        out=out,
        upgrades=None if upgrade else read_upgrades(sorted(upgrade_package or ())),
        is_stack_only=stack_only,
        is_strict=strict,
        is_offline=offline,
        is_dry_run=dry_run,
        is_json=format is OutputFormat.JSON,
    )
    if run.packages and not spec and not DEFAULT_SPEC.exists():
        return _finish(*_solve(None, run), run)
    given = spec or [DEFAULT_SPEC]
    specs = specs_in(given)
    if specs != given or len(specs) > 1:
        return _solve_each(specs, run)
    return _finish(*_solve(specs[0], run), run)


def _finish(code: int, data: dict[str, Any], run: Run) -> int:
    """Print the JSON of a run of one spec if it is asked for, and return the exit code."""
    from provisioner.cli.display import json_data

    if run.is_json:
        json_data(data)
    return code


def _solve_each(specs: Sequence[Path], run: Run) -> int:
    """Solve several specs one after the other, and return the worst exit code; an error of one does not keep others back."""
    from provisioner.cli.check import SEVERITY
    from provisioner.cli.display import failure, failure_data, json_data, talk
    from provisioner.errors import ProvisionError

    codes: list[int] = []
    found: dict[str, dict[str, Any]] = {}
    for path in specs:
        try:
            code, data = _solve(path, run, heading=str(path))
        except ProvisionError as error:
            talk(f"{path}:")
            failure(error)
            code, data = error.exit_code, failure_data(error)
        codes.append(code)
        found[str(path)] = data
    worst = max(codes, key=SEVERITY.index)
    if run.is_json:
        status = found[str(specs[codes.index(worst)])]["status"]
        json_data({"status": status, "specs": found})
    return worst


def _solve(spec: Path | None, run: Run, *, heading: str = "") -> tuple[int, dict[str, Any]]:
    """Solve one spec, print what a person wants to know unless JSON is asked for, and return the exit code and the JSON.

    `spec` is None if the packages of the command line are all that is asked for. `heading` names the spec where there are
    several. Raises every error but that of a spec without a stack.
    """
    from msgspec.structs import replace

    from provisioner.cli import report as json_report
    from provisioner.cli.display import talk
    from provisioner.cli.refusal import refusal
    from provisioner.errors import ProvisionError
    from provisioner.resolver.joint import NoStackError
    from provisioner.spec.load import Asked
    from provisioner.workflow.inputs import read_targets
    from provisioner.workflow.solving import require_same_request

    targets = read_targets(
        Asked(path=spec, packages=run.packages),
        hosts=run.hosts,
        exclude_newer=run.exclude_newer,
        matrix=run.matrix,
        wanted=run.targets,
    )
    targets = [replace(one, is_strict=run.is_strict) for one in targets]
    if run.out is not None:
        require_same_request(targets[0])
    if targets[0].is_trial:
        run = replace(run, is_dry_run=True)
    answered: list[str] = []
    notices: dict[str, None] = {}
    try:
        answers = _stacks(targets, run, answered, notices) if run.is_stack_only else _locked(targets, run, answered, notices)
    except ProvisionError as error:
        _warn(notices)
        if not isinstance(error, NoStackError):
            raise
        name = targets[len(answered)].label
        about = [part for part in (heading, f"target {name}" if name else "") if part]
        if about:
            talk(f"{', '.join(about)}:")
        refusal(error, targets[len(answered)])
        return error.exit_code, {**json_report.no_stack(error.conflicts), **({"target": name} if name else {})}
    data = json_report.solved_targets([(answer.label, answer.stacks, answer.written) for answer in answers])
    if run.is_json:
        _warn(notices)
        return 0, data
    reported: set[str] = set()
    for answer, inputs in zip(answers, targets, strict=True):
        _tell(answer, inputs, headings=[heading, answer.label if len(answers) > 1 else ""], reported=reported)
    _warn(notices)
    for answer, inputs in zip(answers, targets, strict=True):
        _tell_files(answer, inputs, run)
    return 0, data


def _warn(notices: Iterable[str]) -> None:
    from provisioner.cli.display import warn

    for text in notices:
        warn(text)


def _stacks(targets: Sequence[Inputs], run: Run, answered: list[str], notices: dict[str, None]) -> list[Answer]:
    """Solve the system stack of every target, and append the label of each solved target to `answered`.

    Where every output of a spec is made from the stack alone, its lock and outputs are written once all targets are solved.
    """
    from provisioner.outputs import OUTPUTS
    from provisioner.workflow.system import solve_stacks

    answers, solutions = [], []
    for inputs in targets:
        folder, formats = _folder(inputs, run), [OUTPUTS[output.format] for output in inputs.spec.files]
        if formats and all(one.sets_up_hosts for one in formats):
            solutions.append(_system_solution(inputs, run, notices))
            answers.append(Answer(inputs.label, solutions[-1].stacks, folder, solutions[-1].names))
        else:
            answers.append(Answer(inputs.label, solve_stacks(inputs), folder))
        answered.append(inputs.label)
    if not run.is_dry_run:
        for solution in solutions:
            solution.write()
    return answers


def _system_solution(inputs: Inputs, run: Run, notices: dict[str, None]) -> Solution:
    """Return the solution of one target without packages, whose warnings for the user are added to `notices`."""
    from provisioner.words.notice import notice_words
    from provisioner.workflow.solving import job_of, require_place, solve_system_job

    job = job_of(inputs, _folder(inputs, run), upgrades=run.upgrades, is_offline=run.is_offline)
    notices.update(dict.fromkeys(map(notice_words, job.notices)))
    notices.update(dict.fromkeys(map(notice_words, require_place(job, is_dry_run=run.is_dry_run))))
    return solve_system_job(job)


@contextmanager
def telling_proof(progress: Progress) -> Iterator[None]:
    """Raise `NoStackError` with what is proved where the search for fixes, in the `with` block, is interrupted."""
    from msgspec.structs import replace

    from provisioner.resolver.joint import NoStackError

    try:
        yield
    except KeyboardInterrupt:
        if not progress.conflicts:
            raise
        raise NoStackError(*(replace(one, is_interrupted=True) for one in progress.conflicts)) from None


def _locked(targets: Sequence[Inputs], run: Run, answered: list[str], notices: dict[str, None]) -> list[Answer]:
    """Solve every target, then write all files.

    The label of each solved target is appended to `answered`, the warnings for the user are added to `notices`. Raises
    `NoStackError` for the first target without a stack; nothing is written then.
    """
    from provisioner.cli.display import step
    from provisioner.words.notice import notice_words
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.session import Session
    from provisioner.workflow.solving import job_of, require_place, solve_job

    solutions: list[Solution] = []
    progress = Progress()
    for inputs in targets:
        job = job_of(inputs, _folder(inputs, run), upgrades=run.upgrades, is_offline=run.is_offline)
        notices.update(dict.fromkeys(map(notice_words, job.notices)))
        notices.update(dict.fromkeys(map(notice_words, require_place(job, is_dry_run=run.is_dry_run))))
        session = Session(inputs, job.settings, progress)
        try:
            with telling_proof(progress), session, step("Solving", progress.__str__):
                solutions.append(solve_job(job, session))
        finally:
            notices.update(dict.fromkeys(map(notice_words, session.notices)))
        answered.append(inputs.label)
    if not run.is_dry_run:
        for solution in solutions:
            solution.write()
    return [Answer(one.job.inputs.label, one.stacks, one.job.folder, one.names) for one in solutions]


def _folder(inputs: Inputs, run: Run) -> Path:
    return (run.out if run.out is not None else inputs.path.parent) / inputs.target


def _tell(answer: Answer, inputs: Inputs, *, headings: Sequence[str], reported: set[str]) -> None:
    """Print the stacks of a target, under its headings, to stdout and remarks about them to stderr.

    `reported` are the warnings printed already, for other platforms; new ones are added to it.
    """
    from provisioner.cli.display import report, table, tell, wants_details
    from provisioner.cli.stack_words import answer_lines, stack_rows

    for stack in answer.stacks:
        names = [*filter(None, headings), *([stack.platform] if len(answer.stacks) > 1 else [])]
        report(answer_lines(stack, inputs.spec, heading=", ".join(names)))
        if wants_details():
            table(("component", "chosen", "because"), stack_rows(stack))
        tell(_remarks(stack, reported))


def _remarks(stack: Stack, reported: set[str]) -> Iterator[Line]:
    """Yield the remarks about a stack: components held back, relaxations, doubts, warnings, and upgrades.

    Warnings in `reported` are left out, the others are added to it.
    """
    from provisioner.cli.display import Line, Paint, wants_details
    from provisioner.grounds.relaxation import DriverWay
    from provisioner.words.choice import caution_words, held_back_words, shown_words, unread_words
    from provisioner.words.doubt import assumption_words, doubt_words
    from provisioner.words.relaxation import relaxation_words

    for held in stack.held_back:
        yield Line(held_back_words(held), "held back:", Paint.UNSURE)
    for relaxation in stack.relaxations:
        if wants_details() or not isinstance(relaxation, DriverWay):  # the first line of the answer has it already
            yield Line(f"{relaxation.name}: {relaxation_words(relaxation)}", "relaxed:", Paint.STRONG)
    for doubt in stack.doubts:
        yield Line(f"unverified: {doubt_words(doubt)}", "warning:", Paint.UNSURE)
    if wants_details():
        yield from (Line(assumption_words(doubt), "assumes:", Paint.STRONG) for doubt in stack.assumes)
        yield from (Line(doubt_words(doubt), "accepted:", Paint.STRONG) for doubt in stack.accepts)
        yield from (Line(shown_words(one), "shown:", Paint.STRONG) for one in stack.shown)
        yield from (Line(unread_words(one), "not read:", Paint.STRONG) for one in stack.unread)
    cautions = dict.fromkeys(map(caution_words, stack.warnings))
    yield from (Line(text, "warning:", Paint.UNSURE) for text in cautions if text not in reported)
    reported.update(cautions)
    for move in stack.moves:
        yield _moved(move)


def _moved(move: Move) -> Line:
    """Return the line about a component or package that the user named for an upgrade: old and new version, and the reason."""
    from provisioner.cli.display import Line, Paint
    from provisioner.words.choice import move_reason_words, move_source

    source = move_source(move)
    because = f"{move_reason_words(move.reason)}{f'  ({source})' if source else ''}"
    if move.before == move.after:
        return Line(f"{move.name} {move.before}: {because}", "stays:", Paint.STRONG)
    return Line(f"{move.name} {move.before} -> {move.after}: {because}", "moved:", Paint.STRONG)


def _tell_files(answer: Answer, inputs: Inputs, run: Run) -> None:
    """Print the written files and the next command; with `--dry-run`, only the files that would be written.

    Where `--stack-only` keeps files from being written, that is told, with the outputs whose lock has packages.
    """
    from provisioner.cli.display import Line, Paint, talk, tell
    from provisioner.outputs import OUTPUTS

    if inputs.is_trial:
        talk(f"wrote nothing: --with asks for more than {inputs.document.file}; packages that are written there are locked")
        return
    if not answer.written:
        formats = dict.fromkeys(output.format for output in inputs.spec.files if not OUTPUTS[output.format].sets_up_hosts)
        which = f" of output {', '.join(formats)}" if formats else ""
        talk(f"wrote nothing: the lock{which} has packages, and --stack-only leaves them out")
        if any(one.name == "compiled-from-source" for stack in answer.stacks for one in stack.relaxations):
            way = f"add `outputs: [host-script]` to {inputs.path}: it writes the lock, and the steps with the build"
            tell([Line(way, "next:", Paint.NEXT)])
        return
    if run.is_dry_run:
        talk(f"would write {', '.join(answer.written)}")
        return
    talk(f"wrote {', '.join(answer.written)}")
    tell([Line(_next_command(answer, inputs), "next:", Paint.NEXT)])
    if run.hosts and not inputs.is_without_spec:
        talk(_of_hosts(inputs.document.file, run.hosts))


def _of_hosts(spec: str, hosts: Sequence[Path]) -> str:
    """Return how `check` is asked about hosts that a command line names: no lock tells of them, for it is not one machine's."""
    from shlex import join

    command = join(["provision", "check", *(part for host in hosts for part in ("--host", str(host)))])
    asks = f"`{command}` asks about the same hosts"
    is_yaml = spec.endswith((".yaml", ".yml"))
    return f"{asks}; with them under `target.host` in {spec} plain `provision check` does" if is_yaml else asks


def _next_command(answer: Answer, inputs: Inputs) -> str:
    """Return a shell command that uses the files written.

    That is `docker build` with a Dockerfile, the script that sets up the host where nothing else is asked for, else an
    installation with uv.
    """
    from shlex import quote

    from provisioner.lock.format.file import lock_path
    from provisioner.outputs import OUTPUTS

    folder = answer.folder
    recipe = next((output.path for output in inputs.spec.files if output.format == "dockerfile"), "")
    if recipe:
        named = "" if recipe == OUTPUTS["dockerfile"].file_name else f"--file {quote(str(folder / recipe))} "
        return f"docker build {named}{quote(str(folder))}"
    if inputs.spec.files and all(OUTPUTS[output.format].sets_up_hosts for output in inputs.spec.files):
        return f"sh {quote(str(folder / inputs.spec.files[0].path))} --dry-run"
    lock = quote(str(folder / lock_path(inputs.spec.name)))
    python = answer.stacks[0].components.get("python")
    return f"uv venv{f' --python {python}' if python else ''} && uv pip install -r {lock}"
