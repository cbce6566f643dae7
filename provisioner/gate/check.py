"""Check whether a host meets the requirements of an image, with the clauses that fail or the facts that are unknown."""

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
    holds,
    is_met,
    verdict_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.gate.evaluate import Fact, Facts, GateFacts, GateGpu
    from provisioner.gate.grammar import Clause, Expression


_SHOWN = 3
"""The number of clauses on one fact that a message shows: NVIDIA's own images name a dozen brands for each driver branch."""


class GateResult(Struct, frozen=True):
    """A verdict: `yes`, `no` or `unknown`.

    `unmet` are messages about the clauses that fail, if the verdict is `no`; `unknown` are the properties whose missing values
    decide the verdict, if it is `unknown`. `skipped` are the clauses about properties that no runtime knows.
    """

    verdict: str
    unmet: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.verdict == NO:
            return "; ".join(self.unmet)
        return f"unknown: {', '.join(self.unknown)}" if self.verdict == UNKNOWN else "met"


def check_gate(expressions: Sequence[Expression], facts: GateFacts) -> GateResult:
    """Return whether a host meets every expression on every one of its GPUs."""
    verdict = verdict_of(expressions, facts)
    skipped = tuple(dict.fromkeys(str(clause) for expression in expressions for clause in expression.skipped))
    if verdict == NO:
        return GateResult(NO, unmet=_unmet(expressions, facts), skipped=skipped)
    unknown = tuple(_deciding(expressions, facts)) if verdict == UNKNOWN else ()
    return GateResult(verdict, unknown=unknown, skipped=skipped)


def _deciding(expressions: Sequence[Expression], facts: GateFacts) -> Iterator[str]:
    """Yield the unknown properties of which two values lead to different verdicts, all other properties being equal."""
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


def _unmet(expressions: Sequence[Expression], facts: GateFacts) -> tuple[str, ...]:
    """Return sentences such as `cuda>=13.1: the driver's CUDA is 13.0` about the first expression that some GPU does not meet.

    The sentences are about the alternatives with the fewest failing clauses: a host that met one of the sentences would meet
    the expression. Some expression must be unmet.
    """
    for gpu in gpus_of(facts):
        for expression in expressions:
            found = _failing(expression, facts, gpu)
            if found:
                return tuple(_sentences(expression, found, facts, gpu))
    # Unknown facts, and no value of theirs meets all expressions at once.
    return tuple(f"{one.variable} `{one.text}` cannot be met together with the others" for one in expressions[:1])


def _failing(expression: Expression, facts: GateFacts, gpu: GateGpu | None) -> list[tuple[Clause, ...]]:
    """Return for each alternative the clauses that fail for all values of unknown facts; [] if some values meet one."""
    cases: list[Facts] = [
        {**of_host, **of_gpu}
        for of_host in completions([expression], facts)
        for of_gpu in completions_of_gpu([expression], gpu)
    ]
    if any(is_met(expression, case) for case in cases):
        return []
    return [tuple(one for one in term if not any(holds(one, case) for case in cases)) for term in expression.terms]


def _sentences(
    expression: Expression, failing: list[tuple[Clause, ...]], facts: GateFacts, gpu: GateGpu | None
) -> Iterator[str]:
    fewest = min((len(term) for term in failing if term), default=0)
    nearest = [term for term in failing if len(term) == fewest and term]
    if not nearest:
        yield f"no value of its unknown facts meets {expression.variable} `{expression.text}`"
        return
    groups: dict[tuple[str, ...], list[tuple[Clause, ...]]] = {}
    for term in nearest:
        groups.setdefault(tuple(clause.name for clause in term), []).append(term)
    for names, terms in groups.items():
        wanted = list(dict.fromkeys(",".join(str(clause) for clause in term) for term in terms))
        more = f" or {len(wanted) - _SHOWN} more" if len(wanted) > _SHOWN else ""
        found = " and ".join(dict.fromkeys(_found(name, facts, gpu) for name in names))
        yield f"{' or '.join(wanted[:_SHOWN])}{more}: {found}"


def _found(name: str, facts: GateFacts, gpu: GateGpu | None) -> str:
    """Return the stated value of a property as a clause of a sentence."""
    if name == "cuda":
        return f"the driver's CUDA is {facts.cuda}"
    if name == "driver":
        return f"the driver is {facts.driver}"
    assert gpu is not None  # without a GPU these clauses hold
    if name == "arch":
        return f"the compute capability of {gpu.label} is {gpu.arch}"
    return f"the brand of {gpu.label} is {' or '.join(gpu.brands)}"
