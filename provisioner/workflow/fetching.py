"""Fetch every file of some locks into one folder, from which installers and image builds need no network."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from provisioner.document import FileError, file_sha256, write_text
from provisioner.errors import ProvisionError, UnavailableError, UsageError
from provisioner.index.activity import readable_size
from provisioner.index.download import Downloads, KnownFile
from provisioner.index.metadata.core_metadata import sdist_project
from provisioner.index.metadata.source_distribution import build_requirements
from provisioner.index.settings import settings_from_pip
from provisioner.lock.format.file import read_lock
from provisioner.render.chosen_files import is_source
from provisioner.render.folder_requirements import folder_requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provisioner.lock.format.model import Lock, LockedFile, LockedPackage
    from provisioner.resolver.stack import BaseImage, RuntimeImage

CONNECTIONS = 8
"""The number of files that are read at once."""

SUMS = "SHA256SUMS"
"""The list of the files with their hashes, as `sha256sum --check` reads it; a file in it is not read again."""


class WantedFile(Struct, frozen=True, kw_only=True):
    """A file of a lock; `source` is its path on this machine if it is beside the lock, else None."""

    known: KnownFile
    source: Path | None = None


class Fetched(Struct, frozen=True, kw_only=True):
    """The result: the names of the files that were fetched, and of those that were there already, and the size of all."""

    fetched: tuple[str, ...]
    kept: tuple[str, ...]
    size: int


class _Recorded(NamedTuple):
    """The hashes that an earlier run recorded, by the names of files, and when, in nanoseconds since 1970."""

    sums: Mapping[str, str]
    time: int


class FetchProgress:
    """The progress of a fetch, as text; may be read by another thread while the fetch runs."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.downloads: Downloads | None = None

    def __str__(self) -> str:
        """Return the progress as one line: `12 of 140 files, 1.3 GB`; "" before anything is known."""
        received = self.downloads.activity.received if self.downloads is not None else 0
        return f"{self.done} of {self.total} files, {readable_size(received)}" if self.total else ""


def read_locks(paths: Sequence[Path]) -> list[tuple[Path, Lock]]:
    """Read locks, and return each with its path; raises `FileError` or `InvalidDocumentError`."""
    return [(path, read_lock(path)) for path in paths]


def images_of(locks: Sequence[tuple[Path, Lock]]) -> tuple[BaseImage | RuntimeImage, ...]:
    """Return the base images of locks, each once."""
    found = {
        (image.reference, image.digest): image
        for _, lock in locks
        for stack in lock.stacks
        if stack.image is not None
        for image in stack.image.images
    }
    return tuple(found.values())


def wanted_files(locks: Sequence[tuple[Path, Lock]]) -> tuple[WantedFile, ...]:
    """Return every file that the locks name, each once, sorted by name: packages, installers of images, and Pythons.

    Raises `UsageError` when two files of different content have one name.
    """
    found: dict[str, WantedFile] = {}
    for path, lock in locks:
        for wanted in _files_of(lock, path.parent):
            name = wanted.known.filename
            other = found.setdefault(name, wanted)
            if Path(name).name != name or name.startswith("."):
                raise UsageError(f"`{name}` of {path} is not the name of a file")
            if other.known.sha256 != wanted.known.sha256:
                raise UsageError(
                    f"two files of the locks are called `{name}` and differ, so one folder cannot have both",
                    causes=(f"sha256 {other.known.sha256}", f"sha256 {wanted.known.sha256} ({path})"),
                    hints=("fetch the locks into folders of their own",),
                )
    return tuple(found[name] for name in sorted(found))


def _files_of(lock: Lock, folder: Path) -> Iterator[WantedFile]:
    yield from (_wanted(file, folder) for file in lock.files)
    yield from (_wanted(named, folder) for package in lock.packages if (named := _as_installers_name_it(package)) is not None)
    for stack in lock.stacks:
        python = stack.image.managed_python if stack.image is not None else None
        if python is not None:
            yield WantedFile(known=KnownFile(filename=python.filename, url=python.url, sha256=python.sha256))


def _as_installers_name_it(package: LockedPackage) -> LockedFile | None:
    """Return the archive of a package under the name that installers look for in a folder; None where it has that name.

    The archive of a commit is named after the commit.
    """
    archive = package.archive
    if archive is None or archive.filename.endswith(".whl") or sdist_project(archive.filename) == package.name:
        return None
    ending = ".zip" if archive.filename.endswith(".zip") else ".tar.gz"
    return replace(archive, filename=f"{package.name.replace('-', '_')}-{package.version}{ending}")


def write_requirements(locks: Sequence[tuple[Path, Lock]], folder: Path) -> tuple[str, ...]:
    """Write the requirements of each lock into the folder of its files, for installers without an index; returns their names.

    Locks of one name in several folders are told apart by these.
    """
    count = Counter(lock.name for _, lock in locks)
    written = []
    for path, lock in locks:
        parents = [part for part in path.parent.parts if part not in {"/", ".."}] if count[lock.name] > 1 else []
        name = f"{'-'.join([*parents, lock.name])}.requirements.txt"
        write_text(folder / name, folder_requirements(lock, path.name))
        written.append(name)
    return tuple(written)


def built_there(locks: Sequence[tuple[Path, Lock]], folder: Path) -> dict[str, tuple[str, ...]]:
    """Return what the builds of source distributions in the folder require, by `NAME VERSION`; no lock has it."""
    sources = {
        f"{package.name} {package.version}": file.filename
        for _, lock in locks
        for package in lock.packages
        if is_source(package, lock.platforms)
        for file in package.files
        if not file.filename.endswith(".whl")
    }
    return {name: build_requirements(folder / filename) for name, filename in sorted(sources.items())}


def _wanted(file: LockedFile, folder: Path) -> WantedFile:
    known = KnownFile(filename=file.filename, url=file.url, sha256=file.sha256, size=file.size)
    return WantedFile(known=known, source=folder / file.path if file.path else None)


@contextmanager
def single_files(folder: Path) -> Iterator[Callable[[LockedFile], Path]]:
    """Give a function that returns the path of one file of a lock, verified; `folder` is that of the lock.

    What it downloads is removed in the end. It raises `UnavailableError` for a file that cannot be read, and `FileError` or
    `HashMismatchError` for one that is not the locked one.
    """
    with TemporaryDirectory(prefix="provision-files-") as scratch:
        downloads = Downloads(settings_from_pip(os.environ), Path(scratch))

        def read(file: LockedFile) -> Path:
            _put(_wanted(file, folder), Path(scratch), downloads)
            return Path(scratch) / file.filename

        try:
            yield read
        finally:
            downloads.close()


def fetch(files: Sequence[WantedFile], folder: Path, progress: FetchProgress) -> Fetched:
    """Put files into a folder, several at once, and list them with their hashes in `SHA256SUMS`.

    A file of that list that is still there is not read again; one that is not complete goes on where it ended. A file gets its
    name when its hash is right, so that the folder never has half a file. Raises `UnavailableError` with every file that cannot
    be read, once all others are there, and the error of a file with other content.
    """
    _require_folder(folder)
    recorded = _recorded(folder)
    kept = {file.known.filename for file in files if _is_kept(file.known, folder, recorded)}
    missing = [file for file in files if file.known.filename not in kept]
    there = [file.known for file in files if file.known.filename in kept]
    downloads = Downloads(settings_from_pip(os.environ), folder)
    progress.downloads, progress.total, progress.done = downloads, len(files), len(kept)
    failures: dict[str, ProvisionError] = {}
    missing.sort(key=lambda file: -(file.known.size or 0))  # the largest first, so that no thread is left alone with it
    pool = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="fetch")
    try:
        running = {pool.submit(_put, file, folder, downloads): file for file in missing}
        for future in as_completed(running):
            error = future.exception()
            if error is None:
                progress.done += 1
                there.append(running[future].known)
            elif isinstance(error, ProvisionError):
                failures[running[future].known.filename] = error
            else:
                raise error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        downloads.close()
        _record(folder, recorded.sums, there, {file.known.filename for file in missing})
    _raise(failures, len(files))
    size = sum((folder / file.known.filename).stat().st_size for file in files)
    return Fetched(fetched=tuple(sorted(file.known.filename for file in missing)), kept=tuple(sorted(kept)), size=size)


def _put(file: WantedFile, folder: Path, downloads: Downloads) -> None:
    if file.source is None:
        downloads.fetch(file.known)
        return
    if file_sha256(file.source) != file.known.sha256:
        raise FileError(f"`{file.source}` is not the file that is locked: its sha256 is another one")
    temporary = folder / f".{file.known.sha256}"
    try:
        shutil.copyfile(file.source, temporary)
        temporary.replace(folder / file.known.filename)
    except OSError as error:
        raise FileError(f"`{folder / file.known.filename}` cannot be written: {error.strerror}") from None


def _require_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the folder `{folder}` cannot be made: {error.strerror}") from None


def _is_kept(file: KnownFile, folder: Path, recorded: _Recorded) -> bool:
    """Return whether the folder has a file already; one that no earlier run recorded, or changed since, is read to find out."""
    path = folder / file.filename
    if not path.is_file() or (file.size is not None and path.stat().st_size != file.size):
        return False
    is_recorded = recorded.sums.get(file.filename) == file.sha256 and path.stat().st_mtime_ns <= recorded.time
    return is_recorded or file_sha256(path) == file.sha256


def _recorded(folder: Path) -> _Recorded:
    """Return what an earlier run recorded."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
        time = (folder / SUMS).stat().st_mtime_ns
    except (OSError, UnicodeDecodeError):
        return _Recorded({}, 0)
    return _Recorded({name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}, time)


def _record(folder: Path, sums: Mapping[str, str], files: Sequence[KnownFile], missing: Collection[str]) -> None:
    """Record the hashes of files beside those that earlier runs recorded, apart from files that were `missing` at the start."""
    found = {name: sha256 for name, sha256 in sums.items() if name not in missing and (folder / name).is_file()}
    found |= {file.filename: file.sha256 for file in files}
    try:
        write_text(folder / SUMS, "".join(f"{found[name]}  {name}\n" for name in sorted(found)))
    except FileError as error:
        raise FileError(
            error.message, hints=("run it again with more room or in another folder: what is there stays",)
        ) from None


def _raise(failures: dict[str, ProvisionError], total: int) -> None:
    """Raise what went wrong: a file that is another one before those that are out of reach."""
    for error in failures.values():
        if not isinstance(error, UnavailableError):
            raise error
    if failures:
        raise UnavailableError(
            f"{len(failures)} of {total} files could not be fetched",
            causes=tuple(error.message for _, error in sorted(failures.items())),
            hints=("run it again: what is there stays, and half a file goes on where it ended",),
        )
