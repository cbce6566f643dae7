"""Read the requirements of a `pyproject.toml` with their positions: dependencies and extras (PEP 621), groups (PEP 735).

The sources that tables of uv, PDM and Poetry name for these requirements are read as well, only to warn: a user who takes a
distribution from a repository or a private index there must know that it is looked up on another index here, where anybody may
have registered its name.

`packaging.dependency_groups` resolves groups as well, but does not report positions. Sources: PyPA specifications,
"pyproject.toml" and "Dependency groups", read 2026-11-21; uv documentation, "Managing dependencies"; PDM documentation,
"Specify index for individual packages"; Poetry documentation, "Dependency specification"; read 2026-11-22.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.document import FileError, Position, read_text
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.names import nearest
from provisioner.spec.tool_settings import ToolSetting, tool_settings
from provisioner.toml_document import parse_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provisioner.document import Document, KeyPath

KIND = "project file"

INDEX, WORKSPACE = "index", "workspace"
_PLACES = ("git", "url", "path", "file", WORKSPACE, INDEX, "source")
"""The keys of a source table, one of which names the source. Poetry calls an index a source, and a path a file."""

_KINDS = {"file": "path", "source": INDEX}


class OtherSource(Struct, frozen=True, kw_only=True):
    """The source that another tool's table names for a distribution.

    `kind` is `git`, `url`, `path`, `workspace` or `index`; `address` is the URL or the path, "" for a workspace; `index` is
    the name of an index.
    """

    name: str
    table: str
    kind: str
    address: str
    index: str
    position: Position

    @property
    def tool(self) -> str:
        """The name of the tool that has the table, as messages spell it."""
        return {"uv": "uv", "pdm": "PDM"}.get(self.table.split(".")[1], "Poetry")


class ProjectRequirements(Struct):
    """The requirements and Python ranges of a project with their positions, the mistakes in it, and its `OtherSource`s.

    `files` are the requirement files that it takes its dependencies from; `settings` are those of uv and PDM beside them.
    """

    requirements: list[tuple[str, Position]] = field(default_factory=list)
    requires_python: list[tuple[str, Position]] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    other_sources: list[OtherSource] = field(default_factory=list)
    settings: list[ToolSetting] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)


def load_project(path: Path) -> Document:
    """Read a project file; raises `FileError`, or `InvalidDocumentError` with the line and column of a syntax error."""
    return parse_toml(read_text(path, kind=KIND), file=str(path), kind=KIND, dates_as_text=True)


def read_project_requirements(
    path: Path, *, named_at: Position, extras: Sequence[str], groups: Sequence[str], with_dependencies: bool
) -> ProjectRequirements:
    """Return the requirements of a project file; if it cannot be read, the result holds one mistake and nothing else.

    `named_at` is where the spec names the file; a missing file is reported there.
    """
    try:
        document = load_project(path)
    except FileError as error:
        return ProjectRequirements(mistakes=[Mistake(named_at.file, named_at.line, named_at.column, "", error.message)])
    except InvalidDocumentError as error:
        return ProjectRequirements(mistakes=list(error.mistakes))
    return project_requirements(document, named_at=named_at, extras=extras, groups=groups, with_dependencies=with_dependencies)


def project_requirements(
    document: Document, *, named_at: Position, extras: Sequence[str], groups: Sequence[str], with_dependencies: bool
) -> ProjectRequirements:
    """Return the requirements of `extras` and `groups` of a project, after its own dependencies if `with_dependencies`.

    `named_at` is the position in the spec that names the project, at which a missing table, extra or group is reported.
    """
    return _Project(document, named_at).requirements(extras, groups, with_dependencies=with_dependencies)


class _Project:
    """Reads one project file; names of extras and groups are compared normalized (PEP 685, PEP 735)."""

    def __init__(self, document: Document, named_at: Position) -> None:
        self._document = document
        self._named_at = named_at
        self._found = ProjectRequirements()
        data = document.data
        self._project = self._table(data, "project")
        self._name = canonicalize_name(str(self._project.get("name", "")))
        self._extras = self._paths(self._table(self._project, "project", "optional-dependencies"), "optional-dependencies")
        self._groups = self._paths(self._table(data, "dependency-groups"), "dependency-groups")
        self._read_extras: set[tuple[str, str]] = set()
        """Extras and the markers they were read under."""
        self._read_groups: set[str] = set()
        self._open_extras: list[str] = []
        """Extras that are being read: one inside the other."""
        self._names: set[str] = set()
        """Required distributions, except those required by URL, which no index provides."""

    def requirements(self, extras: Sequence[str], groups: Sequence[str], *, with_dependencies: bool) -> ProjectRequirements:
        """Return the requirements of the file: its dependencies first, then those of the extras, then those of the groups."""
        if with_dependencies:
            self._dependencies()
        for extra in extras:
            self._extra(extra, None, marker="")
        for group in groups:
            self._group(group, None, inside=())
        self._found.requirements = list(dict.fromkeys(self._found.requirements))
        self._found.mistakes = list(dict.fromkeys(self._found.mistakes))
        parts = {("extra", name) for name, _ in self._read_extras} | {("group", name) for name in self._read_groups}
        self._found.other_sources = list(other_sources(self._document, self._names, parts))
        self._found.settings = list(tool_settings(self._document))
        return self._found

    def _table(self, above: Any, *path: str) -> dict[str, Any]:  # noqa: ANN401 - TOML holds anything
        value = above.get(path[-1], {})
        if isinstance(value, dict):
            return value
        self._mistake(path, "must be a table")
        return {}

    def _paths(self, table: dict[str, Any], key: str) -> dict[str, KeyPath]:
        """Return the key path of each entry of a table by its normalized name."""
        above: KeyPath = (key,) if key == "dependency-groups" else ("project", key)
        found: dict[str, KeyPath] = {}
        for name in table:
            normal = canonicalize_name(name)
            if normal in found:
                other = found[normal][-1]
                self._mistake((*above, name), f"`{name}` and `{other}` are the same name, which is given twice")
            found.setdefault(normal, (*above, name))
        return found

    def _dependencies(self) -> None:
        """Read the project's own dependencies and its range of Python versions."""
        if not self._project:
            at = self._named_at
            text = (
                f"`{self._document.file}` has no [project] table; name `groups` and `project: false` to read its groups alone"
            )
            self._found.mistakes.append(Mistake(at.file, at.line, at.column, "", text))
            return
        dynamic = self._project.get("dynamic", ())
        for key in ("dependencies", "requires-python"):
            if isinstance(dynamic, tuple) and key in dynamic and not (key == "dependencies" and self._dependency_files()):
                path: KeyPath = ("project", "dynamic", dynamic.index(key))
                self._mistake(
                    path, f"`{key}` is dynamic, so that only a build tells it; state it in this file, or list the packages"
                )
        self._requirements(("project", "dependencies"), self._project.get("dependencies", ()), marker="")
        python = self._project.get("requires-python")
        if isinstance(python, str):
            self._python(python)
        elif python is not None:
            self._mistake(("project", "requires-python"), "must be text such as >=3.11")

    def _dependency_files(self) -> bool:
        """Read the files that `[tool.setuptools.dynamic]` names for the dependencies, and return whether it names any.

        Source: setuptools documentation, "Dynamic Metadata", read 2026-11-23.
        """
        from provisioner.spec.requirement_file import read_requirement_file

        tool = _as_table(_as_table(self._document.data).get("tool"))
        named = _as_table(_as_table(_as_table(tool.get("setuptools")).get("dynamic")).get("dependencies")).get("file")
        files = (named,) if isinstance(named, str) else named if isinstance(named, tuple) else ()
        path: KeyPath = ("tool", "setuptools", "dynamic", "dependencies")
        for name in files:
            file = Path(self._document.file).parent / str(name)
            reading = read_requirement_file(file, named_at=self._document.position_in_file(path))
            self._found.mistakes.extend(reading.mistakes)
            self._found.requirements.extend((line.text, line.position) for line in reading.lines)
            self._found.files.extend(found for found, _ in sorted(reading.done))
        return bool(files)

    def _python(self, text: str) -> None:
        path: KeyPath = ("project", "requires-python")
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            self._mistake(path, f"`{text}` is not a range of Python versions such as >=3.11")
            return
        self._found.requires_python.append((text, self._document.position_in_file(path)))

    def _extra(self, name: str, named_by: KeyPath | None, *, marker: str) -> None:
        """Read the requirements of an extra, once for each marker under which it is required.

        `named_by` is the key path that names the extra, for the report of an unknown extra; None if the spec names the extra.
        """
        normal = canonicalize_name(name)
        path = self._extras.get(normal)
        if path is None:
            self._unknown("extra", name, list(self._extras), named_by)
        elif (normal, marker) not in self._read_extras and normal not in self._open_extras:
            # An extra that requires itself, directly or through another one, adds nothing.
            self._read_extras.add((normal, marker))
            self._open_extras.append(normal)
            self._requirements(path, self._value(path), marker=marker)
            self._open_extras.pop()

    def _group(self, name: str, named_by: KeyPath | None, *, inside: tuple[str, ...]) -> None:
        normal = canonicalize_name(name)
        path = self._groups.get(normal)
        if path is None:
            self._unknown("dependency group", name, list(self._groups), named_by)
            return
        if normal in inside:
            chain = " -> ".join((*inside[inside.index(normal) :], normal))
            self._mistake(named_by or path, f"dependency groups include each other in a circle: {chain}")
            return
        if normal in self._read_groups:
            return
        items = self._value(path)
        if not isinstance(items, tuple):
            self._mistake(path, "must be a list of requirements")
            return
        for index, item in enumerate(items):
            below = (*path, index)
            if isinstance(item, dict) and set(item) == {"include-group"} and isinstance(item["include-group"], str):
                self._group(item["include-group"], (*below, "include-group"), inside=(*inside, normal))
            elif isinstance(item, str):
                self._requirement(below, item, marker="")
            else:
                self._mistake(below, 'must be a requirement, or {include-group = "name of another group"}')
        self._read_groups.add(normal)

    def _value(self, path: KeyPath) -> Any:  # noqa: ANN401 - TOML holds anything
        value = self._document.data
        for part in path:
            value = value[part]
        return value

    def _requirements(self, path: KeyPath, items: object, *, marker: str) -> None:
        if not isinstance(items, tuple):
            self._mistake(path, "must be a list of requirements")
            return
        for index, item in enumerate(items):
            if isinstance(item, str):
                self._requirement((*path, index), item, marker=marker)
            else:
                self._mistake((*path, index), "must be text such as numpy>=2")

    def _requirement(self, path: KeyPath, text: str, *, marker: str) -> None:
        """Read one requirement; for a requirement on the project itself, read the extras that it names."""
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            self._found.requirements.append(
                (text, self._document.position_in_file(path))
            )  # reported with the mistakes of all packages
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
        self._found.requirements.append((text, self._document.position_in_file(path)))

    def _unknown(self, kind: str, name: str, known: Sequence[str], named_by: KeyPath | None) -> None:
        near = nearest(canonicalize_name(name), known)
        has = f"it has {', '.join(sorted(known))}" if known else "it has none"
        text = f"`{self._document.file}` has no {kind} `{name}`; {f'did you mean `{near}`?' if near else has}"
        at = self._named_at if named_by is None else self._document.position_in_file(named_by)
        self._found.mistakes.append(Mistake(at.file, at.line, at.column, "", text))

    def _mistake(self, path: KeyPath, text: str) -> None:
        self._found.mistakes.append(self._document.mistake(path, text))


def other_sources(document: Document, names: Collection[str], parts: Collection[tuple[str, str]]) -> Iterator[OtherSource]:
    """Yield the sources that tables of uv, Poetry and PDM name for distributions.

    `names` are normalized names of distributions, `parts` the extras and groups that were read, as `("extra", name)` and
    `("group", name)`: uv may have a source for one of them alone.
    """
    tool = _as_table(_as_table(document.data).get("tool"))
    uv, pdm, poetry = (_as_table(tool.get(name)) for name in ("uv", "pdm", "poetry"))
    urls = {"uv": _urls(uv.get("index")), "poetry": _urls(poetry.get("source"))}
    tables: list[tuple[KeyPath, object]] = [(("tool", "uv", "sources"), uv.get("sources"))]
    tables.append((("tool", "poetry", "dependencies"), poetry.get("dependencies")))
    for name, group in _as_table(poetry.get("group")).items():
        if ("group", canonicalize_name(name)) in parts:
            tables.append((("tool", "poetry", "group", name, "dependencies"), _as_table(group).get("dependencies")))
    for above, table in tables:
        for name, entry in _as_table(table).items():
            if (normal := canonicalize_name(name)) in names:
                for path, one in _entries((*above, name), entry):
                    if _is_of(one, parts):
                        yield from _source(document, path, one, normal, urls[str(above[1])])
    yield from _pdm_sources(document, pdm.get("source"), names)


def _source(
    document: Document, path: KeyPath, entry: dict[str, object], name: str, urls: dict[str, str]
) -> Iterator[OtherSource]:
    key = next((key for key in _PLACES if entry.get(key)), None)
    if key is None:
        return  # only a version, extras or a marker: no source
    kind = _KINDS.get(key, key)
    value = "" if kind == WORKSPACE else str(entry[key])
    yield OtherSource(
        name=name,
        table=".".join(str(part) for part in path[: 5 if path[2] == "group" else 3]),
        kind=kind,
        address=urls.get(value, "") if kind == INDEX else value,
        index=value if kind == INDEX else "",
        position=document.position_in_file(path),
    )


def _pdm_sources(document: Document, sources: object, wanted: Collection[str]) -> Iterator[OtherSource]:
    """Yield a source for each distribution in `wanted` that an index of PDM claims, by a glob in its `include_packages`."""
    path: KeyPath = ("tool", "pdm", "source")
    for below, source in _entries(path, sources):
        patterns = source.get("include_packages")
        names = [canonicalize_name(str(one)) for one in patterns] if isinstance(patterns, tuple) else []
        for name in sorted({name for name in wanted if any(fnmatchcase(name, pattern) for pattern in names)}):
            index, url = str(source.get("name", "")), str(source.get("url", ""))
            position = document.position_in_file((*below, "include_packages"))
            yield OtherSource(name=name, table="tool.pdm.source", kind=INDEX, address=url, index=index, position=position)


def _entries(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, dict[str, object]]]:
    """Yield a table with its key path, or each table of a list; nothing for any other value."""
    if isinstance(value, tuple):
        for index, one in enumerate(value):
            yield from _entries((*path, index), one)
    elif isinstance(value, dict):
        yield path, value


def _is_of(source: dict[str, object], parts: Collection[tuple[str, str]]) -> bool:
    limits = [(kind, canonicalize_name(str(source[kind]))) for kind in ("extra", "group") if source.get(kind)]
    return not limits or any(one in parts for one in limits)


def _urls(indexes: object) -> dict[str, str]:
    """Return the URLs of indexes by name."""
    return {str(one.get("name", "")): str(one.get("url", "")) for _, one in _entries((), indexes)}


def _as_table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
