"""`provision check`: offline, before a merge: do the locks hold, and are rendered files what their locks say."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from provisioner.cli.options import FormatOption, HostOption, MatrixOption, OutputFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.errors import ProvisionError
    from provisioner.lock.fresh import Finding
    from provisioner.lock.model import Lock

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", readable=False, help="Locks, or folders that hold some; default: this folder."),
]

EXIT_CODES = {"yes": 0, "no": 1, "unverified": 3}

SEVERITY = (0, 3, 1, 2)
"""Exit codes from best to worst: a file that cannot be used says less than a no, and somebody has to mend it first."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a check of one lock found, and the error that ended it, if one did."""

    findings: tuple[Finding, ...]
    error: ProvisionError | None = None

    @property
    def verdict(self) -> str:
        """`error`, or the worst of what was found."""
        return "error" if self.error is not None else _worst([finding.verdict for finding in self.findings])


def check(
    paths: PathsArgument = None,
    host: HostOption = None,
    *,
    matrix: MatrixOption = None,
    format: FormatOption = OutputFormat.TEXT,  # noqa: A002 - the option is called --format
) -> int:
    """Say whether locks and rendered files still hold; works offline."""
    from provisioner.cli.display import json_data

    results = {path: _checked(path, host, matrix) for path in _locks(paths or [Path()])}
    _raise_if_all_failed(list(results.values()))
    overall = _worst([result.verdict for result in results.values()])
    if format is OutputFormat.JSON:
        locks = [{"lock": str(path), **_as_json(result)} for path, result in results.items()]
        json_data({"status": "checked", "verdict": overall, "locks": locks})
    else:
        _tell(results)
    errors = [result.error.exit_code for result in results.values() if result.error is not None]
    return max(errors, key=SEVERITY.index) if errors else EXIT_CODES[overall]


def _checked(path: Path, hosts: list[Path] | None, matrix: Path | None) -> Result:
    """Everything found about one lock; an error about it or its spec is a result too, so that the others are still told."""
    from provisioner.errors import ProvisionError

    found: list[Finding] = []
    try:
        found.extend(_findings(path, hosts, matrix))
    except ProvisionError as error:
        return Result(tuple(found), error)
    return Result(tuple(found))


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


def _findings(path: Path, hosts: list[Path] | None, matrix: Path | None) -> Iterator[Finding]:
    """Everything wrong or unknown about one lock, in the order a reader would ask."""
    from provisioner.document import read_text
    from provisioner.lock.file import KIND, parse_lock, verify_digest
    from provisioner.lock.fresh import Finding, artefact_findings

    text = read_text(path, kind=KIND)
    lock = parse_lock(text, file=str(path))
    if not verify_digest(text):
        words = "the lock was edited by hand: its digest does not fit its content"
        hints = ("change the spec and run `provision solve`",)
        yield Finding(code="edited-lock", verdict="no", text=words, where=str(path), hints=hints)
    yield from artefact_findings(lock, path.parent, where=str(path))
    yield from _against_spec(path, lock, hosts, matrix)


def _against_spec(path: Path, lock: Lock, hosts: list[Path] | None, matrix: Path | None) -> Iterator[Finding]:
    from provisioner.cli.inputs import read_inputs, require_available_outputs
    from provisioner.lock.fresh import Finding, package_findings, stack_findings
    from provisioner.lock.policy import policy_findings
    from provisioner.solve.problem import join

    spec_path = path.parent / lock.spec_file
    if not spec_path.is_file():
        text = f"its spec `{lock.spec_file}` is not there, so nothing can be said about what was asked for"
        yield Finding(code="no-spec", verdict="unverified", text=text, where=str(path))
        return
    inputs = read_inputs(spec_path, hosts=hosts, matrix=matrix)
    require_available_outputs(inputs)
    for platform in inputs.platforms:
        if platform not in lock.platforms:
            text = f"the spec wants {platform}, the lock has {', '.join(lock.platforms)}"
            yield Finding(code="missing-platform", verdict="no", text=text, where=str(path))
            continue
        one = lock.on(platform)
        problem = join(inputs.matrix, inputs.wish(platform))
        wanted = problem.wish.accelerator
        if one.accelerator != wanted:
            text = f"the spec and its hosts call for accelerator {wanted}, the lock is for {one.accelerator}"
            yield Finding(code="stale-accelerator", verdict="no", text=text, where=str(path))
            continue
        yield from stack_findings(one, problem, where=str(path))
        yield from package_findings(one, problem, where=str(path))
        yield from policy_findings(one, problem, where=str(path))
        if one.image is not None and not one.image.digest:
            text = f"image: {one.image.reference} is not pinned by digest"
            yield Finding(code="unverified", verdict="unverified", text=text, where=str(path))
    yield from _rendered(path, lock, inputs.spec.outputs)


def _rendered(path: Path, lock: Lock, outputs: tuple[str, ...]) -> Iterator[Finding]:
    """Rendered files are a function of the lock, byte for byte."""
    from provisioner.lock.fresh import Finding
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
            hints = (f"`provision render {path} --to {output} --out {file}` writes it again",)
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
    from dataclasses import asdict

    from provisioner.cli.display import failure_data

    findings = [
        {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(finding).items()}
        for finding in result.findings
    ]
    report: dict[str, object] = {"verdict": result.verdict, "findings": findings}
    if result.error is not None:
        report["error"] = {key: value for key, value in failure_data(result.error).items() if key != "status"}
    return report


def _tell(results: dict[Path, Result]) -> None:
    from provisioner.cli.display import data

    for path, result in results.items():
        data(f"{path}: {result.verdict}")
        if result.error is not None:
            data(f"  error: {result.error.message}  [{result.error.code}]")
            for detail in (*result.error.causes, *(f"hint: {hint}" for hint in result.error.hints)):
                data(f"    {detail}")
        for finding in result.findings:
            data(f"  {finding.verdict}: {finding.text}  [{finding.code}]")
            for detail in finding.details:
                data(f"    {detail}")
            for hint in finding.hints:
                data(f"    hint: {hint}")
