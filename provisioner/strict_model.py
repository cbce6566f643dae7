"""Read documents into msgspec structs, which declare their keys and types, and report every mistake of a document.

msgspec reads valid data fast but stops at the first mistake, so invalid data is compared with the declaration a second time, to
find all mistakes.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time
from functools import cache
from json import dumps
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, ValidationError, convert, to_builtins
from msgspec.structs import FieldInfo, fields

from provisioner.names import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Declared = TypeVar("Declared", bound=Struct)

Keys = tuple[str | int, ...]
"""The path of a value in a document: the keys and list indexes that lead to it."""


class StrictModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of frozen structs that reject unknown keys; a field whose key has a hyphen names it with `field(name=...)`.

    `example` is a value as a file spells it, for messages about a value that is no mapping; "" for none.
    """

    example: ClassVar[str] = ""


class SpelledModel(StrictModel, frozen=True, kw_only=True):
    """A strict model that has, at any depth, values with a `Spelling`; `read` looks for spellings in these models only."""


class Spelling(NamedTuple):
    """The form in documents of a value that is a struct in memory, such as a version as text; annotation metadata.

    `form` is the type of the value in documents. `read` converts it into the struct, and raises `ValueError` with the message
    for an invalid one; `write` converts the struct back. `pattern` is a regular expression that every valid text matches as a
    whole, for JSON Schemas; "" if there is none.
    """

    form: Any
    read: Callable[[object], object]
    write: Callable[[Any], object]
    pattern: str = ""


def spelled(pattern: str, such_as: str = "") -> Meta:
    """Return the msgspec constraint that a text matches `pattern`, which must end with `$`.

    Here `$` means the very end of the text, not also before a final line break. A person who wrote another text is shown
    `such_as`, or the pattern where that is plain enough.
    """
    told = f"write it as {such_as}" if such_as else f"it must match {pattern}"
    return Meta(pattern=pattern.removesuffix("$") + r"\Z", extra={"told": told})


_TEXT_IS_NO_MOMENT = (datetime, date, time)
"""Types that documents hold as such: msgspec must not convert text into dates and times."""


def read(data: object, model: type[Declared]) -> Declared:
    """Convert the data of a document to a model; raises msgspec's `ValidationError` for the first mistake."""
    reader = _reader(model)
    try:
        return convert(data if reader is None else reader(data), model, builtin_types=_TEXT_IS_NO_MOMENT)
    except ValueError as error:  # raised by `Spelling.read`
        raise ValidationError(str(error)) from None


def _reader(kind: Any) -> Callable[[Any], object] | None:  # noqa: ANN401 - any annotation of a model
    """Return a function that replaces spellings in data of the type `kind` by their values; None if the type has none.

    The function returns data of another shape unchanged, for msgspec to reject.
    """
    if (spelling := spelling_of(kind)) is not None:
        return spelling.read
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _reader_of_model(kind) if issubclass(kind, SpelledModel) else None
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, UnionType}:
        readers = {_shape_of(one): reader for one in arguments if (reader := _reader(one)) is not None}
        return (lambda data: readers[_shape(data)](data) if _shape(data) in readers else data) if readers else None
    below = _reader(arguments[0 if origin is tuple else 1]) if origin in {tuple, dict} else None
    if below is None:
        return None
    if origin is tuple:
        return lambda data: tuple(map(below, data)) if isinstance(data, tuple | list) else data
    return lambda data: {key: below(value) for key, value in data.items()} if isinstance(data, dict) else data


@cache
def _reader_of_model(model: type[Struct]) -> Callable[[Any], object] | None:
    readers = {field.encode_name: reader for field in _fields(model) if (reader := _reader(field.type)) is not None}

    def read_fields(data: object) -> object:
        if not isinstance(data, dict):
            return data
        return {key: readers[key](value) if key in readers else value for key, value in data.items()}

    return read_fields if readers else None


def spelling_of(kind: Any) -> Spelling | None:  # noqa: ANN401 - any annotation of a model
    """Return the `Spelling` in the annotation of a type; None if it has none."""
    return next((one for one in getattr(kind, "__metadata__", ()) if isinstance(one, Spelling)), None)


def _alternatives(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any annotation of a model
    return get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)


class Wrong(NamedTuple):
    """One mistake of a document: the path of the wrong value, and a message, often without a subject (`must be a list`)."""

    path: Keys
    text: str


def mistakes(data: object, model: type[Struct], texts: Mapping[Keys, str]) -> tuple[Wrong, ...]:
    """Return every mistake for which `read` rejects the data; `texts` are its scalars as the file spells them."""
    return tuple(_Walk(texts, model).value(data, model, ()))


_HALF = re.compile("[\ud800-\udfff]")


def half_characters(data: object) -> tuple[Wrong, ...]:
    """Return a mistake for each text with half of a character (a lone surrogate of UTF-16), which msgspec cannot convert."""
    text = "holds half of a character, which nothing can be written with; write the whole one"
    return tuple(Wrong(path, text) for path in _halves(data, ()))


def _halves(data: object, path: Keys) -> Iterator[Keys]:
    """Yield the path of each key or text with a lone surrogate of UTF-16, which YAML and JSON can escape."""
    if isinstance(data, str):
        if _HALF.search(data):
            yield path
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from ([(*path, key)] if _HALF.search(str(key)) else _halves(value, (*path, key)))
    elif isinstance(data, tuple):
        for index, item in enumerate(data):
            yield from _halves(item, (*path, index))


_SAME_WORD = 0.85
"""The similarity of a key that may belong elsewhere, or of a word that may be meant: the same, or `hosts` for `host`."""


class _Walk:
    """Compares data with the annotations of its model, value by value; `texts` are its scalars as the file spells them."""

    def __init__(self, texts: Mapping[Keys, str], root: type[Struct]) -> None:
        self._texts = texts
        self._root = root

    def value(self, value: object, kind: Any, path: Keys) -> Iterator[Wrong]:  # noqa: ANN401 - any annotation of a model
        """Yield the mistakes of a value and of everything inside it."""
        kind = self._meant(value, _alternatives(kind), path)
        if kind in {Any, object}:
            return  # data that another model validates later
        shape = _shape_of(kind)
        if value is None and shape is not None:
            yield Wrong(path, "has no value; write one, or leave the key out")
        elif (spelling := spelling_of(kind)) is not None:
            yield from self._spelling(value, spelling, path)
        elif shape is dict:
            yield from self._mapping(value, _bare(kind), path)
        elif shape is tuple:
            yield from self._list(value, get_args(kind)[0], path)
        elif _bare(kind) is str and type(value) in {int, float}:
            shown = self._texts.get(path, str(value))
            yield Wrong(path, f'{shown} is not quoted; write "{shown}" (12.10 is not 12.1)')
        elif text := _wrong_scalar(value, kind):
            yield self._shown(path, text)

    def _meant(self, value: object, kinds: tuple[Any, ...], path: Keys) -> Any:  # noqa: ANN401 - any annotation of a model
        """Return the type in `kinds` that a value was meant for.

        This is the first type of the value's shape for which the value is valid, else the first of its shape, else the first.
        """
        alike = [one for one in kinds if _shape_of(one) is _shape(value)] or kinds[:1]
        right = (one for one in alike if not any(self.value(value, one, path)))
        return alike[0] if len(alike) == 1 else next(right, alike[0])

    def _shown(self, path: Keys, text: str) -> Wrong:
        shown = self._texts.get(path)
        return Wrong(path, text if shown is None else f"`{shown}` {text}")

    def _list(self, value: object, kind: Any, path: Keys) -> Iterator[Wrong]:  # noqa: ANN401 - any annotation of a model
        if not isinstance(value, tuple | list):
            yield self._shown(path, f"must be a list{self._as_list(value, kind, path)}")
            return
        for index, item in enumerate(value):
            yield from self.value(item, kind, (*path, index))

    def _as_list(self, value: object, kind: Any, path: Keys) -> str:  # noqa: ANN401 - any annotation of a model
        example = getattr(kind, "example", "")
        if example:
            return f", such as [{example}]"
        is_item = isinstance(value, str) and value.isprintable() and not any(self.value(value, kind, path))
        return f"; write [{dumps(value)}]" if is_item else ""

    def _mapping(self, value: object, kind: Any, path: Keys) -> Iterator[Wrong]:  # noqa: ANN401 - a model, or dict[…]
        if not isinstance(value, dict):
            known = "" if not path or get_origin(kind) is dict else f"; known keys: {', '.join(_keys(kind))}"
            example = getattr(kind, "example", "")
            such = f", such as {example}" if example else ""
            yield self._shown(path, f"must be a mapping of keys to values{such}{known}")
        elif get_origin(kind) is dict:
            key_kind, value_kind = get_args(kind)
            for key, item in value.items():
                if text := _wrong_scalar(key, key_kind):
                    yield Wrong((*path, str(key)), f"the key `{key}` {text}")
                else:
                    yield from self.value(item, value_kind, (*path, str(key)))
        else:
            yield from self._struct(value, kind, path)

    def _struct(self, data: dict[object, object], model: type[Struct], path: Keys) -> Iterator[Wrong]:
        known = _keys(model)
        for key, value in data.items():
            if isinstance(key, str) and key in known:
                yield from self.value(value, known[key].type, (*path, key))
            elif model.__struct_config__.forbid_unknown_fields:
                yield Wrong((*path, str(key)), f"unknown key `{key}`; {self._advice(str(key), model)}")
        missing = (key for key, field in known.items() if field.required and key not in data)
        yield from (Wrong(path, f"`{key}` is missing") for key in missing)

    def _advice(self, key: str, model: type[Struct]) -> str:
        """Return what to do about a key that a model does not have: the similar one that may be meant, here or elsewhere."""
        known = _keys(model)
        others = {name: place for name, place in _places_of_keys(self._root).items() if "[]" not in place}
        same = others.get(key)  # an item of another list is never meant, and the same word before one that is alike
        near = same or nearest(key, known) or others.get(nearest(key, others, similarity=_SAME_WORD) or "")
        if near == key:
            return "it belongs at the top level, not indented"
        if near:
            return f"did you mean `{near}`?"
        return f"known keys: {', '.join(sorted(known))}" if known else "remove it"

    def _spelling(self, value: object, spelling: Spelling, path: Keys) -> Iterator[Wrong]:
        found = tuple(self.value(value, spelling.form, path))
        yield from found
        if not found:
            try:
                spelling.read(value)
            except ValueError as error:
                yield Wrong(path, str(error))


def _shape(value: object) -> type | None:
    """Return the shape of a value: `dict` for a mapping, `tuple` for a list, None for None and `str` for any scalar."""
    if isinstance(value, tuple | list):
        return tuple
    return None if value is None else dict if isinstance(value, dict) else str


def _shape_of(kind: Any) -> type | None:  # noqa: ANN401 - any annotation of a model
    """Return the shape (see `_shape`) of the values of a type; `object` for `Any`."""
    if kind is Any:
        return object
    if (spelling := spelling_of(kind)) is not None:
        return _shape_of(spelling.form)
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return dict
    origin = get_origin(kind)
    return origin if origin in {dict, tuple} else None if kind is type(None) else str


def _bare(kind: Any) -> Any:  # noqa: ANN401 - any annotation of a model
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _wrong_scalar(value: object, kind: Any) -> str:  # noqa: ANN401 - any annotation of a scalar
    """Return the message about an invalid scalar; "" if it is valid."""
    meta = next((one for one in get_args(kind) if isinstance(one, Meta)), Meta())
    bare = _bare(kind)
    if get_origin(bare) is Literal:
        return _wrong_word(value, get_args(bare))
    if bare is str:
        if not isinstance(value, str):
            return "must be text"
        if meta.pattern and re.search(meta.pattern, value) is None:
            return f"is not spelled right; {(meta.extra or {})['told']}"
    elif bare is bool:
        return "" if isinstance(value, bool) else "must be true or false"
    elif bare is int:
        is_right = type(value) is int and (meta.ge is None or value >= meta.ge) and (meta.le is None or value <= meta.le)
        bounds = "".join(f" {word} {bound}" for word, bound in (("from", meta.ge), ("to", meta.le)) if bound is not None)
        return "" if is_right else f"must be a whole number{bounds}"
    elif bare is float:
        return "" if type(value) in {int, float} else "must be a number"
    elif bare is datetime:
        return "" if isinstance(value, datetime) else "must be a date and time"
    return ""


def _wrong_word(value: object, words: tuple[object, ...]) -> str:
    """Return the message about a value that is not one of `words`; "" if it is one. The message omits the word ""."""
    if any(type(word) is type(value) and word == value for word in words):
        return ""
    if isinstance(words[0], int) and type(value) is not int:
        return "must be a whole number"
    *most, last = [str(word) for word in words if word != ""] or [""]
    near = nearest(value.lower(), [*most, last], similarity=_SAME_WORD) if isinstance(value, str) else None
    meant = f"; did you mean `{near}`?" if near else ""
    return f"must be {', '.join(most)} or {last}{meant}" if most else f"must be {last}"


def plain_data(model: Struct) -> dict[str, Any]:
    """Return a model as plain data under the keys of its document; fields that are None are left out."""
    data: dict[str, Any] = _without_none(to_builtins(model))
    return data


def _without_none(data: Any) -> Any:  # noqa: ANN401 - whatever a document holds
    if isinstance(data, dict):
        return {key: _without_none(value) for key, value in data.items() if value is not None}
    return [_without_none(value) for value in data] if isinstance(data, (list, tuple)) else data


def with_tuples(data: Any) -> Any:  # noqa: ANN401 - whatever a document holds
    """Return plain data with every list replaced by a tuple, as in a `Document`."""
    if isinstance(data, dict):
        return {key: with_tuples(item) for key, item in data.items()}
    return tuple(map(with_tuples, data)) if isinstance(data, list) else data


def without_defaults(value: Any) -> Any:  # noqa: ANN401 - whatever a model holds
    """Return a model as plain data under the keys of its document; fields that have their default are left out."""
    if isinstance(value, Struct):
        found = ((field, getattr(value, field.name)) for field in _fields(type(value)))
        return {field.encode_name: _written(item, field.type) for field, item in found if item != _default(field)}
    if isinstance(value, dict):
        return {key: without_defaults(item) for key, item in value.items()}
    return tuple(without_defaults(item) for item in value) if isinstance(value, (list, tuple)) else value


def _written(value: Any, kind: Any) -> Any:  # noqa: ANN401 - whatever a model holds, and its annotation
    spelling = next(filter(None, map(spelling_of, _alternatives(kind))), None)
    return without_defaults(value) if spelling is None or value is None else spelling.write(value)


_fields = cache(fields)
"""The fields of a model, cached because evaluating their annotations, which are strings, is slow."""


def _default(field: Any) -> Any:  # noqa: ANN401 - the type that describes a field has no public name to annotate with
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


@cache
def _places_of_keys(root: type[Struct]) -> dict[str, str]:
    """Return the path of each key of a document, `target.host` for `host`; of several paths, the first of the shortest.

    The keys of a mapping that another model validates later are those which its annotation names.
    """
    found: dict[str, str] = {}
    waiting: list[tuple[str, Any]] = [("", root)]
    seen: set[Any] = set()
    for prefix, kind in waiting:  # grows while it is read: the keys of a level come before those below it
        if get_origin(kind) is Annotated:
            found.update((key, f"{prefix}.{key}") for key in _keys_below(kind) if key not in found)
        elif isinstance(kind, type) and issubclass(kind, Struct):
            if kind in seen:
                continue
            seen.add(kind)
            for key, field in _keys(kind).items():
                place = f"{prefix}.{key}" if prefix else key
                found.setdefault(key, place)
                waiting.append((place, field.type))
        elif get_origin(kind) is dict:
            waiting.append((f"{prefix}.NAME", get_args(kind)[1]))
        elif get_origin(kind) is tuple:
            waiting.append((f"{prefix}[]", get_args(kind)[0]))
        elif get_origin(kind) in {Union, UnionType}:
            waiting += [(prefix, one) for one in get_args(kind)]
    return found


def _keys_below(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - any annotation of a model
    """Return the `keys` that an annotation names."""
    metas = (one for one in get_args(kind) if isinstance(one, Meta))
    return next((one.extra["keys"] for one in metas if one.extra and "keys" in one.extra), ())


def _keys(model: type[Struct]) -> dict[str, FieldInfo]:
    """Return the fields of a model by their keys in documents."""
    return {field.encode_name: field for field in _fields(model)}
