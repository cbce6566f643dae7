"""Check whether locks still satisfy their spec, the matrix and the hosts, and whether rendered files match their locks."""

from __future__ import annotations

import os
import re
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from provisioner import __version__
from provisioner.document import FileError, Position, is_file, read_text
from provisioner.errors import InvalidDocumentError, ProvisionError, UsageError
from provisioner.grounds.finding import (
    EditedLock,
    EditedOutput,
    MissingOutput,
    MissingPlace,
    MissingPlatform,
    MissingTarget,
    NoSpec,
    OtherAccelerator,
    OtherName,
    OtherRequest,
    RefusedUndatedPackages,
    RefusedUnpinnedBase,
    UnaskedPlatforms,
    UndatedPackages,
    UnpinnedBase,
)
from provisioner.lock.check.coherence import coherence_findings
from provisioner.lock.check.files import artefact_findings
from provisioner.lock.check.hazards import hazard_findings
from provisioner.lock.check.packages import package_findings, policy_findings
from provisioner.lock.check.stack import stack_findings
from provisioner.lock.format.file import KIND, lock_path, parse_lock, verify_digest
from provisioner.lock.requested import requested
from provisioner.places import Place
from provisioner.render import render
from provisioner.render.base_image import undated_packages
from provisioner.render.header import is_unedited, rendered_from, without_hash
from provisioner.render.helper import helper_files
from provisioner.resolver.choices.candidates import accelerator_of
from provisioner.resolver.problem import join
from provisioner.workflow.evidence import evidence_findings
from provisioner.workflow.inputs import in_place, read_inputs, read_locked_request
from provisioner.workflow.ownership import is_work_of_others

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.finding import Finding
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from provisioner.outputs import OutputFile
    from provisioner.request import Request
    from provisioner.workflow.inputs import Inputs
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.relocking import Preview

VERDICTS = ("error", "no", "unverified", "warning", "yes")
"""The possible verdicts of findings and of a check, from worst to best; a check with mere warnings is a `yes`."""


class Question(Struct, frozen=True, kw_only=True):
    """The options of a check.

    `hosts` are host profiles that replace those the spec names. With `asks_changes` the indexes are asked what solving again
    would change; with `reads_wheels` the wheels are checked for files that two of them write. `required_level` is the level of
    validation of which there must be evidence beside the lock, None for no evidence.
    """

    hosts: tuple[Path, ...] = ()
    matrix: Path | None = None
    exclude_newer: str | None = None
    asks_changes: bool = False
    reads_wheels: bool = False
    required_level: int | None = None
    is_offline: bool = False
    is_strict: bool = False


class Report(Struct, frozen=True, kw_only=True):
    """The result of checking one lock, or a file that is a finding by itself, such as a spec without a lock.

    `error` is the error that ended the check, else None. `preview` are the changes that a new solve would make; None if no
    stack exists, or if changes were not requested and the lock is not stale (still satisfies its spec, matrix and hosts).
    `spec` is the path of the spec, "" if it is unknown. `places` has the place of each finding, where its cause stands.
    """

    path: Path
    findings: tuple[Finding, ...]
    error: ProvisionError | None = None
    preview: Preview | None = None
    spec: str = ""
    places: tuple[Position, ...] = ()

    @property
    def verdict(self) -> str:
        """`error` if an error ended the check, else the worst verdict of the findings."""
        if self.error is not None:
            return "error"
        found = worst(finding.verdict for finding in self.findings)
        return "yes" if found == "warning" else found


def worst(verdicts: Iterator[str] | Sequence[str]) -> str:
    """Return the worst of some verdicts; `yes` when there are none."""
    return min(verdicts, key=VERDICTS.index, default="yes")


def locks_in(paths: Sequence[Path]) -> list[Path]:
    """Return the files among `paths` and the locks below the folders among them; raises `UsageError` when there is none.

    The locks of a folder are sorted; hidden folders are skipped.
    """
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


def check_lock(path: Path, question: Question, progress: Progress | None = None, *, matrix: Matrix | None = None) -> Report:
    """Check one lock and return its findings; `matrix` is the one of the question, if it was read already.

    Without `asks_changes` no index is read, and a preview is computed only for a stale lock, and only of its system half. A
    `ProvisionError` about the lock or its spec is returned in the report, so that other locks are still checked.
    """
    found: list[Finding] = []
    preview, inputs = None, None
    try:
        lock, inputs = read_beside_spec(path, question, found, file=str(path), matrix=matrix)
        if question.required_level is not None:
            found.extend(evidence_findings(lock, path, question.required_level))
        if inputs is not None:
            found.extend(_findings(path, lock, inputs, question))
            preview = _preview(path, lock, inputs, question, is_stale=any(one.is_stale for one in found), progress=progress)
    except ProvisionError as error:
        return _placed(Report(path=path, findings=tuple(found), error=_with_way_out(error)), inputs)
    if preview is not None:
        found.extend(preview.findings)
    return _placed(Report(path=path, findings=tuple(found), preview=preview), inputs)


def _with_way_out(error: ProvisionError) -> ProvisionError:
    """Return an error with what to do next, where it is a mistake in a lock: nobody writes one by hand."""
    if not isinstance(error, InvalidDocumentError) or error.kind != KIND or error.hints:
        return error
    hint = "restore the lock from version control, or write it again with `provision solve` of its spec"
    return InvalidDocumentError(error.kind, error.mistakes, hints=(hint,))


def _placed(report: Report, inputs: Inputs | None) -> Report:
    """Return a report with the place of each finding, and with the path of the spec."""
    spec = "" if inputs is None else inputs.document.file if inputs.is_without_spec else str(inputs.path)
    if not report.findings:
        return replace(report, spec=spec)
    from provisioner.workflow.locating import places_of  # imported late: most locks have nothing to say

    return replace(report, spec=spec, places=places_of(report.findings, report.path, inputs))


def _preview(
    path: Path, lock: Lock, inputs: Inputs, question: Question, *, is_stale: bool, progress: Progress | None
) -> Preview | None:
    if not question.asks_changes and not is_stale:
        return None
    from provisioner.workflow.relocking import preview_changes, preview_system  # a valid lock needs no solver

    if question.asks_changes:
        return preview_changes(path, lock, inputs, is_offline=question.is_offline, progress=progress)
    return preview_system(path, lock, inputs)


def read_beside_spec(
    path: Path, question: Question, found: list[Finding], *, file: str, matrix: Matrix | None = None
) -> tuple[Lock, Inputs | None]:
    """Read a lock and the inputs of its spec, None if that file is missing; add the mistakes of the lock itself to `found`.

    `file` is the name of the lock in these; `matrix` is the one of the question, if it was read already. Raises `FileError` and
    `InvalidDocumentError`.
    """
    text = read_text(path, kind=KIND)
    lock = parse_lock(text, file=file)
    if not verify_digest(text):
        found.append(EditedLock(place=Place(file)))
    found.extend(coherence_findings(lock, text, file=file))
    found.extend(artefact_findings(lock, path.parent))
    if not lock.spec_file:  # solved from the command line alone
        whole = question.matrix if matrix is None else matrix
        inputs = read_locked_request(lock, path.parent, hosts=question.hosts, matrix=whole)
        return lock, replace(inputs, is_strict=question.is_strict)
    spec_path = _straight(path.parent / lock.spec_file)
    if not is_file(spec_path):
        found.append(NoSpec(object=lock.spec_file))
        return lock, None
    inputs = read_inputs(
        spec_path,
        hosts=question.hosts,
        exclude_newer=question.exclude_newer,
        matrix=question.matrix if matrix is None else matrix,
        target=lock.target or None,
    )
    inputs = in_place(inputs, "container" if any(stack.runs == "container" for stack in lock.stacks) else "host")
    found.extend(_missing_targets(path, inputs))
    return lock, replace(inputs, is_strict=question.is_strict)


def _straight(path: Path) -> Path:
    """Return a path without `folder/..` if it still leads to the same file: `folder` may be a symbolic link."""
    straight = Path(os.path.normpath(path))
    return straight if is_file(straight) and is_file(path) and straight.samefile(path) else path


def _missing_targets(path: Path, inputs: Inputs) -> Iterator[Finding]:
    """Yield a finding for each target, and each place under `runs`, that has no lock beside this one."""
    for finding, file in _wanted_beside(path, inputs):
        if not file.is_file():
            yield finding


def _wanted_beside(path: Path, inputs: Inputs) -> Iterator[tuple[Finding, Path]]:
    """Yield the lock of each target, and of each place under `runs`, with the finding if it is missing.

    The lock of a target is in the folder of its name.
    """
    for name in inputs.targets:
        place = path.absolute().parent.parent / name / path.name
        yield MissingTarget(object=name, place=inputs.document.place(("targets", name))), place
    own = inputs.spec.runs_in
    for index, name in enumerate(inputs.places):
        other = path.parent / lock_path(f"{inputs.spec.name.removesuffix(own)}{name}")
        yield MissingPlace(object=name, place=inputs.document.place(("runs", index))), other


def _findings(path: Path, lock: Lock, inputs: Inputs, question: Question) -> Iterator[Finding]:
    """Yield the findings about a lock and the files beside it, in the order of the report."""
    yield from lock_findings(lock, inputs, file=str(path), has_other_hosts=bool(question.hosts))
    yield from _rendered(path, lock, inputs.spec.files)
    if question.reads_wheels:
        from provisioner.workflow.wheel_files import file_findings  # imported late: only this option needs the network

        yield from file_findings(lock, inputs.matrix, folder=path.parent, offline=question.is_offline)


def lock_findings(lock: Lock, inputs: Inputs, *, file: str, has_other_hosts: bool) -> Iterator[Finding]:
    """Yield the findings about a lock compared with its spec, matrix and hosts; `file` is the name of the lock.

    With `has_other_hosts` the hosts are not those of the spec.
    """
    yield from _of_spec(lock, inputs)
    has_reasons = _is_of_these(lock, inputs)
    has_other_hosts = has_other_hosts or inputs.spec.target.host == "auto"  # that host may differ from the one of the solve
    for platform in inputs.platforms:
        if platform not in lock.platforms:
            place = inputs.document.place(("target", "platform"))
            yield MissingPlatform(needed=platform, locked=lock.platforms, place=place)
            continue
        one = lock.on(platform)
        problem = join(inputs.matrix, inputs.request(platform))
        wanted = accelerator_of(inputs.matrix, problem.request, one.stack.components)
        if one.stack.accelerator != wanted:
            place = problem.request.place("accelerator")
            yield OtherAccelerator(needed=wanted, locked=one.stack.accelerator, place=place)
            continue
        yield from stack_findings(one, problem, file=file, has_other_hosts=has_other_hosts, has_reasons=has_reasons)
        yield from package_findings(one, problem)
        yield from hazard_findings(one, problem)
        yield from policy_findings(one, problem)
        yield from _of_reproducibility(one, problem.request)


def _of_reproducibility(lock: Lock, request: Request) -> Iterator[Finding]:
    """Yield a finding for each base image without a digest, and for packages of the distribution that have no time.

    They are refused if the request is strict and the spec does not accept them.
    """
    stack = lock.stack
    refused = {"image", "apt"} - set(request.spec.policy.accept) if request.is_strict else set[str]()
    for base in stack.image.images if stack.image is not None else ():
        if not base.digest:
            yield (RefusedUnpinnedBase if "image" in refused else UnpinnedBase)(reference=base.reference)
    undated = undated_packages(stack)
    if undated:
        yield (RefusedUndatedPackages if "apt" in refused else UndatedPackages)(names=undated)


def _is_of_these(lock: Lock, inputs: Inputs) -> bool:
    """Return whether a lock was made from this matrix and spec, with its hosts, by this version of the program.

    Only hosts that are written in the spec are known to be the same: a profile in a file of its own may have changed since, and
    without hosts in the spec there may have been some on the command line, unless the lock requires nothing of hosts.
    """
    made_from = (lock.tool_version, lock.matrix_digest, lock.spec_digest)
    host = inputs.spec.target.host
    is_same = isinstance(host, dict) or (host is None and not any(stack.host_requirements for stack in lock.stacks))
    return is_same and made_from == (__version__, inputs.matrix.digest, inputs.digest)


def _of_spec(lock: Lock, inputs: Inputs) -> Iterator[Finding]:
    """Yield a finding for a name or platform that the spec has not, and for a record of requests that is not that of the spec.

    A spec that has changed since may ask for something else: requests are compared only where the lock has its digest.
    """
    if lock.name != inputs.spec.name:
        yield OtherName(needed=inputs.spec.name, locked=lock.name, place=inputs.document.place(("name",)))
    if set(inputs.platforms) < set(lock.platforms):
        platforms = tuple(platform for platform in lock.platforms if platform not in inputs.platforms)
        place = inputs.document.place(("target", "platform"))
        yield UnaskedPlatforms(platforms=platforms, needed=inputs.platforms, place=place)
    if lock.asked and lock.spec_digest == inputs.digest:
        asked = requested(inputs.spec)
        for key in sorted({*asked, *lock.asked}):
            if asked.get(key) != lock.asked.get(key):
                yield OtherRequest(object=key, needed=asked.get(key, ""), locked=lock.asked.get(key, ""))


def _rendered(path: Path, lock: Lock, outputs: tuple[OutputFile, ...]) -> Iterator[Finding]:
    """Yield a finding for each rendered file, or helper file, that is missing or differs from what would be written now."""
    compared: set[Path] = set()
    for output in outputs:
        text = render(lock, output.format, lock_file_name=path.name)
        rendered = path.parent / output.path
        yield from _compared(MissingOutput(lock=str(path), output=output.format, file=str(rendered)), text.encode())
        for name, helper in helper_files(output.format, text).items():
            file = path.parent / name
            if file not in compared:
                compared.add(file)
                missing = MissingOutput(lock=str(path), output=output.format, file=str(file), helped=str(rendered))
                yield from _compared(missing, helper.encode())


_CONFLICT = re.compile(rb"^<<<<<<< ", re.MULTILINE)
"""The line with which git begins a conflict of a merge."""


def _compared(missing: MissingOutput, wanted: bytes) -> Iterator[Finding]:
    """Yield a finding if the file of `missing` does not exist or differs from `wanted`."""
    file = Path(missing.file)
    if not file.is_file():
        yield missing
        return
    try:
        found = file.read_bytes()
    except OSError as error:
        raise FileError(f"rendered file `{file}` cannot be read: {error.strerror}") from None
    if found != wanted:
        lines = found.replace(b"\r\n", b"\n")
        texts = without_hash(lines), without_hash(wanted)
        is_same_text = texts[0] == texts[1]
        by: Literal["text", "line-ends", "conflict"] = "line-ends" if lines == wanted else "text"
        pairs = (texts, (lines, wanted), (found, wanted))  # the hash and line ends are told only where nothing else differs
        line, column = next(_first_difference(one, other) for one, other in pairs if one != other)
        if conflict := _CONFLICT.search(lines):
            by, line, column = "conflict", lines[: conflict.start()].count(b"\n") + 1, 1
        yield EditedOutput(
            lock=missing.lock,
            output=missing.output,
            file=missing.file,
            helped=missing.helped,
            is_foreign=is_work_of_others(file),
            is_unedited=is_same_text or (is_unedited(lines) and rendered_from(file) in {Path(missing.lock).name, ""}),
            place=Place(str(file), line),
            column=column,
            by=by,
        )


def _first_difference(found: bytes, wanted: bytes) -> tuple[int, int]:
    """Return the line and the column of the first character that differs, counted from 1; line ends count too."""
    lines = zip_longest(found.splitlines(keepends=True), wanted.splitlines(keepends=True), fillvalue=b"")
    line, one, other = next((index, one, other) for index, (one, other) in enumerate(lines, start=1) if one != other)
    texts = (text.decode(errors="replace") for text in (one, other))
    column = next(index for index, (here, there) in enumerate(zip_longest(*texts), start=1) if here != there)
    return line, column
