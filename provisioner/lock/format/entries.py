"""The packages of lock files, each read once for all the locks that have it word for word.

The locks of a repository share most of their packages: of 50 that differ in machines and frameworks, six in seven entries are
those of another lock, too.
"""

from __future__ import annotations

import json
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from provisioner.document import LARGEST_DOCUMENT
from provisioner.lock.format.tables import LOCK_VERSION, PackageTable, package_of
from provisioner.strict_model import read
from provisioner.toml_document import loads_compiled

if TYPE_CHECKING:
    from provisioner.lock.format.model import LockedPackage

MOST = 4_096
"""The most entries, or findings about them, that are kept: those of a few hundred locks that differ."""

_ENTRY = "\n[[packages]]\n"
_OWN = "\n[tool.provision]\n"

Value = TypeVar("Value")


class Same(Generic[Value]):
    """A value as the key of a cache, which is equal to itself alone, however long comparing two values takes."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


class Entry:
    """A package of a lock file: its plain `data`, and what is read from it, each when it is asked for.

    Nobody may change the data: several locks have it.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @cached_property
    def canonical(self) -> str:
        """The data as the digest of a lock has it."""
        return canonical(self.data)

    @cached_property
    def table(self) -> PackageTable:
        """The table; raises the errors of `read` and `Pylock.from_dict` for one that is not valid."""
        from packaging.pylock import Pylock

        table = read(self.data, PackageTable)
        Pylock.from_dict({"lock-version": LOCK_VERSION, "created-by": "", "packages": [self.data]})
        return table

    @cached_property
    def package(self) -> LockedPackage:
        """The package; raises the errors of `table`."""
        return package_of(self.table)


class Parts(NamedTuple):
    """The plain data of a lock file: `rest` without the packages, and the `entries` of these."""

    rest: dict[str, Any]
    entries: tuple[Entry, ...]


def parts_of(text: str) -> Parts:
    """Return the data of a lock file; raises `ValueError` for what is not TOML, or has no list of packages."""
    if (parts := _split(text)) is not None:
        return parts
    rest = loads_compiled(text)
    packages = rest.pop("packages", None)
    if not isinstance(packages, list) or not all(isinstance(one, dict) for one in packages):
        raise ValueError("there is no list of packages")
    return Parts(rest, tuple(map(Entry, packages)))


def _split(text: str) -> Parts | None:
    """Return the data of a lock file that is laid out as they are written; None for another one, or one with a mistake.

    Each part is read as a document of its own: where all are valid, no string or list is open where the next header stands.
    Each must hold nothing but what belongs there; together they are then valid, too, with the same data.
    """
    above, found, below = text.partition(_OWN)
    if not found or len(text) > LARGEST_DOCUMENT:
        return None
    head, *packages = above.split(_ENTRY)
    try:
        rest, own = loads_compiled(head), loads_compiled(f"{_OWN}{below}")
        entries = tuple(map(_entry, packages))
    except ValueError:
        return None
    if not entries or rest.keys() & {"packages", "tool"} or own.keys() != {"tool"} or None in entries:
        return None
    return Parts(rest | own, tuple(entry for entry in entries if entry is not None))


@lru_cache(maxsize=MOST)
def _entry(text: str) -> Entry | None:
    """Return the entry with this text below its header, None if the text is not of one entry; raises `ValueError`."""
    data = loads_compiled(f"{_ENTRY}{text}")
    packages = data.pop("packages")
    return Entry(packages[0]) if not data and len(packages) == 1 else None


def canonical(value: object) -> str:
    """Return a part of a lock file's data as the text of which the digest is computed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=lambda moment: moment.isoformat())
