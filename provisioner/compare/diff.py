"""Compare published tables with the matrix, claim by claim, and find the written reason for each known disagreement."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.compare.check import check_claim
from provisioner.errors import ProvisionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from provisioner.compare.check import ClaimResult
    from provisioner.compare.claims import Claim, Disagreement, Table
    from provisioner.matrix.model import Matrix


class MalformedClaimError(ProvisionError):
    """Raised when a claim of a table is not of the form of its question, so that the table was damaged."""

    code = "malformed-claim"
    exit_code = 2


class Compared(Struct, frozen=True, kw_only=True):
    """One claim of a table with its result; `reason` is that of the known disagreement that explains a difference, or ""."""

    table: str
    claim: Claim
    result: ClaimResult
    reason: str = ""

    @property
    def outcome(self) -> str:
        """The outcome: `agrees`, `silent` if no row of the matrix is about the claim, else `explained` or `unexplained`."""
        if self.result.verdict != "differs":
            return self.result.verdict
        return "explained" if self.reason else "unexplained"


class Comparison(Struct, frozen=True, kw_only=True):
    """The claims of tables with their results; `idle` are known disagreements that explain no difference any more.

    A known disagreement can be idle only if its table is among the compared ones and answers its question.
    """

    compared: tuple[Compared, ...]
    idle: tuple[Disagreement, ...] = ()

    def counts(self, table: str | None = None) -> dict[str, int]:
        """Return the number of claims for each outcome, in the table named `table`, or in all tables if that is None."""
        found = Counter(one.outcome for one in self.compared if table in {None, one.table})
        return {name: found[name] for name in ("agrees", "explained", "unexplained", "silent")}

    @property
    def unexplained(self) -> tuple[Compared, ...]:
        """The differences that no known disagreement explains."""
        return tuple(one for one in self.compared if one.outcome == "unexplained")


def compare(matrix: Matrix, tables: Iterable[Table], known: Sequence[Disagreement]) -> Comparison:
    """Compare every claim of `tables` with the matrix; a difference gets the reason of the first in `known` to explain it.

    Raises `MalformedClaimError` for a claim that is not of the form of its question.
    """
    used: set[int] = set()
    found = []
    questions = set()
    for table in tables:
        for claim in table.claims:
            questions.add((table.name, claim.question))
            try:
                result = check_claim(matrix, claim)
            except (ValueError, KeyError, IndexError) as error:
                raise MalformedClaimError(
                    f"the table `{table.name}` is damaged: `{claim.subject}: {claim.says}` says nothing about {claim.question}",
                    causes=(f"{type(error).__name__}: {error}",),
                    hints=(f"compare it with line {claim.line} of {table.where}",),
                ) from None
            place = None
            if result.verdict == "differs":
                place = next((at for at, one in enumerate(known) if _explains(one, table.name, claim, result=result)), None)
            if place is not None:
                used.add(place)
            reason = known[place].because if place is not None else ""
            found.append(Compared(table=table.name, claim=claim, result=result, reason=reason))
    idle = tuple(one for at, one in enumerate(known) if at not in used and (one.table, one.question) in questions)
    return Comparison(compared=tuple(found), idle=idle)


def _explains(entry: Disagreement, table: str, claim: Claim, *, result: ClaimResult) -> bool:
    return (
        entry.table == table
        and entry.question == claim.question
        and fnmatchcase(claim.subject, entry.subject)
        and entry.says in {"", claim.says}
        and entry.ours in {"", result.ours}
    )
