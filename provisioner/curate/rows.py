"""A component's file as YAML text, always in the same form: what fits on a line stands on one, keys keep the order of fields.

The same rows give the same bytes, so that a change of a fact is a change of its line and of nothing else.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from provisioner.strict_model import without_defaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.files import ComponentFile

WIDTH = 140

_PLAIN = re.compile(r"[a-z_][a-z0-9_./+-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words YAML readers of one age or another take for something else than text."""

_QUOTED = frozenset(
    {
        "artefact",
        "because",
        "end_of_life",
        "install",
        "ptx_isa",
        "read",
        "released",
        "requires",
        "sha256",
        "title",
        "url",
        "version",
        "where",
    }
)
"""Keys whose texts are quoted even where YAML could do without: versions, dates and prose look alike everywhere."""

_SPREAD = frozenset({"sources", "releases", "rules", "builds"})
"""Keys whose items always stand below them."""


def component_text(content: ComponentFile, *, header: str) -> str:
    """The text of a component's file, `header` (comment lines without `# `) first."""
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    plain = without_defaults(content)
    if "sources" in plain:
        plain["sources"] = dict(sorted(plain["sources"].items()))
    for key, value in plain.items():
        lines.extend(_entry(key, value, 0))
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, indent: int) -> Iterator[str]:  # noqa: ANN401 - plain YAML data
    """`key: value`, on one line where it fits, else with the value below."""
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
            quoted = "requires" if key == "requires" else name
            if quoted == name:
                yield from _entry(name, inner, indent)
            else:
                yield f"{' ' * indent}{name}: {_flow(inner, quoted)}"
        return
    for item in value:
        yield from _item(item, indent)


def _item(item: Any, indent: int) -> Iterator[str]:  # noqa: ANN401 - plain YAML data
    """`- item`, on one line where it fits and holds no list of rows, else one key a line."""
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
    """Whether this is a source, which reads better with a key a line."""
    return isinstance(value, dict) and "title" in value


def _flow(value: Any, key: str) -> str:  # noqa: ANN401 - plain YAML data
    if isinstance(value, dict):
        inner: Mapping[str, Any] = value
        pairs = (f"{name}: {_flow(one, key if key == 'requires' else name)}" for name, one in inner.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(one, key) for one in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    is_plain = key not in _QUOTED and _PLAIN.fullmatch(text) is not None and text not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)
