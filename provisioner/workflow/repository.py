"""Check all environments of a repository: one load of the matrix for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import ProvisionError
from provisioner.matrix.cache import cached_matrix
from provisioner.workflow.checking import Report, check_lock
from provisioner.workflow.discovery import name_findings, scope_of
from provisioner.workflow.locating import places_of, whole

if TYPE_CHECKING:
    from collections.abc import Sequence
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


def check_repository(paths: Sequence[Path], question: Question, progress: Progress | None = None) -> Checked:
    """Check every environment that some files and folders are about, offline unless the question asks the indexes.

    An error about one lock is in its report. Raises the errors of `scope_of`, and of reading the matrix.
    """
    scope = scope_of(paths)
    matrix = cached_matrix(question.matrix)
    reports = {path: check_lock(path, question, progress, matrix=matrix) for path in scope.locks}
    for path, finding in name_findings(scope.locks):
        report = reports[path]
        places = (*report.places, *places_of((finding,), path, None))
        reports[path] = replace(report, findings=(*report.findings, finding), places=places)
    for path, stray in scope.strays:
        reports[path] = Report(path=path, findings=(stray,), places=(whole(path),))
    return Checked(reports=tuple(reports.values()), skipped=scope.skipped, matrix=matrix)


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
