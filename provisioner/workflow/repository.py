"""Check all environments of a repository: one load of the matrix for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.document import FileError
from provisioner.errors import ProvisionError
from provisioner.grounds.finding import EditedOutput, OrphanedOutput
from provisioner.matrix.cache import cached_matrix
from provisioner.names import nearest
from provisioner.processes import forked
from provisioner.workflow.checking import Report, check_lock
from provisioner.workflow.discovery import name_findings, scope_of
from provisioner.workflow.locating import places_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from provisioner.grounds.finding import StrandedHosts
    from provisioner.matrix.model import Matrix
    from provisioner.workflow.checking import Question
    from provisioner.workflow.progress import Progress


class Checked(Struct, frozen=True, kw_only=True):
    """The reports on a repository, the files `skipped`, which belong to no environment, and the matrix that was asked."""

    reports: tuple[Report, ...]
    skipped: tuple[Path, ...] = ()
    matrix: Matrix


_WHAT_TO_NAME = "name a folder with environments below it, or a lock, spec, host profile or rendered file"

LOCKS_OF_A_PROCESS = 4
"""The fewest locks for which a process is started: a start takes some 20 milliseconds, and a lock some 40."""


def check_repository(
    paths: Sequence[Path], question: Question, progress: Progress | None = None, *, processes: int = 1
) -> Checked:
    """Check every environment that some files and folders are about, offline unless the question asks the indexes.

    Many locks are checked by up to `processes` processes at a time, unless indexes are asked. An error about one lock is in
    its report. Raises the errors of `scope_of`, and of reading the matrix; `UnavailableError` when a process is killed.
    """
    scope = scope_of(paths)
    matrix = cached_matrix(question.matrix)

    def check(path: Path) -> Report:
        return check_lock(path, question, progress, matrix=matrix)

    is_online = question.asks_changes or question.reads_wheels
    most = 1 if is_online else min(processes, len(scope.locks) // LOCKS_OF_A_PROCESS)
    reports = dict(zip(scope.locks, _each(check, scope.locks, most), strict=True))
    for path, finding in name_findings(scope.locks):
        report = reports[path]
        places = (*report.places, *places_of((finding,), path, None))
        reports[path] = replace(report, findings=(*report.findings, finding), places=places)
    claimed = {one.file for report in reports.values() for one in report.findings if isinstance(one, EditedOutput)}
    for path, stray in scope.strays:
        if isinstance(stray, OrphanedOutput) and stray.file in claimed:
            continue  # its place is that of an output of another lock, which says how to render it
        reports[path] = Report(path=path, findings=(stray,), places=(whole(path),))
    for path in scope.missing:
        reports[path] = Report(path=path, findings=(), error=_missing(path))
    return Checked(reports=tuple(reports.values()), skipped=scope.skipped, matrix=matrix)


def _missing(path: Path) -> FileError:
    """Return the error about a path that does not exist, with the name beside it that is most like its own."""
    try:
        beside = [one.name for one in path.parent.iterdir()]
    except OSError:  # the folder is missing, too, or nobody may list it
        beside = []
    near = nearest(path.name, beside)
    hint = f"did you mean `{path.with_name(near)}`?" if near is not None else _WHAT_TO_NAME
    return FileError(f"`{path}` does not exist", hints=(hint,))


def with_stranded(reports: Sequence[Report], hosts: Sequence[Path], matrix: Matrix) -> tuple[Report, ...]:
    """Return reports with a finding for the hosts in some files that a lock does not run on.

    Raises the errors of `read_targets_in`; an error about one lock is in its report.
    """
    from provisioner.workflow.stranding import read_targets_in, stranded

    targets = read_targets_in(hosts, matrix)
    found = []
    for report in reports:
        findings: tuple[StrandedHosts, ...] = ()
        if report.error is None and report.spec:
            try:
                findings = tuple(stranded(report.path, targets, matrix))
            except ProvisionError as error:
                found.append(replace(report, error=error))
                continue
        places = places_of(findings, report.path, None)
        found.append(replace(report, findings=(*report.findings, *findings), places=(*report.places, *places)))
    return tuple(found)


def _each(check: Callable[[Path], Report], locks: Sequence[Path], processes: int) -> Iterator[Report]:
    """Yield the report of each lock, in their order, checked by some processes, which have the matrix without loading it.

    Raises `UnavailableError` when a process is killed.
    """
    advice = "check fewer locks at a time, each by its path"
    with forked(check, processes if processes > 1 else 0, doing="checked locks", advice=advice) as reports:
        yield from reports(locks)
