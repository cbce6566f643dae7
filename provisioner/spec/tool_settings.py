"""Read what tables of uv and PDM in a project say of versions and indexes besides its requirements, which a spec does not read.

Source: https://docs.astral.sh/uv/reference/settings/ and "Overriding resolution" of PDM's documentation, read 2026-11-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.document import Document, KeyPath, Position

SettingKind = Literal["override", "constraint", "index", "other"]

_UV: KeyPath = ("tool", "uv")
_LISTS: dict[str, SettingKind] = {
    "constraint-dependencies": "constraint",
    "override-dependencies": "override",
    "extra-index-url": "index",
    "index-url": "index",
}
_OTHERS = (
    *("environments", "required-environments", "conflicts", "prerelease", "resolution", "exclude-newer", "index-strategy"),
    *("no-index", "no-build", "no-build-package", "no-binary", "no-binary-package", "no-build-isolation"),
    *("no-build-isolation-package", "extra-build-dependencies", "dependency-metadata", "find-links", "fork-strategy"),
)
"""Other settings of `[tool.uv]` that decide what is installed."""


class ToolSetting(Struct, frozen=True, kw_only=True):
    """One setting of another tool: its `key` in the file, its kind, and its value: a requirement, a URL, or "" for others."""

    tool: str
    key: str
    kind: SettingKind
    value: str
    position: Position


def tool_settings(document: Document) -> Iterator[ToolSetting]:
    """Yield the settings of uv and PDM that decide what is installed.

    An index that uv asks for named packages alone (`explicit`) is a source of these, and is not among them.
    """
    uv = document.value(_UV)
    for key, value in uv.items() if isinstance(uv, dict) else ():
        if key in _LISTS:
            for path, text in _texts((*_UV, key), value):
                yield _setting(document, path, "uv", _LISTS[key], text)
        elif key in _OTHERS:
            yield _setting(document, (*_UV, key), "uv", "other", "")
    for at, index in enumerate(_tuple(document.value((*_UV, "index")))):
        if isinstance(index, dict) and isinstance(index.get("url"), str) and not index.get("explicit"):
            yield _setting(document, (*_UV, "index", at), "uv", "index", index["url"])
    above: KeyPath = ("tool", "pdm", "resolution", "overrides")
    overrides = document.value(above)
    for name, text in overrides.items() if isinstance(overrides, dict) else ():
        yield _setting(document, (*above, name), "PDM", "override", f"{name} {text}")


def _setting(document: Document, path: KeyPath, tool: str, kind: SettingKind, text: str) -> ToolSetting:
    key = ".".join(part for part in path[: 4 if tool == "PDM" else 3] if isinstance(part, str))
    return ToolSetting(tool=tool, key=key, kind=kind, value=text, position=document.position_in_file(path))


def _tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _texts(path: KeyPath, value: object) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    for index, text in enumerate(_tuple(value)):
        if isinstance(text, str):
            yield (*path, index), text
