"""Load a spec from `provision.yaml`, `pyproject.toml` or a requirement file: read, join, validate, select a target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.document import Document, FileError, Position, load_document, parse_model, read_text
from provisioner.errors import InvalidDocumentError, Mistake, UsageError
from provisioner.names import DISTRIBUTION_NAME, nearest
from provisioner.spec.check import KIND, spec_mistakes
from provisioner.spec.gather import PATH_LISTS, Gathered, gather, is_path, without_paths
from provisioner.spec.model import Spec, SpecFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from provisioner.document import KeyPath
    from provisioner.spec.pyproject import OtherSource
    from provisioner.spec.requirement_file import IndexLine, ProjectLine

AUTO = "auto"
"""The value of `target.host` for the machine that this program runs on."""

WITH = "--with"
"""The option of the command line that asks for packages, beside a spec or without one; messages call it by this name."""

_INIT = "`provision init` writes a commented one"
REQUIREMENTS = (".txt", ".in")
"""The endings of requirement files, which are specs of nothing but packages."""

_MOST_NAMED = 5
_PACKAGES_LINE = re.compile(r"^(?:packages|packages-from|requires)[ \t]*:", re.MULTILINE)

_TABLE = "write the keys of a spec under [tool.provision], or name a provision.yaml"


class Asked(Struct, frozen=True, kw_only=True):
    """A request with packages of the command line (`WITH`), each a line as in a requirement file.

    They join those of the spec `path`. If it is None, they are all that is asked for, and the request has the name `name`, by
    default that of the first of them.
    """

    path: Path | None = None
    packages: tuple[str, ...]
    name: str = ""


class LoadedSpec(Struct, frozen=True, kw_only=True):
    """A validated spec, and the document with the position of each of its lines.

    `files` are the files that the spec names and whose lines joined it, with links resolved; `other_sources` are the sources
    that tables of uv, PDM and Poetry in these files name for required distributions. `indexes` and `projects` are the lines of
    requirement files that name indexes, and projects in folders.
    """

    spec: Spec
    document: Document
    files: tuple[Path, ...] = ()
    other_sources: tuple[OtherSource, ...] = ()
    indexes: tuple[IndexLine, ...] = ()
    projects: tuple[ProjectLine, ...] = ()


def load_spec(asked: Path | Asked, *, check: Callable[[Document], Iterable[Mistake]] | None = None) -> LoadedSpec:
    """Read a spec with the files it names.

    In a `pyproject.toml` the spec is the table `[tool.provision]`, with the same keys, and the dependencies of the project are
    packages. A requirement file (`.txt`, `.in`) is a spec with its lines as packages and its name. `check`
    yields further mistakes, such as those in hosts within the spec and names that the matrix lacks. Raises `FileError` when
    there is no such file, and `InvalidDocumentError` with every mistake at its line and column.
    """
    asked = asked if isinstance(asked, Asked) else Asked(path=asked, packages=())
    path = asked.path
    if path is not None and not path.exists():
        raise FileError(f"{KIND} `{path}` does not exist", hints=(*_others_beside(path), _INIT))
    gathered = _gathered_packages(asked) if path is None else _gathered(path, _lines(asked))
    return LoadedSpec(
        spec=parse_spec(gathered, besides=() if check is None else check(gathered.document)),
        document=without_paths(gathered.document),
        files=gathered.files,
        other_sources=gathered.other_sources,
        indexes=gathered.indexes,
        projects=gathered.projects,
    )


def _others_beside(path: Path) -> tuple[str, ...]:
    """Return the hint that names the specs and requirement files that are beside the path of a missing spec."""
    beside = path.parent.glob("*") if path.parent.is_dir() else ()
    named = sorted(one.as_posix() for one in beside if one.is_file() and _may_be_meant(one))
    return (f"name the one that is meant: {', '.join(f'`{one}`' for one in named[:_MOST_NAMED])}",) if named else ()


def _may_be_meant(path: Path) -> bool:
    if path.suffix in REQUIREMENTS:
        return path.name.startswith("requirements")
    if path.suffix not in {".yaml", ".yml"}:
        return False
    try:
        return _PACKAGES_LINE.search(read_text(path, kind=KIND)) is not None
    except FileError:
        return False


def _lines(asked: Asked) -> list[tuple[str, Position]]:
    return [(text, Position(0, 0, WITH)) for text in asked.packages]


def _gathered_packages(asked: Asked) -> Gathered:
    first = DISTRIBUTION_NAME.match(asked.packages[0].strip()) if asked.packages else None
    data = {"name": asked.name or (_as_name(first[0]) if first else "") or "packages"}
    return gather(Document(WITH, data, {(): Position(0, 0)}, {}), more=_lines(asked))


def _gathered(path: Path, more: Sequence[tuple[str, Position]]) -> Gathered:
    if path.suffix == ".toml":
        return _gather_project(path, more)
    if path.suffix in REQUIREMENTS:
        data = {"name": _as_name(path.stem) or "requirements", "packages-from": (path.name,)}
        return gather(Document(str(path), data, {}, {}), more=more)
    return gather(load_document(path, kind=KIND), more=more)


def _gather_project(path: Path, more: Sequence[tuple[str, Position]]) -> Gathered:
    """Read the spec in a `pyproject.toml`.

    Raises `InvalidDocumentError` if the file has neither a table `[tool.provision]` nor a `[project]`.
    """
    from provisioner.spec.pyproject import load_project

    project = load_project(path)
    tool = project.data.get("tool")
    if isinstance(tool, dict) and "provision" in tool:
        return gather(_named(project.below(("tool", "provision")), project), project=project, more=more)
    if not isinstance(project.data.get("project"), dict):
        text = "has neither a [tool.provision] table nor a [project]"
        raise InvalidDocumentError(KIND, (Mistake(str(path), 1, 1, "", text),), hints=(_TABLE,))
    return gather(_named(replace(project, data={}, keys={}, texts={}), project), project=project, more=more)


def _named(document: Document, project: Document) -> Document:
    """Return a spec with the name of its project if it has none; characters that spec names do not allow become `-`."""
    table = project.data.get("project")
    name = table.get("name") if isinstance(table, dict) else None
    if not isinstance(document.data, dict) or "name" in document.data or not isinstance(name, str):
        return document
    keys = {**document.keys, ("name",): project.position(("project", "name"))}
    return replace(document, data={**document.data, "name": _as_name(name)}, keys=keys)


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")


def parse_spec(gathered: Gathered, *, besides: Iterable[Mistake] = ()) -> Spec:
    """Return a gathered spec after validation.

    Raises `InvalidDocumentError` with every mistake in the spec and in the files it names, and those of `besides`.
    """
    document = gathered.document
    if document.data is None:
        raise InvalidDocumentError(KIND, (Mistake(document.file, 1, 1, "", "the file is empty"),), hints=(_INIT,))
    mistakes = (*gathered.mistakes, *spec_mistakes(document), *besides)
    file = parse_model(document, SpecFile, kind=KIND, besides=mistakes)
    values = {name: getattr(file, name) for name in SpecFile.__struct_fields__}
    values |= {name: tuple(item for item in values[name] if not is_path(item)) for name in PATH_LISTS}
    return Spec(**values, hashes=gathered.hashes, requires_python=gathered.requires_python)


def host_paths(spec: Spec, spec_path: Path) -> tuple[Path, ...]:
    """Return the paths of the host profiles that a spec names; () for `auto`, a host within the spec, or no host.

    A relative path starts from the folder of the spec.
    """
    host = spec.target.host
    if host is None or isinstance(host, dict) or host == AUTO:
        return ()
    named = (host,) if isinstance(host, str) else host
    return tuple(spec_path.parent / name for name in named)


def select_target(spec: Spec, document: Document, target: str | None) -> tuple[Spec, Document]:
    """Return the spec and its document with one of several targets as the only one.

    Each target has a lock of its own, because no PEP 508 marker distinguishes a V100 from a B200. A spec with the key `target`
    is returned unchanged; for such a spec `target` must be None. Raises `UsageError` for a target that the spec does not name,
    and for None if it names several.
    """
    known = tuple(spec.targets)
    if not known and target is None:
        return spec, document
    if not known:
        raise UsageError(
            f"{document.file} has no `targets`, so there is no target `{target}`",
            hints=("name targets in the spec: targets: {v100: {host: hosts/v100.yaml}}",),
        )
    if target is None:
        raise UsageError(
            f"{document.file} is for several targets ({', '.join(known)}), and this needs one",
            hints=("choose one with --target",),
        )
    if target not in known:
        near = nearest(target, known)
        raise UsageError(
            f"{document.file} has no target `{target}`{f'; did you mean `{near}`?' if near else ''}",
            hints=(f"it has {', '.join(known)}",),
        )
    return replace(spec, target=spec.targets[target], targets={}), _with_target(document, target)


def _with_target(document: Document, target: str) -> Document:
    """Return the document with one entry of `targets` as its `target`; every line has the same position as before."""
    data = {key: value for key, value in document.data.items() if key != "targets"}

    def moved(path: KeyPath) -> KeyPath:
        return ("target", *path[2:]) if path[:2] == ("targets", target) else path

    return replace(
        document,
        data={**data, "target": document.data["targets"][target]},
        keys={moved(path): position for path, position in document.keys.items()},
        texts={moved(path): text for path, text in document.texts.items()},
    )
