"""Evidence: the report of a validation as an in-toto statement, in a file beside its lock.

The statement is of the published type for results of tests. What that type has no place for, such as the third verdict, is the
whole report, in a field of its own.

Sources: in-toto attestation framework, github.com/in-toto/attestation, spec/v1/statement.md, spec/v1/resource_descriptor.md and
spec/v1/README.md (parsing rules, extension fields), spec/predicates/test-result.md; read 2026-11-23.
"""

from __future__ import annotations

import hashlib
import json
import re
from stat import S_ISREG
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, field, to_builtins

from provisioner.document import FileError, parse_document, parse_model, write_text
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.evidence.report import LEVELS, Report, Verdict
from provisioner.spellings import Digest
from provisioner.strict_model import StrictModel, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIND = "evidence"

StatementType = Literal["https://in-toto.io/Statement/v1"]
PredicateType = Literal["https://in-toto.io/attestation/test-result/v0.1"]

VARYING = ("time", "timing", "load")
"""The fields of the report that differ between two validations with equal results."""

MOST_BYTES = 1_000_000
"""The size of the largest evidence that is read; that of 500 packages that are all wrong has about 136,000."""

_MOST_PLACED = 10_000
"""The most values of which the place of each mistake is found, which takes a second; beyond, the first mistake is told."""

_SHA256 = re.compile(r"(?:(?P<name>[^@]*)@)?(?:sha256:)?(?P<value>[0-9a-f]{64})")
"""A digest of an image, `NAME@sha256:…` or `sha256:…`, or one of a file, which may be the bare hash."""


class NoEvidenceError(FileError):
    """Raised when there is no file of evidence."""

    code = "no-evidence"


class Descriptor(Struct, frozen=True, kw_only=True):
    """An artefact with its digest, such as `{"sha256": …}`: a ResourceDescriptor."""

    name: str
    digest: dict[str, str]


class Validation(StrictModel, frozen=True, kw_only=True):
    """The report, and the hash of it: an edit by hand shows. The hash is no signature."""

    digest: Digest
    report: Report


class TestResult(Struct, frozen=True, kw_only=True, rename="camel"):
    """The predicate, of type `PredicateType`, with the report as an extension field (`provisionValidation`).

    `result` is PASSED for the verdict yes alone: the type has no word for *unverified*, and a reader that knows no more than
    PASSED and FAILED must not take it for a pass. An unverified fact is in none of the lists.
    """

    __test__ = False  # pytest: no class of tests

    result: Literal["PASSED", "FAILED"]
    configuration: tuple[Descriptor, ...]
    passed_tests: tuple[str, ...] = ()
    warned_tests: tuple[str, ...] = ()
    failed_tests: tuple[str, ...] = ()
    provision_validation: Validation


class Statement(Struct, frozen=True, kw_only=True, rename="camel"):
    """An in-toto statement about a lock and the image of it. Unknown keys are ignored, as the parsing rules of in-toto ask."""

    type: StatementType = field(name="_type")
    subject: tuple[Descriptor, ...]
    predicate_type: PredicateType
    predicate: TestResult


class Evidence(Struct, frozen=True, kw_only=True):
    """Evidence that was read: the report, and whether the file was edited, so that its parts or the hash no longer agree."""

    report: Report
    is_edited: bool


def evidence_path(lock_path: Path, platform: str, node_class: str = "") -> Path:
    """Return the path of the evidence of a lock on one platform.

    `pylock.trainer.linux-amd64.evidence.json` is beside `pylock.trainer.toml`. Each platform has a file of its own, so that
    machines of several platforms write no file of each other, and each file is one statement, as tools that sign want it. Each
    class of a cluster's nodes has one, too: `pylock.trainer.linux-amd64.h100.evidence.json`.
    """
    parts = [lock_path.name.removesuffix(".toml"), platform.replace("/", "-"), *([node_class] if node_class else [])]
    return lock_path.with_name(".".join((*parts, "evidence", "json")))


def evidence_paths(lock_path: Path, platform: str) -> tuple[Path, ...]:
    """Return the files of evidence of a lock on one platform that are there, that of no class of nodes first; sorted."""
    own = evidence_path(lock_path, platform)
    prefix = own.name.removesuffix("evidence.json")
    found = sorted(
        path
        for path in lock_path.parent.iterdir()
        if path.name.startswith(prefix) and path.name.endswith(".evidence.json") and path != own
    )
    return (*([own] if own.exists() or own.is_symlink() else []), *found)


def statement_of(report: Report) -> Statement:
    """Return the statement of a report: the same report gives the same statement."""
    passed, failed = _named(report, "yes"), _named(report, "no")
    return Statement(
        type="https://in-toto.io/Statement/v1",
        subject=tuple(_subjects(report)),
        predicate_type="https://in-toto.io/attestation/test-result/v0.1",
        predicate=TestResult(
            result="PASSED" if report.verdict == "yes" else "FAILED",
            configuration=tuple(_configuration(report)),
            passed_tests=passed,
            failed_tests=failed,
            provision_validation=Validation(digest=_digest(report), report=report),
        ),
    )


def _named(report: Report, verdict: Verdict) -> tuple[str, ...]:
    """Return the names of the facts of one verdict, such as `2 files: python`."""
    return tuple(f"{one.level} {LEVELS[one.level]}: {one.name}" for one in report.fields if one.verdict == verdict)


def _subjects(report: Report) -> Iterator[Descriptor]:
    """Yield the lock, by the hash of its bytes, and the image, by the engine's id and by its digests in registries."""
    yield Descriptor(name=report.lock_file, digest={"sha256": report.lock_sha256.removeprefix("sha256:")})
    for name, text in (("image", report.image), *(("image", one) for one in report.image_digests)):
        match = _SHA256.fullmatch(text)
        if match is not None:
            yield Descriptor(name=match["name"] or name, digest={"sha256": match["value"]})


def _configuration(report: Report) -> Iterator[Descriptor]:
    """Yield what the image was made from and the lock was solved with: the Dockerfile and the matrix."""
    for name, text in (("Dockerfile", report.dockerfile), ("matrix", report.matrix_digest)):
        match = _SHA256.fullmatch(text)
        if match is not None:
            yield Descriptor(name=name, digest={"sha256": match["value"]})


def _digest(report: Report) -> str:
    """Return the hash of a report as JSON with sorted keys and without spaces."""
    text = json.dumps(to_builtins(report), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def evidence_text(report: Report) -> str:
    """Return the statement of a report as JSON text: keys in the order of their declaration, one value per line."""
    return json.dumps(to_builtins(statement_of(report)), indent=2, ensure_ascii=False) + "\n"


def write_evidence(path: Path, report: Report) -> None:
    """Write the evidence of a report, whole or not at all; raises `FileError` when the file cannot be written."""
    write_text(path, evidence_text(report))


def read_evidence(path: Path) -> Evidence:
    """Read evidence from a file.

    Raises `NoEvidenceError`, `FileError`, or `InvalidDocumentError` with line and column of each mistake; more bytes than
    `MOST_BYTES` are one.
    """
    statement = _parsed(_limited_text(path), str(path))
    report = statement.predicate.provision_validation.report
    return Evidence(report=report, is_edited=statement != statement_of(report))


def _limited_text(path: Path) -> str:
    try:
        if not S_ISREG(path.stat().st_mode):
            raise FileError(f"{KIND} `{path}` is no file")  # a pipe would have the reader wait for ever
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise NoEvidenceError(f"{KIND} `{path}` does not exist") from None
    except OSError as error:
        raise FileError(f"{KIND} `{path}` cannot be read: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        text = f"the file has more than {MOST_BYTES:,} bytes, and no evidence has so many"
        raise _invalid(str(path), text)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FileError(f"{KIND} `{path}` is not UTF-8 text (byte {error.start})") from None


def _parsed(text: str, file: str) -> Statement:
    """Read a statement; what is not one is read again by the reader of documents, which knows the place of each mistake."""
    try:
        return read(msgspec.json.decode(text), Statement)
    except RecursionError:
        raise _invalid(file, "the file is nested too deeply to be read") from None
    except ValueError as error:  # msgspec's errors are, and so is that of a number of too many digits
        reason = str(error)
    try:
        json.loads(text)
    except json.JSONDecodeError as wrong:
        raise InvalidDocumentError(KIND, (Mistake(file, wrong.lineno, wrong.colno, "", wrong.msg),)) from None
    except (RecursionError, ValueError):
        raise _invalid(file, reason) from None
    if text.count(",") <= _MOST_PLACED:
        parse_model(parse_document(text, file=file, kind=KIND), Statement, kind=KIND)
    raise _invalid(file, reason)


def _invalid(file: str, text: str) -> InvalidDocumentError:
    return InvalidDocumentError(KIND, (Mistake(file, 1, 1, "", text),))
