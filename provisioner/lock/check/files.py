"""Check whether locked files still have the same content, on this machine and in the listings of their indexes.

An index must never change a published file; the hashes in a lock reveal when one did.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.document import file_sha256
from provisioner.grounds.finding import (
    ChangedArtefact,
    ExchangedFile,
    FileDrift,
    MissingArtefact,
    ResizedArtefact,
    VanishedFile,
)
from provisioner.index.model import DIRECT_PATH, DIRECT_URL, FIND_LINKS
from provisioner.lock.format.artifact import upload_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from packaging.utils import NormalizedName

    from provisioner.grounds.finding import Finding
    from provisioner.index.model import IndexFile
    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage

    Named = Callable[[NormalizedName, str, Collection[str]], tuple[IndexFile, ...]]
    """Return the files of a project that an index lists under some filenames, for any platform and Python."""

NO_INDEX = frozenset({"", DIRECT_PATH, DIRECT_URL, FIND_LINKS})
"""Sources that are not indexes, so that files from there are not compared with a listing."""

_ALIKE = timedelta(seconds=1)
"""Smaller differences of upload times are ignored: HTML and JSON pages of one index round them differently."""


def artefact_findings(lock: Lock, folder: Path) -> Iterator[Finding]:
    """Yield a finding for each local file of a lock that is missing or has another hash or size; `folder` is that of the lock.

    Raises `FileError` when a file cannot be read.
    """
    for package in lock.packages:
        for file in package.files:
            if not file.path:
                continue
            path = folder / file.path
            if not path.is_file():
                yield MissingArtefact(subject=package.subject, file=file.path)
            elif (found := file_sha256(path)) != file.sha256:
                yield ChangedArtefact(file=file.path, locked=file.sha256, found=found)
            elif file.size is not None and (size := path.stat().st_size) != file.size:
                yield ResizedArtefact(file=file.path, locked=file.size, found=size)


def file_drifts(lock: Lock, named: Named) -> Iterator[FileDrift]:
    """Yield each difference between a locked file and what its index lists today, package by package, on all platforms.

    `named` looks the files up in an index; the error that it raises when the index cannot be reached is not caught.
    """
    for package in lock.packages:
        if package.index in NO_INDEX:
            continue
        files = {file.filename: file for file in package.files if not file.path}
        found = {file.filename: file for file in named(canonicalize_name(package.name), package.index, files.keys())}
        for filename, file in files.items():
            yield from _drifts(package, file, found.get(filename))


def drift_findings(drifts: Iterable[FileDrift]) -> Iterator[Finding]:
    """Yield a finding for each file that its index no longer lists, or lists with another hash."""
    for drift in drifts:
        if drift.is_alarm:
            yield VanishedFile(drift=drift) if drift.kind == "vanished" else ExchangedFile(drift=drift)


def _drifts(package: LockedPackage, file: LockedFile, listed: IndexFile | None) -> Iterator[FileDrift]:
    def drift(kind: str, *, locked: str = "", offered: str = "") -> FileDrift:
        subject = package.subject
        return FileDrift(
            kind=kind, package=subject, filename=file.filename, index=package.index, locked=locked, offered=offered
        )

    if listed is None:
        yield drift("vanished")
        return
    if listed.sha256 and listed.sha256.lower() != file.sha256:
        yield drift("exchanged", locked=file.sha256, offered=listed.sha256.lower())
    if listed.yanked is not None:
        yield drift("yanked", offered=listed.yanked)
    uploaded, listed_time = file.upload_time, upload_moment(listed.upload_time)
    if uploaded is not None and listed_time is not None and abs(uploaded - listed_time) >= _ALIKE:
        yield drift("redated", locked=uploaded.isoformat(), offered=listed_time.isoformat())
