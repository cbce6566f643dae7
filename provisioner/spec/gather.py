"""Read the requirement files and projects that a spec names, and join their requirements with the spec's own lists.

The result is a document like that of the spec itself: each joined line has the position of the file it was read from, so that
checks and messages cite the right file and line.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provisioner.document import Position
from provisioner.errors import Mistake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.document import Document, KeyPath
    from provisioner.spec.pyproject import OtherSource, ProjectRequirements
    from provisioner.spec.requirement_file import IndexLine, OptionLine, ProjectLine, Reading
    from provisioner.spec.tool_settings import ToolSetting

LISTS = ("packages", "constraints", "overrides")
PATH_LISTS = ("constraints", "overrides")
"""Lists whose items may be paths of requirement files."""

PACKAGES_FROM = "packages-from"
"""The key that names requirement files and projects."""

_PATH = re.compile(r"[^\s@;<>=!~\[]*(?:/[^\s@;<>=!~\[]*|\.(?:txt|in))")
_TOML = ".toml"


def is_path(text: str) -> bool:
    """Return whether an item of `constraints` or `overrides` is a path: it has a slash, or ends in `.txt` or `.in`."""
    return _PATH.fullmatch(text.strip()) is not None


class Gathered(Struct, frozen=True):
    """A spec's document joined with the lines of the files that it names, and the mistakes found in those files.

    `hashes` has the sha256 digests that requirement files allow for a distribution, `requires_python` the Python ranges of
    projects. `document` has their positions under the keys of `Spec`: `("hashes", name)`, `("requires-python", index)`.
    `files` are the files that were read, with links resolved; `other_sources` the sources that tables of uv, PDM and Poetry
    name for distributions that the projects require, `settings` what else uv and PDM are told there.
    `indexes` and `projects` are the lines of requirement files that name indexes, and projects in folders, whose dependencies
    joined.
    """

    document: Document
    hashes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    requires_python: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    other_sources: tuple[OtherSource, ...] = ()
    settings: tuple[ToolSetting, ...] = ()
    indexes: tuple[IndexLine, ...] = ()
    projects: tuple[ProjectLine, ...] = ()
    passed_over: tuple[OptionLine, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


def gather(document: Document, *, project: Document | None = None, more: Sequence[tuple[str, Position]] = ()) -> Gathered:
    """Read every file that a spec names, and return the joined document.

    `project` is the `pyproject.toml` that contains the spec, None for a spec in a file of its own. `more` are requirements from
    elsewhere, as lines of a requirement file, which join `packages`. A file that is missing or wrong is among the mistakes;
    values of a wrong type are left for the model to refuse.
    """
    if not isinstance(document.data, dict):
        return Gathered(document)
    return _Gatherer(document).gather(project, more)


class _Hashes(Struct):
    """The sha256 digests that requirement files allow for one distribution, by environment marker.

    `position` is that of the first line with digests.
    """

    position: Position
    by_marker: dict[str, tuple[str, ...]] = field(default_factory=dict)


class _Gatherer:
    """Collects the lines of the files that one spec names."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._folder = Path(document.file).parent
        self._lists: dict[str, list[tuple[object, Position]]] = {name: _positioned(document, name) for name in LISTS}
        self._requires_python: dict[str, Position] = {}
        self._hashes: dict[str, _Hashes] = {}
        self._mistakes: list[Mistake] = []
        self._files: list[Path] = []
        self._other_sources: list[OtherSource] = []
        self._settings: list[ToolSetting] = []
        self._indexes: list[IndexLine] = []
        self._projects: list[ProjectLine] = []
        self._passed_over: list[OptionLine] = []

    def gather(self, project: Document | None, more: Sequence[tuple[str, Position]]) -> Gathered:
        """Return the lines of the spec itself, then those of the project around it, then file after file, then `more`."""
        if project is not None and isinstance(project.data.get("project"), dict):
            from provisioner.spec.pyproject import project_requirements  # most specs name no file

            named_at = Position(1, 1, project.file)
            self._join(project_requirements(project, named_at=named_at, extras=(), groups=(), with_dependencies=True))
        for index, item in enumerate(_items(self._document.data.get(PACKAGES_FROM))):
            self._read_source(item, (PACKAGES_FROM, index))
        for name in PATH_LISTS:
            for index, item in enumerate(_items(self._document.data.get(name))):
                if isinstance(item, str) and is_path(item):
                    self._read_requirement_file(item, (name, index), into=name)
        if more:
            from provisioner.spec.requirement_file import read_requirement_lines

            self._take(read_requirement_lines(more), into="packages")
        return Gathered(
            self._joined_document(),
            hashes={
                name: tuple(dict.fromkeys(digest for digests in found.by_marker.values() for digest in digests))
                for name, found in self._hashes.items()
            },
            requires_python=tuple(self._requires_python),
            files=tuple(dict.fromkeys(self._files)),
            other_sources=tuple(self._other_sources),
            settings=tuple(self._settings),
            indexes=tuple(self._indexes),
            projects=tuple(self._projects),
            passed_over=tuple(self._passed_over),
            mistakes=tuple(dict.fromkeys(self._mistakes)),
        )

    def _read_source(self, item: object, path: KeyPath) -> None:
        """Read an item of `packages-from`: a path, or a table with a file and the extras and groups wanted of it."""
        if isinstance(item, str):
            if item.endswith(_TOML):
                self._read_project(item, path, extras=(), groups=(), with_dependencies=True)
            else:
                self._read_requirement_file(item, path, into="packages")
        elif isinstance(item, dict) and isinstance(item.get("file"), str):
            extras, groups = _texts(item.get("extras")), _texts(item.get("groups"))
            if item["file"].endswith(_TOML):
                with_dependencies = item.get("project") is not False
                self._read_project(item["file"], path, extras=extras, groups=groups, with_dependencies=with_dependencies)
            elif extras or groups:
                key = "extras" if extras else "groups"
                text = f"`{item['file']}` is no pyproject.toml, so it has no {key}"
                self._mistakes.append(self._document.mistake((*path, key), text))
            else:
                self._read_requirement_file(item["file"], path, into="packages")

    def _read_project(
        self, name: str, path: KeyPath, *, extras: tuple[str, ...], groups: tuple[str, ...], with_dependencies: bool
    ) -> None:
        from provisioner.spec.pyproject import read_project_requirements

        if not self._require_file_name(name, path):
            return
        file = self._folder / name
        self._files.append(Path(os.path.realpath(file)))
        self._join(
            read_project_requirements(
                file, named_at=self._position(path), extras=extras, groups=groups, with_dependencies=with_dependencies
            )
        )

    def _read_requirement_file(self, name: str, path: KeyPath, *, into: str) -> None:
        from provisioner.spec.requirement_file import read_requirement_file

        if not self._require_file_name(name, path):
            return
        named_at = self._position(path)
        self._take(
            read_requirement_file(self._folder / name, named_at=named_at, is_constraint=into == "constraints"), into=into
        )

    def _take(self, read: Reading, *, into: str) -> None:
        """Join what was read from a requirement file that a list of the spec (`into`) names, or from lines like its own."""
        self._mistakes.extend(read.mistakes)
        self._files.extend(file for file, _ in sorted(read.done))
        self._indexes.extend(read.indexes)
        self._passed_over.extend(read.passed_over)
        for project in read.projects:
            self._read_folder(project)
        for line in read.lines:
            # As in pip, `-r` inside a constraints file adds requirements, not constraints.
            joined = "constraints" if line.is_constraint else into if into != "constraints" else "packages"
            self._lists[joined].append((self._relative_to_spec(line.text, line.position), line.position))
            if line.hashes:
                self._add_hashes(line.text, line.hashes, line.position)

    def _read_folder(self, line: ProjectLine) -> None:
        """Read the dependencies of a project that a requirement file names by its folder."""
        from provisioner.spec.pyproject import read_project_requirements

        if any(one.folder == line.folder and one.extras == line.extras for one in self._projects):
            return
        self._projects.append(line)
        file, at = line.folder / "pyproject.toml", line.position
        if not file.is_file():
            text = (
                f"`{line.text}` is not read: `{line.folder}` has no pyproject.toml, and only a build tells what it requires; "
                "list the packages"
            )
            self._mistakes.append(Mistake(at.file, at.line, at.column, "", text))
            return
        self._files.append(Path(os.path.realpath(file)))
        self._join(read_project_requirements(file, named_at=at, extras=line.extras, groups=(), with_dependencies=True))

    def _require_file_name(self, name: str, path: KeyPath) -> bool:
        """Return whether a text can be a path; if it cannot, record a mistake."""
        if "://" in name:
            text = f"`{name}` names an address; save what is there, and name the file"
        elif not name.strip() or "\0" in name:
            text = "names no file"
        else:
            return True
        self._mistakes.append(self._document.mistake(path, text))
        return False

    def _add_hashes(self, text: str, digests: tuple[str, ...], position: Position) -> None:
        """Restrict the digests of a distribution to those that all lines with the same environment marker allow."""
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            return  # reported with the mistakes of all packages
        found = self._hashes.setdefault(canonicalize_name(requirement.name), _Hashes(position))
        marker = str(requirement.marker or "")
        found.by_marker[marker] = tuple(one for one in found.by_marker.get(marker, digests) if one in digests)

    def _relative_to_spec(self, text: str, position: Position) -> str:
        """Return a requirement with a path that starts from the folder of the spec instead of the file it was read from."""
        name, sign, place = text.partition("@ file:")
        folder = os.path.relpath(Path(position.file).parent, self._folder)
        if not sign or folder == "." or place.startswith("/"):
            return text
        return f"{name}@ file:{PurePosixPath(folder) / place}"

    def _position(self, path: KeyPath) -> Position:
        """Return the position of a key, including its file."""
        position = self._document.position(path)
        return Position(position.line, position.column, position.file or self._document.file)

    def _join(self, found: ProjectRequirements) -> None:
        for text, position in found.requirements:
            line = (self._relative_to_spec(text, position), position)
            if line not in self._lists["packages"]:
                self._lists["packages"].append(line)
        for text, position in found.requires_python:
            self._requires_python.setdefault(text, position)
        self._other_sources.extend(one for one in found.other_sources if one not in self._other_sources)
        self._settings.extend(one for one in found.settings if one not in self._settings)
        self._mistakes.extend(found.mistakes)
        self._files.extend(found.files)

    def _joined_document(self) -> Document:
        joined = self._document
        for name, lines in self._lists.items():
            if len(lines) > len(_items(joined.data.get(name))):
                joined = _with_list(joined, name, lines)
        keys = dict(joined.keys)
        keys.update({("requires-python", index): place for index, place in enumerate(self._requires_python.values())})
        keys.update({("hashes", name): found.position for name, found in self._hashes.items()})
        return replace(joined, keys=keys)


def without_paths(document: Document) -> Document:
    """Return a gathered document without the paths in `constraints` and `overrides`, whose files `gather` has read."""
    for name in PATH_LISTS:
        lines = _positioned(document, name)
        left = [(item, position) for item, position in lines if not (isinstance(item, str) and is_path(item))]
        document = _with_list(document, name, left) if len(left) < len(lines) else document
    return document


def _positioned(document: Document, name: str) -> list[tuple[object, Position]]:
    """Return the items of a list with their positions."""
    return [(item, document.position((name, index))) for index, item in enumerate(_items(document.data.get(name)))]


def _with_list(document: Document, name: str, lines: Sequence[tuple[object, Position]]) -> Document:
    """Return a document with other items in a list; a value that is not a list is left unchanged, for the model to refuse."""
    if not isinstance(document.data.get(name, ()), tuple):
        return document
    keys = {path: position for path, position in document.keys.items() if path[:1] != (name,) or len(path) == 1}
    texts = {path: text for path, text in document.texts.items() if path[:1] != (name,)}
    for index, (item, position) in enumerate(lines):
        keys[name, index] = position
        texts[name, index] = str(item)
    keys.setdefault((name,), lines[0][1] if lines else Position(1, 1))
    return replace(document, data={**document.data, name: tuple(item for item, _ in lines)}, keys=keys, texts=texts)


def _items(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in _items(value) if isinstance(one, str))
