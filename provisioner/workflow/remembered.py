"""Remember which locks were found good, by the contents of all files that decided it, so that a check need not decide it again.

Only a good lock is remembered, with the findings that are mere warnings. Whatever is not as it was is checked: another byte in
one of the files, another matrix, another option, another version of this program.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import DecodeError, Struct, json

import provisioner
from provisioner.caches import CHECKED, cache_directory
from provisioner.document import FileError, Position, write_text
from provisioner.grounds.finding import UnpinnedBase

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.workflow.checking import Question, Report

MOST = 2000
"""The most locks that are remembered; the ones checked longest ago are forgotten."""

_VARIABLE = b"${"
"""What names a variable of the environment in a requirement file: such a file does not decide alone."""


class Held(Struct, frozen=True):
    """A good lock: the sha256 of each file that decided it, "" for one that is missing, by its path from the lock's folder.

    `warnings` are its findings, and `places` the lines and columns of these.
    """

    spec: str
    files: dict[str, str]
    warnings: tuple[UnpinnedBase, ...] = ()
    places: tuple[Position, ...] = ()


class _Stored(Struct, frozen=True):
    stamp: str
    held: dict[str, Held]


class Memory:
    """The locks that were found good with one matrix and one program; `store` writes what a run has added."""

    def __init__(self, matrix_digest: str, question: Question) -> None:
        self._stamp = f"{provisioner.__version__} {_program()} {matrix_digest}"
        self._question = json.encode((question.exclude_newer, question.is_strict, [str(one) for one in question.hosts]))
        self._is_of_files = question.is_of_files
        self._path = cache_directory() / CHECKED
        self._held = self._load()
        self._digests: dict[Path, tuple[str, bool]] = {}
        self._is_changed = False

    def recall(self, path: Path) -> Held | None:
        """Return what is remembered of a lock; None if it is not known to be good, as the files are now."""
        held = self._held.get(self._key(path)) if self._is_of_files else None
        if held is None or any(self._digest(path.parent / name)[0] != digest for name, digest in held.files.items()):
            return None
        return held

    def keep(self, report: Report) -> None:
        """Remember a lock if the report says that it is good, and if its files alone decided it."""
        warnings = tuple(one for one in report.findings if type(one) is UnpinnedBase)
        if report.error is not None or report.read is None or len(warnings) != len(report.findings):
            return
        folder = report.path.parent
        digests = {os.path.relpath(file, folder): self._digest(file) for file in report.read}
        if any(has_variable for _, has_variable in digests.values()):
            return
        key = self._key(report.path)
        self._held.pop(key, None)
        self._held[key] = Held(
            spec=os.path.relpath(report.spec, folder),
            files={name: digest for name, (digest, _) in digests.items()},
            warnings=warnings,
            places=report.places,
        )
        self._is_changed = True

    def store(self) -> None:
        """Write what was added to the cache; a cache that cannot be written is left as it is."""
        if self._is_changed:
            stored = _Stored(self._stamp, dict(list(self._held.items())[-MOST:]))
            with suppress(FileError):
                write_text(self._path, json.encode(stored).decode())

    def _load(self) -> dict[str, Held]:
        try:
            stored = json.decode(self._path.read_bytes(), type=_Stored)
        except (OSError, DecodeError):  # a `ValidationError`, too
            return {}
        return dict(stored.held) if stored.stamp == self._stamp else {}

    def _key(self, path: Path) -> str:
        text = b"\0".join((path.name.encode(), self._digest(path)[0].encode(), self._question))
        return hashlib.sha256(text).hexdigest()

    def _digest(self, file: Path) -> tuple[str, bool]:
        """Return the sha256 of a file, "" if it is missing or unreadable, and whether it names a variable."""
        if file not in self._digests:
            try:
                content = file.read_bytes() if file.is_file() else None
            except OSError:
                content = None
            found = ("", False) if content is None else (hashlib.sha256(content).hexdigest(), _names_variable(file, content))
            self._digests[file] = found
        return self._digests[file]


def _names_variable(file: Path, content: bytes) -> bool:
    return file.suffix in {".txt", ".in"} and _VARIABLE in content


def _program() -> str:
    """Return a hash of the names, sizes and times of this program's modules: a checkout changes and keeps its version."""
    found = hashlib.sha256()
    waiting = [os.path.dirname(provisioner.__file__)]  # noqa: PTH120 - a third of the time that `Path` takes
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if entry.is_dir() and entry.name != "__pycache__":
                    waiting.append(entry.path)
                elif entry.name.endswith(".py"):
                    status = entry.stat()
                    found.update(f"{entry.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return found.hexdigest()
