"""Check locks: do they hold beside their spec, the matrix and the hosts, and are rendered files what their locks render."""

from __future__ import annotations

import os
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.document import FileError, read_text
from provisioner.errors import ProvisionError, UsageError
from provisioner.lock.coherence import coherence_findings
from provisioner.lock.file import KIND, parse_lock, verify_digest
from provisioner.lock.finding import Finding
from provisioner.lock.fresh import artefact_findings, package_findings, stack_findings
from provisioner.lock.hazards import hazard_findings
from provisioner.lock.policy import policy_findings
from provisioner.outputs import OUTPUTS
from provisioner.render import render
from provisioner.resolver.problem import join
from provisioner.workflow.inputs import read_inputs
from provisioner.workflow.ownership import is_work_of_others

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.lock.model import Lock
    from provisioner.workflow.inputs import Inputs
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.relocking import Preview

VERDICTS = ("error", "no", "unverified", "yes")
"""From worst to best."""

STALE_CODES = frozenset(
    {
        "contradiction", "missing-package", "missing-platform", "stale-accelerator", "stale-environment", "stale-gate",
        "stale-host-requirements", "stale-index", "stale-package", "stale-runs", "stale-stack", "unasked-package",
        "unknown-release",
    }
)  # fmt: skip
"""Findings that solving again would do something about."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of a lock: the hosts and the matrix it should hold with, and what else to read.

    `hosts` stand in place of those the spec names. `asks_changes`: what would solving again change? `reads_wheels`: do two
    wheels write the same file?
    """

    hosts: tuple[Path, ...] = ()
    matrix: Path | None = None
    exclude_newer: str | None = None
    asks_changes: bool = False
    reads_wheels: bool = False
    is_offline: bool = False


class Report(Struct, frozen=True, kw_only=True):
    """What the check of one lock found, and the error that ended it; `preview` is what solving it again would change."""

    path: Path
    findings: tuple[Finding, ...]
    error: ProvisionError | None = None
    preview: Preview | None = None

    @property
    def verdict(self) -> str:
        """`error`, or the worst verdict of the findings."""
        return "error" if self.error is not None else worst(finding.verdict for finding in self.findings)


def worst(verdicts: Iterator[str] | Sequence[str]) -> str:
    """Return the worst of some verdicts, `yes` for none."""
    return min(verdicts, key=VERDICTS.index, default="yes")


def locks_in(paths: Sequence[Path]) -> list[Path]:
    """Return every lock named or found below a folder, sorted; raises `UsageError` when there is none."""
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


def check_lock(path: Path, question: Question, progress: Progress | None = None) -> Report:
    """Check one lock. Without `asks_changes` no index is asked, and of a stale lock its system half is solved again.

    An error about the lock or its spec is part of the report, so that other locks are still checked.
    """
    found: list[Finding] = []
    preview = None
    try:
        lock, inputs = _read(path, question, found)
        if inputs is not None:
            found.extend(_findings(path, lock, inputs, question))
            preview = _preview(
                path, lock, inputs, question, is_stale=any(one.code in STALE_CODES for one in found), progress=progress
            )
    except ProvisionError as error:
        return Report(path=path, findings=tuple(found), error=error)
    if preview is not None:
        found.extend(preview.findings)
    return Report(path=path, findings=tuple(found), preview=preview)


def _preview(
    path: Path, lock: Lock, inputs: Inputs, question: Question, *, is_stale: bool, progress: Progress | None
) -> Preview | None:
    if not question.asks_changes and not is_stale:
        return None
    from provisioner.workflow.relocking import preview_changes, preview_system  # a lock that holds is not solved again

    if question.asks_changes:
        return preview_changes(path, lock, inputs, is_offline=question.is_offline, progress=progress)
    return preview_system(path, lock, inputs)


def _read(path: Path, question: Question, found: list[Finding]) -> tuple[Lock, Inputs | None]:
    """Read a lock and its inputs; what is wrong with the lock by itself is added to `found`."""
    text = read_text(path, kind=KIND)
    lock = parse_lock(text, file=str(path))
    if not verify_digest(text):
        words = "the lock was edited by hand: its digest does not fit its content"
        hints = ("change the spec and run `provision solve`",)
        found.append(Finding(code="edited-lock", verdict="no", text=words, where=str(path), hints=hints))
    found.extend(coherence_findings(lock, text, where=str(path)))
    found.extend(artefact_findings(lock, path.parent, where=str(path)))
    spec_path = _straight(path.parent / lock.spec_file)
    if not _is_file(spec_path):
        words = f"its spec `{lock.spec_file}` is not there, so nothing can be said about what was asked for"
        found.append(Finding(code="no-spec", verdict="unverified", text=words, where=str(path)))
        return lock, None
    inputs = read_inputs(
        spec_path,
        hosts=question.hosts,
        exclude_newer=question.exclude_newer,
        matrix=question.matrix,
        target=lock.target or None,
    )
    found.extend(_missing_targets(path, inputs))
    return lock, inputs


def _is_file(path: Path) -> bool:
    """Whether a file is there; False for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def _straight(path: Path) -> Path:
    """Return a path without `grace/..`, as long as it leads to the same file: `grace` may be a link."""
    straight = Path(os.path.normpath(path))
    return straight if _is_file(straight) and _is_file(path) and straight.samefile(path) else path


def _missing_targets(path: Path, inputs: Inputs) -> Iterator[Finding]:
    """Yield the targets of a spec that nobody has locked yet: a folder each, beside that of this lock."""
    for name in inputs.targets:
        place = path.absolute().parent.parent / name / path.name
        if not place.is_file():
            text = f"the spec wants target {name}, which has no lock beside this one"
            hints = (f"`provision solve --target {name}` writes it",)
            yield Finding(code="missing-target", verdict="no", text=text, where=str(path), hints=hints)


def _findings(path: Path, lock: Lock, inputs: Inputs, question: Question) -> Iterator[Finding]:
    """Yield everything wrong or unknown about a lock beside its spec, in the order a reader would ask."""
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
    if question.reads_wheels:
        from provisioner.workflow.wheel_files import file_findings  # reads the network

        yield from file_findings(lock, inputs.matrix, where=path, offline=question.is_offline)


def _rendered(path: Path, lock: Lock, outputs: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the rendered files that are missing, or are not byte for byte what the lock renders."""
    for output in outputs:
        file = path.parent / OUTPUTS[output].file_name
        if not file.is_file():
            hints = (f"`provision render {path} --to {output} --out {file}` writes it",)
            yield Finding(code="missing-output", verdict="no", text=f"`{file}` is missing", where=str(path), hints=hints)
            continue
        wanted = render(lock, output, lock_file_name=path.name).encode()
        try:
            found = file.read_bytes()
        except OSError as error:
            raise FileError(f"rendered file `{file}` cannot be read: {error.strerror}") from None
        if found != wanted:
            line = _first_difference(found, wanted)
            text = f"`{file}` is not what its lock renders; they differ from line {line}"
            once = "; provision did not render what is there: move or delete that first" if is_work_of_others(file) else ""
            hints = (f"`provision render {path} --to {output} --out {file}` writes it again{once}",)
            yield Finding(code="edited-output", verdict="no", text=text, where=f"{file}:{line}", hints=hints)


def _first_difference(found: bytes, wanted: bytes) -> int:
    """Return the first line, counted from 1, that differs, by its end or otherwise."""
    lines = zip_longest(found.splitlines(keepends=True), wanted.splitlines(keepends=True))
    return next(index for index, (one, other) in enumerate(lines, start=1) if one != other)
