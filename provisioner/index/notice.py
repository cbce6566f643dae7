"""Notices of package indexes: possible dependency confusion, and indexes that were skipped."""

from __future__ import annotations

from msgspec import Struct


class IndexName(Struct, frozen=True):
    """The name of an index and its URL without credentials; `url` is "" when it is not recorded."""

    name: str
    url: str


class OtherFilesElsewhere(Struct, frozen=True, kw_only=True):
    """The notice that packages are taken from `index` although `others` list different files under their names."""

    packages: tuple[str, ...]
    index: IndexName
    others: tuple[IndexName, ...]


class NotFromDefault(Struct, frozen=True, kw_only=True):
    """The notice that packages are taken from `index`, which is not the default one."""

    packages: tuple[str, ...]
    index: IndexName
    default: IndexName


class NotCompared(Struct, frozen=True, kw_only=True):
    """The notice that some packages could not be looked up in `index`, which may list different files under their names.

    `problem` is the error message, "" when the run is offline and the index is not in the cache.
    """

    packages: tuple[str, ...]
    index: IndexName
    problem: str


ConfusionNotice = OtherFilesElsewhere | NotFromDefault | NotCompared
"""A notice of possible dependency confusion: that a package may come from an index that the user did not mean."""


class IndexSkipped(Struct, frozen=True):
    """The notice that a package is taken from find-links alone, because of a `problem` with its index."""

    package: str
    problem: str
