"""Where other tools take what a `pyproject.toml` requires from: tables of uv, PDM and Poetry.

None of them is read as a source. Who takes a name from a repository or a private index must hear that it is asked of another
one here, where anybody may have registered it.
Sources: uv documentation, "Managing dependencies"; PDM documentation, "Specify index for individual packages"; Poetry
documentation, "Dependency specification"; read 2026-11-22.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.document import Position

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from provisioner.document import Document, KeyPath

INDEX, WORKSPACE = "index", "workspace"
_PLACES = ("git", "url", "path", "file", WORKSPACE, INDEX, "source")
"""Keys of which one says where a name comes from; Poetry calls an index a source, and a file `file` where uv has `path`."""

_KINDS = {"file": "path", "source": INDEX}


class OtherSource(Struct, frozen=True, kw_only=True):
    """A tool's table takes a distribution from elsewhere: `kind` is `git`, `url`, `path`, `workspace` or `index`.

    `place` is the address or the path, "" for a workspace; `index` is the name of an index.
    """

    name: str
    table: str
    kind: str
    place: str
    index: str
    position: Position

    @property
    def tool(self) -> str:
        """The tool as its users call it."""
        return {"uv": "uv", "pdm": "PDM"}.get(self.table.split(".")[1], "Poetry")


def other_sources(document: Document, asked: Collection[str], parts: Collection[tuple[str, str]]) -> Iterator[OtherSource]:
    """The other sources of the names that a project file was asked for.

    `asked` are normalized names, `parts` the extras and groups that were read, as `("extra", name)` and `("group", name)`:
    uv may have a source for one of them alone.
    """
    tool = _table(_table(document.data).get("tool"))
    uv, pdm, poetry = (_table(tool.get(name)) for name in ("uv", "pdm", "poetry"))
    urls = {"uv": _urls(uv.get("index")), "poetry": _urls(poetry.get("source"))}
    tables: list[tuple[KeyPath, object]] = [(("tool", "uv", "sources"), uv.get("sources"))]
    tables.append((("tool", "poetry", "dependencies"), poetry.get("dependencies")))
    for name, group in _table(poetry.get("group")).items():
        if ("group", canonicalize_name(name)) in parts:
            tables.append((("tool", "poetry", "group", name, "dependencies"), _table(group).get("dependencies")))
    for above, table in tables:
        for name, said in _table(table).items():
            if (normal := canonicalize_name(name)) in asked:
                for path, one in _entries((*above, name), said):
                    if _is_of(one, parts):
                        yield from _source(document, path, one, normal, urls[str(above[1])])
    yield from _of_pdm(document, pdm.get("source"), asked)


def _source(
    document: Document, path: KeyPath, said: dict[str, object], name: str, urls: dict[str, str]
) -> Iterator[OtherSource]:
    key = next((key for key in _PLACES if said.get(key)), None)
    if key is None:
        return  # a version, extras, a marker
    kind = _KINDS.get(key, key)
    value = "" if kind == WORKSPACE else str(said[key])
    yield OtherSource(
        name=name,
        table=".".join(str(part) for part in path[: 5 if path[2] == "group" else 3]),
        kind=kind,
        place=urls.get(value, "") if kind == INDEX else value,
        index=value if kind == INDEX else "",
        position=_position(document, path),
    )


def _of_pdm(document: Document, sources: object, asked: Collection[str]) -> Iterator[OtherSource]:
    """PDM has the names with each index, as globs."""
    path: KeyPath = ("tool", "pdm", "source")
    for below, source in _entries(path, sources):
        patterns = source.get("include_packages")
        names = [canonicalize_name(str(one)) for one in patterns] if isinstance(patterns, tuple) else []
        for name in sorted({name for name in asked if any(fnmatchcase(name, pattern) for pattern in names)}):
            index, url = str(source.get("name", "")), str(source.get("url", ""))
            position = _position(document, (*below, "include_packages"))
            yield OtherSource(name=name, table="tool.pdm.source", kind=INDEX, place=url, index=index, position=position)


def _entries(path: KeyPath, said: object) -> Iterator[tuple[KeyPath, dict[str, object]]]:
    """A table, or each table of a list of them, with its place."""
    if isinstance(said, tuple):
        for index, one in enumerate(said):
            yield from _entries((*path, index), one)
    elif isinstance(said, dict):
        yield path, said


def _is_of(source: dict[str, object], parts: Collection[tuple[str, str]]) -> bool:
    limits = [(kind, canonicalize_name(str(source[kind]))) for kind in ("extra", "group") if source.get(kind)]
    return not limits or any(one in parts for one in limits)


def _urls(indexes: object) -> dict[str, str]:
    """The addresses of indexes by their names."""
    return {str(one.get("name", "")): str(one.get("url", "")) for _, one in _entries((), indexes)}


def _table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _position(document: Document, path: KeyPath) -> Position:
    position = document.position(path)
    return Position(position.line, position.column, document.file)
