"""The nouns of a comparison of two locks: one change, why it came about, and all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SECTIONS = ("hosts", "system", "packages", "inputs")
"""What a change is about, in the order of a review: who can run it, what it is made of, its packages, what it was made from."""


class Cause(Struct, frozen=True, kw_only=True):
    """Why something changed, as far as the two locks say.

    `kind` is `spec` (what was asked for changed), `follows` (a consequence of the change of `subject`), `matrix` (the same part
    has other rules now), `index` (the index has something else now) or `unknown`. `where` is a citation or `file:line`.
    """

    kind: str
    text: str
    subject: str = ""
    where: str = ""


class Change(Struct, frozen=True, kw_only=True):
    """One thing that is not the same in both locks.

    `subject` is a component, a distribution or a key of the spec; `old` and `new` are "" where it is absent. `change` is
    `added` or `removed`, `upgraded` or `downgraded`, `tightened` or `loosened`, or `changed`. `aspect` says what of a package
    `old` and `new` are: its `version`, or, where that stayed, its `content` (sha256), `file`, `index`, `place` or what it
    `requires`. `platforms` are those it is true of. `lost` and `gained` are the members of a set that went and came.
    `is_breaking` means that a host that met the old lock may not meet the new one or is used otherwise, or that content was
    exchanged under its name.
    """

    section: str
    subject: str
    change: str
    text: str
    aspect: str = ""
    old: str = ""
    new: str = ""
    platforms: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    is_breaking: bool = False


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Every key that two tables do not have alike: its name, `added`, `removed` or `changed`, and both values, "" for none."""
    for key in sorted({*old, *new}):
        said, says = old.get(key), new.get(key)
        if said != says:
            yield key, "added" if said is None else "removed" if says is None else "changed", said or "", says or ""


class Comparison(Struct, frozen=True, kw_only=True):
    """Every change between two locks, those that matter most first.

    `platforms` are those that both have; `unchanged` counts the packages that are the same; `notes` say what the comparison
    cannot see, such as the system half of a lock that another program wrote.
    """

    changes: tuple[Change, ...]
    platforms: tuple[str, ...] = ()
    unchanged: int = 0
    notes: tuple[str, ...] = ()

    def of(self, section: str) -> tuple[Change, ...]:
        """The changes of one section."""
        return tuple(change for change in self.changes if change.section == section)

    @property
    def is_breaking(self) -> bool:
        """Whether a host may fall out, or content was exchanged under its name."""
        return any(change.is_breaking for change in self.changes)
