"""Serialization of a component's file as YAML in a canonical form: values that fit go on one line, keys in the order of fields.

Equal rows give equal bytes, so that a changed fact changes only its own line.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from provisioner.strict_model import without_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from msgspec import Struct

    from provisioner.matrix.files import ComponentFile, PythonBuildFile, SystemWheelFile, WheelFile

WIDTH = 140

_PLAIN = re.compile(r"[a-z_][a-z0-9_./+-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some version of YAML reads as a boolean or null unless they are quoted."""

_QUOTED = frozenset(
    {
        "artefact",
        "artefacts",
        "compiler",
        "numpy",
        "runtime",
        "versions",
        "because",
        "end_of_life",
        "install",
        "latest",
        "ptx_isa",
        "read",
        "released",
        "expects",
        "requires",
        "sha256",
        "title",
        "url",
        "version",
        "where",
    }
)
"""Keys whose texts are always quoted, so that versions, dates and prose look uniform."""

_SPREAD = frozenset({"sources", "releases", "rules", "builds", "surveys", "wheels"})
"""Keys whose items are always written on lines of their own."""


_MAPPED = frozenset({"artefacts", "expects", "requires"})
"""Keys of mappings in which all values are written alike: quoted if the key of the mapping is in `_QUOTED`."""


def file_text(content: ComponentFile | WheelFile | SystemWheelFile | PythonBuildFile, *, header: str) -> str:
    """Return the YAML of a generated file, beginning with `header` (comment lines without `# `)."""
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    plain = without_defaults(content)
    if "sources" in plain:
        plain["sources"] = dict(sorted(plain["sources"].items()))
    for key, value in plain.items():
        lines.extend(_entry(key, value, 0))
    return "\n".join(lines) + "\n"


def flow_row(row: Struct) -> str:
    """Return one row as YAML on one line, without fields that have their default."""
    return _flow(without_defaults(row), "")


def _entry(key: str, value: Any, indent: int) -> Iterator[str]:  # noqa: ANN401 - plain YAML data
    """Yield the lines of `key: value`: one line if it is short enough, otherwise the key, and the value on lines below."""
    pad = " " * indent
    flow = f"{pad}{key}: {_flow(value, key)}"
    if not value and isinstance(value, dict | tuple | list):
        yield flow
    elif key in _SPREAD or _holds_prose(value) or (len(flow) > WIDTH and isinstance(value, dict | tuple | list)):
        yield f"{pad}{key}:"
        yield from _below(key, value, indent + 2)
    else:
        yield flow


def _below(key: str, value: Any, indent: int) -> Iterator[str]:  # noqa: ANN401 - plain YAML data
    if isinstance(value, dict):
        for name, inner in value.items():
            quoted = key if key in _MAPPED else name
            if quoted == name:
                yield from _entry(name, inner, indent)
            else:
                yield f"{' ' * indent}{name}: {_flow(inner, quoted)}"
        return
    for item in value:
        yield from _item(item, indent)


def _item(item: Any, indent: int) -> Iterator[str]:  # noqa: ANN401 - plain YAML data
    """Yield the lines of `- item`: one line if it is short enough and has no key of `_SPREAD`, otherwise those of each key."""
    pad = " " * indent
    flow = f"{pad}- {_flow(item, '')}"
    if not isinstance(item, dict) or (len(flow) <= WIDTH and not _SPREAD & item.keys()):
        yield flow
        return
    first = True
    for name, value in item.items():
        for line in _entry(name, value, indent + 2):
            yield f"{pad}- {line.strip()}" if first else line
            first = False


def _holds_prose(value: Any) -> bool:  # noqa: ANN401 - plain YAML data
    """Return whether a value is a citation, each key of which is written on a line of its own."""
    return isinstance(value, dict) and "title" in value


def _flow(value: Any, key: str) -> str:  # noqa: ANN401 - plain YAML data
    if isinstance(value, dict):
        inner: Mapping[str, Any] = value
        pairs = (f"{name}: {_flow(one, key if key in _MAPPED else name)}" for name, one in inner.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(one, key) for one in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    is_plain = key not in _QUOTED and _PLAIN.fullmatch(text) is not None and text not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
