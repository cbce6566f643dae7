"""Judge whether a host meets the requirements of an image, with reasons: the clauses that fail, or the unknown facts."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.gate.evaluate import (
    NO,
    OF_GPU,
    OF_HOST,
    UNKNOWN,
    completions,
    completions_of_gpu,
    gpus_of,
    is_met,
    verdict_of,
)
from provisioner.gate.words import unmet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.gate.evaluate import Fact, GateFacts
    from provisioner.gate.grammar import Expression


class Judgement(Struct, frozen=True):
    """A verdict. `unmet` are the clauses that fail, in words; `unknown` the properties of which one value or another decides.

    `skipped` are the clauses about properties that no runtime knows.
    """

    verdict: str
    unmet: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.verdict == NO:
            return "; ".join(self.unmet)
        return f"unknown: {', '.join(self.unknown)}" if self.verdict == UNKNOWN else "met"


def judge(expressions: Sequence[Expression], facts: GateFacts) -> Judgement:
    """Judge whether a host meets every expression on every one of its GPUs."""
    verdict = verdict_of(expressions, facts)
    skipped = tuple(dict.fromkeys(str(clause) for expression in expressions for clause in expression.skipped))
    if verdict == NO:
        return Judgement(NO, unmet=unmet(expressions, facts), skipped=skipped)
    unknown = tuple(_deciding(expressions, facts)) if verdict == UNKNOWN else ()
    return Judgement(verdict, unknown=unknown, skipped=skipped)


def _deciding(expressions: Sequence[Expression], facts: GateFacts) -> Iterator[str]:
    """Yield the unknown properties of which two values, all others being equal, lead to different answers."""
    outcomes: dict[str, dict[tuple[tuple[str, Fact], ...], set[bool]]] = {name: {} for name in (*OF_HOST, *OF_GPU)}
    for gpu in gpus_of(facts):
        for of_host, of_gpu in product(completions(expressions, facts), list(completions_of_gpu(expressions, gpu))):
            found = {**of_host, **of_gpu}
            answer = all(is_met(expression, found) for expression in expressions)
            for name, seen in outcomes.items():
                others = tuple(item for item in found.items() if item[0] != name)
                seen.setdefault(others, set()).add(answer)
    for name, seen in outcomes.items():
        if any(len(answers) > 1 for answers in seen.values()):
            yield name
