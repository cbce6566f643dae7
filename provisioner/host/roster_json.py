"""JSON with the place of every key: read by the standard decoder, and read again for places only where something is wrong."""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

from provisioner.document import Document, KeyPath, Position
from provisioner.errors import InvalidDocumentError, Mistake

_BLANK = " \t\n\r"
_DECODER = json.JSONDecoder()


def load_json(text: str, *, file: str, kind: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Decode JSON; raises `InvalidDocumentError` at the line and column where it stops being JSON."""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        mistake = Mistake(file, error.lineno, error.colno, "", f"is not JSON: {error.msg}")
    except RecursionError:
        mistake = Mistake(file, 1, 1, "", "is nested too deeply to be read")
    raise InvalidDocumentError(kind, (mistake,))


def with_places(text: str, data: Any, *, file: str) -> Document:  # noqa: ANN401 - whatever the file holds
    """The same data as a document that knows where every key and item stands; `text` must be JSON."""
    places = _Places(text.removeprefix("\ufeff"))
    places.value(places.blank(0), ())
    return Document(file, data, places.keys, places.texts)


class _Places:
    """Walks over JSON that is known to be right, and remembers where things stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(index + 1 for index, char in enumerate(text) if char == "\n")]
        self.keys: dict[KeyPath, Position] = {}
        self.texts: dict[KeyPath, str] = {}

    def _position(self, index: int) -> Position:
        line = bisect_right(self._lines, index)
        return Position(line, index - self._lines[line - 1] + 1)

    def blank(self, index: int) -> int:
        """The index of the next thing that is not blank."""
        while index < len(self._text) and self._text[index] in _BLANK:
            index += 1
        return index

    def value(self, index: int, path: KeyPath) -> int:
        """Walk over the value at `index`; returns where it ends."""
        first = self._text[index]
        if first in "{[":
            return self._container(index, path, is_mapping=first == "{")
        value, end = _DECODER.raw_decode(self._text, index)
        self.texts[path] = value if isinstance(value, str) else self._text[index:end]
        return end

    def _container(self, index: int, path: KeyPath, *, is_mapping: bool) -> int:
        index = self.blank(index + 1)
        number = 0
        while self._text[index] not in "}]":
            below: KeyPath = (*path, number)
            position = self._position(index)
            if is_mapping:
                key, index = _DECODER.raw_decode(self._text, index)
                below = (*path, key)
                index = self.blank(self.blank(index) + 1)
            self.keys[below] = position
            index = self.blank(self.value(index, below))
            number += 1
            if self._text[index] == ",":
                index = self.blank(index + 1)
        return index + 1
