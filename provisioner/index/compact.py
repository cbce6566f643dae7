"""Releases <-> the plain lists the cache keeps: rows without keys, for a project may have a thousand of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provisioner.index.filename import parsed_version
from provisioner.index.model import IndexFile, PackageRelease

if TYPE_CHECKING:
    from collections.abc import Iterable

    from packaging.utils import NormalizedName


def encode_releases(releases: Iterable[PackageRelease]) -> list[list[Any]]:
    """Releases as rows, in their order."""
    return [
        [
            str(release.version),
            release.why_not,
            release.blocked_by,
            release.requires_python,
            None if release.file is None else _row(release.file),
        ]
        for release in releases
    ]


def decode_releases(
    rows: Any,  # noqa: ANN401 - plain JSON data
    name: NormalizedName,
    index: str,
) -> tuple[PackageRelease, ...] | None:
    """The releases of rows; None for anything that is not what `encode_releases` writes."""
    try:
        return tuple(_release(row, name, index) for row in rows)
    except (TypeError, ValueError):
        return None


def _row(file: IndexFile) -> list[Any]:
    # The index's name stays out, for the same page may be configured under another one.
    return [
        file.filename,
        file.url,
        file.sha256,
        file.size,
        file.requires_python,
        file.upload_time,
        file.yanked,
        int(file.has_metadata),
        file.metadata_sha256,
        file.provenance,
    ]


def _file(row: list[Any], index: str) -> IndexFile:
    filename, url, sha256, size, requires_python, upload_time, yanked, has_metadata, metadata_sha256, provenance = row
    return IndexFile(
        filename=filename,
        url=url,
        index=index,
        sha256=sha256,
        size=size,
        requires_python=requires_python,
        upload_time=upload_time,
        yanked=yanked,
        has_metadata=bool(has_metadata),
        metadata_sha256=metadata_sha256,
        provenance=provenance,
    )


def _release(row: list[Any], name: NormalizedName, index: str) -> PackageRelease:
    text, why_not, blocked_by, requires_python, file = row
    version = parsed_version(text)
    if version is None:
        raise ValueError(text)
    return PackageRelease(
        name=name,
        version=version,
        file=None if file is None else _file(file, index),
        why_not=why_not,
        blocked_by=blocked_by,
        requires_python=requires_python,
    )
