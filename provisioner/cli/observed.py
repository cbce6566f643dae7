"""What a run depends on, as the interpreter saw it: files it opened, folders it listed, pages and records of the index cache.

Python tells of everything a program opens, lists, starts or connects to (PEP 578), so nothing has to be declared and nothing
can be forgotten but a question whether a path exists. Code that asks such a question says so itself, by the event
`provision.looked_for`; what the cache answers is said by `provision.page` and `provision.record`, and that something will have
to be asked again after a moment, by `provision.until`.
"""

# `pathlib` takes longer to import than everything here takes to run.
# ruff: noqa: PTH100, PTH112, PTH115, PTH116, PTH118, PTH119, PTH120, PTH123
from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from _thread import get_ident  # `threading` takes longer to import

TYPE_CHECKING = False  # `typing` itself would be a third of what a repeated answer may take
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, TypeVar

    Seen = TypeVar("Seen")

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
_LIBRARIES = {os.path.dirname(os.__file__), *(path for path in sys.path if path.endswith("-packages"))}
_CODE_ROOTS = tuple(f"{root}{os.sep}" for root in {_HERE, *_LIBRARIES})
"""Not the prefixes: wheels may lie in `/usr/local/share`, and a whole project in the folder of its environment."""
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
        self._listed: dict[str, list[tuple[str, str]]] = {}
        self._before: dict[str, str] = {}
        self._written: dict[str, str] = {}
        self._begun: set[str] = set()
        self._pages: dict[tuple[str, str], tuple[str, bool]] = {}
        self._records: dict[tuple[str, str], str] = {}
        self._until = sys.float_info.max
        self._is_open_ended = False
        self._looking: set[int] = set()

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

    def wrote(self, contents: Mapping[str, bytes]) -> bool:
        """Whether this is what the run itself wrote there, and not another run since."""
        return {path: _digest(content) for path, content in contents.items()} == self._written

    def inputs(self) -> dict[str, Any] | None:
        """Everything the run depended on, with its digest as plain data; None where that is not known, or not for sure.

        A file that was changed since the run began may not be what the run has read. A folder is taken as it was before it was
        listed for the first time: what comes into it later is a change.
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
        return {
            "files": files,
            "folders": {path: _digest_of(path, entries, self._written) for path, entries in self._listed.items()},
            "pages": pages,
            "records": records,
            "since": self._began / 1e9,
            "until": self._until,
        }

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note of an event. What is raised here would stop what the event is about, so nothing is."""
        if not self._is_on or get_ident() in self._looking:
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
            self._remove(_path(arguments[0]))
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
        elif path not in self._listed and not f"{path}{os.sep}".startswith((*_CODE_ROOTS, self._cache)):
            self._listed[path] = self._looked_at(_entries, path)

    def _remove(self, path: str | None) -> None:
        """A file goes: one that the run began, or one that was there before, which nothing that is said again takes away."""
        if path in self._begun:
            self._begun.discard(path)
        elif path is None or (os.path.lexists(path) and not path.startswith(self._cache) and not _is_bytecode(path)):
            self._is_open_ended = True

    def _rename(self, old: object, place: object) -> None:
        """A file takes its name. What stood there before belongs to the question, whether or not anybody looked at it."""
        path, source = _path(place), _path(old)
        self._begun.discard(source or "")
        if path is None or source is None or path.startswith(self._cache) or _is_bytecode(path):
            return
        if path not in self._written:
            self._is_open_ended |= path in self._opened and not _is_settled(path, self._began - _TICK)
            self._before[path] = self._looked_at(file_digest, path)
        self._written[path] = self._looked_at(file_digest, source)

    def _looked_at(self, look: Callable[[str], Seen], path: str) -> Seen:
        """What is there, looked up without being watched itself; other threads are."""
        self._looking.add(get_ident())
        try:
            return look(path)
        finally:
            self._looking.discard(get_ident())

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
        elif what == "unrepeatable":
            self._is_open_ended = True
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


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def file_digest(path: str) -> str:
    """What a file holds, as a hash; `ABSENT` where there is none, and a word for what cannot be read.

    A large file, such as a wheel, is known by its number, size and times instead: its ctime changes with its content.
    """
    try:
        status = os.stat(path)
        if status.st_size > _LARGE:
            return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        with open(path, "rb", buffering=0) as stream:
            return _digest(stream.read())
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        return f"errno {error.errno}"


def folder_digest(path: str, ignored: Collection[str] = ()) -> str:
    """What a folder lists, as a hash, but for the paths that are known otherwise: what a run writes is its own change."""
    return _digest_of(path, _entries(path), ignored)


def _digest_of(folder: str, entries: Sequence[tuple[str, str]], ignored: Collection[str]) -> str:
    kept = [entry for entry in entries if os.path.join(folder, entry[0]) not in ignored]
    return _digest(repr(kept).encode())


def _entries(path: str) -> list[tuple[str, str]]:
    """The names in a folder, each with the states of it and of what it leads to; a word for what cannot be listed."""
    found = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                states = [_state(entry.stat(follow_symlinks=False))]
                if entry.is_symlink():
                    states += [os.readlink(entry.path), _state_behind(entry.path)]
                found.append((entry.name, " ".join(states)))
    except OSError as error:
        return [("", f"errno {error.errno}")]
    return sorted(found)


def _state(status: os.stat_result) -> str:
    """A folder in a folder has times of its own, which say what is in it; who looks into it lists it."""
    if stat.S_ISDIR(status.st_mode):
        return f"{status.st_mode}"
    return f"{status.st_mode} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _state_behind(link: str) -> str:
    try:
        return _state(os.stat(link))
    except OSError:
        return ABSENT
