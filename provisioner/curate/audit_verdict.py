"""Result types of an audit, which measures the artefact that a matrix row names and compares each field of the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from provisioner.matrix.model import Build, Component, Release

Outcome = Literal["confirmed", "refuted", "not measurable"]


class Row(Struct, frozen=True, kw_only=True):
    """One row to audit: a build that names an artefact; `place` is its `file:line` in the matrix, "" when unknown."""

    component: Component
    release: Release
    build: Build
    place: str = ""

    @property
    def name(self) -> str:
        """The unique name of the row for messages: `pytorch==2.8.0+cu128 (linux/amd64)`."""
        platforms = f" ({', '.join(self.build.platforms)})" if self.build.platforms else ""
        return f"{self.component.name}=={self.release.version}+{self.build.name}{platforms}"


class Finding(Struct, frozen=True, kw_only=True):
    """The result for one field of a row: the value in the row (`stated`), the measurement as text (`read`), the outcome.

    `is_whole` is False when only a part of the artefact was read, so that the outcome holds for that part only.
    """

    field: str
    outcome: Outcome
    stated: str = ""
    read: str = ""
    is_whole: bool = True


class Audited(Struct, frozen=True, kw_only=True):
    """A row with its findings; `why_not` is the reason when its artefact could not be measured, "" otherwise."""

    row: Row
    findings: tuple[Finding, ...] = ()
    why_not: str = ""

    @property
    def outcome(self) -> Outcome:
        """The outcome of the row: `refuted` if any finding is, else `confirmed` if any finding is, else `not measurable`."""
        outcomes = {finding.outcome for finding in self.findings}
        if "refuted" in outcomes:
            return "refuted"
        return "confirmed" if "confirmed" in outcomes else "not measurable"


def confirmed(field: str, stated: object, read: str, *, is_whole: bool = True) -> Finding:
    """Return the finding that the artefact agrees with the row."""
    return Finding(field=field, outcome="confirmed", stated=str(stated), read=read, is_whole=is_whole)


def refuted(field: str, stated: object, read: str) -> Finding:
    """Return the finding that the artefact contradicts the row."""
    return Finding(field=field, outcome="refuted", stated=str(stated), read=read)


def unmeasured(field: str, stated: object, why: str) -> Finding:
    """Return the finding that the artefact does not show the fact, or was not read far enough; `why` is the reason."""
    return Finding(field=field, outcome="not measurable", stated=str(stated), read=why, is_whole=False)
