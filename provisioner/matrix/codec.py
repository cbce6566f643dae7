"""A matrix as JSON and back, without pydantic or ruamel: what makes a warm start fast.

msgspec makes the rows from the bytes: a row is the list of its class's fields in their order, versions and ranges are taken
apart already. What a row holds follows from its annotations, so a new field of the model needs no line here. The format is
private to one version of this program: `FORMAT` names it, and a reader that finds another one reads the YAML again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from msgspec import json
from msgspec.structs import fields

from provisioner.matrix.lazy import LazyMapping, LazyRows
from provisioner.matrix.model import Citation, Component, Matrix, Release

if TYPE_CHECKING:
    from collections.abc import Callable

Row = TypeVar("Row")

FORMAT = 9

_WORDS = ("order", "digest")
"""What is read at once, beside the names of the components."""

_MAPPINGS = ("components", "citations", "positions")
_RELEASES = "releases of "

Sections = dict[str, bytes]
"""The parts of a matrix by name, each as JSON."""


def encode(matrix: Matrix) -> Sections:
    """The matrix as parts that can be read one by one: its fields, and the releases of each component."""
    parts: dict[str, object] = {}
    for field in Matrix.__struct_fields__:
        value = getattr(matrix, field)
        if field == "components":
            parts[field] = [(one.name, one.title, one.is_virtual, one.is_named) for one in value.values()]
            parts |= {f"{_RELEASES}{one.name}": tuple(one.releases) for one in value.values()}
        elif field == "citations":
            parts[field] = tuple(value.values())
        elif field == "positions":
            parts[field] = dict(value)
        else:
            parts[field] = value if field in _WORDS else tuple(value)
    return {name: json.encode(part) for name, part in parts.items()}


def decode(read: Callable[[str], bytes]) -> Matrix:
    """The matrix `encode` was given; `read` returns a section by name, and is asked for it when somebody looks at it.

    Raises `ValueError` (of which msgspec's errors are), `KeyError`, `TypeError` or `IndexError` for anything else, some of it
    only then.
    """
    rest: dict[str, Any] = {}
    for field in fields(Matrix):
        if field.name in _WORDS:
            rest[field.name] = json.decode(read(field.name), type=field.type)
        elif field.name not in _MAPPINGS:
            rest[field.name] = LazyRows(partial(_rows, read, field.name, get_args(field.type)[0]))
    components = {
        name: Component(
            name=name,
            title=title,
            releases=LazyRows(partial(_rows, read, f"{_RELEASES}{name}", Release)),
            is_virtual=is_virtual,
            is_named=is_named,
        )
        for name, title, is_virtual, is_named in json.decode(read("components"))
    }
    return Matrix(
        components=components,
        citations=LazyMapping(partial(_citations, read)),
        positions=LazyMapping(partial(_positions, read)),
        **rest,
    )


def _rows(read: Callable[[str], bytes], section: str, row: type[Row]) -> tuple[Row, ...]:
    kind: Any = tuple[row, ...]  # type: ignore[valid-type]  # a class, known when it is asked for
    rows: tuple[Row, ...] = json.decode(read(section), type=kind)
    return rows


def _citations(read: Callable[[str], bytes]) -> dict[str, Citation]:
    return {one.key: one for one in _rows(read, "citations", Citation)}


def _positions(read: Callable[[str], bytes]) -> dict[str, str]:
    return json.decode(read("positions"), type=dict[str, str])
