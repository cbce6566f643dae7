"""Notices of package indexes: possible dependency confusion, and indexes that were skipped."""

from __future__ import annotations

from msgspec import Struct


class IndexName(Struct, frozen=True):
    """An index by its name and its URL without credentials, "" for an index whose URL is not recorded."""

    name: str
    url: str


class OtherFilesElsewhere(Struct, frozen=True, kw_only=True):
    """Packages are taken from one index although `others` have other files under their names."""

    packages: tuple[str, ...]
    index: IndexName
    others: tuple[IndexName, ...]


class NotFromDefault(Struct, frozen=True, kw_only=True):
    """Packages are taken from an index that is not the default one."""

    packages: tuple[str, ...]
    index: IndexName
    default: IndexName


class NotCompared(Struct, frozen=True, kw_only=True):
    """Whether an index has other files under the names of some packages is unknown.

    `problem` is the error message, "" when the run is offline and the index is not in the cache.
    """

    packages: tuple[str, ...]
    index: IndexName
    problem: str


ConfusionNotice = OtherFilesElsewhere | NotFromDefault | NotCompared
"""Possible dependency confusion."""


class IndexSkipped(Struct, frozen=True):
    """A package is taken from find-links alone, because of a `problem` with its index."""

    package: str
    problem: str
