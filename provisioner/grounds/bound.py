"""Bounds: the ranges, versions or names that a requirement allows, and the ways in which a driver or kernel can meet it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Sequence


class Specifier(Struct, frozen=True):
    """A PEP 440 specifier; "" allows every version."""

    text: str


class Versions(Struct, frozen=True):
    """A bound that allows exactly these versions."""

    versions: tuple[Version, ...]


class Names(Struct, frozen=True):
    """A bound that allows exactly these names, such as platforms or operating systems."""

    names: tuple[str, ...]


class SameVersion(Struct, frozen=True):
    """A bound that allows only the version that the subject of the requirement itself has."""


class Drivers(Struct, frozen=True, kw_only=True):
    """NVIDIA drivers that run one CUDA release (`cuda`, as `12.6`).

    `minor_version` is the oldest driver of the CUDA major release, "" when minor-version compatibility must not be used;
    `native` is the first driver branch that supports the release itself, "" when the matrix lists none; `forward` are the
    older branches that run it through the cuda-compat package.
    """

    cuda: str
    minor_version: str = ""
    native: str = ""
    forward: tuple[str, ...] = ()


class Kernels(Struct, frozen=True):
    """Linux kernel versions that a driver builds on: as it is published (`documented`), and with patches (`patched`).

    `documented` is None when no documentation names versions; `patched` are ranges, each with the name of the party that
    publishes the patches.
    """

    documented: Range | None
    patched: tuple[tuple[Range, str], ...] = ()


Bound = Range | Specifier | Versions | Names | SameVersion | Drivers | Kernels


def merged(bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return several bounds of one component as alternatives, ranges in ascending order, without duplicates.

    The bounds that are lists of versions (`Versions`) become one. A version that one of the ranges contains is left out.
    """
    if all(isinstance(one, Versions) for one in bounds):
        found = {version for one in bounds if isinstance(one, Versions) for version in one.versions}
        return (Versions(tuple(sorted(found))),)
    ranges = [one for one in bounds if isinstance(one, Range) and one.clauses]
    if len(ranges) < len(bounds):
        return tuple(dict.fromkeys(bounds))
    ranges.sort(key=lambda one: one.clauses[0].version)
    return tuple(dict.fromkeys(one for one in ranges if not any(_lies_within(one, other) for other in ranges)))


def _lies_within(one: Range, other: Range) -> bool:
    is_single = len(one.clauses) == 1 and one.clauses[0].operator == "==" and not one.clauses[0].is_starred
    return is_single and str(one) != str(other) and other.allows(one.clauses[0].version)
