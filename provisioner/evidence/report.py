"""The report of a validation: locked and measured facts with a verdict; evidence, JUnit and HTML are views of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from provisioner.errors import EXIT_CODES, without_userinfo
from provisioner.spellings import Digest, KnownDigest
from provisioner.strict_model import StrictModel, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

Verdict = Literal["yes", "no", "unverified"]

IDLE: Literal["nothing to do"] = "nothing to do"
"""The verdict of a level that has nothing to do for a lock."""

NO_ENGINE = "none"
"""The name of the engine in a report of level 0, which needs none."""

LEVELS = ("static", "build", "files", "imports", "devices", "health")
"""The checks of each level, from level 0 on; a validation has those of its level and of all below it."""

HEALTH = LEVELS.index("health")
"""The level that is about a machine on a day, and not about a lock."""


class FieldReport(StrictModel, frozen=True, kw_only=True):
    """One fact: its locked value, its measured value, and whether the two agree.

    `note` gives a further reason; "" for none. `level` is the lowest level that measures the fact.
    """

    name: str
    locked: str
    measured: str
    verdict: Verdict
    note: str = ""
    level: Annotated[int, Meta(ge=0, le=5)] = 0


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


def masked(fields: Iterable[FieldReport]) -> tuple[FieldReport, ...]:
    """Return fields with `…` in place of each login in an address, as logs of builds have them: evidence is committed."""
    return tuple(
        replace(
            one,
            locked=without_userinfo(one.locked),
            measured=without_userinfo(one.measured),
            note=without_userinfo(one.note),
        )
        for one in fields
    )


class LevelReport(StrictModel, frozen=True, kw_only=True):
    """What one level says of a lock: the verdict of its fields, or `nothing to do`, with the reason as `note`."""

    level: Annotated[int, Meta(ge=0, le=5)]
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

    @property
    def title(self) -> str:
        """Return the name with the version, such as `docker 28.5.2`; "" for no engine."""
        return "" if self.name == NO_ENGINE else f"{self.name} {self.version}".rstrip()


class LoadReport(StrictModel, frozen=True, kw_only=True):
    """Figures of one device under load (level 5): TFLOP/s in float16, GB/s read and written, bytes checked."""

    device: str
    name: str
    teraflops: float
    gigabytes_per_second: float
    memory_checked: int
    seconds: float


class GpuReport(StrictModel, frozen=True, kw_only=True):
    """One GPU of the host. `identity` is the hash of its UUID, which tells GPUs apart and names none; "" if it was not read."""

    name: str
    identity: KnownDigest = ""


class HostReport(StrictModel, frozen=True, kw_only=True):
    """What was measured of the host that ran the checks: kernel and driver as they name themselves, "" if not measured."""

    kernel: str = ""
    driver: str = ""
    gpus: tuple[GpuReport, ...] = ()


class Report(StrictModel, frozen=True, kw_only=True):
    """One validation of one lock on one platform.

    `lock_digest` identifies the content of the lock, as the label of its image does, and `lock_sha256` the bytes of its file.
    `dockerfile` is the hash of the Dockerfile that was built, "" if none was. `image` is the engine's id of the image, and
    `image_digests` are its digests in registries (`NAME@sha256:…`). `matrix_digest` is that of the lock. `time` is when the
    validation began, in UTC. Only `time`, `timing` (seconds) and `load` differ between two runs with equal results.
    `schema_version` is 3 since it tells of the host.
    """

    schema_version: Literal[3] = 3
    name: str
    lock_file: str
    lock_digest: Digest
    lock_sha256: Digest
    tool_version: str
    matrix_digest: str
    platform: str
    engine: EngineReport
    image: str
    image_digests: tuple[str, ...] = ()
    dockerfile: KnownDigest = ""
    host: HostReport
    level: Annotated[int, Meta(ge=0, le=5)]
    verdict: Verdict
    levels: tuple[LevelReport, ...]
    fields: tuple[FieldReport, ...]
    load: tuple[LoadReport, ...] = ()
    time: Annotated[str, spelled(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
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


def faults(report: Report, level: int | None = None) -> tuple[FieldReport, ...]:
    """Return the facts that are a `no`: all of those about the lock, and those of a machine's health if `level` is theirs."""
    return tuple(one for one in report.fields if one.verdict == "no" and (one.level < HEALTH or level == one.level))


def proven_level(report: Report) -> int | None:
    """Return the highest level that a report proves; None if it proves none, or if any fact about the lock is a `no`.

    Such a level is a `yes`, and each level below is one or has nothing to do. The facts decide: a level that calls itself a
    `yes` and has a fact that is none proves nothing.
    """
    if faults(report):
        return None
    proven = None
    for level in report.levels:
        facts = [field for field in report.fields if field.level == level.level]
        if level.verdict == IDLE and not facts:
            continue
        if level.verdict != "yes" or overall(facts) != "yes":
            break
        proven = level.level
    return proven


def is_stronger(recorded: Report, report: Report) -> bool:
    """Return whether the report `recorded` must not be replaced by `report`.

    This holds if both are of the same bytes of a lock, the same platform and no different Dockerfiles, `report` has no faults,
    and `recorded` proves a higher level.
    """
    is_same = (recorded.lock_sha256, recorded.platform) == (report.lock_sha256, report.platform)
    is_same = is_same and (not report.dockerfile or report.dockerfile == recorded.dockerfile)
    if not is_same or faults(report):
        return False
    proven, proves = proven_level(recorded), proven_level(report)
    return proven is not None and (proves is None or proven > proves)
