"""Reports of validations as one page: its style is in it, it has no scripts, and nothing is loaded from anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.browse.page import page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.evidence.report import FieldReport, LevelReport, Report

TEMPLATE = "validation.html.j2"


def validation_page(reports: Sequence[Report]) -> str:
    """Return the text of the page of some reports; the same reports give the same text."""
    return page(
        TEMPLATE,
        title=", ".join(dict.fromkeys(report.lock_file for report in reports)),
        sections=[{"report": report, "facts": _facts(report), "levels": levels(report)} for report in reports],
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    """Return what was validated, with what and where, as names and values; what was not measured is left out."""
    engine = report.engine.title
    found = {
        "Platform": report.platform,
        "Engine": f"{engine}, built with {report.engine.builder}" if report.engine.builder else engine,
        "Began": report.time,
        "Kernel": report.host.kernel,
        "Driver": report.host.driver,
        "GPUs": ", ".join(gpu.name for gpu in report.host.gpus),
        "Lock": report.lock_sha256,
        "Image": report.image,
        "Image in registries": ", ".join(report.image_digests),
        "Dockerfile": report.dockerfile,
        "Matrix": report.matrix_digest,
        "provision": report.tool_version,
    }
    return [(name, value) for name, value in found.items() if value]


def levels(report: Report) -> list[tuple[LevelReport, list[FieldReport]]]:
    """Return each level with its facts."""
    return [(level, [field for field in report.fields if field.level == level.level]) for level in report.levels]
