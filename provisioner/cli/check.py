"""`provision check`: before a merge: do the locks hold, are rendered files what their locks say, what would solving change."""

from __future__ import annotations

import os
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from provisioner.cli.options import (
    ExcludeNewerOption,
    FormatOption,
    HostOption,
    MatrixOption,
    OfflineOption,
    OutputFormat,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.cli.check_changes import Renewal
    from provisioner.cli.inputs import Inputs
    from provisioner.errors import ProvisionError
    from provisioner.lock.finding import Finding
    from provisioner.lock.model import Lock

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH...", readable=False, help="Locks, or folders that hold some; default: this folder."),
]

ChangesOption = Annotated[
    bool,
    typer.Option(
        "--changes", help="Ask the indexes as well: what solving again would change, and why; with --offline, the cache."
    ),
]

FilesOption = Annotated[
    bool,
    typer.Option(
        "--files", help="Read what is in every locked wheel as well: do two of them write the same file? Nothing is downloaded."
    ),
]

EXIT_CODES = {"yes": 0, "no": 1, "unverified": 3}

SEVERITY = (0, 3, 1, 2)
"""Exit codes from best to worst: a file that cannot be used says less than a no, and somebody has to mend it first."""


class Question(Struct, frozen=True, kw_only=True):
    """What was asked of every lock: on which hosts and by which matrix it should hold, and what solving again would change."""

    hosts: list[Path] | None
    matrix: Path | None
    changes: bool
    offline: bool
    exclude_newer: str | None
    files: bool = False


class Result(Struct, frozen=True):
    """What a check of one lock found, what solving it again would change where that was asked, and the error that ended it."""

    findings: tuple[Finding, ...]
    error: ProvisionError | None = None
    renewal: Renewal | None = None

    @property
    def verdict(self) -> str:
        """`error`, or the worst of what was found."""
        return "error" if self.error is not None else _worst([finding.verdict for finding in self.findings])


def check(
    paths: PathsArgument = None,
    host: HostOption = None,
    *,
    changes: ChangesOption = False,
    files: FilesOption = False,
    offline: OfflineOption = False,
    exclude_newer: ExcludeNewerOption = None,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say whether locks and rendered files still hold; works offline, unless --changes asks what solving again would change."""
    from provisioner.cli.display import json_data

    question = Question(hosts=host, matrix=matrix, changes=changes, offline=offline, exclude_newer=exclude_newer, files=files)
    results = {path: _checked(path, question) for path in _locks(paths or [Path()])}
    _raise_if_all_failed(list(results.values()))
    overall = _worst([result.verdict for result in results.values()])
    if format is OutputFormat.JSON:
        locks = [{"lock": str(path), **_as_json(result)} for path, result in results.items()]
        json_data({"status": "checked", "verdict": overall, "locks": locks})
    else:
        _tell(results)
    errors = [result.error.exit_code for result in results.values() if result.error is not None]
    return max(errors, key=SEVERITY.index) if errors else EXIT_CODES[overall]


def _checked(path: Path, question: Question) -> Result:
    """Everything found about one lock; an error about it or its spec is a result too, so that the others are still told."""
    from provisioner.errors import ProvisionError

    found: list[Finding] = []
    renewal = None
    try:
        lock = _lock(path, found)
        inputs = _inputs(path, lock, question, found)
        if inputs is not None:
            found.extend(_against_spec(path, lock, inputs, question))
            found.extend(_shared_files(path, lock, inputs, question))
            renewal = _renewal(path, lock, inputs, question, found)
            found.extend(renewal.findings if renewal is not None else ())
    except ProvisionError as error:
        return Result(tuple(found), error)
    return Result(tuple(found), renewal=renewal)


def _raise_if_all_failed(results: list[Result]) -> None:
    """One error, of all locks (a matrix that is not there, say) or of the only one, is the error of the command."""
    from provisioner.cli.display import failure_data

    errors = {str(failure_data(result.error)): result.error for result in results if result.error is not None}
    if len(errors) == 1 and all(result.error is not None and not result.findings for result in results):
        raise next(iter(errors.values()))


def _locks(paths: list[Path]) -> list[Path]:
    """Every lock named or found below a folder, sorted; raises `UsageError` when there is none."""
    from provisioner.errors import UsageError

    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            inside = [one for one in path.rglob("pylock.*.toml") if not _is_hidden(one.relative_to(path))]
            found.update(dict.fromkeys(sorted(inside)))
        else:
            found[path] = None
    if not found:
        shown = ", ".join(f"`{path}`" for path in paths)
        raise UsageError(f"no pylock.*.toml in {shown}", hints=("`provision solve` writes one",))
    return list(found)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") and part not in {".", ".."} for part in path.parts[:-1])


def _lock(path: Path, found: list[Finding]) -> Lock:
    """Read a lock; what is wrong with it by itself is added to `found`."""
    from provisioner.document import read_text
    from provisioner.lock.coherence import coherence_findings
    from provisioner.lock.file import KIND, parse_lock, verify_digest
    from provisioner.lock.finding import Finding
    from provisioner.lock.fresh import artefact_findings

    text = read_text(path, kind=KIND)
    lock = parse_lock(text, file=str(path))
    if not verify_digest(text):
        words = "the lock was edited by hand: its digest does not fit its content"
        hints = ("change the spec and run `provision solve`",)
        found.append(Finding(code="edited-lock", verdict="no", text=words, where=str(path), hints=hints))
    found.extend(coherence_findings(lock, text, where=str(path)))
    found.extend(artefact_findings(lock, path.parent, where=str(path)))
    return lock


def _inputs(path: Path, lock: Lock, question: Question, found: list[Finding]) -> Inputs | None:
    """The spec of a lock with its hosts and the matrix; None, and a finding, where the spec is not there."""
    from provisioner.cli.inputs import read_inputs, require_available_outputs
    from provisioner.lock.finding import Finding

    spec_path = _straight(path.parent / lock.spec_file)
    if not _is_file(spec_path):
        text = f"its spec `{lock.spec_file}` is not there, so nothing can be said about what was asked for"
        found.append(Finding(code="no-spec", verdict="unverified", text=text, where=str(path)))
        return None
    asked, target = question, lock.target or None
    inputs = read_inputs(spec_path, hosts=asked.hosts, exclude_newer=asked.exclude_newer, matrix=asked.matrix, target=target)
    require_available_outputs(inputs)
    found.extend(_missing_targets(path, inputs))
    return inputs


def _is_file(path: Path) -> bool:
    """Whether a file is there; False for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def _straight(path: Path) -> Path:
    """A path without `grace/..`, as long as it leads to the same file: `grace` may be a link."""
    straight = Path(os.path.normpath(path))
    return straight if _is_file(straight) and _is_file(path) and straight.samefile(path) else path


def _shared_files(path: Path, lock: Lock, inputs: Inputs, question: Question) -> Iterator[Finding]:
    """What is in the wheels, where that was asked."""
    if question.files:
        from provisioner.cli.check_files import file_findings

        yield from file_findings(lock, inputs.matrix, where=path, offline=question.offline)


def _missing_targets(path: Path, inputs: Inputs) -> Iterator[Finding]:
    """The targets of a spec that nobody has locked yet: a folder each, beside that of this lock."""
    from provisioner.lock.finding import Finding

    for name in inputs.targets:
        place = path.absolute().parent.parent / name / path.name
        if not place.is_file():
            text = f"the spec wants target {name}, which has no lock beside this one"
            hints = (f"`provision solve --target {name}` writes it",)
            yield Finding(code="missing-target", verdict="no", text=text, where=str(path), hints=hints)


def _renewal(path: Path, lock: Lock, inputs: Inputs, question: Question, found: list[Finding]) -> Renewal | None:
    """What solving again would change, where that was asked; of a stale lock its system half at least, which asks no index."""
    from provisioner.cli.check_changes import STALE_CODES, renewed, renewed_system

    if question.changes:
        return renewed(path, lock, inputs, offline=question.offline)
    if any(finding.code in STALE_CODES for finding in found):
        return renewed_system(path, lock, inputs)
    return None


def _against_spec(path: Path, lock: Lock, inputs: Inputs, question: Question) -> Iterator[Finding]:
    """Everything wrong or unknown about one lock beside its spec, in the order a reader would ask."""
    from provisioner.lock.finding import Finding
    from provisioner.lock.fresh import package_findings, stack_findings
    from provisioner.lock.hazards import hazard_findings
    from provisioner.lock.policy import policy_findings
    from provisioner.solve.problem import join

    has_other_hosts = bool(question.hosts) or inputs.spec.target.host == "auto"  # the machine that checks, not that solved
    for platform in inputs.platforms:
        if platform not in lock.platforms:
            text = f"the spec wants {platform}, the lock has {', '.join(lock.platforms)}"
            yield Finding(code="missing-platform", verdict="no", text=text, where=str(path))
            continue
        one = lock.on(platform)
        problem = join(inputs.matrix, inputs.request(platform))
        wanted = problem.request.accelerator
        if one.accelerator != wanted:
            text = f"the spec and its hosts call for accelerator {wanted}, the lock is for {one.accelerator}"
            yield Finding(code="stale-accelerator", verdict="no", text=text, where=str(path))
            continue
        yield from stack_findings(one, problem, where=str(path), has_other_hosts=has_other_hosts)
        yield from package_findings(one, problem, where=str(path))
        yield from hazard_findings(one, problem, where=str(path))
        yield from policy_findings(one, problem, where=str(path))
        if one.image is not None and not one.image.digest:
            text = f"image: {one.image.reference} is not pinned by digest"
            yield Finding(code="unverified", verdict="unverified", text=text, where=str(path))
    yield from _rendered(path, lock, inputs.spec.outputs)


def _rendered(path: Path, lock: Lock, outputs: tuple[str, ...]) -> Iterator[Finding]:
    """Rendered files are a function of the lock, byte for byte."""
    from provisioner.cli.outputs import is_work_of_others
    from provisioner.lock.finding import Finding
    from provisioner.render.formats import FORMATS, render

    for output in outputs:
        file = path.parent / FORMATS[output]
        if not file.is_file():
            hints = (f"`provision render {path} --to {output} --out {file}` writes it",)
            yield Finding(code="missing-output", verdict="no", text=f"`{file}` is missing", where=str(path), hints=hints)
            continue
        wanted = render(lock, output, lock_file_name=path.name).encode()
        found = _content(file)
        if found != wanted:
            line = _first_difference(found, wanted)
            text = f"`{file}` is not what its lock renders; they differ from line {line}"
            once = "; provision did not render what is there: move or delete that first" if is_work_of_others(file) else ""
            hints = (f"`provision render {path} --to {output} --out {file}` writes it again{once}",)
            yield Finding(code="edited-output", verdict="no", text=text, where=f"{file}:{line}", hints=hints)


def _content(file: Path) -> bytes:
    from provisioner.document import FileError

    try:
        return file.read_bytes()
    except OSError as error:
        raise FileError(f"rendered file `{file}` cannot be read: {error.strerror}") from None


def _first_difference(found: bytes, wanted: bytes) -> int:
    """The first line, counted from 1, that differs, by its end or otherwise."""
    lines = zip_longest(found.splitlines(keepends=True), wanted.splitlines(keepends=True))
    return next(index for index, (one, other) in enumerate(lines, start=1) if one != other)


def _worst(verdicts: list[str]) -> str:
    return next((verdict for verdict in ("error", "no", "unverified") if verdict in verdicts), "yes")


def _as_json(result: Result) -> dict[str, object]:
    from msgspec import to_builtins

    from provisioner.cli.display import failure_data

    findings = [
        {key: list(value) if isinstance(value, tuple) else value for key, value in to_builtins(finding).items()}
        for finding in result.findings
    ]
    report: dict[str, object] = {"verdict": result.verdict, "findings": findings}
    if result.error is not None:
        report["error"] = {key: value for key, value in failure_data(result.error).items() if key != "status"}
    if result.renewal is not None:
        from provisioner.cli.changes_report import renewal_data

        report["changes"] = renewal_data(result.renewal)
    return report


def _tell(results: dict[Path, Result]) -> None:
    from provisioner.cli.display import data

    for path, result in results.items():
        data(f"{path}: {result.verdict}")
        if result.error is not None:
            data(f"  error: {result.error.message}  [{result.error.code}]")
            for detail in (*result.error.causes, *(f"hint: {hint}" for hint in result.error.hints)):
                data(f"    {detail}")
        for finding in dict.fromkeys(result.findings):  # several platforms may have the same to say
            data(f"  {finding.verdict}: {finding.text}  [{finding.code}]")
            for detail in finding.details:
                data(f"    {detail}")
            for hint in finding.hints:
                data(f"    hint: {hint}")
        if result.renewal is not None:
            from provisioner.cli.changes_report import renewal_lines

            for line in renewal_lines(result.renewal):
                data(f"  {line}")
