"""What a requirement allows, as notation: ranges, versions, names, and the ways in which drivers and kernels will do."""

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
    """Exactly these versions."""

    versions: tuple[Version, ...]


class Names(Struct, frozen=True):
    """Exactly these names, such as platforms or operating systems."""

    names: tuple[str, ...]


class SameVersion(Struct, frozen=True):
    """The very version of the subject."""


class Drivers(Struct, frozen=True, kw_only=True):
    """NVIDIA drivers that run one CUDA release.

    `minor_version` is the oldest driver of the CUDA family, "" where minor-version compatibility is not to be used; `native`
    the first branch that knows the release, "" where the matrix has none; `forward` the older branches that run it through
    cuda-compat. `cuda` is the release, as `12.6`.
    """

    cuda: str
    minor_version: str = ""
    native: str = ""
    forward: tuple[str, ...] = ()


class Kernels(Struct, frozen=True):
    """Kernels a driver builds on as it is published, and with the patches that somebody carries, told by name."""

    documented: Range | None
    patched: tuple[tuple[Range, str], ...] = ()


Bound = Range | Specifier | Versions | Names | SameVersion | Drivers | Kernels


def merged(bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """Return several bounds of one thing as alternatives, from old to new; a range that lies within another is left out."""
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
