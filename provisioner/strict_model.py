"""What a document may hold, declared once: msgspec reads what is right, and pydantic, told the same, finds every mistake.

Most documents are right, and pydantic takes as long to import as a warm solve to search; msgspec stops at the first mistake.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, convert, to_builtins
from msgspec.structs import fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    Declared = TypeVar("Declared", bound=Struct)


class StrictModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Frozen, strict, and unknown keys are errors; a hyphenated key is a field with a `name`."""


def spelled(pattern: str) -> Meta:
    """Text that matches a pattern, which ends with `$`: the end of the text, for both engines, and no line break before it."""
    return Meta(pattern=pattern.removesuffix("$") + r"\Z", extra={"pattern": pattern})


_TEXT_IS_NO_MOMENT = (datetime, date, time)
"""Types that documents have values of, so that no text is read as one."""


def read(data: object, model: type[Declared]) -> Declared:
    """The data of a document as a model; raises msgspec's `ValidationError` for the first thing that is wrong."""
    return convert(data, model, builtin_types=_TEXT_IS_NO_MOMENT)


_HALF = re.compile("[\ud800-\udfff]")


def halves(data: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a key or a text holds half of a character (a surrogate of UTF-16): YAML and JSON escape one, no file holds it."""
    if isinstance(data, str):
        if _HALF.search(data):
            yield path
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from ([(*path, key)] if _HALF.search(key) else halves(value, (*path, key)))
    elif isinstance(data, tuple):
        for index, item in enumerate(data):
            yield from halves(item, (*path, index))


@cache
def twin(model: type[Struct]) -> type[BaseModel]:
    """The same model for pydantic, which tells every mistake with its place."""
    from pydantic import ConfigDict, Field, create_model

    known: dict[str, Any] = {}
    for one in fields(model):
        is_needed = one.default is NODEFAULT and one.default_factory is NODEFAULT
        default = ... if is_needed else None
        known[one.name] = (_for_pydantic(one.type), Field(default, alias=one.encode_name))
    is_strict = model.__struct_config__.forbid_unknown_fields
    config = ConfigDict(extra="forbid" if is_strict else "ignore", strict=True, protected_namespaces=())
    made: type[BaseModel] = create_model(model.__name__, __config__=config, **known)
    return made


def _for_pydantic(annotation: Any) -> Any:  # noqa: ANN401 - any type annotation
    """An annotation with the twins of its models, and what msgspec asks of a value as pydantic says it."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return twin(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[_for_pydantic(arguments[0]), *(_constraint(meta) for meta in arguments[1:])]
    if origin in {Union, UnionType}:
        return Union[*(_for_pydantic(argument) for argument in arguments)]
    if origin in {tuple, dict}:
        return origin[*(_for_pydantic(argument) for argument in arguments)]
    return annotation


def _constraint(meta: Meta) -> FieldInfo:
    from pydantic import Field

    found: FieldInfo = Field(pattern=(meta.extra or {}).get("pattern"), ge=meta.ge)
    return found


_PLAIN = {
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping of keys to values",
    "int_type": "must be a whole number",
    "model_type": "must be a mapping of keys to values",
    "string_type": "must be text",
    "tuple_type": "must be a list",
}


def plainly(details: ErrorDetails) -> str:
    """What pydantic found, in words that need no knowledge of Python; "" where its own words will do."""
    kind, context = details["type"], details.get("ctx", {})
    if kind == "literal_error":
        return f"must be {str(context['expected']).replace(chr(39), '')}"
    if kind == "string_pattern_mismatch":
        return f"is not spelled right; it must match {context['pattern']}"
    return _PLAIN.get(kind, "")


def known_keys(model: type[BaseModel], path: tuple[str | int, ...]) -> tuple[str, ...]:
    """The keys a model knows at `path`, for suggesting the nearest one to a typo."""
    models = [model]
    for part in path:
        if isinstance(part, int):
            continue
        found = [pair for current in models for pair in current.model_fields.items()]
        models = [one for name, field in found if part in {name, field.alias} for one in _models_in(field.annotation)]
    return tuple(field.alias or name for current in models for name, field in current.model_fields.items())


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any type annotation
    if hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def plain_data(model: Struct) -> dict[str, Any]:
    """A model as plain data under the keys of its document, without what says nothing."""
    data: dict[str, Any] = _without_none(to_builtins(model))
    return data


def _without_none(data: Any) -> Any:  # noqa: ANN401 - whatever a document holds
    if isinstance(data, dict):
        return {key: _without_none(value) for key, value in data.items() if value is not None}
    return [_without_none(value) for value in data] if isinstance(data, (list, tuple)) else data


def without_defaults(value: Any) -> Any:  # noqa: ANN401 - whatever a model holds
    """A model as plain data under the keys of its document, without what is as it would be if nobody had said so."""
    if isinstance(value, Struct):
        said = ((one, getattr(value, one.name)) for one in fields(value))
        return {one.encode_name: without_defaults(item) for one, item in said if item != _default(one)}
    if isinstance(value, dict):
        return {key: without_defaults(item) for key, item in value.items()}
    return tuple(without_defaults(item) for item in value) if isinstance(value, (list, tuple)) else value


def _default(field: Any) -> Any:  # noqa: ANN401 - the type that describes a field has no public name to annotate with
    return field.default if field.default_factory is NODEFAULT else field.default_factory()
