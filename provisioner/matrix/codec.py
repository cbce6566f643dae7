"""A matrix as plain JSON values and back, without pydantic or ruamel: what makes a warm start fast.

A row is the list of a class's fields in their order, cut after the last one that differs from its default. How a field is
written follows from its annotation, so a new field of the model needs no line here. The format is private to one version of
this program: `FORMAT` names it, and a reader that finds another one reads the YAML again.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from provisioner.matrix import model, model_distributions, need
from provisioner.matrix.lazy import LazyMapping, LazyRows
from provisioner.matrix.model import Citation, Component, Matrix
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT = 7

Plain = Any

_ROWS = (
    model.Citation,
    need.Need,
    model.PatchedKernels,
    model.DriverMinimum,
    model.Build,
    model.Release,
    model.Rule,
    model.DriverBranch,
    model.Gpu,
    model.GfxOverride,
    model.ImageFacts,
    model_distributions.ImpliedNeed,
    model_distributions.Distribution,
    model_distributions.DistributionLimit,
    model_distributions.FileOwner,
    model_distributions.SharedFile,
    model.Variables,
    model.Failure,
    model.DriverPackage,
)
"""The classes of the model, each after those its fields hold."""

_EAGER = ("order", "digest")
_RELEASES = "releases of "


Sections = dict[str, str]
"""The parts of a matrix by name, each as JSON text."""


def encode(matrix: Matrix) -> Sections:
    """The matrix as parts that can be read one by one: its fields, and the releases of each component."""
    plain: dict[str, Plain] = {}
    for field in Matrix.__struct_fields__:
        value = getattr(matrix, field)
        if field == "components":
            plain["components"] = [[one.name, one.title, one.is_virtual, one.is_named] for one in value.values()]
            for one in value.values():
                plain[f"{_RELEASES}{one.name}"] = _plain(one.releases)
        elif field == "citations":
            plain[field] = [_plain(one) for one in value.values()]
        elif field == "positions":
            plain[field] = dict(value)
        else:
            plain[field] = _plain(value)
    return {name: json.dumps(value, separators=(",", ":")) for name, value in plain.items()}


def decode(read: Callable[[str], str]) -> Matrix:
    """The matrix `encode` was given; `read` returns a section by name, and is asked for it when somebody looks at it.

    Raises `ValueError`, `KeyError`, `TypeError` or `IndexError` for anything else, some of it only then.
    """
    rest: dict[str, Any] = {}
    for field, annotation in Matrix.__annotations__.items():
        if field in _EAGER:
            rest[field] = _reader(annotation)(json.loads(read(field)))
        elif field not in {"components", "citations", "positions"}:
            rest[field] = LazyRows(partial(_rows, read, field, annotation))
    components = {
        name: Component(
            name=name,
            title=title,
            releases=LazyRows(partial(_rows, read, f"{_RELEASES}{name}", "Sequence[Release]")),
            is_virtual=is_virtual,
            is_named=is_named,
        )
        for name, title, is_virtual, is_named in json.loads(read("components"))
    }
    return Matrix(
        components=components,
        citations=LazyMapping(partial(_citations, read)),
        positions=LazyMapping(partial(_positions, read)),
        **rest,
    )


def _rows(read: Callable[[str], str], section: str, annotation: str) -> tuple[Any, ...]:
    return tuple(_reader(annotation)(json.loads(read(section))))


def _citations(read: Callable[[str], str]) -> dict[str, Citation]:
    return {one.key: one for one in map(_READERS["Citation"], json.loads(read("citations")))}


def _positions(read: Callable[[str], str]) -> dict[str, str]:
    return dict(json.loads(read("positions")))


def _plain(value: object) -> Plain:
    if isinstance(value, Version):
        return value.text if value.release else f"={value.text}"
    if isinstance(value, Range):
        return str(value) if value.clauses else ""
    if isinstance(value, tuple | LazyRows):
        return [_plain(item) for item in value]
    if isinstance(value, _ROWS):
        return _row(value)
    return value


def _row(value: Any) -> list[Plain]:  # noqa: ANN401 - any row of the model
    defaults = value.__struct_defaults__
    row = [getattr(value, field) for field in value.__struct_fields__]
    required = len(row) - len(defaults)
    while len(row) > required and defaults[len(row) - 1 - required] == row[-1]:
        row.pop()
    return [_plain(item) for item in row]


def _version(text: str) -> Version:
    return Version.named(text[1:]) if text.startswith("=") else Version.parse(text)


def _same(value: Plain) -> Plain:
    return value


_READERS: dict[str, Callable[[Plain], Any]] = {
    "str": _same,
    "bool": _same,
    "bool | None": _same,
    "Version": _version,
    "Range": Range.parse,
    "Mapping[str, str]": dict,
    "tuple[str, ...]": tuple,
    "tuple[tuple[str, str], ...]": lambda rows: tuple((name, value) for name, value in rows),
}


def _reader(annotation: str) -> Callable[[Plain], Any]:
    """How a value of a field annotated like this is read."""
    if annotation in _READERS:
        return _READERS[annotation]
    if annotation.endswith(" | None"):
        read = _reader(annotation.removesuffix(" | None"))
        found: Callable[[Plain], Any] = lambda value: None if value is None else read(value)  # noqa: E731
    elif annotation.startswith("Sequence["):
        found = _reader(f"tuple[{annotation[len('Sequence[') : -1]}, ...]")
    elif annotation.startswith("tuple[") and annotation.endswith(", ...]"):
        each = _reader(annotation[len("tuple[") : -len(", ...]")])
        found = lambda values: tuple([each(value) for value in values])  # noqa: E731 - lists are the faster way
    else:
        raise TypeError(f"no rule for a field of type {annotation}")
    _READERS[annotation] = found
    return found


def _row_reader(row: type[Any]) -> Callable[[Plain], Any]:
    reads = [(field, _reader(annotation)) for field, annotation in row.__annotations__.items()]

    def read(values: Plain) -> Any:  # noqa: ANN401 - any row of the model
        return row(**{name: one(value) for (name, one), value in zip(reads, values, strict=False)})

    return read


for _class in _ROWS:
    _READERS[_class.__name__] = _row_reader(_class)
