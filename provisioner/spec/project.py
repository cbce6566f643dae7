"""What a `pyproject.toml` requires: its dependencies, extras (PEP 621) and dependency groups (PEP 735), each with its place.

`packaging.dependency_groups` resolves groups as well, but says of nothing where it stands.
Source: PyPA specifications, "pyproject.toml" and "Dependency groups", read 2026-11-21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.names import nearest
from provisioner.spec.other_sources import OtherSource, other_sources
from provisioner.toml_document import parse_toml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from provisioner.document import Document, KeyPath, Position

KIND = "project file"


class ProjectLines(Struct):
    """What was read of a project: requirements and what is asked of Python, with their places, and every mistake.

    `elsewhere` are the sources that other tools have for what is required.
    """

    requirements: list[tuple[str, Position]] = field(default_factory=list)
    pythons: list[tuple[str, Position]] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    elsewhere: list[OtherSource] = field(default_factory=list)


def load_project(path: Path) -> Document:
    """Read a project file; raises `FileError`, or `InvalidDocumentError` with the place of a syntax error."""
    from provisioner.document import read_text

    return parse_toml(read_text(path, kind=KIND), file=str(path), kind=KIND, dates_as_text=True)


def project_lines(
    path: Path, *, named_at: Position, extras: Sequence[str], groups: Sequence[str], is_whole: bool
) -> ProjectLines:
    """What a project file requires; one that cannot be read is a mistake, at the place that names it where it is missing."""
    from provisioner.document import FileError

    try:
        document = load_project(path)
    except FileError as error:
        return ProjectLines(mistakes=[Mistake(named_at.file, named_at.line, named_at.column, "", error.message)])
    except InvalidDocumentError as error:
        return ProjectLines(mistakes=list(error.mistakes))
    return lines_of(document, named_at=named_at, extras=extras, groups=groups, is_whole=is_whole)


def lines_of(
    document: Document, *, named_at: Position, extras: Sequence[str], groups: Sequence[str], is_whole: bool
) -> ProjectLines:
    """What a project file that has been read requires; without `is_whole` its groups alone."""
    return _Project(document, named_at).lines(extras, groups, is_whole=is_whole)


class _Project:
    """One project file, asked for parts of it; names of extras and groups are compared normalized (PEP 685, PEP 735)."""

    def __init__(self, document: Document, named_at: Position) -> None:
        self._document = document
        self._named_at = named_at
        self._found = ProjectLines()
        data = document.data
        self._project = self._table(data, "project")
        self._name = canonicalize_name(str(self._project.get("name", "")))
        self._extras = self._named(self._table(self._project, "project", "optional-dependencies"), "optional-dependencies")
        self._groups = self._named(self._table(data, "dependency-groups"), "dependency-groups")
        self._extras_done: set[tuple[str, str]] = set()
        self._groups_done: set[str] = set()
        self._inside: list[str] = []
        self._names: set[str] = set()
        """What is required, without files by address: those are taken from there."""

    def lines(self, extras: Sequence[str], groups: Sequence[str], *, is_whole: bool) -> ProjectLines:
        """Everything asked for, in the order of the file's own parts: project, extras, groups."""
        if is_whole:
            self._whole()
        for extra in extras:
            self._extra(extra, None, marker="")
        for group in groups:
            self._group(group, None, inside=())
        self._found.requirements = list(dict.fromkeys(self._found.requirements))
        self._found.mistakes = list(dict.fromkeys(self._found.mistakes))
        parts = {("extra", name) for name, _ in self._extras_done} | {("group", name) for name in self._groups_done}
        self._found.elsewhere = list(other_sources(self._document, self._names, parts))
        return self._found

    def _table(self, above: Any, *path: str) -> dict[str, Any]:  # noqa: ANN401 - TOML holds anything
        value = above.get(path[-1], {})
        if isinstance(value, dict):
            return value
        self._fault(path, "must be a table")
        return {}

    def _named(self, table: dict[str, Any], shown: str) -> dict[str, KeyPath]:
        """Where each entry of a table stands, by its normalized name."""
        above: KeyPath = (shown,) if shown == "dependency-groups" else ("project", shown)
        found: dict[str, KeyPath] = {}
        for name in table:
            normal = canonicalize_name(name)
            if normal in found:
                other = found[normal][-1]
                self._fault((*above, name), f"`{name}` and `{other}` are the same name, which is given twice")
            found.setdefault(normal, (*above, name))
        return found

    def _whole(self) -> None:
        """The project's own dependencies, and what it asks of Python."""
        if not self._project:
            at = self._named_at
            text = (
                f"`{self._document.file}` has no [project] table; name `groups` and `project: false` to read its groups alone"
            )
            self._found.mistakes.append(Mistake(at.file, at.line, at.column, "", text))
            return
        dynamic = self._project.get("dynamic", ())
        for key in ("dependencies", "requires-python"):
            if isinstance(dynamic, tuple) and key in dynamic:
                path: KeyPath = ("project", "dynamic", dynamic.index(key))
                self._fault(
                    path, f"`{key}` is dynamic, so that only a build tells it; state it in this file, or list the packages"
                )
        self._requirements(("project", "dependencies"), self._project.get("dependencies", ()), marker="")
        python = self._project.get("requires-python")
        if isinstance(python, str):
            self._python(python)
        elif python is not None:
            self._fault(("project", "requires-python"), "must be text such as >=3.11")

    def _python(self, text: str) -> None:
        path: KeyPath = ("project", "requires-python")
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            self._fault(path, f"`{text}` is not a range of Python versions such as >=3.11")
            return
        self._found.pythons.append((text, self._place(path)))

    def _extra(self, name: str, asked_at: KeyPath | None, *, marker: str) -> None:
        """The requirements of an extra, once for each marker it is asked for under."""
        normal = canonicalize_name(name)
        path = self._extras.get(normal)
        if path is None:
            self._unknown("extra", name, list(self._extras), asked_at)
        elif (normal, marker) not in self._extras_done and normal not in self._inside:
            # What an extra asks of itself, through others and under whatever marker, it brings anyway.
            self._extras_done.add((normal, marker))
            self._inside.append(normal)
            self._requirements(path, self._value(path), marker=marker)
            self._inside.pop()

    def _group(self, name: str, asked_at: KeyPath | None, *, inside: tuple[str, ...]) -> None:
        normal = canonicalize_name(name)
        path = self._groups.get(normal)
        if path is None:
            self._unknown("dependency group", name, list(self._groups), asked_at)
            return
        if normal in inside:
            chain = " -> ".join((*inside[inside.index(normal) :], normal))
            self._fault(asked_at or path, f"dependency groups include each other in a circle: {chain}")
            return
        if normal in self._groups_done:
            return
        items = self._value(path)
        if not isinstance(items, tuple):
            self._fault(path, "must be a list of requirements")
            return
        for index, item in enumerate(items):
            below = (*path, index)
            if isinstance(item, dict) and set(item) == {"include-group"} and isinstance(item["include-group"], str):
                self._group(item["include-group"], (*below, "include-group"), inside=(*inside, normal))
            elif isinstance(item, str):
                self._requirement(below, item, marker="")
            else:
                self._fault(below, 'must be a requirement, or {include-group = "name of another group"}')
        self._groups_done.add(normal)

    def _value(self, path: KeyPath) -> Any:  # noqa: ANN401 - TOML holds anything
        value = self._document.data
        for part in path:
            value = value[part]
        return value

    def _requirements(self, path: KeyPath, items: object, *, marker: str) -> None:
        if not isinstance(items, tuple):
            self._fault(path, "must be a list of requirements")
            return
        for index, item in enumerate(items):
            if isinstance(item, str):
                self._requirement((*path, index), item, marker=marker)
            else:
                self._fault((*path, index), "must be text such as numpy>=2")

    def _requirement(self, path: KeyPath, text: str, *, marker: str) -> None:
        """One requirement; one on the project itself stands for the extras it names."""
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            self._found.requirements.append((text, self._place(path)))  # told with the mistakes of all packages
            return
        markers = [one for one in (marker, str(requirement.marker or "")) if one]
        together = " and ".join(f"({one})" if " or " in one and len(markers) > 1 else one for one in markers)
        if self._name and canonicalize_name(requirement.name) == self._name:
            for extra in sorted(requirement.extras):
                self._extra(extra, path, marker=together)
            return
        if not requirement.url:
            self._names.add(canonicalize_name(requirement.name))
        if marker:
            requirement.marker = None
            text = f"{requirement} ; {together}" if requirement.url else f"{requirement}; {together}"
        self._found.requirements.append((text, self._place(path)))

    def _unknown(self, what: str, name: str, known: Sequence[str], asked_at: KeyPath | None) -> None:
        near = nearest(canonicalize_name(name), known)
        has = f"it has {', '.join(sorted(known))}" if known else "it has none"
        text = f"`{self._document.file}` has no {what} `{name}`; {f'did you mean `{near}`?' if near else has}"
        at = self._named_at if asked_at is None else self._place(asked_at)
        self._found.mistakes.append(Mistake(at.file, at.line, at.column, "", text))

    def _fault(self, path: KeyPath, text: str) -> None:
        self._found.mistakes.append(self._document.mistake(path, text))

    def _place(self, path: KeyPath) -> Position:
        from provisioner.document import Position

        position = self._document.position(path)
        return Position(position.line, position.column, self._document.file)
