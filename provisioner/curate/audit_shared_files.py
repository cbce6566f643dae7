"""Whether wheels have the files that the matrix says they share with others: read in the RECORD of each, again."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from provisioner.curate.audit_verdict import Row, confirmed, refuted
from provisioner.matrix.model import Build, Component, Release
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.curate.artefacts import Artefacts
    from provisioner.curate.audit_verdict import Finding
    from provisioner.index.model import IndexFile
    from provisioner.matrix.model import Matrix

SHARED_FILES = "shared-files"
"""How these rows are asked for, and the component they are listed under: `shared-files==nccl`."""


def shared_file_rows(matrix: Matrix, name: str = "") -> Iterator[Row]:
    """One row for each owner of each shared file, of all of them or of one."""
    component = Component(name=SHARED_FILES, title="files that several distributions write")
    for shared in matrix.shared_files:
        if name not in {"", shared.name}:
            continue
        for owner in shared.owners:
            yield Row(
                component=component,
                release=Release(version=Version.named(shared.name)),
                build=Build(name=owner.distribution, artefact=owner.artefact, sha256=owner.sha256),
                place=matrix.positions.get(f"shared-file:{shared.name}", ""),
            )


def shared_file_findings(matrix: Matrix, row: Row, file: IndexFile, *, artefacts: Artefacts) -> Iterator[Finding]:
    """Whether the wheel has the file with the stated content; raises `UnavailableError` and `UnreadableArtefactError`."""
    shared = next(one for one in matrix.shared_files if one.name == str(row.release.version))
    owner = next(one for one in shared.owners if one.distribution == row.build.name)
    read = recorded_hash(artefacts.record(file), shared.path)
    if read is None:
        yield refuted("path", shared.path, "its RECORD does not list it")
        return
    yield confirmed("path", shared.path, "its RECORD lists it")
    yield (confirmed if read == owner.content else refuted)("content", owner.content, f"its RECORD says {read or 'no hash'}")


def recorded_hash(record: str, path: str) -> str | None:
    """The hash a RECORD states of a path, "" where it states none; None where it does not list it.

    Source: Python packaging, "Recording installed projects", the RECORD file: CSV of path, hash and size.
    """
    rows = (row for row in csv.reader(record.splitlines()) if row)
    return next((row[1] if len(row) > 1 else "" for row in rows if row[0] == path), None)
