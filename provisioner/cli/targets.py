"""A spec of several targets: one wish, one lock for each, because no marker of PEP 508 tells a V100 from a B200.

Each target is locked in a folder of its name, with the files rendered from it; what stands above the folder is the spec.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from provisioner.errors import UsageError
from provisioner.names import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.cli.inputs import Inputs
    from provisioner.document import Document, KeyPath


def only(inputs: Inputs, target: str | None) -> Inputs:
    """The inputs of one target, as a spec that has no other would give them.

    Raises `UsageError` for a target the spec does not name, for none where it names several, and for one where it names none.
    """
    known = tuple(inputs.spec.targets)
    if not known and target is None:
        return inputs
    if not known:
        raise UsageError(
            f"{inputs.document.file} has no `targets`, so there is no target `{target}`",
            hints=("name targets in the spec: targets: {v100: {host: hosts/v100.yaml}}",),
        )
    if target is None:
        raise UsageError(
            f"{inputs.document.file} is for several targets ({', '.join(known)}), and this needs one",
            hints=("choose one with --target; without that option, write a spec with one `target`",),
        )
    if target not in known:
        near = nearest(target, known)
        raise UsageError(
            f"{inputs.document.file} has no target `{target}`{f'; did you mean `{near}`?' if near else ''}",
            hints=(f"it has {', '.join(known)}",),
        )
    document = _with_one(inputs.document, target)
    spec = inputs.spec.model_copy(update={"target": inputs.spec.targets[target], "targets": {}})
    return replace(inputs, spec=spec, document=document, target=target, targets=known)


def every(inputs: Inputs, wanted: Sequence[str]) -> list[Inputs]:
    """The inputs of every target, or of those wanted, in the order of the spec; of a spec without targets itself alone."""
    if not inputs.spec.targets and not wanted:
        return [inputs]
    chosen = {name: only(inputs, name) for name in wanted or inputs.spec.targets}
    return [chosen[name] for name in inputs.spec.targets if name in chosen]


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
