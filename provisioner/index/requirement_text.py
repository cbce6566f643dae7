"""The text of a requirement -> `packaging`'s own object, by a short way for the plain ones, which nearly all are.

Its parser reads token by token, and the packages of one environment state two thousand requirements.
"""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

_IDENTIFIER = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:==|!=|<=|>=|~=|<|>)[ \t]*[0-9](?:[0-9A-Za-z.+_-]*[0-9A-Za-z])?(?:\.\*)?"
_PLAIN = re.compile(
    rf"[ \t]*(?P<name>{_IDENTIFIER})[ \t]*(?:\[[ \t]*(?P<extras>{_IDENTIFIER}(?:[ \t]*,[ \t]*{_IDENTIFIER})*)[ \t]*\][ \t]*)?"
    rf"(?P<open>\([ \t]*)?(?P<versions>{_VERSION}(?:[ \t]*,[ \t]*{_VERSION})*)?[ \t]*(?(open)\))[ \t]*"
)
"""A part of the grammar of "Dependency specifiers" (packaging.python.org): no URL, no marker, no `===`, no epoch."""


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
