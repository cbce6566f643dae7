"""All printing: results go to stdout, messages about the work to stderr, and neither depends on colour or a terminal."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TextIO

from provisioner.errors import escaped_in_json, visible, without_userinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from threading import Event

    from provisioner.errors import ProvisionError

PROGRESS_DELAY_SECONDS = 1.0
"""The time after which work gets a progress message; shorter work has none, because nobody could read it in time."""

_LIVELY_PAUSE_SECONDS = 0.2
_PLAIN_PAUSE_SECONDS = 10.0

_GAP = "  "
_NARROWEST = 20
_LONGEST_HANGING = 12
"""The longest label beside which the text of its paragraph is aligned; below a longer one the text is indented by two cells."""

_ROW_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)")
_OPERATORS = ("<", ">", "==", "!=", "~=")

_PLAINER = str.maketrans({"✓": "+", "✗": "x", "·": "|", "…": "..."})
"""ASCII replacements of this program's symbols, for a stream whose encoding lacks them."""


class Paint(StrEnum):
    """The emphasis of a label or a text on a terminal with colour, as an ANSI code."""

    PLAIN = ""
    STRONG = "1"
    BAD = "1;31"
    GOOD = "1;32"
    UNSURE = "1;33"
    NEXT = "1;36"


class Line(NamedTuple):
    """A paragraph of a report: a painted label, and a text that is wrapped beside it; `indent` is in cells.

    On a terminal a paragraph is wrapped between words, and its further rows are aligned with the text. Elsewhere it is one
    line, so that grep and cut work. `paint` is for the label, `text_paint` for the text.
    """

    text: str
    label: str = ""
    paint: Paint = Paint.PLAIN
    indent: int = 0
    text_paint: Paint = Paint.PLAIN


MARKS = {"yes": ("✓", Paint.GOOD), "no": ("✗", Paint.BAD), "unverified": ("?", Paint.UNSURE)}
"""The symbol and the colour of each verdict; the symbols differ, too, for output without colour."""

_is_detailed = False


def show_details(wanted: bool) -> None:
    """Set whether reports include details, as requested with `-v`."""
    global _is_detailed  # noqa: PLW0603 - one setting for the one terminal of the process
    _is_detailed = wanted


def wants_details() -> bool:
    """Return whether reports include details, as requested with `-v`."""
    return _is_detailed


def verdict_line(verdict: str, text: str) -> Line:
    """Return the line of an answer, with the symbol of its verdict as the label."""
    mark, paint = MARKS[verdict]
    return Line(text, mark, paint, text_paint=Paint.STRONG)


def data(text: str) -> None:
    """Print a result to stdout, with a newline at its end; a document that is printed so is as it is in its file."""
    _write(_printable(_ended(text)), sys.stdout)


def trace(text: str) -> None:
    """Print the traceback of a bug to stderr: the values of an exception are as little to be trusted as any other."""
    _write(shown(text), sys.stderr)


def commands(text: str) -> None:
    """Print commands that a job of GitHub Actions shall obey to stdout; what they say must be escaped already."""
    sys.stdout.write(_ended(text))


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _write(text: str, stream: TextIO) -> None:
    """Print rows that were made printable part by part, and none that is a command.

    A job of GitHub Actions takes a row that begins with `::` for a command of its own. Source: `ActionCommand.TryParseV2` of
    github.com/actions/runner, which skips white space before the sign.
    """
    stream.write(_ROW_COMMAND.sub(r"\1\\x3a", text) if "::" in text else text)


def shown(text: str) -> str:
    r"""Return a text with all control characters escaped as `\x1b`, and without logins.

    Names, versions and reasons come from indexes and files of other people. Characters that reverse the writing direction are
    escaped too, because they make a line look different from its content. Every message goes through here, so that the login of
    an address is not told wherever a person wrote it: what is printed ends up in logs of CI.
    """
    return _printable(_masked(text))


def _masked(text: str) -> str:
    if "@" not in text:
        return text
    return without_userinfo(text)


def _printable(text: str) -> str:
    if text.isascii() and "##[" not in text and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return visible(text)


def json_data(value: object) -> None:
    """Print a JSON document to stdout: keys in the order given, two spaces of indent, non-ASCII text unescaped.

    Characters that stdout cannot encode, or that control a terminal, are escaped as JSON does. Logins are masked.
    """
    text = json_text(value)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json_text(value, is_ascii=True)
    data(text)


def json_text(value: object, *, is_ascii: bool = False) -> str:
    """Return a JSON document as `json_data` prints it, also without any character that is not ASCII."""
    import json

    return escaped_in_json(_masked(json.dumps(value, indent=2, ensure_ascii=is_ascii)))


def report(lines: Iterable[Line]) -> None:
    """Print the paragraphs of a result to stdout."""
    _print(lines, sys.stdout)


def talk(text: str) -> None:
    """Print a paragraph about the work, which is not part of the result, to stderr."""
    tell([Line(text)])


def tell(lines: Iterable[Line]) -> None:
    """Print paragraphs about the work, which are not part of the result, to stderr."""
    # Results printed before must come first if both streams go to one terminal or log.
    sys.stdout.flush()
    _print(lines, sys.stderr)
    sys.stderr.flush()


def warn(text: str) -> None:
    """Print a warning to stderr."""
    tell([Line(text, "warning:", Paint.UNSURE)])


def failure(error: ProvisionError) -> None:
    """Print an error to stderr: its message and code, its causes, and after a blank line its hints."""
    lines = [Line(f"{error.message}  [{error.code}]", "error:", Paint.BAD)]
    lines += [Line(line, indent=len(_GAP)) for cause in error.causes for line in cause.splitlines()]
    if error.hints:
        lines.append(Line(""))
        lines += [Line(hint, "hint:", Paint.NEXT) for hint in error.hints]
    tell(lines)


def _print(lines: Iterable[Line], stream: TextIO) -> None:
    width = _terminal_width() if stream.isatty() else None
    text = "".join(f"{row}\n" for line in lines for row in _rows(line, width, stream))
    _write(_spelled(text, stream), stream)


def _rows(line: Line, width: int | None, stream: TextIO) -> Iterator[str]:
    """Yield the rows of a paragraph; line breaks in its text, and the blanks at the beginning of a line, are preserved."""
    label = shown(line.label)
    taken = line.indent + (_cells(label) + 1 if label else 0)
    lead = f"{' ' * line.indent}{_paint(label, line.paint, stream)}{' ' if label else ''}"
    hanging = taken if label and _cells(label) <= _LONGEST_HANGING else line.indent + len(_GAP)
    width = max(width, hanging + _NARROWEST) if width is not None else None
    for text in shown(line.text).splitlines() or [""]:
        inner = hanging + len(text) - len(text.lstrip(" "))
        first, *rest = _wrapped(text, width, first=taken, hanging=inner)
        yield f"{lead}{_paint(first, line.text_paint, stream)}".rstrip()
        yield from (f"{' ' * inner}{_paint(row, line.text_paint, stream)}" for row in rest)
        taken, lead = hanging, " " * hanging


def _spelled(text: str, stream: TextIO) -> str:
    """Return a text with this program's symbols replaced by ASCII if the stream cannot encode the text."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return text.translate(_PLAINER)
    return text


def failure_data(error: ProvisionError) -> dict[str, object]:
    """Return an error as the JSON object that commands print with `--format json`."""
    return {
        "status": "error",
        "code": error.code,
        "message": error.message,
        "causes": list(error.causes),
        "hints": list(error.hints),
    }


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table to stdout; on a terminal the columns are wrapped between words to fit its width.

    Elsewhere a row is one line, so that grep and cut work.
    """
    width = _terminal_width() if sys.stdout.isatty() else None
    first, *rest = table_lines(columns, rows, width=width)
    _write(_spelled("\n".join([_paint(first, Paint.STRONG, sys.stdout), *rest, ""]), sys.stdout), sys.stdout)


def table_lines(columns: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None) -> list[str]:
    """Return the lines of a table, the header first; `width` is in terminal cells, and None leaves every row on one line.

    Columns of numbers are aligned to the right.
    """
    texts = [tuple(columns), *(tuple(shown(text) for text in row) for row in rows)]
    wrong = next((row for row in texts if len(row) != len(columns)), None)
    assert wrong is None, f"a table of {len(columns)} columns was given the row {wrong}"
    widths = _column_widths(list(zip(*texts, strict=True)), width)
    wrapped = [[_wrapped(text, at) for text, at in zip(row, widths, strict=True)] for row in texts]
    by_column = list(zip(*wrapped, strict=True))
    widths = [max(_cells(line) for cell in cells for line in cell) for cells in by_column]
    is_number = [all(line.replace(",", "").isdigit() or not line for cell in cells[1:] for line in cell) for cells in by_column]
    lines = [line for row in wrapped for line in _row_lines(row, widths, is_number)]
    return lines if width is None else [_shifted(line, width) for line in lines]


class MarkedRow(NamedTuple):
    """A row of a table behind a painted mark, and the paragraphs below it, which take the whole width."""

    mark: str
    paint: Paint
    cells: Sequence[str]
    below: Sequence[Line] = ()


def marked_table(columns: Sequence[str], rows: Sequence[MarkedRow]) -> None:
    """Print a table to stdout whose rows begin with a mark, each with its paragraphs below it.

    On a terminal the columns are wrapped between words to fit its width; elsewhere a row is one line.
    """
    stream = sys.stdout
    width = _terminal_width() if stream.isatty() else None
    lead = len(_GAP) + 2  # the indent, the mark and a blank
    texts = [tuple(columns), *(tuple(map(shown, row.cells)) for row in rows)]
    widths = _column_widths(list(zip(*texts, strict=True)), width - lead if width is not None else None)
    marks = [("", Paint.PLAIN, ()), *((row.mark, row.paint, row.below) for row in rows)]
    printed: list[str] = []
    for cells, (mark, paint, below) in zip(texts, marks, strict=True):
        wrapped = [_wrapped(text, at) for text, at in zip(cells, widths, strict=True)]
        for index, line in enumerate(_row_lines(wrapped, widths, [False] * len(cells))):
            shown_mark = _paint(mark, paint, stream) if mark and not index else " "
            printed.append(f"{_GAP}{shown_mark} {_paint(line, Paint.STRONG, stream) if not printed else line}".rstrip())
        printed.extend(row for line in below for row in _rows(line, width, stream))
    _write(_spelled("\n".join([*printed, ""]), stream), stream)


def _column_widths(by_column: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Return the width of each column in cells: that of its longest text, reduced for the widest columns until all fit.

    No word is broken. A word longer than the last column extends to the right of it.
    """
    widths = [max(map(_cells, texts)) for texts in by_column]
    if width is None:
        return widths
    least = [max((_cells(word) for text in texts for word in text.split()), default=0) for texts in by_column]
    least[-1] = min(least[-1], _NARROWEST)
    too_wide = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while too_wide > 0:
        index = max(range(len(widths)), key=lambda at: (widths[at] > least[at], widths[at]))
        if widths[index] <= least[index]:
            break
        widths[index] -= 1
        too_wide -= 1
    # Wrapped texts may be narrower than their column; the last column gets the rest of the width.
    widths = [
        max(_cells(row) for text in texts for row in _wrapped(text, at)) for texts, at in zip(by_column, widths, strict=True)
    ]
    return [*widths[:-1], max(_NARROWEST, width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1))]


def _row_lines(cells: Sequence[Sequence[str]], widths: list[int], is_number: list[bool]) -> Iterator[str]:
    for at in range(max(map(len, cells))):
        parts = [lines[at] if at < len(lines) else "" for lines in cells]
        pads = [" " * (width - _cells(part)) for part, width in zip(parts, widths, strict=True)]
        aligned = [f"{pad}{part}" if right else f"{part}{pad}" for part, pad, right in zip(parts, pads, is_number, strict=True)]
        yield _GAP.join(aligned).rstrip()


def _shifted(line: str, width: int) -> str:
    """Shift a line that consists of one word, wider than the last column, to the left until it fits into `width`.

    Any other line is returned unchanged.
    """
    word = line.lstrip()
    return line if _cells(line) <= width or " " in word or word == line else f"{' ' * max(0, width - _cells(word))}{word}"


def _wrapped(text: str, width: int | None, *, first: int = 0, hanging: int = 0) -> list[str]:
    """Return a line as rows of at most `width` cells, broken at blanks only, so that a version, path or URL can be copied.

    `first` is the number of cells already used in the first row, `hanging` in each further row; None for `width` wraps nothing.
    """
    if width is None or first + _cells(text) <= width:
        return [text]
    begin, *words = _words(text, width - hanging)
    rows = [begin]
    free = width - first
    for word in words:
        if rows[-1].strip() and _cells(rows[-1]) + 1 + _cells(word) > free:
            rows.append(word)
            free = width - hanging
        else:
            rows[-1] = f"{rows[-1]} {word}"
    begin, *others = (row.rstrip() for row in rows if row.strip())
    return [begin, *map(str.lstrip, others)]


def _words(text: str, width: int) -> list[str]:
    """Return the pieces of a text between which a row may end.

    A name and the version after it are one piece, and so is a command in backticks, unless the piece is wider than `width`.
    """
    pieces: list[str] = []
    is_open = False
    for word in text.split(" "):
        joined = f"{pieces[-1]} {word}" if pieces else word
        is_of_name = word[:1].isdigit() and bool(pieces) and pieces[-1][-1:].isalnum()
        is_bound = is_open or is_of_name or word.startswith(_OPERATORS)
        if pieces and is_bound and pieces[-1] and _cells(joined) <= width:
            pieces[-1] = joined
        else:
            pieces.append(word)
        is_open ^= word.count("`") % 2 == 1
    return pieces


def _cells(text: str) -> int:
    """Return the terminal cells that a text takes: an East Asian wide character takes two, a combining one none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text)


def _terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


@contextmanager
def step(text: str, details: Callable[[], str] = str) -> Iterator[None]:
    """Show `text` and the progress of the work in the `with` block.

    A terminal shows one line, which is overwritten; elsewhere a plain line is printed every ten seconds. Work shorter than
    `PROGRESS_DELAY_SECONDS` is not shown. `details` is called again and again, and returns the
    progress as text, "" for none.
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
    """Show the progress of work in parts, as `step` does; call the yielded function with the name of each part that begins."""
    begun: list[str] = []
    with step(text, lambda: f"{len(begun)}, {begun[-1]}" if begun else "0"):
        yield begun.append


@contextmanager
def bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show how much of some work is done; call the yielded function with the number of parts done, and of all parts.

    A terminal shows a bar, elsewhere plain lines are printed as `step` does.
    """
    at = [0, 0]

    def told(done: int, of: int) -> None:
        at[:] = done, of

    if not _is_lively(sys.stderr):
        with step(text, lambda: f"{at[0]} of {at[1]}" if at[1] else ""):
            yield told
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True, no_color=not _has_colour(sys.stderr))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(shown(text), total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def _speak(text: str, details: Callable[[], str], is_done: Event) -> None:
    if is_done.wait(PROGRESS_DELAY_SECONDS):
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
    """Return whether a line of this stream can be overwritten: on a terminal, outside of continuous integration."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def _has_colour(stream: TextIO) -> bool:
    """Return whether to use colour on a stream, by https://no-color.org and https://force-color.org.

    A variable counts if it is not empty; NO_COLOR takes precedence.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _paint(text: str, paint: Paint, stream: TextIO) -> str:
    return f"\x1b[{paint}m{text}\x1b[0m" if paint and text and _has_colour(stream) else text
