"""The places of a document where a text may stand, by its schema, and documents with another text at one of them."""

from __future__ import annotations

import pickle
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Place = tuple[str | int, ...]
KEY = "<key>"
"""What stands for the name of a key that a person may choose."""
ITEM = "<item>"


def text_places(schema: Mapping[str, Any]) -> set[Place]:
    """The place of every text that a JSON Schema allows, without those of which it lists every value.

    `KEY` in a place is any key of a mapping, and `ITEM` any entry of a list; a place that ends in `KEY` is such a key itself.
    """
    return set(_places(schema, schema, (), ()))


def _places(schema: Mapping[str, Any], root: Mapping[str, Any], path: Place, above: tuple[str, ...]) -> Iterator[Place]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in above:  # a model in itself holds no place of another kind
            yield from _places(root["$defs"][name], root, path, (*above, name))
        return
    for word in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(word, ()):
            yield from _places(one, root, path, above)
    for name, below in schema.get("properties", {}).items():
        yield from _places(below, root, (*path, name), above)
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        if "enum" not in schema.get("propertyNames", {}):
            yield (*path, KEY)
        yield from _places(more, root, (*path, KEY, ""), above) if more else ()
    if isinstance(schema.get("items"), dict):
        yield from _places(schema["items"], root, (*path, ITEM), above)
    if schema.get("type") == "string" and not {"enum", "const", "format"} & set(schema):
        yield path


def places_in(value: Any, path: Place = ()) -> Iterator[Place]:  # noqa: ANN401 - documents hold anything
    """Yield the path of every text of a document, and of every key, with `KEY` at its end."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield (*path, key, KEY)
            yield from places_in(below, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, below in enumerate(value):
            yield from places_in(below, (*path, index))
    elif isinstance(value, str):
        yield path


def kinds_in(document: Any) -> list[Place]:  # noqa: ANN401 - as above
    """The places of a document, one of each kind: of the entries of a list the first that has it."""
    found: dict[Place, Place] = {}
    for place in places_in(document):
        found.setdefault(tuple(ITEM if isinstance(part, int) else part for part in place), place)
    return list(found.values())


def planted(document: Any, texts: Mapping[Place, str]) -> Any:  # noqa: ANN401 - as above
    """A copy of a document with other texts, or keys, at some places."""
    made = pickle.loads(pickle.dumps(document))
    # A key is renamed when nothing has to be found below it any more.
    for path in sorted(texts, key=lambda path: (path[-1] == KEY, -len(path))):
        is_key = path[-1] == KEY
        *way, last = path[:-1] if is_key else path
        holder = made
        for part in way:
            holder = holder[part]
        if is_key:
            renamed = {(texts[path] if key == last else key): value for key, value in holder.items()}
            holder.clear()
            holder.update(renamed)
        else:
            holder[last] = texts[path]
    return made


def at(document: Any, path: Place) -> str:  # noqa: ANN401 - as above
    """The text, or key, at a path."""
    if path[-1] == KEY:
        return str(path[-2])
    for part in path:
        document = document[part]
    return str(document)


def largest(places: Sequence[Place], works: Callable[[Sequence[Place]], bool]) -> list[Place]:
    """The places that can be planted together: all if that works, else those of each half that can, as long as both do."""
    if not places or works(places):
        return list(places)
    if len(places) == 1:
        return []
    middle = len(places) // 2
    first, second = largest(places[:middle], works), largest(places[middle:], works)
    return [*first, *second] if not (first and second) or works([*first, *second]) else max(first, second, key=len)


@contextmanager
def instead(document: Any, path: Place, text: str) -> Iterator[None]:  # noqa: ANN401 - as above
    """Put another text, or key, at a path of a document in the `with` block."""
    is_key = path[-1] == KEY
    *way, last = path[:-1] if is_key else path
    holder = document
    for part in way:
        holder = holder[part]
    before = dict(holder) if isinstance(holder, dict) else list(holder)
    if is_key:
        holder[text] = holder.pop(last)
    else:
        holder[last] = text
    yield
    if isinstance(holder, dict):
        holder.clear()
        holder.update(before)
    else:
        holder[:] = before
