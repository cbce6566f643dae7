"""Read the dependencies that a `pyproject.toml` states in Poetry's own table, as Python requirements.

Source: Poetry documentation, "Dependency specification", read 2026-11-27.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from provisioner.grounds.omission import NotAsked, OtherSource, UnknownKey, VersionNotation
from provisioner.importers.project import read_project
from provisioner.importers.requirement_lines import record_lines
from provisioner.spec.pyproject import load_project

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from provisioner.document import Document, KeyPath, Position
    from provisioner.importers.importing import Importing

_CLAUSE = re.compile(r"(?P<operator>\^|~=|~|===|==|>=|<=|!=|<|>|=)?\s*(?P<version>[^\s,<>=!~^|]+)")
_KEYS = frozenset(
    {"version", "extras", "markers", "python", "platform", "optional", "git", "rev", "tag", "branch", "subdirectory"}
)
_MORE_KEYS = frozenset({"path", "file", "url", "source", "develop", "allow-prereleases"})


def read_pyproject(path: Path, importing: Importing) -> None:
    """Read a project: its `[project]` table, or Poetry's where it has only that; raises as `read_project` does."""
    document = load_project(path)
    tool = document.data.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) and "provision" not in tool else None
    has_table = isinstance(document.data.get("project"), dict)
    if not has_table and isinstance(poetry, dict) and isinstance(poetry.get("dependencies"), dict):
        _Poetry(document, poetry, importing).read()
    else:
        read_project(path, importing)


def requirement_specifier(text: str) -> str | None:
    """Return a range of Poetry's as a specifier of Python: `^1.2` is `>=1.2,<2`; "" for any, None for one that has none."""
    if text.strip() in {"", "*"}:
        return ""
    if "|" in text:
        return None
    clauses = [_clause(match["operator"] or "", match["version"]) for match in _CLAUSE.finditer(text)]
    rest = _CLAUSE.sub("", text).replace(",", "").strip()
    return None if rest or None in clauses else ",".join(one for one in clauses if one)


def _clause(operator: str, text: str) -> str | None:
    if text.endswith(".*"):
        return f"{operator if operator == '!=' else '=='}{text}"
    try:
        release = Version(text).release
    except InvalidVersion:
        return None
    if operator == "^":
        kept = next((at for at, number in enumerate(release) if number), len(release) - 1)
        return f">={text},<{_after(release[: kept + 1])}"
    if operator == "~":
        return f">={text},<{_after(release[:2])}"
    return f"{operator if operator not in {'', '='} else '=='}{text}"


def _after(release: tuple[int, ...]) -> str:
    return ".".join(map(str, (*release[:-1], release[-1] + 1)))


class _Poetry:
    """Reads the tables of one project."""

    def __init__(self, document: Document, poetry: Mapping[str, Any], importing: Importing) -> None:
        self._document = document
        self._poetry = poetry
        self._importing = importing

    def read(self) -> None:
        if isinstance(name := self._poetry.get("name"), str):
            self._importing.name(name)
        for name, value in self._poetry["dependencies"].items():
            path: KeyPath = ("tool", "poetry", "dependencies", name)
            for at, one in self._ways(path, value):
                self._dependency(name, one, at)
        sources = self._poetry.get("source")
        for index, source in enumerate(sources if isinstance(sources, list | tuple) else ()):
            if isinstance(source, dict) and "url" in source and source.get("priority") != "explicit":
                line = f"--extra-index-url {source['url']}"
                record_lines([(line, self._document.position_in_file(("tool", "poetry", "source", index)))], self._importing)
        groups = self._poetry.get("group")
        for name in groups if isinstance(groups, dict) else ():
            at = self._document.position_in_file(("tool", "poetry", "group", name))
            self._importing.omit(f"group.{name}", at, NotAsked(kind="poetry-group", name=name))

    def _ways(self, path: KeyPath, value: object) -> Iterator[tuple[Position, Mapping[str, Any]]]:
        """Yield the ways in which a dependency may be met, each a table: a list has several, with markers."""
        listed = enumerate(value) if isinstance(value, list | tuple) else [(None, value)]
        for index, one in listed:
            at = self._document.position_in_file(path if index is None else (*path, index))
            yield at, one if isinstance(one, dict) else {"version": str(one)}

    def _dependency(self, name: str, table: Mapping[str, Any], at: Position) -> None:
        version = str(table.get("version", ""))
        specifier = requirement_specifier(version)
        if name == "python":
            self._importing.require("python", specifier or "", at)
            return
        if table.get("optional") is True:
            self._importing.omit(f"{name} {version}".strip(), at, NotAsked(kind="optional", name=name))
            return
        if specifier is None:
            self._importing.omit(f"{name} {version}", at, VersionNotation(name))
        for key in sorted(table.keys() - _KEYS - _MORE_KEYS):
            self._importing.omit(f"{name}.{key}", at, UnknownKey())
        if "source" in table:
            self._importing.omit(f"{name}: {table['source']}", at, OtherSource("Poetry"))
        markers = " and ".join(_markers(table))
        line = f"{name}{_extras(table)}{_where(table) or specifier or ''}{f' ; {markers}' if markers else ''}"
        record_lines([(line, at)], self._importing)


def _extras(table: Mapping[str, Any]) -> str:
    extras = table.get("extras")
    return f"[{','.join(map(str, extras))}]" if isinstance(extras, list | tuple) and extras else ""


def _where(table: Mapping[str, Any]) -> str:
    """Return the address of a dependency that comes from no index, as a direct reference; "" for one of an index."""
    if "git" in table:
        revision = next((str(table[key]) for key in ("rev", "tag", "branch") if key in table), "")
        return f" @ git+{table['git']}{f'@{revision}' if revision else ''}"
    address = table.get("url") or table.get("path") or table.get("file")
    return "" if not address else f" @ {address if 'url' in table else f'file:{address}'}"


def _markers(table: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(text := table.get("markers"), str):
        yield f"({text})" if " or " in text else text
    python = requirement_specifier(str(table.get("python", "")))
    for clause in filter(None, (python or "").split(",")):
        match = re.fullmatch(r"([<>=!]+)(\S+)", clause)
        if match is not None:
            yield f'python_version {match[1]} "{match[2]}"'
    if isinstance(platform := table.get("platform"), str):
        yield f'sys_platform == "{platform}"'
