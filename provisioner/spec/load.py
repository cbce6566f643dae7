"""Reads `provision.yaml`, or the spec in a `pyproject.toml`, with every mistake in it reported at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.document import FileError, load_document, parse_model
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.spec.check import spec_mistakes
from provisioner.spec.gather import READ_INSTEAD, Gathered, gather, is_path, without_paths
from provisioner.spec.model import Spec, SpecFile
from provisioner.spec.policy import unknown_names

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from provisioner.document import Document

KIND = "spec"
AUTO = "auto"
"""The host that means: the machine this program runs on."""

_INIT = "`provision init` writes a commented one"
_TABLE = "write the keys of a spec under [tool.provision], or name a provision.yaml"


def load_spec(path: Path) -> tuple[Spec, Document]:
    """Read a spec with the files it names, and the document that knows where every line stands.

    A `pyproject.toml` has it under `[tool.provision]`, with the same keys; its project's dependencies are packages.
    Raises `FileError` when there is no such file, and `InvalidDocumentError` with every mistake at its line and column.
    """
    if not path.exists():
        raise FileError(f"{KIND} `{path}` does not exist", hints=(_INIT,))
    gathered = _of_project(path) if path.suffix == ".toml" else gather(load_document(path, kind=KIND))
    return parse_spec(gathered), without_paths(gathered.document)


def _of_project(path: Path) -> Gathered:
    """A spec that stands in a project file."""
    from provisioner.spec.project import load_project

    project = load_project(path)
    tool = project.data.get("tool")
    if isinstance(tool, dict) and "provision" in tool:
        return gather(_named(project.below(("tool", "provision")), project), project=project)
    if not isinstance(project.data.get("project"), dict):
        text = "has neither a [tool.provision] table nor a [project]"
        raise InvalidDocumentError(KIND, (Mistake(str(path), 1, 1, "", text),), hints=(_TABLE,))
    return gather(_named(replace(project, data={}, keys={}, texts={}), project), project=project)


def _named(document: Document, project: Document) -> Document:
    """A spec without a name has its project's, spelled as names of specs are."""
    table = project.data.get("project")
    name = table.get("name") if isinstance(table, dict) else None
    if not isinstance(document.data, dict) or "name" in document.data or not isinstance(name, str):
        return document
    keys = {**document.keys, ("name",): project.position(("project", "name"))}
    return replace(document, data={**document.data, "name": re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")}, keys=keys)


def parse_spec(gathered: Gathered) -> Spec:
    """Validate a spec that has been read, with what its files say; raises `InvalidDocumentError`."""
    document = gathered.document
    if document.data is None:
        raise InvalidDocumentError(KIND, (Mistake(document.file, 1, 1, "", "the file is empty"),), hints=(_INIT,))
    mistakes = (*gathered.mistakes, *spec_mistakes(document))
    stated = parse_model(document, SpecFile, kind=KIND, besides=mistakes)
    said = {name: getattr(stated, name) for name in SpecFile.__struct_fields__}
    said |= {name: tuple(item for item in said[name] if not is_path(item)) for name in READ_INSTEAD}
    return Spec(**said, hashes=gathered.hashes, requires_python=gathered.pythons)


def check_components(document: Document, spec: Spec, known: Collection[str]) -> None:
    """Check that `requires` and the policy name components of the matrix.

    Raises `InvalidDocumentError` with the nearest known name.
    """
    # `pytorch_build` chooses among the builds of a component and is not one itself.
    names = {*known, "pytorch_build"} if "pytorch" in known else set(known)
    unknown = [name for name in spec.requires if name not in names]
    mistakes = tuple(document.mistake(("requires", name), _unknown(name, names)) for name in unknown)
    mistakes += tuple(unknown_names(document, spec, names))
    if mistakes:
        raise InvalidDocumentError(KIND, mistakes)


def _unknown(name: str, known: Collection[str]) -> str:
    component = COMPONENT_OF_DISTRIBUTION.get(name.lower())
    near = component if component in known else nearest(name.lower(), known)
    if near is not None:
        return f"`{name}` is not a component of the matrix; did you mean `{near}`?"
    advice = "an ordinary Python package belongs under `packages`"
    return f"`{name}` is not a component of the matrix ({', '.join(sorted(known))}); {advice}"


def host_paths(spec: Spec, spec_path: Path) -> tuple[Path, ...]:
    """The host profiles a spec names, relative to the spec's own folder; none for `auto`, an inline host or no host."""
    host = spec.target.host
    if host is None or isinstance(host, dict) or host == AUTO:
        return ()
    named = (host,) if isinstance(host, str) else host
    return tuple(spec_path.parent / name for name in named)
