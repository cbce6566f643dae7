"""The outcome of comparing a claim with the matrix, and the small questions all comparisons share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.versions import Version

Verdict = Literal["agrees", "differs", "silent"]
_MOST_EVIDENCE = 3
_MOST_CITATIONS = 2


class Judgement(Struct, frozen=True, kw_only=True):
    """`silent`: this matrix has no row that could agree or differ. `ours` is what it says, `evidence` where and by whom."""

    verdict: Verdict
    ours: str
    evidence: tuple[str, ...] = ()

    @classmethod
    def of(cls, agrees: bool, ours: str, found: tuple[str, ...]) -> Judgement:  # noqa: FBT001 - the verdict is its meaning
        """A judgement on rows that exist."""
        return cls(verdict="agrees" if agrees else "differs", ours=ours, evidence=found)

    @classmethod
    def silent(cls, why: str) -> Judgement:
        """Nothing here can judge the claim."""
        return cls(verdict="silent", ours=why)


def numbers(text: str) -> tuple[int, ...]:
    """`12.6` as (12, 6)."""
    return tuple(int(part) for part in text.split("."))


MAJORS = range(3, 30)
"""Majors of compilers that are compared: older ones nobody uses, newer ones nobody released."""


def majors_text(majors: Iterable[int]) -> str:
    """`5 to 9, 11 and newer`: majors of `MAJORS` as people write them; the last of them stands for all to come."""
    parts: list[list[int]] = []
    for major in sorted(majors):
        if parts and parts[-1][-1] == major - 1:
            parts[-1].append(major)
        else:
            parts.append([major])
    shown = []
    for part in parts:
        end = " and newer" if part[-1] == MAJORS[-1] else f" to {part[-1]}" if len(part) > 1 else ""
        shown.append(f"{part[0]}{end}")
    return ", ".join(shown) or "none"


def series(version: Version) -> str:
    """`12.6.3` as `12.6`."""
    return ".".join(str(part) for part in version.release[:2])


def in_series(version: Version, text: str) -> bool:
    """Whether a release belongs to a series of one to three numbers."""
    wanted = numbers(text)
    return version.release[: len(wanted)] == wanted


def evidence(matrix: Matrix, component: str, rows: Iterable[Release | tuple[Release, Build]]) -> tuple[str, ...]:
    """`file:line: citation` of the first few rows, each a release or one build of it."""
    found: dict[str, None] = {}
    for row in rows:
        release, build = row if isinstance(row, tuple) else (row, None)
        sources = build.source if build else release.source or tuple(key for one in release.builds for key in one.source)
        titles = dict.fromkeys(str(matrix.citations[key]) for key in sources if key in matrix.citations)
        cited = "; ".join([*titles][:_MOST_CITATIONS]) + (" and more" if len(titles) > _MOST_CITATIONS else "")
        key = f"{component}=={release.version}"
        place = (matrix.positions.get(f"{key}+{build.name}") if build else None) or matrix.positions.get(key)
        found.setdefault(f"{place}: {cited}" if place else cited)
        if len(found) == _MOST_EVIDENCE:
            break
    return tuple(found)
