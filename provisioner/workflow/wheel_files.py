"""Find files that several wheels of a lock write, from the RECORD of each wheel, which is read by range requests and cached."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.curate.artefacts import Artefacts
from provisioner.curate.shared_files import overlaps
from provisioner.errors import ProvisionError
from provisioner.grounds.finding import KnownOverwrittenFile, OverwrittenFile, UnreadWheel
from provisioner.grounds.requirement import Subject
from provisioner.index.model import IndexFile
from provisioner.index.settings import settings_from_pip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provisioner.grounds.finding import Finding
    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage
    from provisioner.matrix.model import Matrix

READERS = 12
"""The number of RECORDs read concurrently, with two small requests each."""


def file_findings(lock: Lock, matrix: Matrix, *, folder: Path, offline: bool) -> Iterator[Finding]:
    """Yield a finding for each file that several wheels of one platform write, and for each wheel that cannot be read.

    `folder` is that of the lock, to which the paths of local wheels are relative.
    """
    for platform in lock.platforms:
        packages = lock.on(platform).packages
        records, unread = _records(packages, folder, offline=offline)
        for names, paths in overlaps(records):
            known = any(
                not row.refused and set(names) <= {one.distribution for one in row.owners} for row in matrix.shared_files
            )
            versions = {package.name: package.version for package in packages}
            subjects = tuple(Subject(name, versions[name]) for name in names)
            kind = KnownOverwrittenFile if known else OverwrittenFile
            yield kind(subjects=subjects, file=paths[0], others=len(paths) - 1)
        for name, problem in unread:
            yield UnreadWheel(object=name, problem=problem)


def _records(
    packages: tuple[LockedPackage, ...], folder: Path, *, offline: bool
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the RECORD of each package's wheel, and the names and reasons of packages without a readable one.

    A source distribution has no RECORD.
    """
    wheels = {package.name: package.wheels[0] for package in packages if package.wheels}
    settings = replace(settings_from_pip(os.environ), offline=offline)
    with Artefacts(settings) as artefacts, ThreadPoolExecutor(READERS, thread_name_prefix="record") as pool:
        read = pool.map(lambda one: _read(artefacts, _index_file(one, folder)), wheels.values())
        found = dict(zip(wheels, read, strict=True))
    records = {name: text for name, (text, _) in found.items() if text is not None}
    unread = [(name, reason) for name, (text, reason) in found.items() if text is None]
    unread += [(package.name, "it is no wheel") for package in packages if not package.wheels]
    return records, sorted(unread)


def _read(artefacts: Artefacts, file: IndexFile) -> tuple[str | None, str]:
    try:
        return artefacts.record(file), ""
    except ProvisionError as error:
        return None, error.message


def _index_file(locked: LockedFile, folder: Path) -> IndexFile:
    path = str(folder / locked.path) if locked.path else ""
    return IndexFile(filename=locked.filename, url=locked.url, index="the lock", sha256=locked.sha256, path=path)
