"""The files a spec names, read into it: their requirements join its own lists, and every line remembers its file.

What comes out is a document like the one that went in, so that everything that checks or cites a line does so wherever it
stands.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import astuple, replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.document import Position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake
    from provisioner.spec.other_sources import OtherSource
    from provisioner.spec.project import ProjectLines

LISTS = ("packages", "constraints", "overrides")
READ_INSTEAD = ("constraints", "overrides")
"""Lists whose items may be paths."""

FROM, PYTHON, HASHES, FILES, ELSEWHERE = "packages-from", "requires-python", "hashes", "files", "elsewhere"
"""The key of files to read, and the keys of places that a gathered document knows besides those of its own keys."""

_PATH = re.compile(r"[^\s@;<>=!~\[]*(?:/[^\s@;<>=!~\[]*|\.(?:txt|in))")
_TOML = ".toml"


def is_path(text: str) -> bool:
    """Whether an item of `constraints` or `overrides` is a path: it has a slash, or ends as requirement files do."""
    return _PATH.fullmatch(text.strip()) is not None


class Gathered(Struct):
    """A spec's document with the lines of the files it names, what only those say, and the mistakes in them.

    `hashes` are by distribution; `pythons` are ranges of Python versions, of which `document` knows the places under
    `requires-python`, as it knows those of hashes under `hashes`.
    """

    document: Document
    hashes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pythons: tuple[str, ...] = ()
    mistakes: list[Mistake] = field(default_factory=list)


def gather(document: Document, *, project: Document | None = None) -> Gathered:
    """Read every file that a spec names; `project` is the project file around a spec that stands in one.

    A file that is missing or wrong is among the mistakes; values of a wrong type are left to the model.
    """
    if not isinstance(document.data, dict):
        return Gathered(document)
    return _Gathering(document).gathered(project)


class _Gathering:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._folder = Path(document.file).parent
        self._lists: dict[str, list[tuple[object, Position]]] = {name: self._own(name) for name in LISTS}
        self._pythons: dict[str, Position] = {}
        self._hashes: dict[str, tuple[dict[str, tuple[str, ...]], Position]] = {}
        self._mistakes: list[Mistake] = []
        self._files: list[Path] = []
        self._elsewhere: list[OtherSource] = []

    def gathered(self, project: Document | None) -> Gathered:
        """Everything, in the order: the spec's own lines, its project, then file after file."""
        if project is not None and isinstance(project.data.get("project"), dict):
            from provisioner.spec.project import lines_of  # most specs name no file

            self._join(lines_of(project, named_at=Position(1, 1, project.file), extras=(), groups=(), is_whole=True))
        for index, item in enumerate(_items(self._document.data.get(FROM))):
            self._source(item, (FROM, index))
        for name in READ_INSTEAD:
            for index, item in enumerate(_items(self._document.data.get(name))):
                if isinstance(item, str) and is_path(item):
                    self._file(item, (name, index), into=name)
        self._mistakes = list(dict.fromkeys(self._mistakes))
        return Gathered(self._merged(), self._digests(), tuple(self._pythons), self._mistakes)

    def _own(self, name: str) -> list[tuple[object, Position]]:
        items = enumerate(_items(self._document.data.get(name)))
        return [(item, self._document.position((name, index))) for index, item in items]

    def _source(self, item: object, path: KeyPath) -> None:
        if isinstance(item, str):
            if item.endswith(_TOML):
                self._project(item, path, extras=(), groups=(), is_whole=True)
            else:
                self._file(item, path, into="packages")
        elif isinstance(item, dict) and isinstance(item.get("file"), str):
            extras, groups = _texts(item.get("extras")), _texts(item.get("groups"))
            if item["file"].endswith(_TOML):
                self._project(item["file"], path, extras=extras, groups=groups, is_whole=item.get("project") is not False)
            elif extras or groups:
                what = "extras" if extras else "groups"
                self._mistakes.append(
                    self._document.mistake((*path, what), f"`{item['file']}` is no pyproject.toml, so it has no {what}")
                )
            else:
                self._file(item["file"], path, into="packages")

    def _project(self, name: str, path: KeyPath, *, extras: tuple[str, ...], groups: tuple[str, ...], is_whole: bool) -> None:
        from provisioner.spec.project import project_lines

        if self._is_nothing(name, path):
            return
        named_at = self._named_at(path)
        self._files.append(Path(os.path.realpath(self._folder / name)))
        self._join(project_lines(self._folder / name, named_at=named_at, extras=extras, groups=groups, is_whole=is_whole))

    def _is_nothing(self, name: str, path: KeyPath) -> bool:
        """Whether a text can be no path, which is a mistake."""
        if "://" in name:
            fault = f"`{name}` names an address; save what is there, and name the file"
        elif not name.strip() or "\0" in name:
            fault = "names no file"
        else:
            return False
        self._mistakes.append(self._document.mistake(path, fault))
        return True

    def _file(self, name: str, path: KeyPath, *, into: str) -> None:
        from provisioner.spec.requirement_file import read_requirement_file

        if self._is_nothing(name, path):
            return
        reading = read_requirement_file(self._folder / name, named_at=self._named_at(path), is_constraint=into == "constraints")
        self._mistakes.extend(reading.mistakes)
        self._files.extend(file for file, _ in sorted(reading.done))
        for line in reading.lines:
            # What a constraints file requires with -r is required, as in pip.
            joins = "constraints" if line.is_constraint else into if into != "constraints" else "packages"
            self._lists[joins].append((self._moved(line.text, line.position), line.position))
            if line.hashes:
                self._hashed(line.text, line.hashes, line.position)

    def _hashed(self, text: str, digests: tuple[str, ...], position: Position) -> None:
        """Digests of one distribution: those that all of its lines allow, but lines of other environments allow others."""
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            return  # told with the mistakes of all packages
        name = canonicalize_name(requirement.name)
        by_marker, _ = self._hashes.setdefault(name, ({}, position))
        marker = str(requirement.marker or "")
        before = by_marker.get(marker, digests)
        by_marker[marker] = tuple(one for one in before if one in digests)

    def _digests(self) -> dict[str, tuple[str, ...]]:
        """The digests a file of each distribution may have."""
        return {
            name: tuple(dict.fromkeys(digest for some in by_marker.values() for digest in some))
            for name, (by_marker, _) in self._hashes.items()
        }

    def _moved(self, text: str, position: Position) -> str:
        """A requirement of a file beside another file than the spec, as it would be written in the spec."""
        name, sign, place = text.partition("@ file:")
        folder = os.path.relpath(Path(position.file).parent, self._folder)
        if not sign or folder == "." or place.startswith("/"):
            return text
        return f"{name}@ file:{PurePosixPath(folder) / place}"

    def _named_at(self, path: KeyPath) -> Position:
        position = self._document.position(path)
        return Position(position.line, position.column, position.file or self._document.file)

    def _join(self, found: ProjectLines) -> None:
        for text, position in found.requirements:
            line = (self._moved(text, position), position)
            if line not in self._lists["packages"]:
                self._lists["packages"].append(line)
        for text, position in found.pythons:
            self._pythons.setdefault(text, position)
        self._elsewhere.extend(one for one in found.elsewhere if one not in self._elsewhere)
        self._mistakes.extend(one for one in found.mistakes if one not in self._mistakes)

    def _merged(self) -> Document:
        """The document with the joined lists."""
        found = self._document
        for name, lines in self._lists.items():
            if len(lines) > len(_items(found.data.get(name))):
                found = _with_list(found, name, lines)
        keys = dict(found.keys)
        keys.update({(PYTHON, index): position for index, position in enumerate(self._pythons.values())})
        keys.update({(FILES, index): Position(1, 1, str(file)) for index, file in enumerate(dict.fromkeys(self._files))})
        keys.update({(ELSEWHERE, *map(str, astuple(one)[:-1])): one.position for one in self._elsewhere})
        keys.update({(HASHES, name): position for name, (_, position) in self._hashes.items()})
        return replace(found, keys=keys)


def without_paths(document: Document) -> Document:
    """A gathered document whose lists hold requirements only, each under the place it has there."""
    for name in READ_INSTEAD:
        items = _items(document.data.get(name))
        left = [(item, document.position((name, index))) for index, item in enumerate(items) if not _is_read(item)]
        document = _with_list(document, name, left) if len(left) < len(items) else document
    return document


def _with_list(document: Document, name: str, lines: Sequence[tuple[object, Position]]) -> Document:
    """A document with other items in a list of texts; one that is no list stays as it is, for the model to refuse."""
    if not isinstance(document.data.get(name, ()), tuple):
        return document
    keys = {path: position for path, position in document.keys.items() if path[:1] != (name,) or len(path) == 1}
    texts = {path: text for path, text in document.texts.items() if path[:1] != (name,)}
    for index, (item, position) in enumerate(lines):
        keys[name, index] = position
        texts[name, index] = str(item)
    keys.setdefault((name,), lines[0][1] if lines else Position(1, 1))
    return replace(document, data={**document.data, name: tuple(item for item, _ in lines)}, keys=keys, texts=texts)


def _is_read(item: object) -> bool:
    return isinstance(item, str) and is_path(item)


def files_of(document: Document) -> tuple[Path, ...]:
    """The files that were read into a gathered document, in full."""
    return tuple(Path(position.file) for path, position in document.keys.items() if path[:1] == (FILES,))


def elsewhere_in(document: Document) -> tuple[OtherSource, ...]:
    """The sources that other tools have for what the projects of a gathered document require."""
    from provisioner.spec.other_sources import OtherSource

    found = [(path[1:], position) for path, position in document.keys.items() if path[:1] == (ELSEWHERE,)]
    sources = []
    for parts, position in found:
        name, table, kind, place, index = map(str, parts)
        sources.append(OtherSource(name=name, table=table, kind=kind, place=place, index=index, position=position))
    return tuple(sources)


def _items(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in _items(value) if isinstance(one, str))
