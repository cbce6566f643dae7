"""Read the name of a base image: by its row in the matrix, else by what its publisher's tags say (`base_images.yaml`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import field

from provisioner.document import load_document, parse_model
from provisioner.grounds.omission import ImageReplaced, ImageUnknown, NoImage
from provisioner.importers.conda_names import Source
from provisioner.resolver.rules.images import images_named
from provisioner.strict_model import StrictModel

if TYPE_CHECKING:
    from provisioner.document import Position
    from provisioner.importers.importing import Importing
    from provisioner.matrix.model import Matrix

KIND = "table of base images"

_HUB = re.compile(r"^(?:(?:index\.)?docker\.io/)?(?:library/)?")
_REFERENCE = re.compile(r"[a-z0-9][a-z0-9._:/-]*(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?", re.IGNORECASE)


class TagRow(StrictModel, frozen=True, kw_only=True):
    """What the tags of one repository that match `tag` say: ranges of components, keys of `image`, and an accelerator."""

    repository: str
    tag: str
    requires: dict[str, str] = field(default_factory=dict)
    image: dict[str, str] = field(default_factory=dict)
    accelerator: Literal["cuda", "cpu", ""] = ""
    keeps: bool = False
    source: tuple[str, ...]


class TagFile(StrictModel, frozen=True, kw_only=True):
    """The keys of `base_images.yaml`."""

    sources: dict[str, Source]
    rows: tuple[TagRow, ...]


@cache
def tag_file() -> TagFile:
    """Return the table as it is written."""
    path = Path(__file__).with_name("base_images.yaml")
    return parse_model(load_document(path, kind=KIND, is_ours=True), TagFile, kind=KIND)


def read_base_image(reference: str, position: Position, *, importing: Importing, matrix: Matrix) -> None:
    """Record what a base image means for a spec; what it holds beyond that is among what was not carried over."""
    if "://" in reference or _REFERENCE.fullmatch(reference) is None:
        importing.omit(reference, position, NoImage())
        return
    listed = images_named(matrix, reference)
    if listed:
        python = listed[0].python
        if python and not importing.require("python", f"{python}.*", position):
            importing.omit(reference, position, ImageReplaced())  # a file before it asks for another Python
        else:
            importing.image("base", reference, position)
        return
    name = _HUB.sub("", reference.partition("@")[0])
    repository, _, tag = name.partition(":")
    for row in tag_file().rows:
        match = re.fullmatch(row.tag, tag) if row.repository == repository else None
        if match is not None:
            _row(row, match.groupdict(), importing=importing, position=position)
            if row.keeps:
                importing.image("base", reference, position)
            else:
                importing.omit(reference, position, ImageReplaced())
            return
    importing.image("base", reference, position)
    importing.omit(reference, position, ImageUnknown())


def _row(row: TagRow, values: dict[str, str | None], *, importing: Importing, position: Position) -> None:
    """Record what a tag says, with the parts of the tag filled in."""
    for component, text in row.requires.items():
        importing.require(component, text.format_map(values), position)
    if row.accelerator:
        importing.accelerator(row.accelerator, position)
    for key, text in row.image.items():
        importing.image(key, text.format_map(values), position)
