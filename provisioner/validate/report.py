"""The report of a validation (its evidence): locked and measured facts with a verdict, in a file beside the lock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, field, to_builtins
from msgspec.structs import replace

from provisioner.document import load_document, parse_model, write_text
from provisioner.strict_model import StrictModel, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Verdict = Literal["yes", "no", "unverified"]

EXIT_CODES: dict[Verdict, int] = {"yes": 0, "no": 1, "unverified": 3}


LEVELS = ("static", "build", "files", "imports", "devices")
"""The checks of each level, from level 0 on; a validation has those of its level and of all below it."""


class FieldReport(StrictModel, frozen=True, kw_only=True):
    """One fact: its locked value, its measured value, and whether the two agree.

    `note` gives a further reason; "" for none. `level` is the lowest level that measures the fact.
    """

    name: str
    locked: str
    measured: str
    verdict: Verdict
    note: str = ""
    level: Annotated[int, Meta(ge=0, le=4)] = 0


def agreement(name: str, locked: str, measured: str, *, agrees: bool, note: str = "") -> FieldReport:
    """Return the field of a fact with a known locked and a known measured value."""
    verdict: Verdict = "yes" if agrees else "no"
    return FieldReport(name=name, locked=locked, measured=measured, verdict=verdict, note=note)


def unverified(name: str, locked: str, note: str) -> FieldReport:
    """Return the field of a fact that could not be measured; `note` is the reason."""
    return FieldReport(name=name, locked=locked, measured="", verdict="unverified", note=note)


def outcome(name: str, is_correct: bool | None, error: str) -> FieldReport:  # noqa: FBT001 - a measured value, not a switch
    """Return the field of a computation that could run; a failure there is a "no", not "unverified".

    `is_correct` is None if the computation has no result.
    """
    measured = "correct" if is_correct and not error else "failed" if error or is_correct is None else "wrong"
    return agreement(name, "correct", measured, agrees=measured == "correct", note=error)


def at_level(level: int, fields: Iterable[FieldReport]) -> tuple[FieldReport, ...]:
    """Return fields as those of a level."""
    return tuple(replace(field, level=level) for field in fields)


class LevelReport(StrictModel, frozen=True, kw_only=True):
    """What one level says of a lock: the verdict of its fields, or `nothing to do`, with the reason as `note`."""

    level: Annotated[int, Meta(ge=0, le=4)]
    name: str
    verdict: Literal["yes", "no", "unverified", "nothing to do"]
    note: str = ""


class EngineReport(StrictModel, frozen=True, kw_only=True):
    """The engine that ran the image. `builder` is the program that built the image, "" if none was built.

    `node_class` is the name of the class of a cluster's nodes, "" for any node, or without a cluster.
    """

    name: str
    version: str
    builder: str = ""
    node_class: str = ""


class LoadReport(StrictModel, frozen=True, kw_only=True):
    """Figures of one device under sustained load (level 4): TFLOP/s in float16, GB/s of copying, bytes checked."""

    device: str
    name: str
    teraflops: float
    gigabytes_per_second: float
    memory_checked: int
    seconds: float


class Report(StrictModel, frozen=True, kw_only=True):
    """One validation of one lock on one platform.

    `lock_digest` identifies the lock. Only `timing` (seconds) and `load` differ between two runs with equal results.
    `schema_version` is 2 since levels are those of `LEVELS`.
    """

    schema_version: Literal[2] = 2
    name: str
    lock_file: str
    lock_digest: Annotated[str, spelled(r"^sha256:[0-9a-f]{64}$")]
    platform: str
    engine: EngineReport
    image: str
    level: Annotated[int, Meta(ge=0, le=4)]
    verdict: Verdict
    levels: tuple[LevelReport, ...]
    fields: tuple[FieldReport, ...]
    load: tuple[LoadReport, ...] = ()
    timing: dict[str, float] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """Return the exit code of the verdict: 0 yes, 1 no, 3 unverified."""
        return EXIT_CODES[self.verdict]


def overall(fields: Iterable[FieldReport]) -> Verdict:
    """Return the verdict of all fields: `no` if one is `no`, else `unverified` if one is or there is no field, else `yes`."""
    verdicts = {field.verdict for field in fields}
    if "no" in verdicts:
        return "no"
    return "unverified" if "unverified" in verdicts or not verdicts else "yes"


def report_path(lock_path: Path, node_class: str = "") -> Path:
    """Return the path of the report of a lock: `trainer.validation.json` beside `pylock.trainer.toml`.

    Each class of nodes has a report of its own: `trainer.h100.validation.json`.
    """
    name = lock_path.name.removeprefix("pylock.").removesuffix("toml").rstrip(".") or "pylock"
    return lock_path.with_name(f"{name}.{node_class}.validation.json" if node_class else f"{name}.validation.json")


def is_stronger(recorded: Report, report: Report) -> bool:
    """Return whether the report `recorded` must not be replaced by `report`.

    This holds if both are of the same lock and platform, and `recorded` is a `yes` of at least the level at which `report` is
    `unverified`.
    """
    is_same = (recorded.lock_digest, recorded.platform) == (report.lock_digest, report.platform)
    return is_same and recorded.verdict == "yes" and report.verdict == "unverified" and recorded.level >= report.level


def report_text(report: Report) -> str:
    """Return the report as JSON text, its keys in the order of the fields of `Report`, one value per line."""
    return json.dumps(to_builtins(report), indent=2, ensure_ascii=False) + "\n"


def write_report(path: Path, report: Report) -> None:
    """Write a report; raises `FileError` when the file cannot be written."""
    write_text(path, report_text(report))


def load_report(path: Path) -> Report:
    """Read a report from a file; raises `FileError`, or `InvalidDocumentError` with line and column of each mistake."""
    kind = "validation report"
    return parse_model(load_document(path, kind=kind), Report, kind=kind)
