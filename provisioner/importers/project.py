"""Read a `pyproject.toml`: named by the spec if all of it can be read there, copied without the rest if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from provisioner.document import Position
from provisioner.errors import InvalidDocumentError, UsageError
from provisioner.grounds.omission import NotAsked, OtherSource, Refused
from provisioner.spec.load import load_spec
from provisioner.spec.pyproject import load_project, project_requirements
from provisioner.versions import Range

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.document import Document
    from provisioner.importers.importing import Importing


def read_project(path: Path, importing: Importing) -> None:
    """Read a project; raises `FileError`, or `InvalidDocumentError` with the position of a syntax error.

    Raises `UsageError` for a project that has a spec of its own, and for one without a `[project]` table.
    """
    document = load_project(path)
    tool = document.data.get("tool")
    if isinstance(tool, dict) and "provision" in tool:
        raise UsageError(f"`{path}` has a [tool.provision] table, so it is a spec", hints=(f"run `provision solve {path}`",))
    if not isinstance(document.data.get("project"), dict):
        hint = "of Poetry's own table nothing is read: `poetry export` writes a requirements.txt"
        raise UsageError(f"`{path}` has no [project] table, so it states no requirements", hints=(hint,))
    named_at = Position(1, 1, str(path))
    found = project_requirements(document, named_at=named_at, extras=(), groups=(), with_dependencies=True)
    try:
        load_spec(path)
    except InvalidDocumentError as error:
        for text, position in found.requirements:
            importing.package(text, position)
        for text, position in found.requires_python:
            _python(text, position, importing)
        for mistake in error.mistakes:
            importing.mistake(mistake)
    else:
        importing.packages_from(path, named_at)
    for source in found.other_sources:
        importing.omit(f"{source.table}.{source.name}", source.position, OtherSource(source.tool))
    _not_asked(document, importing)


def _python(text: str, position: Position, importing: Importing) -> None:
    """Record `requires-python`, whose operators a range of a component has, except `===`."""
    spelled = ",".join(sorted(str(one) for one in SpecifierSet(text)))
    try:
        Range.parse(spelled)
    except ValueError as error:
        importing.omit(f"requires-python = {text}", position, Refused(str(error)))
        return
    importing.require("python", spelled, position)


def _not_asked(document: Document, importing: Importing) -> None:
    """Record the extras and dependency groups, which `packages-from` would take by name."""
    for kind, path in (("extra", ("project", "optional-dependencies")), ("group", ("dependency-groups",))):
        table = document.data
        for part in path:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        for name in table if isinstance(table, dict) else ():
            position = document.position((*path, name))
            at = Position(position.line, position.column, document.file)
            importing.omit(f"{path[-1]}.{name}", at, NotAsked(kind="extra" if kind == "extra" else "group", name=name))
