"""What a run depends on, as the interpreter saw it: files it opened, folders it listed, pages and records of the index cache.

Python tells of everything a program opens, lists, starts or connects to (PEP 578), so nothing has to be declared and nothing
can be forgotten but a question whether a path exists. Code that asks such a question says so itself, by the event
`provision.looked_for`; what the cache answers is said by `provision.page` and `provision.record`, and that something will have
to be asked again after a moment, by `provision.until`.
"""

# `pathlib` takes longer to import than everything here takes to run.
# ruff: noqa: PTH100, PTH112, PTH116, PTH118, PTH119, PTH120, PTH123
from __future__ import annotations

import hashlib
import os
import stat
import sys
import time

TYPE_CHECKING = False  # `typing` itself would be a third of what a repeated answer may take
if TYPE_CHECKING:
    from typing import Any

ABSENT = ""
"""The digest of a file that is not there."""

_OPEN_ENDED = frozenset(
    {
        "ctypes.dlopen",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.system",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.sendto",
        "subprocess.Popen",
        "urllib.Request",
    }
)
"""What another program or machine says, or a library no event tells of, cannot be looked up again."""

_WRITES = os.O_WRONLY | os.O_RDWR
_CODE = (".py", ".pyc", ".so", ".pyd", ".dll", ".dylib", ".pth")
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_CODE_ROOTS = tuple(f"{root}{os.sep}" for root in {_HERE, sys.prefix, sys.base_prefix, sys.exec_prefix})
_LARGE = 16 << 20
_TICK = 50_000_000
"""Nanoseconds: the clock of file systems stands still for some milliseconds."""


class Observation:
    """One run, watched from `begin` to `end`; what lies below `cache` is told of by the events of this program alone."""

    def __init__(self, cache: str) -> None:
        self._cache = os.path.join(os.path.abspath(cache), "")
        self._is_on = False
        self._began = 0
        self._opened: dict[str, None] = {}
        self._listed: dict[str, None] = {}
        self._before: dict[str, str] = {}
        self._written: dict[str, None] = {}
        self._begun: set[str] = set()
        self._pages: dict[tuple[str, str], tuple[str, bool]] = {}
        self._records: dict[tuple[str, str], str] = {}
        self._until = sys.float_info.max
        self._is_open_ended = False

    def begin(self) -> None:
        """Watch from here on; a hook cannot be taken away again, only be told to look away."""
        self._began = time.time_ns()
        self._is_on = True
        sys.addaudithook(self._hear)

    def end(self) -> None:
        """Watch no longer."""
        self._is_on = False

    @property
    def written(self) -> tuple[str, ...]:
        """The files that took their names during the run."""
        return tuple(self._written)

    def inputs(self) -> dict[str, Any] | None:
        """Everything the run depended on, with its digest as plain data; None where that is not known, or not for sure.

        A file that was changed since the run began may not be what the run has read.
        """
        # `tempfile` opens the folder of a temporary file as if to write it, which no folder lets anybody do.
        if self._is_open_ended or not all(os.path.isdir(path) for path in self._begun):
            return None
        files = dict(self._before)
        for path in self._opened:
            if path not in files and not _is_settled(path, self._began - _TICK):
                return None
            files.setdefault(path, file_digest(path))
        pages = [[cache, url, sha256, is_offline] for (cache, url), (sha256, is_offline) in self._pages.items()]
        records = [[cache, key, check] for (cache, key), check in self._records.items()]
        folders = {path: folder_digest(path) for path in self._listed}
        return {"files": files, "folders": folders, "pages": pages, "records": records, "until": self._until}

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note of an event. What is raised here would stop what the event is about, so nothing is."""
        if not self._is_on:
            return
        try:
            self._note(event, arguments)
        except (OSError, ValueError, TypeError, IndexError):  # no path, or none that the working directory still has
            self._is_open_ended = True

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._open(*arguments)
        elif event in {"os.listdir", "os.scandir"}:
            self._list(arguments[0])
        elif event == "os.rename":
            self._rename(arguments[0], arguments[1])
        elif event == "os.remove":
            self._begun.discard(_path(arguments[0]) or "")
        elif event in _OPEN_ENDED:
            self._is_open_ended = True
        elif event.startswith("provision."):
            self._told(event.removeprefix("provision."), arguments)

    def _open(self, place: object, mode: str | None, flags: int) -> None:
        path = _path(place)
        if path is None or path.startswith(self._cache) or path in self._written or _is_bytecode(path):
            return
        if any(letter in mode for letter in "wax+") if mode is not None else flags & _WRITES:
            self._begun.add(path)
        elif not (path.endswith(_CODE) and path.startswith(_CODE_ROOTS)):
            self._opened[path] = None

    def _list(self, place: object) -> None:
        path = _path(place if place is not None else ".")
        if path is None:
            self._is_open_ended = True
        elif not f"{path}{os.sep}".startswith((*_CODE_ROOTS, self._cache)):
            self._listed[path] = None

    def _rename(self, old: object, place: object) -> None:
        """A file takes its name. What stood there before belongs to the question, whether or not anybody looked at it."""
        path = _path(place)
        self._begun.discard(_path(old) or "")
        if path is None or path.startswith(self._cache) or _is_bytecode(path):
            return
        if path not in self._written:
            self._is_on = False
            self._is_open_ended |= path in self._opened and not _is_settled(path, self._began - _TICK)
            self._before[path] = file_digest(path)
            self._is_on = True
        self._written[path] = None

    def _told(self, what: str, arguments: tuple[Any, ...]) -> None:
        if what == "looked_for":
            path = _path(arguments[0])
            if path is not None and not os.path.isdir(path):
                self._opened[path] = None
        elif what == "page":
            cache, url, sha256, is_offline = arguments
            self._pages[cache, url] = (sha256, is_offline)
        elif what == "record":
            cache, key, check = arguments
            self._records[cache, key] = check
        elif what == "until":
            self._until = min(self._until, arguments[0])


def _path(place: object) -> str | None:
    """A path as text, from the root; None for a descriptor, which somebody opened before, and for what is always empty."""
    if not isinstance(place, str | bytes | os.PathLike) or place == os.devnull:
        return None
    return os.path.abspath(os.fsdecode(place))


def _is_bytecode(path: str) -> bool:
    """Whether a file is one the interpreter keeps for itself, the temporary names it has at first included."""
    return ".pyc" in os.path.basename(path)


def _is_settled(path: str, moment: int) -> bool:
    """Whether a file was last changed before a moment, by ctime, which no program sets as it likes; a pipe never was."""
    try:
        status = os.stat(path)
        return stat.S_ISREG(status.st_mode) and status.st_ctime_ns < moment
    except FileNotFoundError:
        return True
    except OSError:
        return False


def file_digest(path: str) -> str:
    """What a file holds, as a hash; `ABSENT` where there is none, and a word for what cannot be read.

    A large file, such as a wheel, is known by its number, size and times instead: its ctime changes with its content.
    """
    try:
        status = os.stat(path)
        if status.st_size > _LARGE:
            return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        with open(path, "rb", buffering=0) as stream:
            return hashlib.sha256(stream.read()).hexdigest()
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"errno {error.errno}"


def folder_digest(path: str) -> str:
    """What a folder lists, with size and time of every file, as a hash; a word for what cannot be listed."""
    digest = hashlib.sha256()
    try:
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                status = entry.stat(follow_symlinks=False)
                changed = "" if entry.is_dir() else f"{status.st_size} {status.st_mtime_ns}"
                digest.update(f"{entry.name}\0{status.st_mode}\0{changed}\0".encode(errors="surrogateescape"))
    except OSError as error:
        return f"errno {error.errno}"
    return digest.hexdigest()
