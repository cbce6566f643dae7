"""Explain a lock from its file, its spec, the matrix and the evidence beside it, without an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.evidence.statement import read_evidence
from provisioner.grounds.finding import FailedEvidence, ProvenEvidence, WeakEvidence
from provisioner.lock.explain import Explained, explain_lock
from provisioner.matrix.cache import cached_matrix
from provisioner.resolver.problem import join
from provisioner.workflow.checking import lock_findings, read_beside_spec, worst
from provisioner.workflow.evidence import evidence_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.evidence.report import Report
    from provisioner.grounds.finding import AboutEvidence, Finding
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from provisioner.workflow.checking import Question
    from provisioner.workflow.inputs import Inputs


class ExplainedLock(Struct, frozen=True, kw_only=True):
    """A lock, explained for each of its platforms, without an index.

    `findings` are what a check of the lock itself finds. `evidence` is what the files beside it prove, each with its report,
    None if there is none to read. `inputs` are None if the spec of the lock is missing. Files are called by their bare names.
    """

    lock: Lock
    platforms: tuple[Explained, ...]
    matrix: Matrix
    findings: tuple[Finding, ...]
    evidence: tuple[tuple[AboutEvidence, Report | None], ...]
    inputs: Inputs | None = None

    @property
    def verdict(self) -> str:
        """The worst verdict of the findings; mere warnings are a `yes`."""
        found = worst(finding.verdict for finding in self.findings)
        return "yes" if found == "warning" else found


def explain_lock_file(path: Path, question: Question, *, platform: str | None = None) -> ExplainedLock:
    """Read a lock and the spec it was solved from, and explain it; of several platforms only `platform`, if one is given.

    Raises `FileError`, `InvalidDocumentError`, and `UsageError` for a platform that the lock does not have.
    """
    found: list[Finding] = []
    lock, inputs = read_beside_spec(path, question, found, file=path.name)
    matrix = inputs.matrix if inputs is not None else cached_matrix(question.matrix)
    if inputs is not None:
        found.extend(lock_findings(lock, inputs, file=path.name, has_other_hosts=bool(question.hosts)))
    platforms = lock.platforms if platform is None else (platform,)
    return ExplainedLock(
        lock=lock,
        platforms=tuple(_explained(lock.on(one), inputs, path.name) for one in platforms),
        matrix=matrix,
        findings=tuple(found),
        evidence=tuple(pair for pair in _evidence(lock, path) if pair[0].platform in platforms),
        inputs=inputs,
    )


def _explained(lock: Lock, inputs: Inputs | None, file: str) -> Explained:
    if inputs is None or lock.stack.platform not in inputs.platforms:
        return Explained(lock=lock)
    return explain_lock(lock, join(inputs.matrix, inputs.request(lock.stack.platform)), file=file)


def _evidence(lock: Lock, path: Path) -> Iterator[tuple[AboutEvidence, Report | None]]:
    """Yield what each file of evidence proves, with its report if the file is one of exactly this lock."""
    for finding in evidence_findings(lock, path):
        file = Path(finding.file)
        about = replace(finding.about, file=file.name, validate=replace(finding.about.validate, lock=path.name))
        report = None
        if isinstance(finding, ProvenEvidence | WeakEvidence | FailedEvidence):
            report = read_evidence(file).report
        yield replace(finding, about=about), report
