"""Read a `pyproject.toml`: named by the spec if all of it can be read there, copied without the rest if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from provisioner.document import Position
from provisioner.errors import InvalidDocumentError, UsageError
from provisioner.grounds.omission import NotAsked, OtherSource, Override, Refused, UnknownKey
from provisioner.spec.load import load_spec
from provisioner.spec.pyproject import load_project, project_requirements
from provisioner.spec.tool_settings import tool_settings
from provisioner.versions import Range

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.document import Document, KeyPath
    from provisioner.errors import Mistake
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
        hint = "write one, or give a requirements.txt with --from"
        raise UsageError(f"`{path}` has no [project] table, so it states no requirements", hints=(hint,))
    named_at = Position(1, 1, str(path))
    record_project(path, named_at, importing=importing)
    _not_asked(document, importing)
    _settings_of_tools(document, importing)


def record_project(path: Path, position: Position, *, importing: Importing, extras: tuple[str, ...] = ()) -> None:
    """Record a project that another file names at `position`, with some of its extras; raises as `read_project`.

    The spec names the project if all of it can be read; if not, its readable requirements are copied.
    """
    document = load_project(path)
    found = project_requirements(document, named_at=position, extras=extras, groups=(), with_dependencies=True)
    mistakes = found.mistakes or _mistakes(path)
    if mistakes:
        for text, at in found.requirements:
            importing.package(text, at)
        for text, at in found.requires_python:
            _python(text, at, importing)
        for mistake in mistakes:
            importing.mistake(mistake)
    else:
        importing.packages_from(path, position, extras=extras)
    for source in found.other_sources:
        importing.omit(f"{source.table}.{source.name}", source.position, OtherSource(source.tool))


def _mistakes(path: Path) -> tuple[Mistake, ...]:
    """Return the mistakes for which a spec that names a project would be refused."""
    try:
        load_spec(path)
    except InvalidDocumentError as error:
        return error.mistakes
    return ()


def _python(text: str, position: Position, importing: Importing) -> None:
    """Record `requires-python` as a range of the component, which has all of its operators but `===`."""
    spelled = ",".join(part.strip() for part in text.split(","))
    try:
        Range.parse(spelled)
    except ValueError as error:
        importing.omit(f"requires-python = {text}", position, Refused(str(error)))
        return
    importing.require("python", spelled, position)


_GROUPS: dict[KeyPath, Literal["extra", "group", "tool-group"]] = {
    ("project", "optional-dependencies"): "extra",
    ("dependency-groups",): "group",
    ("tool", "pdm", "dev-dependencies"): "tool-group",
}


def _not_asked(document: Document, importing: Importing) -> None:
    """Record the extras and dependency groups, which `packages-from` would take by name, and those of tools alone."""
    for path, kind in _GROUPS.items():
        table = document.value(path)
        for name in table if isinstance(table, dict) else ():
            importing.omit(f"{path[-1]}.{name}", document.position_in_file((*path, name)), NotAsked(kind=kind, name=name))
    path = ("tool", "uv", "dev-dependencies")
    if document.value(path):
        importing.omit(".".join(path), document.position_in_file(path), NotAsked(kind="tool-group", name=path[-1]))


def _settings_of_tools(document: Document, importing: Importing) -> None:
    """Record what tables of uv and PDM say of versions and indexes: constraints are carried over, the rest is left out."""
    for one in tool_settings(document):
        match one.kind:
            case "constraint":
                importing.package(one.value, one.position, is_constraint=True)
            case "override":
                importing.omit(one.value, one.position, Override())
            case "index":
                importing.omit(one.value, one.position, OtherSource(one.tool))
            case _:
                importing.omit(one.key, one.position, UnknownKey())
