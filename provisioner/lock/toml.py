"""TOML text -> a document that knows the line of every key: the standard reader gives data without places."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from provisioner.document import Document, Position
from provisioner.errors import InvalidDocumentError, Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.document import KeyPath

_PLACE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)
_HEADER = re.compile(r"\s*\[(\[)?\s*(.+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*'))*)\s*=""")
_PART = re.compile(r""""((?:[^"\\]|\\.)*)"|'([^']*)'|([\w-]+)""")


def parse_toml(text: str, *, file: str, kind: str) -> Document:
    """Read TOML; raises `InvalidDocumentError` with the line and column of a syntax error."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise InvalidDocumentError(kind, (Mistake(file, 1, 1, "", "values are nested too deep to read"),)) from None
    except ValueError as error:
        raise InvalidDocumentError(kind, (_syntax_mistake(text, file, str(error)),)) from None
    reader = _Reader(_places(text))
    frozen = reader.value(data, (), Position(1, 1))
    return Document(file, frozen, reader.keys, reader.texts)


def _syntax_mistake(text: str, file: str, message: str) -> Mistake:
    match = _PLACE.fullmatch(message)
    if match:
        return Mistake(file, int(match[2]), int(match[3]), "", match[1])
    last = len(text.splitlines()) or 1
    return Mistake(file, last if "end of document" in message else 1, 1, "", message.removesuffix(" (at end of document)"))


class _Reader:
    """Freezes lists, and gives every key its own place or, inside a value of several keys, that of the key above."""

    def __init__(self, places: dict[KeyPath, Position]) -> None:
        self.places = places
        self.keys: dict[KeyPath, Position] = {}
        self.texts: dict[KeyPath, str] = {}

    def value(self, value: Any, path: KeyPath, above: Position) -> Any:  # noqa: ANN401 - TOML holds anything
        position = self.places.get(path, above)
        if path:
            self.keys[path] = position
        if isinstance(value, dict):
            return {key: self.value(below, (*path, key), position) for key, below in value.items()}
        if isinstance(value, list):
            return tuple(self.value(below, (*path, index), position) for index, below in enumerate(value))
        self.texts[path] = str(value).lower() if isinstance(value, bool) else str(value)  # as TOML spells it
        return value


def _places(text: str) -> dict[KeyPath, Position]:
    """The line and column of every table header and every `key =` of the file."""
    places: dict[KeyPath, Position] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.fullmatch(line):
            table = _table(tuple(_parts(header[2])), counts, is_list=header[1] is not None)
            places.setdefault(table, Position(number, line.index("[") + 1))
        elif key := _KEY.match(line):
            places.setdefault((*table, *_parts(key[1])), Position(number, key.start(1) + 1))
    return places


def _table(parts: tuple[str, ...], counts: dict[KeyPath, int], *, is_list: bool) -> KeyPath:
    """The key path of a header: the newest item of every list of tables on the way, and a new one for `[[...]]`."""
    path: KeyPath = ()
    for depth, part in enumerate(parts, start=1):
        path = (*path, part)
        if is_list and depth == len(parts):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _parts(text: str) -> Iterator[str]:
    for match in _PART.finditer(text):
        yield next(group for group in match.groups() if group is not None)
