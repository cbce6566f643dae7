"""Grounds as plain text fields for other programs: type, subject, object, range, source and place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from packaging.requirements import Requirement

from provisioner.grounds.bound import Drivers, Kernels, Names, SameVersion, Specifier, Versions
from provisioner.grounds.predicate import BuildsOn, NeedsDriver, NeedsNativeDriver
from provisioner.grounds.requirement import Entails
from provisioner.grounds.source import Documents, Hazard, Index, MatrixRow, Metadata
from provisioner.places import HostPlace, Place

if TYPE_CHECKING:
    from provisioner.grounds.bound import Bound
    from provisioner.grounds.predicate import Predicate
    from provisioner.grounds.requirement import Ground
    from provisioner.grounds.source import Source

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OBJECTS = (
    "component",
    "distribution",
    "name",
    "path",
    "target",
    "architecture",
    "platform",
    "accelerator",
    "base",
    "word",
    "tool",
)
"""Fields of a ground or predicate that name its object, in order of precedence."""

_VALUES = ("value", "label", "device")
"""Fields of a ground that contain a version, a name or a GPU, in order of precedence."""


class PredicateFields(Struct, frozen=True, kw_only=True):
    """The object of a predicate (a component, distribution or target), and the alternatives that the predicate allows of it."""

    object: str = ""
    ranges: tuple[str, ...] = ()


class GroundFields(Struct, frozen=True, kw_only=True):
    """The plain-text fields of a ground, the statement that justifies a requirement.

    `type` is the kind of statement (`needs`, `compiled-for`, `host-fact`). `subject` is the candidate, "" for none, and
    `object` the component, distribution or target that the statement is about; `ranges` are alternatives, one of which `object`
    must meet. `source` is a row of the matrix, a document, an index or a distribution's metadata; `place` is a line of a file.
    """

    type: str
    subject: str = ""
    object: str = ""
    ranges: tuple[str, ...] = ()
    source: str = ""
    place: str = ""


def type_of(ground: type[Struct]) -> str:
    """Return the name of a type of ground or predicate in locks and JSON: `host-fact` for `HostFact`."""
    return _HUMP.sub("-", ground.__name__).lower()


def fields_of(ground: Ground) -> GroundFields:
    """Return a ground as plain text fields."""
    source, place = source_fields(ground.source)
    if isinstance(ground, Entails):
        subject = str(ground.subject) if ground.subject is not None else ground.name
        ranges, about = ranges_of(ground.predicate), object_of(ground.predicate)
        return GroundFields(
            type=type_of(type(ground.predicate)), subject=subject, object=about, ranges=ranges, source=source, place=place
        )
    requirement = getattr(ground, "requirement", "")
    wanted = str(Requirement(requirement).specifier) if requirement else getattr(ground, "range", "")
    value = wanted or next((text for name in _VALUES if (text := getattr(ground, name, ""))), "")
    about = object_of(ground) or ground.component
    return GroundFields(type=type_of(type(ground)), object=about, ranges=(value,) if value else (), source=source, place=place)


def ranges_of(predicate: Predicate) -> tuple[str, ...]:
    """Return the alternatives that a predicate allows of its object; () for a predicate without bounds."""
    inner = getattr(predicate, "needs", None)
    if inner is not None:
        return ranges_of(inner)
    bounds: tuple[Bound, ...] = getattr(predicate, "bounds", ())
    return tuple(dict.fromkeys(text for bound in bounds for text in _alternatives(bound)))


def _alternatives(bound: Bound) -> tuple[str, ...]:
    match bound:
        case Versions(versions=versions):
            return tuple(f"=={version}" for version in versions)
        case Names(names=names):
            return names
        case SameVersion():
            return ("same",)
        case Specifier(text=text):
            return (text,) if text else ()
        case Drivers(minor_version=minor_version, native=native, forward=forward):
            floor = minor_version or native
            return (*([f">={floor}"] if floor else []), *(f"=={branch}.*" for branch in forward))
        case Kernels(documented=documented, patched=patched):
            return (*([str(documented)] if documented is not None else []), *(str(kernels) for kernels, _ in patched))
    return (str(bound),) if bound.clauses else ()


def object_of(value: Any) -> str:  # noqa: ANN401 - any ground or predicate
    """Return the name of the object of a ground or predicate; "" when it names none."""
    inner = getattr(value, "needs", None)
    if inner is not None:
        return object_of(inner)
    if isinstance(value, NeedsDriver | NeedsNativeDriver):
        return "driver"
    if isinstance(value, BuildsOn):
        return "kernel"
    names = value.__struct_fields__
    return next((str(getattr(value, name)) for name in _OBJECTS if name in names and getattr(value, name)), "")


def source_fields(source: Source | None) -> tuple[str, str]:
    """Return the name of a source and its line of a file, as `file:line`; "" for either when the source has none."""
    match source:
        case Place():
            return "", str(source)
        case HostPlace(place=place):
            return "", str(place)
        case MatrixRow(table=table, name=name, place=place):
            return f"{table} {name}", source_fields(place)[1]
        case Hazard(place=place):
            return "", str(place)
        case Documents(citations=citations):
            return "; ".join(citations), ""
        case Metadata(name=name, version=version):
            return f"metadata of {name} {version}", ""
        case Index(name=name):
            return f"index {name}".strip(), ""
    return "", ""
