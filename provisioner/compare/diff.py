"""Tables compared with the matrix, claim by claim, and the known disagreements with their reasons."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.compare.judge import judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provisioner.compare.claims import Claim, Disagreement, Table
    from provisioner.compare.judgement import Judgement
    from provisioner.matrix.model import Matrix


class Compared(Struct, frozen=True, kw_only=True):
    """One claim beside our judgement of it; `reason` is the written one, "" where there is none."""

    table: str
    claim: Claim
    judgement: Judgement
    reason: str = ""

    @property
    def outcome(self) -> str:
        """`agrees`, `silent` (no row here could judge it), `explained` or `unexplained`."""
        if self.judgement.verdict != "differs":
            return self.judgement.verdict
        return "explained" if self.reason else "unexplained"


class Comparison(Struct, frozen=True, kw_only=True):
    """All claims of some tables compared; `idle` are reasons that explain no difference any more."""

    compared: tuple[Compared, ...]
    idle: tuple[Disagreement, ...] = ()

    def counts(self, table: str | None = None) -> dict[str, int]:
        """How many claims ended how, of one table or of all."""
        found = Counter(one.outcome for one in self.compared if table in {None, one.table})
        return {name: found[name] for name in ("agrees", "explained", "unexplained", "silent")}

    @property
    def unexplained(self) -> tuple[Compared, ...]:
        """The differences without a written reason."""
        return tuple(one for one in self.compared if one.outcome == "unexplained")


def compare(matrix: Matrix, tables: Iterable[Table], known: Sequence[Disagreement]) -> Comparison:
    """Judge every claim, and give each difference the reason that was written for it."""
    used: set[int] = set()
    found = []
    questions = set()
    for table in tables:
        for claim in table.claims:
            questions.add((table.name, claim.question))
            judgement = judge(matrix, claim)
            place = None
            if judgement.verdict == "differs":
                place = next(
                    (at for at, one in enumerate(known) if _explains(one, table.name, claim, judgement=judgement)), None
                )
            if place is not None:
                used.add(place)
            reason = known[place].because if place is not None else ""
            found.append(Compared(table=table.name, claim=claim, judgement=judgement, reason=reason))
    idle = tuple(one for at, one in enumerate(known) if at not in used and (one.table, one.question) in questions)
    return Comparison(compared=tuple(found), idle=idle)


def _explains(entry: Disagreement, table: str, claim: Claim, *, judgement: Judgement) -> bool:
    return (
        entry.table == table
        and entry.question == claim.question
        and fnmatchcase(claim.subject, entry.subject)
        and entry.says in {"", claim.says}
        and entry.ours in {"", judgement.ours}
    )
