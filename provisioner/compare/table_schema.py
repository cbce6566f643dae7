"""The YAML of published tables and of known disagreements, as pydantic models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Frozen, strict, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ClaimEntry(StrictModel):
    """One claim; see `claims.Claim`."""

    subject: str
    says: str
    scope: str = ""
    line: int = 0


class TableFile(StrictModel):
    """One published table as it was read: where it stood, when, and its claims by question."""

    table: str
    title: str
    where: str
    url: str
    read: str
    claims: dict[str, tuple[ClaimEntry, ...]]


class DisagreementEntry(StrictModel):
    """Why a table differs from this matrix and the matrix stays as it is.

    `subject` may hold `*`; `says` and `ours`, where given, must be exactly what is found, so that a reason written for one
    difference never covers another one.
    """

    table: str
    question: str
    subject: str
    says: str = ""
    ours: str = ""
    because: str
    source: str = ""


class DisagreementFile(StrictModel):
    """Every known disagreement."""

    disagreements: tuple[DisagreementEntry, ...] = ()
