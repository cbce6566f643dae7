"""The answer at hand: a command that is asked the same again, of the same, says what it said before.

An answer is a function of what it was read from. So it is kept with everything its run looked at (`observed`), and given again
only when each of these is what it was: every file and folder, every page and record of the index cache (a page fresh enough not
to be asked for, or the run offline), the command line, the environment, the program and its libraries. A run that asked the
network or another program, that failed, or that was told to say more, is not kept.
`PROVISION_NO_ANSWER_CACHE=1` switches it off.
"""

# `pathlib` takes longer to import than everything here takes to run.
# ruff: noqa: PTH100, PTH103, PTH105, PTH108, PTH109, PTH112, PTH116, PTH118, PTH120, PTH123
from __future__ import annotations

import json
import os
import sys
import time
from zlib import crc32

from provisioner.caches import cache_directory

TYPE_CHECKING = False  # as in `observed`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from provisioner.cli.observed import Observation

SWITCH = "PROVISION_NO_ANSWER_CACHE"
COMMANDS = frozenset({"solve", "check"})
"""The commands whose answers are kept: those that are run again and again, by people and before merges."""

_FORMAT = 2
_MOST = 64
"""Answers that are kept; older ones go."""

_NOISE = frozenset({"_", "SHLVL", "OLDPWD", "PWD"})
"""Variables every shell changes from call to call."""


def answered(words: Sequence[str], run: Callable[[], int]) -> int:
    """The exit code of a command: of its answer at hand, which is said again, or of `run`, whose answer is then kept."""
    if not words or words[0] not in COMMANDS or os.environ.get(SWITCH) or _wants_other_words(words):
        return run()
    try:
        cache, question = cache_directory(), _question()
    except (OSError, ValueError):  # no working directory, or a program that is no folder of files
        return run()
    place = os.path.join(cache, "answers", f"{question}.json")
    known = _recalled(place)
    code = _said_again(known) if known is not None else None
    return _kept(place, cache, run) if code is None else code


def _wants_other_words(words: Sequence[str]) -> bool:
    """Whether somebody asks for help or for the log, which are not printed as answers are."""
    return any(word in {"--help", "-h", "--verbose"} or (word.startswith("-v") and word.strip("v") == "-") for word in words)


def _question() -> str:
    """What is asked and by whom it is answered, as a hash: never as text, for variables hold credentials."""
    import hashlib

    variables = sorted((name, value) for name, value in os.environ.items() if name not in _NOISE)
    streams = [_stream(stream) for stream in (sys.stdout, sys.stderr)]
    # A home directory may be that of several machines, and a cache that of several users.
    machine = [os.uname().machine, os.getuid()] if hasattr(os, "uname") else []
    asked = [sys.orig_argv, os.getcwd(), os.umask(_umask()), variables, streams]
    question = [_FORMAT, *asked, machine, sys.platform, sys.version, _program()]
    return hashlib.sha256(json.dumps(question).encode()).hexdigest()


def _umask() -> int:
    os.umask(mask := os.umask(0o022))
    return mask


def _stream(stream: Any) -> list[Any]:  # noqa: ANN401 - any stream
    if stream is None or not stream.isatty():
        return [getattr(stream, "encoding", None)]
    return [stream.encoding, *os.get_terminal_size(stream.fileno())]


def _program() -> list[Any]:
    """What tells this program and its libraries from others: the times of its files, and of the folders libraries lie in.

    Of every file of the program, for an older one put back in the place of a newer is a change as well.
    """
    from provisioner import __version__

    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files: list[tuple[str, int, int]] = []
    folders = [here]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                    folders.append(entry.path)
                elif entry.name.endswith(".py"):
                    status = entry.stat()
                    files.append((entry.path, status.st_size, status.st_mtime_ns))
    # Where the command is run and where the program comes from, other files change that say nothing about libraries.
    others = {"", os.getcwd(), os.path.dirname(here)}
    libraries = [path for path in sys.path if path not in others]
    known = [[path, os.stat(path).st_mtime_ns] for path in libraries if os.path.isdir(path)]
    return [__version__, here, sorted(files), known]


def _recalled(place: str) -> dict[str, Any] | None:
    """The answer under a question, when it still holds; None for none, a damaged one, or one whose sources have changed."""
    try:
        with open(place, "rb") as stream:
            check, _, body = stream.read().partition(b"\n")
        known = json.loads(body) if check == b"%d" % crc32(body) else None
        return known if known is not None and _holds(known["inputs"], known["written"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _holds(inputs: dict[str, Any], written: dict[str, str]) -> bool:
    from provisioner.cli.observed import file_digest, folder_digest
    from provisioner.index.store.standing import stand

    now = time.time()
    return (
        inputs["since"] <= now < inputs["until"]
        and all(file_digest(path) == digest for path, digest in inputs["files"].items())
        and all(folder_digest(path, written) == digest for path, digest in inputs["folders"].items())
        and stand(inputs["pages"], inputs["records"], now=now)
    )


def _said_again(known: dict[str, Any]) -> int | None:
    """Write and print what the first run wrote and printed; a file that is so already is left alone.

    None, with nothing written or printed, where the files cannot be written: a new run says so in its words.
    """
    from provisioner.cli.display import data, talk

    texts = {path: text.encode() for path, text in known["written"].items()}
    changed = {path: content for path, content in texts.items() if _content(path) != content}
    if changed:
        from pathlib import Path

        from provisioner.document import FileError, write_together

        try:
            write_together({Path(path): content for path, content in changed.items()})
        except FileError:
            return None
    for is_data, text in known["said"]:
        (data if is_data else talk)(text)
    return int(known["code"])


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return None


def _kept(place: str, cache: str, run: Callable[[], int]) -> int:
    from provisioner.cli.display import listened
    from provisioner.cli.observed import Observation

    observation = Observation(cache)
    observation.begin()
    try:
        with listened() as said:
            code = run()
    finally:
        observation.end()
    _keep(place, observation, said, code)
    return code


def _keep(place: str, observation: Observation, said: Sequence[tuple[bool, str]], code: int) -> None:
    """Keep an answer; nothing here is worth an error."""
    inputs = observation.inputs() if code == 0 and said else None
    if inputs is None:
        return
    try:
        written = {path: (_content(path) or b"").decode() for path in observation.written}
        if not observation.wrote({path: text.encode() for path, text in written.items()}):
            return  # somebody else has written there since
        body = json.dumps({"inputs": inputs, "said": list(said), "written": written, "code": code}).encode()
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _forget_old(os.path.dirname(place))
        temporary = f"{place}.{os.getpid()}"
        with open(temporary, "wb") as stream:
            stream.write(b"%d\n" % crc32(body) + body)
        os.replace(temporary, place)
    except (OSError, ValueError):
        return


def _forget_old(folder: str) -> None:
    with os.scandir(folder) as entries:
        by_age = sorted((entry.stat().st_mtime_ns, entry.path) for entry in entries)
    for _, path in by_age[: max(0, len(by_age) - _MOST + 1)]:
        os.unlink(path)
