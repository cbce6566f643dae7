"""What an audit says of one field of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from provisioner.matrix.model import Build, Component, Release

Outcome = Literal["confirmed", "refuted", "not measurable"]


class Row(Struct, frozen=True, kw_only=True):
    """One row of the matrix that names an artefact: a build of a release. `place` is its `file:line`."""

    component: Component
    release: Release
    build: Build
    place: str = ""

    @property
    def name(self) -> str:
        """`pytorch==2.8.0+cu128 (linux/amd64)`, unmistakable where builds of one name differ by platform."""
        platforms = f" ({', '.join(self.build.platforms)})" if self.build.platforms else ""
        return f"{self.component.name}=={self.release.version}+{self.build.name}{platforms}"


class Finding(Struct, frozen=True, kw_only=True):
    """One field of a row: what the row states, what was read, and what follows.

    `is_whole`: all of the artefact was read; otherwise `confirmed` means as far as it was read.
    """

    field: str
    outcome: Outcome
    stated: str = ""
    read: str = ""
    is_whole: bool = True


class Audited(Struct, frozen=True, kw_only=True):
    """A row with what was found of it; `why_not` is set, and nothing found, where its artefact could not be measured."""

    row: Row
    findings: tuple[Finding, ...] = ()
    why_not: str = ""

    @property
    def outcome(self) -> Outcome:
        """Refuted when any field is, confirmed when any field is and none is refuted."""
        outcomes = {finding.outcome for finding in self.findings}
        if "refuted" in outcomes:
            return "refuted"
        return "confirmed" if "confirmed" in outcomes else "not measurable"


def confirmed(field: str, stated: object, read: str, *, is_whole: bool = True) -> Finding:
    """The artefact says what the row states."""
    return Finding(field=field, outcome="confirmed", stated=str(stated), read=read, is_whole=is_whole)


def refuted(field: str, stated: object, read: str) -> Finding:
    """The artefact says something else."""
    return Finding(field=field, outcome="refuted", stated=str(stated), read=read)


def unmeasured(field: str, stated: object, why: str) -> Finding:
    """The artefact does not tell, or was not read far enough."""
    return Finding(field=field, outcome="not measurable", stated=str(stated), read=why, is_whole=False)
