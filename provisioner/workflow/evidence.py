"""Judge the evidence beside a lock: whether it is of exactly this lock, and which levels it proves."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from provisioner.document import FileError, file_sha256
from provisioner.errors import InvalidDocumentError, ProvisionError
from provisioner.evidence.report import IDLE, LEVELS, Report, faults, proven_level
from provisioner.evidence.statement import NoEvidenceError, evidence_path, evidence_paths, read_evidence
from provisioner.grounds.finding import (
    EditedEvidence,
    EvidenceOf,
    FailedEvidence,
    MissingEvidence,
    ProvenEvidence,
    StaleEvidence,
    UnreadableEvidence,
    Validate,
    WeakEvidence,
)
from provisioner.lock.format.file import read_lock
from provisioner.render import render
from provisioner.render.header import UnrenderableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.grounds.finding import AboutEvidence
    from provisioner.lock.format.model import Lock

_MOST_MISTAKES = 5


def evidence_findings(lock: Lock, path: Path, level: int | None = None) -> Iterator[AboutEvidence]:
    """Yield one finding for each file of evidence of a lock: what it proves, or why it does not prove `level`.

    A platform without any has one finding, too; each class of a cluster's nodes has a file of its own. Without a level, any
    level will do. `path` is the lock's; it is read again, since the hash of its bytes is what evidence is
    of. Raises `FileError` when it cannot be read.
    """
    sha256, dockerfile = file_sha256(path), _rendered(lock, path.name)
    for stack in lock.stacks:
        platform = stack.platform
        validate = Validate(
            lock=str(path), platform=platform if len(lock.stacks) > 1 else "", level=level, is_local=stack.runs == "host"
        )
        for file in evidence_paths(path, platform) or (evidence_path(path, platform),):
            about = EvidenceOf(platform=platform, file=str(file), validate=validate)
            report = _read(file, about)
            if not isinstance(report, Report):
                yield report
            else:
                yield _stale(report, about, sha256, dockerfile) or _judged(report, about, level)


def evidence_of(path: Path, platform: str) -> tuple[AboutEvidence, ...]:
    """Return what the evidence of a lock on one platform proves; () where there is no lock of this platform to read."""
    try:
        return tuple(one for one in evidence_findings(read_lock(path), path) if one.platform == platform)
    except ProvisionError:
        return ()  # `check` says what is wrong with the lock


def _read(file: Path, about: EvidenceOf) -> Report | AboutEvidence:
    """Return the report of evidence, or why there is none."""
    try:
        evidence = read_evidence(file)
    except NoEvidenceError:
        return MissingEvidence(about=about)
    except (FileError, InvalidDocumentError) as error:
        return UnreadableEvidence(about=about, problem=error.message, mistakes=error.causes[:_MOST_MISTAKES])
    return EditedEvidence(about=about) if evidence.is_edited else evidence.report


def _stale(report: Report, about: EvidenceOf, sha256: str, dockerfile: str) -> StaleEvidence | None:
    """Return for what else than this lock file, platform and Dockerfile, of these hashes, evidence is; None if for these."""
    found = report.lock_sha256.removeprefix("sha256:")
    if found != sha256:
        return StaleEvidence(about=about, difference="lock", needed=sha256, found=found)
    if report.platform != about.platform:
        return StaleEvidence(about=about, difference="platform", needed=about.platform, found=report.platform)
    found = report.dockerfile.removeprefix("sha256:")  # "": an image that was built before, or an environment without one
    if found and found != dockerfile:
        return StaleEvidence(about=about, difference="Dockerfile", needed=dockerfile, found=found)
    return None


def _rendered(lock: Lock, lock_file_name: str) -> str:
    """Return the hash of the Dockerfile that a lock renders, "" for a lock that is for no container."""
    try:
        return hashlib.sha256(render(lock, "dockerfile", lock_file_name=lock_file_name).encode()).hexdigest()
    except UnrenderableError:
        return ""


def _judged(report: Report, about: EvidenceOf, level: int | None) -> AboutEvidence:
    wrong = tuple(field.name for field in faults(report, level))
    if wrong:
        return FailedEvidence(about=about, wrong=wrong)
    proven = proven_level(report)
    if proven is not None and (level is None or proven >= level):
        return ProvenEvidence(about=about, level=proven, name=LEVELS[proven], engine=report.engine.title, time=report.time)
    wanted = report.level if level is None else level
    unverified = [field.name for field in report.fields if field.verdict == "unverified" and field.level <= wanted]
    idle = next((one.note for one in report.levels if one.level == wanted and one.verdict == IDLE), "")
    return WeakEvidence(about=about, level=wanted, name=LEVELS[wanted], proven=proven, unverified=tuple(unverified), idle=idle)
