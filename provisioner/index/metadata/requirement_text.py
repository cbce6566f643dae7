"""The text of a requirement or a marker -> `packaging`'s own object, by a short way for the plain ones, which nearly all are.

Its parser reads token by token, and the packages of one environment state two thousand requirements. Most are for an extra
that nobody asks for, so a marker that ends in `extra == "…"` is read only when somebody asks for that one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

_IDENTIFIER = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:==|!=|<=|>=|~=|<|>)[ \t]*[0-9](?:[0-9A-Za-z.+_-]*[0-9A-Za-z])?(?:\.\*)?"
_PLAIN = re.compile(
    rf"[ \t]*(?P<name>{_IDENTIFIER})[ \t]*(?:\[[ \t]*(?P<extras>{_IDENTIFIER}(?:[ \t]*,[ \t]*{_IDENTIFIER})*)[ \t]*\][ \t]*)?"
    rf"(?P<open>\([ \t]*)?(?P<versions>{_VERSION}(?:[ \t]*,[ \t]*{_VERSION})*)?[ \t]*(?(open)\))[ \t]*"
)
"""A part of the grammar of "Dependency specifiers" (packaging.python.org): no URL, no marker, no `===`, no epoch."""


_VARIABLE = (
    r"(?:python_version|python_full_version|sys_platform|os_name|platform_(?:machine|system|release|version"
    r"|python_implementation)|implementation_(?:name|version))"
)
_OPERATOR = r"[ \t]*(?:(?:==|!=|<=|>=|<|>)[ \t]*|[ \t](?:not[ \t]+)?in[ \t]+)"
_CLAUSE = rf"{_VARIABLE}{_OPERATOR}(?:\"[\w .+-]*\"|'[\w .+-]*')"
_CONDITION = rf"(?:{_CLAUSE}|\([ \t]*{_CLAUSE}(?:[ \t]+(?:and|or)[ \t]+{_CLAUSE})*[ \t]*\))"
_FOR_AN_EXTRA = re.compile(
    rf"(?:{_CONDITION}[ \t]+and[ \t]+)*(?P<open>\([ \t]*)?"
    rf"extra[ \t]*==[ \t]*(?:\"(?P<double>{_IDENTIFIER})\"|'(?P<single>{_IDENTIFIER})')(?(open)[ \t]*\))",
    re.ASCII,
)
"""A part of the same grammar: conditions that must all hold, the last of them an extra."""


class ExtraMarker(Marker):
    """A marker that holds where its extra is asked for, if it does at all; its parts are there as soon as one is asked for."""

    __slots__ = ("_text", "extra")

    def __init__(self, text: str, extra: NormalizedName) -> None:
        self._text = text
        self.extra = extra

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a part of a marker is
        # Only what nothing has been assigned to yet is asked for here: the parts, before the text is taken apart.
        Marker.__init__(self, self._text)
        return object.__getattribute__(self, name)


def read_marker(text: str) -> Marker:
    """What `Marker(text)` is; raises `InvalidMarker` as it does."""
    found = _FOR_AN_EXTRA.fullmatch(text)
    return Marker(text) if found is None else ExtraMarker(text, canonicalize_name(found["double"] or found["single"]))


def read_requirement(text: str) -> Requirement:
    """What `Requirement(text)` is; raises `InvalidRequirement` as it does.

    Requirements read here share the sets of versions they state, which nobody changes.
    """
    plain = _PLAIN.fullmatch(text)
    versions = _versions(plain["versions"] or "") if plain is not None else None
    if plain is None or versions is None:
        return Requirement(text)
    found = Requirement.__new__(Requirement)
    found.name = plain["name"]
    found.url = None
    found.extras = {extra.strip() for extra in plain["extras"].split(",")} if plain["extras"] else set()
    found.specifier = versions
    found.marker = None
    return found


@lru_cache(maxsize=16384)
def _versions(text: str) -> SpecifierSet | None:
    """The versions a text allows; None for what the whole parser must judge."""
    try:
        return SpecifierSet(text)
    except ValueError:
        return None
