"""A spec of several targets, read as the spec of one: no marker of PEP 508 tells a V100 from a B200, so each has a lock.

Each target is locked in a folder of its name, with the files rendered from it; what stands above the folder is the spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.errors import UsageError
from provisioner.names import nearest

if TYPE_CHECKING:
    from provisioner.document import Document, KeyPath
    from provisioner.spec.model import Spec


def of_target(spec: Spec, document: Document, target: str | None) -> tuple[Spec, Document]:
    """A spec and its document as they would be with this target alone; a spec without targets as it is, for None.

    Raises `UsageError` for a target the spec does not name, for none where it names several, and for one where it names none.
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
    one = replace(spec, target=spec.targets[target], targets={})
    return one, _with_one(document, target)


def _with_one(document: Document, target: str) -> Document:
    """The document as if `target` stood where this one of `targets` does: every line keeps its place."""
    data = {key: value for key, value in document.data.items() if key != "targets"}

    def moved(path: KeyPath) -> KeyPath:
        return ("target", *path[2:]) if path[:2] == ("targets", target) else path

    return replace(
        document,
        data={**data, "target": document.data["targets"][target]},
        keys={moved(path): position for path, position in document.keys.items()},
        texts={moved(path): text for path, text in document.texts.items()},
    )
