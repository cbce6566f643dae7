"""Generate JSON Schemas (draft 2020-12) from the models that read documents.

msgspec writes the schema of types as they are in memory. A document spells some values otherwise (`Spelling`), so each model is
rebuilt with the types of its document first. What a model cannot say, the rows of `schemas.documents` add.
"""

from __future__ import annotations

import json
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, defstruct, field
from msgspec import json as msgspec_json
from msgspec.structs import fields

from provisioner.strict_model import spelling_of, without_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/$defs/{name}"

Overrides = dict[tuple[type[Struct], str], Any]
"""Types of fields that a model reads later, with another model: those of a host that is written in a spec."""


def schema(
    model: type[Struct], *, overrides: Overrides | None = None, besides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the JSON Schema of the documents that a model reads.

    `besides` are keywords by the name of a definition, such as `SpecFile`, which join those of the model.
    """
    rebuilt = _Rebuilding(overrides or {}).model(model)
    (root,), components = msgspec_json.schema_components((rebuilt,), ref_template=_REFERENCE)
    definitions = {name: _tidied(components[name]) for name in sorted(components)}
    for name, keywords in (besides or {}).items():
        definitions[name] = _merged(definitions[name], keywords)
    return {"$schema": DIALECT, **root, "$defs": definitions}


def schema_file(identifier: str, title: str, found: Mapping[str, Any]) -> str:
    """Return a schema as the text of a file, with its `$id` and title."""
    whole = {"$schema": found["$schema"], "$id": identifier, "title": title, **found}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


class _Rebuilding:
    """Rebuilds models with the types of their documents; a model that occurs twice is rebuilt once."""

    def __init__(self, overrides: Overrides) -> None:
        self._overrides = overrides
        self._models: dict[type[Struct], type[Struct]] = {}

    def model(self, model: type[Struct]) -> type[Struct]:
        """Return a struct with the keys of a model and the types of its document, under the same name and docstring."""
        if model not in self._models:
            rows = [(one, self.kind(self._overrides.get((model, one.name), one.type))) for one in fields(model)]
            self._models[model] = defstruct(
                model.__name__,
                [(one.name, kind, field(name=one.encode_name, **_default(one))) for one, kind in rows],
                kw_only=True,
                forbid_unknown_fields=model.__struct_config__.forbid_unknown_fields,
                namespace={"__doc__": _one_line_each(model.__doc__ or "")},
            )
        return self._models[model]

    def kind(self, kind: Any) -> Any:  # noqa: ANN401 - any annotation of a model
        """Return the type that a document has for an annotation."""
        spelling = spelling_of(kind)
        if spelling is not None:
            return Annotated[spelling.form, Meta(pattern=f"^({spelling.pattern})$")] if spelling.pattern else spelling.form
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self.model(kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return Annotated[(self.kind(arguments[0]), *arguments[1:])]
        if origin is tuple:
            return tuple.__class_getitem__((self.kind(arguments[0]), ...))
        if origin is dict:
            return dict.__class_getitem__((self.kind(arguments[0]), self.kind(arguments[1])))
        if origin in {Union, UnionType}:
            return Union[tuple(self.kind(one) for one in arguments)]  # noqa: UP007 - built from values
        return Any if kind is object else kind


def _one_line_each(docstring: str) -> str:
    """Return a docstring with each paragraph on one line, as editors show it."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))


def _default(one: Any) -> dict[str, Any]:  # noqa: ANN401 - msgspec's description of a field
    """Return the default of a field as its document spells it; a default that documents leave out has no value to show."""
    if one.required:
        return {}
    if one.default is NODEFAULT:
        return {"default_factory": one.default_factory}
    if isinstance(one.default, Struct) or spelling_of(one.type) is not None:
        return {"default_factory": dict if spelling_of(one.type) is None else str}
    return {"default": without_defaults(one.default)}


def _tidied(value: Any) -> Any:  # noqa: ANN401 - JSON
    r"""Return a schema with the patterns that JSON Schema has: the end of a text is `$` there, not `\Z`."""
    if isinstance(value, dict):
        return {
            key: item.replace("\\Z", "$") if key == "pattern" and isinstance(item, str) else _tidied(item)
            for key, item in value.items()
        }
    return [_tidied(item) for item in value] if isinstance(value, list) else value


def _merged(value: Any, other: Any) -> Any:  # noqa: ANN401 - JSON
    """Return two schemas as one: mappings are joined key by key, of anything else the second one counts."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {**value, **{key: _merged(value.get(key), item) for key, item in other.items()}}
    return other
