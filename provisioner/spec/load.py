"""Reads `provision.yaml`, with every mistake in it reported at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.document import FileError, load_document, parse_model
from provisioner.errors import InvalidDocumentError, Mistake
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.spec.check import spec_mistakes
from provisioner.spec.model import Spec
from provisioner.spec.policy import unknown_names

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from provisioner.document import Document

KIND = "spec"
AUTO = "auto"
"""The host that means: the machine this program runs on."""

_INIT = "`provision init` writes a commented one"


def load_spec(path: Path) -> tuple[Spec, Document]:
    """Read a spec, and the document that knows where its keys stand.

    Raises `FileError` when there is no such file, and `InvalidDocumentError` with every mistake at its line and column.
    """
    if not path.exists():
        raise FileError(f"{KIND} `{path}` does not exist", hints=(_INIT,))
    document = load_document(path, kind=KIND)
    return parse_spec(document), document


def parse_spec(document: Document) -> Spec:
    """Validate a spec that has been read; raises `InvalidDocumentError`."""
    if document.data is None:
        raise InvalidDocumentError(KIND, (Mistake(document.file, 1, 1, "", "the file is empty"),), hints=(_INIT,))
    return parse_model(document, Spec, kind=KIND, besides=tuple(spec_mistakes(document)))


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
