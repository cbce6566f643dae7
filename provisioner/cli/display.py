"""All printing: stdout carries data, stderr carries talk, and both read well without colour or a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from threading import Event

    from provisioner.errors import ProvisionError

PATIENCE_SECONDS = 1.0
"""Work shorter than this is not talked about: by the time it could be read, it is done."""

_LIVELY_PAUSE_SECONDS = 0.2
_PLAIN_PAUSE_SECONDS = 10.0

_BOLD, _RED, _YELLOW, _CYAN = "1", "1;31", "1;33", "1;36"
_GAP = "  "
_COLOURS = r"\x1b\[(?:0|1|1;31|1;33|1;36)m"
_OBEYED = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
_NARROWEST = 20


def data(text: str) -> None:
    """Print what the user asked for to stdout; a newline is added where the text does not end in one."""
    text = shown(text)
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def shown(text: str) -> str:
    r"""A text without what a terminal would obey: all control characters but our own colours, as `\x1b`.

    Names, versions and reasons come from indexes and from files that others wrote. Characters that turn the direction of
    writing are among them: they show a line other than it is.
    """
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    import re  # hardly a text needs it

    return re.sub(f"({_COLOURS})|{_OBEYED}", _escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[1] else ascii(match[0])[1:-1]


def json_data(value: object) -> None:
    """Print a JSON document to stdout: keys in the order given, two spaces of indent, text as it is spelled.

    Where stdout cannot spell it, or a terminal would obey it, JSON's own escapes are used.
    """
    import json
    import re

    text = re.sub(_OBEYED, lambda match: json.dumps(match[0])[1:-1], json.dumps(value, indent=2, ensure_ascii=False))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    data(text)


def talk(text: str) -> None:
    """Print a line about the work, not its result, to stderr."""
    # What was already printed as data belongs above this line when both streams end in one terminal or log.
    sys.stdout.flush()
    text = shown(text)
    sys.stderr.write(text if text.endswith("\n") else f"{text}\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    """Print something the user should know although the work goes on."""
    talk(f"{_paint('warning:', _YELLOW, sys.stderr)} {text}")


def failure(error: ProvisionError) -> None:
    """Print an error in words: what failed and its code, the facts found, and after a blank line what to do next."""
    lines = [f"{_paint('error:', _RED, sys.stderr)} {error.message}  [{error.code}]"]
    lines += [f"{_GAP}{line}" for cause in error.causes for line in cause.splitlines()]
    if error.hints:
        lines.append("")
        lines += [f"{_paint('hint:', _CYAN, sys.stderr)} {hint}" for hint in error.hints]
    talk("\n".join(lines))


def failure_data(error: ProvisionError) -> dict[str, object]:
    """Return an error as the JSON object that reporting commands print under `--format json`."""
    return {
        "status": "error",
        "code": error.code,
        "message": error.message,
        "causes": list(error.causes),
        "hints": list(error.hints),
    }


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under their column names to stdout; on a terminal the last column is wrapped to its width.

    Elsewhere one row stays one line, so that it can be searched and cut.
    """
    width = _terminal_width() if sys.stdout.isatty() else None
    first, *rest = table_lines(columns, rows, width=width)
    data("\n".join([_paint(first, _BOLD, sys.stdout), *rest]))


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None) -> list[str]:
    """Return the lines of a table, its head first; `width` is in terminal cells, None leaves every row on one line."""
    texts = [tuple(columns), *(tuple(shown(text) for text in row) for row in rows)]
    wrong = next((row for row in texts if len(row) != len(columns)), None)
    assert wrong is None, f"a table of {len(columns)} columns was given the row {wrong}"
    widths = [max(_cells(row[index]) for row in texts) for index in range(len(columns))]
    before = sum(widths[:-1]) + len(_GAP) * (len(columns) - 1)
    last = max(_NARROWEST, width - before) if width is not None else None
    return [line for row in texts for line in _row_lines(row, widths, before, last)]


def _row_lines(row: Sequence[str], widths: list[int], before: int, last: int | None) -> Iterator[str]:
    head = "".join(text + " " * (width - _cells(text)) + _GAP for text, width in zip(row[:-1], widths[:-1], strict=True))
    first, *more = _wrapped(row[-1], last)
    yield f"{head}{first}".rstrip()
    for line in more:
        yield f"{' ' * before}{line}".rstrip()


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None or _cells(text) <= width:
        return text.splitlines() or [""]
    import textwrap

    # A version, path or URL broken in two can no longer be copied.
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _cells(text: str) -> int:
    """The terminal cells a text takes: East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text)


def _terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


@contextmanager
def step(text: str, details: Callable[[], str] = str) -> Iterator[None]:
    """Say what long work is going on, and how far it is: `details` is asked now and then, and may have nothing to say.

    A terminal shows it in one line that is overwritten, anything else in a plain line every ten seconds. Work that is quick is
    not talked about.
    """
    from threading import Event, Thread

    is_done = Event()
    speaker = Thread(target=_speak, args=(text, details, is_done), daemon=True)
    speaker.start()
    try:
        yield
    finally:
        is_done.set()
        speaker.join()


@contextmanager
def steps(text: str) -> Iterator[Callable[[str], None]]:
    """Like `step`, for work of many parts: call what this yields with the name of each part as it begins."""
    begun: list[str] = []
    with step(text, lambda: f"{len(begun)}, {begun[-1]}" if begun else "0"):
        yield begun.append


def _speak(text: str, details: Callable[[], str], is_done: Event) -> None:
    if is_done.wait(PATIENCE_SECONDS):
        return
    if not _is_lively(sys.stderr):
        talk(f"{text} ...")
        while not is_done.wait(_PLAIN_PAUSE_SECONDS):
            found = details()
            if found:
                talk(f"{text}: {found}")
        return
    _show_live(text, details, is_done)


def _show_live(text: str, details: Callable[[], str], is_done: Event) -> None:
    from rich.console import Console
    from rich.text import Text

    def line() -> Text:
        found = details()
        return Text(shown(f"{text}: {found}" if found else text), no_wrap=True, overflow="ellipsis")

    with Console(stderr=True, no_color=not _has_colour(sys.stderr)).status(line()) as status:
        while not is_done.wait(_LIVELY_PAUSE_SECONDS):
            status.update(line())


def _is_lively(stream: TextIO) -> bool:
    """Whether a line of this stream can be overwritten: a real terminal, outside continuous integration."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def _has_colour(stream: TextIO) -> bool:
    """Follow https://no-color.org and https://force-color.org: set and not empty counts, and NO_COLOR wins."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _paint(text: str, style: str, stream: TextIO) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if _has_colour(stream) else text
