"""Read TOML as plain data with the line and column of every key and of every item of a list.

`tomllib` reads the values but gives no positions. A second pass over the text, known to be valid by then, finds where each key,
value and table begins. No maintained library does both: tomlkit gives no positions (its issue #55), and spanned-toml had its
last release in 2022.

Source: TOML v1.0.0, toml.io/en/v1.0.0.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

import tomli

from provisioner.document import LARGEST_DOCUMENT, TOO_LARGE, Document, KeyPath, Position, merge_conflicts
from provisioner.errors import InvalidDocumentError, Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST = 100
"""The most parts of a dotted key: the parsers of TOML take the square of their number, and nobody writes ten of them."""

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:\.[ \t]*+{_PART}){{{_LONGEST}}}")

_PLACE = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)", re.DOTALL)
_AT_THE_END = " (at end of document)"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACES = re.compile(r"[ \t]*")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
MULTILINE = ('"""', "'''")
_QUOTED = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    re.compile(r"'''.*?'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\]|\\.)*"'),
    re.compile(r"'[^']*'"),
)
"""Patterns of strings, the multi-line ones first.

A multi-line string may have up to two quotes right before its closing three.
"""


def loads(text: str) -> dict[str, Any]:
    """Return the plain data of TOML; raises `ValueError` for what is not TOML, or larger than documents of people are."""
    import tomllib

    require_bounded(text)
    return tomllib.loads(text)


def loads_compiled(text: str) -> dict[str, Any]:
    """Return the same as `loads`: `tomli` is the code of Python's `tomllib`, compiled, and five times as fast."""
    require_bounded(text)
    return tomli.loads(text)


def is_toml(text: str) -> bool:
    """Return whether a text is TOML, and no larger than documents of people are."""
    try:
        loads_compiled(text)
    except (ValueError, RecursionError):
        return False
    return True


def require_bounded(text: str) -> None:
    """Raise `ValueError` for a text that is too large for a document, or has a key of very many parts."""
    if len(text) > LARGEST_DOCUMENT:
        raise ValueError(TOO_LARGE)
    for number, line in enumerate(text.split("\n"), start=1):
        # No part of a key goes over the end of a line, and counting dots is quick.
        if line.count(".") >= _LONGEST and (key := _LONG_KEY.search(line)) is not None:
            raise ValueError(f"A key has more than {_LONGEST} parts (at line {number}, column {key.start() + 1})")


def parse_toml(text: str, *, file: str, kind: str, dates_as_text: bool = False) -> Document:
    """Read TOML text as a document; lists become tuples. With `dates_as_text`, dates become ISO 8601 text.

    `file` is the path that messages name, and `kind` what the file is, such as `spec`.

    Raises `InvalidDocumentError` with the position of a syntax error.
    """
    try:
        data = loads(text)
        places = _Places(text)
        for _ in places.scan():
            pass
        frozen = _frozen(data, dates_as_text=dates_as_text)
    except RecursionError:
        raise InvalidDocumentError(kind, (Mistake(file, 1, 1, "", "the file is nested too deeply to be read"),)) from None
    except ValueError as error:  # also for a number with more digits than Python converts
        found = merge_conflicts(text, file) or (_syntax_mistake(text, file, str(error)),)
        raise InvalidDocumentError(kind, found) from None
    return Document(file, frozen, places.keys, places.texts)


class KeyPositions:
    """Finds keys and items in TOML text, which is scanned no further than to the last one that was asked for.

    `text` must be valid: of other text any position may be told.
    """

    def __init__(self, text: str) -> None:
        self._places = _Places(text)
        self._scan = self._places.scan()

    def get(self, path: KeyPath) -> Position | None:
        """Return the position of a key or item; None for one that the text has not."""
        with suppress(IndexError, RecursionError):  # the text is not valid
            while path not in self._places.keys and next(self._scan, None) is not None:
                pass
        return self._places.keys.get(path)


def _value_of(spelled: str) -> str:
    """Return the value of a valid string of TOML, from its opening quotes to its closing ones."""
    is_plain = "\\" not in spelled and not spelled.startswith(MULTILINE)
    return spelled[1:-1] if is_plain else str(tomli.loads(f"x = {spelled}")["x"])


def _syntax_mistake(text: str, file: str, message: str) -> Mistake:
    match = _PLACE.fullmatch(message)
    if match is not None:
        what = match["what"]
        return Mistake(file, int(match["line"]), int(match["column"]), "", f"{what[:1].lower()}{what[1:]}")
    lines = text.splitlines() or [""]
    what = message.removesuffix(_AT_THE_END)
    is_at_the_end = message.endswith(_AT_THE_END)
    line, column = (len(lines), len(lines[-1]) + 1) if is_at_the_end else (1, 1)
    return Mistake(file, line, column, "", f"{what[:1].lower()}{what[1:]}{' at the end of the file' if is_at_the_end else ''}")


def _frozen(value: Any, *, dates_as_text: bool) -> Any:  # noqa: ANN401 - TOML holds anything
    if isinstance(value, dict):
        return {key: _frozen(below, dates_as_text=dates_as_text) for key, below in value.items()}
    if isinstance(value, list):
        return tuple(_frozen(below, dates_as_text=dates_as_text) for below in value)
    return value.isoformat() if dates_as_text and isinstance(value, datetime | date | time) else value


class _Places:
    """Scans valid TOML: `scan` fills `keys` with the position of each key and item, and `texts` with each scalar's spelling."""

    def __init__(self, text: str) -> None:
        self.keys: dict[KeyPath, Position] = {}
        self.texts: dict[KeyPath, str] = {}
        self._text = text
        self._at = 0
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._tables: dict[KeyPath, int] = {}
        """The number of tables that have been read of each array of tables, by its key path."""

    def scan(self) -> Iterator[KeyPath]:
        """Scan the text, and yield the table that the scan is in after each header and each pair of a key and a value."""
        table: KeyPath = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
            yield table

    def _header(self) -> KeyPath:
        """Read `[a.b]` or `[[a.b]]` and return its path; the key of an array of tables means the last table of the array."""
        is_list = self._text.startswith("[[", self._at)
        self._at += 2 if is_list else 1
        keys = self._dotted()
        path: KeyPath = ()
        for depth, (key, start) in enumerate(keys, start=1):
            path = (*path, key)
            self._note(path, start)
            if is_list and depth == len(keys):
                self._tables[path] = self._tables.get(path, 0) + 1
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
                self._note(path, start)
        self._at += 2 if is_list else 1
        return path

    def _pair(self, path: KeyPath) -> None:
        for key, start in self._dotted():
            path = (*path, key)
            self._note(path, start)
        self._at += 1  # the `=` between key and value
        self._skip(_SPACES)
        self._value(path)

    def _dotted(self) -> list[tuple[str, int]]:
        """Read a dotted key and return its parts with their offsets; the scan is then at the character after the key."""
        found = []
        while True:
            self._skip(_SPACES)
            start = self._at
            found.append((self._key(), start))
            self._skip(_SPACES)
            if self._text[self._at] != ".":
                return found
            self._at += 1

    def _key(self) -> str:
        bare = _BARE_KEY.match(self._text, self._at)
        if bare is not None:
            self._at = bare.end()
            return bare[0]
        start = self._at
        self._string()
        return _value_of(self._text[start : self._at])

    def _value(self, path: KeyPath) -> None:
        opening = self._text[self._at]
        start = self._at
        if opening in "[{":
            self._members(path, is_table=opening == "{")
        elif opening in "\"'":
            self._string()
            self.texts[path] = _value_of(self._text[start : self._at])
        else:
            self._skip(_SCALAR)
            self.texts[path] = self._text[start : self._at].strip()

    def _members(self, path: KeyPath, *, is_table: bool) -> None:
        """Read a list or an inline table, including both brackets."""
        self._at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self._text[self._at] in "]}":
                self._at += 1
                return
            if is_table:
                self._pair(path)
            else:
                self._note((*path, index), self._at)
                self._value((*path, index))
            index += 1
            self._skip(_BLANK)
            if self._text[self._at] == ",":
                self._at += 1

    def _string(self) -> None:
        for spelling in _QUOTED:
            match = spelling.match(self._text, self._at)
            if match is not None:
                self._at = match.end()
                return

    def _note(self, path: KeyPath, start: int) -> None:
        """Record the position of a key if it has none yet: with `[a.b]` above `[a]`, that of `a` is in `[a.b]`."""
        if path not in self.keys:
            line = bisect_right(self._line_starts, start)
            self.keys[path] = Position(line, start - self._line_starts[line - 1] + 1)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
