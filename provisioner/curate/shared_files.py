"""Files that several wheels install with different content: found in RECORDs, and audited in the rows of the matrix."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from provisioner.curate.audit_verdict import Row, confirmed, refuted
from provisioner.matrix.model import Build, Component, Release
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.curate.artefacts import Artefacts
    from provisioner.curate.audit_verdict import Finding
    from provisioner.index.model import IndexFile
    from provisioner.matrix.model import Matrix

SHARED_FILES = "shared-files"
"""The name that selects the rows about shared files in an audit, used as their component: `shared-files==nccl`."""


def shared_file_rows(matrix: Matrix, name: str = "") -> Iterator[Row]:
    """Yield an audit row for each owner of each shared file, or only of the shared file `name`."""
    component = Component(name=SHARED_FILES, title="files that several distributions write")
    for shared in matrix.shared_files:
        if name not in {"", shared.name}:
            continue
        for owner in shared.owners:
            yield Row(
                component=component,
                release=Release(version=Version.named(shared.name)),
                build=Build(name=owner.distribution, artefact=owner.artefact, sha256=owner.sha256),
                place=str(matrix.positions.get(f"shared-file:{shared.name}", "")),
            )


def shared_file_findings(matrix: Matrix, row: Row, file: IndexFile, *, artefacts: Artefacts) -> Iterator[Finding]:
    """Yield findings on the path, and the hash of its content, in the RECORD of a wheel against the row.

    Raises `UnavailableError` and `UnreadableArtefactError`.
    """
    shared = next(one for one in matrix.shared_files if one.name == str(row.release.version))
    owner = next(one for one in shared.owners if one.distribution == row.build.name)
    read = recorded_hash(artefacts.record(file), shared.path)
    if read is None:
        yield refuted("path", shared.path, "its RECORD does not list it")
        return
    yield confirmed("path", shared.path, "its RECORD lists it")
    yield (confirmed if read == owner.content else refuted)("content", owner.content, f"its RECORD says {read or 'no hash'}")


def recorded_hash(record: str, path: str) -> str | None:
    """Return the hash of a path in a RECORD, "" when its row has no hash; None when the path is not listed.

    Source: Python packaging, "Recording installed projects", the RECORD file: CSV of path, hash and size.
    """
    rows = (row for row in csv.reader(record.splitlines()) if row)
    return next((row[1] if len(row) > 1 else "" for row in rows if row[0] == path), None)


Overlap = tuple[tuple[str, ...], tuple[str, ...]]
"""The names of wheels, and the paths that all these wheels write, each with different content."""

_SCHEMED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")


def overlaps(records: Mapping[str, str]) -> Iterator[Overlap]:
    """Yield the sets of wheels that write the same paths with different content, with these paths; all sorted.

    `records` are the RECORDs by the names of the wheels. A file that is the same in all wheels does no harm, and a file without
    a hash cannot be compared. Metadata and scripts are skipped: each wheel has its own directory for them. So is an
    `__init__.py` at the top of a namespace (`nvidia/__init__.py`), which holds a licence or nothing.
    """
    writers: dict[str, dict[str, str]] = {}
    for name, record in records.items():
        for path, content in _written(record):
            writers.setdefault(path, {})[name] = content
    found: dict[tuple[str, ...], list[str]] = {}
    for path, by_name in writers.items():
        if len(set(by_name.values())) > 1:
            found.setdefault(tuple(sorted(by_name)), []).append(path)
    yield from ((names, tuple(sorted(found[names]))) for names in sorted(found))


def _written(record: str) -> Iterator[tuple[str, str]]:
    for row in csv.reader(record.splitlines()):
        if len(row) < 2 or not row[1]:
            continue
        path = _SCHEMED.sub("", row[0], count=1) if _SCHEMED.match(row[0]) else row[0]
        folder, _, name = path.partition("/")
        if folder.endswith((".dist-info", ".data")) or name == "__init__.py":
            continue
        yield path, row[1]
