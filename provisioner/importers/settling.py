"""Take what a spec would refuse out of an imported content, with the messages of the spec's own checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from provisioner.document import Document, Position
from provisioner.errors import without_logins
from provisioner.grounds.omission import AptUnknown, Omission, Refused
from provisioner.importers.importing import Imported
from provisioner.resolver.rules.images import images_named
from provisioner.spec.check import spec_mistakes

if TYPE_CHECKING:
    from provisioner.document import KeyPath
    from provisioner.matrix.model import Matrix
    from provisioner.places import Place
    from provisioner.spec.content import Content


def settled(imported: Imported, matrix: Matrix) -> Imported:
    """Return an imported content without the entries in which the checks of a spec find mistakes; these are omissions.

    The content is checked again until nothing is found, for one entry may contradict another one.
    """
    content, omissions = imported.content, list(imported.omissions)
    base = content.image.get("base")
    if base is not None and "distribution" not in content.image and not images_named(matrix, base.value):
        omissions += (Omission(one.value, one.place, AptUnknown(base.value)) for one in content.apt)
        content = replace(content, apt=())
    while True:
        paths = _paths(content)
        wrong: dict[int, str] = {}
        for mistake in spec_mistakes(_document(content, paths)):
            wrong.setdefault(mistake.line - 1, mistake.text)
        if not wrong:
            return Imported(content, tuple(omissions))
        for number, why in wrong.items():
            _, text, place = paths[number]
            omissions.append(Omission(without_logins(text), place, Refused(without_logins(why))))
        content = _without(content, {paths[number][0] for number in wrong})


def _paths(content: Content) -> list[tuple[KeyPath, str, Place]]:
    """Return the key path, text and place of each entry; the number of an entry is the line of its mistakes."""
    found: list[tuple[KeyPath, str, Place]] = []
    found += ((("requires", name), f"{name}: {one.value}", one.place) for name, one in content.requires.items())
    found += ((("packages", at), one.value, one.place) for at, one in enumerate(content.packages))
    found += ((("constraints", at), one.value, one.place) for at, one in enumerate(content.constraints))
    found += ((("indexes", at), one.url, one.place) for at, one in enumerate(content.indexes))
    found += ((("image", key), one.value, one.place) for key, one in content.image.items())
    return found


def _document(content: Content, paths: list[tuple[KeyPath, str, Place]]) -> Document:
    """Return the entries as the document of a spec in which each stands on a line of its own."""
    data: dict[str, Any] = {
        "requires": {name: one.value for name, one in content.requires.items()},
        "packages": tuple(one.value for one in content.packages),
        "constraints": tuple(one.value for one in content.constraints),
        "indexes": tuple({"name": one.name, "url": one.url} for one in content.indexes),
        "image": {key: one.value for key, one in content.image.items()},
    }
    keys = {path: Position(line, 1) for line, (path, _, _) in enumerate(paths, start=1)}
    return Document("", data, keys, {path: text for path, text, _ in paths})


def _without(content: Content, wrong: set[KeyPath]) -> Content:
    """Return a content without some entries."""
    return replace(
        content,
        requires={name: one for name, one in content.requires.items() if ("requires", name) not in wrong},
        packages=tuple(one for at, one in enumerate(content.packages) if ("packages", at) not in wrong),
        constraints=tuple(one for at, one in enumerate(content.constraints) if ("constraints", at) not in wrong),
        indexes=tuple(one for at, one in enumerate(content.indexes) if ("indexes", at) not in wrong),
        image={key: one for key, one in content.image.items() if ("image", key) not in wrong},
    )
