"""Where each key of a spec that a lock records stands today: in the spec, or in a file that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from provisioner.document import Document
    from provisioner.spec.model import Spec


def asked_places(spec: Spec, document: Document) -> dict[str, str]:
    """`file:line` under the keys of `asked`; of several lines about one distribution all of them."""
    found: dict[str, list[str]] = {}
    for path in document.keys:
        if path and not any(isinstance(part, int) for part in path):
            found[".".join(str(part) for part in path)] = [document.where(path)]
    lists = {"packages": spec.packages, "constraints": spec.constraints, "overrides": spec.overrides}
    for name, texts in lists.items():
        for index, text in enumerate(texts):
            places = found.setdefault(f"{name}.{canonicalize_name(Requirement(text).name)}", [])
            places.append(document.where((name, index)))
    for index, one in enumerate(spec.indexes):
        found[f"indexes.{one.name}"] = [document.where(("indexes", index))]
        found[f"indexes.{one.name}.packages"] = [document.where(("indexes", index, "packages"))]
    return {key: " and ".join(dict.fromkeys(places)) for key, places in found.items()}
