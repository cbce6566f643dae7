"""Audit of GPU wheels (wheels with GPU code): measures the wheels that matrix rows name again, and compares every field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.curate.audit_verdict import Row, confirmed, refuted, unmeasured
from provisioner.curate.derive_wheels import WHEELS, is_read_whole
from provisioner.curate.gpu_wheels import FIELDS, facts
from provisioner.matrix.model import Build, Component, Release
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.curate.artefacts import Artefacts
    from provisioner.curate.audit_verdict import Finding
    from provisioner.index.model import IndexFile
    from provisioner.matrix.model import Matrix


def wheel_rows(matrix: Matrix, distribution: str = "") -> Iterator[Row]:
    """Yield an audit row for each wheel that a matrix row about GPU code names; with a `distribution`, only for its wheels."""
    component = Component(name=WHEELS, title="GPU code in wheels")
    for wheel in matrix.wheels:
        if distribution in {"", wheel.distribution}:
            for artefact, sha256 in wheel.artefacts.items():
                yield Row(
                    component=component,
                    release=Release(version=Version.named(wheel.distribution)),
                    build=Build(name=wheel.versions, platforms=wheel.platforms, artefact=artefact, sha256=sha256),
                    place=str(matrix.positions.get(f"wheel:{wheel.distribution} {wheel.versions}", "")),
                )


def wheel_findings(matrix: Matrix, row: Row, file: IndexFile, *, artefacts: Artefacts) -> Iterator[Finding]:
    """Measure a wheel and yield a finding for each field of its row; raises `UnavailableError`, `UnreadableArtefactError`."""
    wheel = next(one for one in matrix.wheels if row.build.artefact in one.artefacts)
    measurement = artefacts.measured(file, is_full=is_read_whole(file))
    found = facts(wheel.distribution, measurement)
    for field in FIELDS:
        stated, read = getattr(wheel, field), getattr(found, field)
        if stated == read:
            if stated or field == "sass":
                yield confirmed(field, _text(stated), _text(read), is_whole=measurement.is_whole)
        elif read is None:
            yield unmeasured(field, _text(stated), "no code for a GPU as far as read; --full reads all")
        else:
            yield refuted(field, _text(stated), f"the wheel has {_text(read)}")


def _text(value: tuple[str, ...] | str | None) -> str:
    return "not measured" if value is None else value if isinstance(value, str) and value else ", ".join(value) or "none"
