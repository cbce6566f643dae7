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


class GateFact(Struct, frozen=True, kw_only=True):
    """A property of a host that an `NVIDIA_REQUIRE_*` tests (`cuda`, `driver`, `arch` or `brand`), with the values it may have.

    A GPU known by name may have one of several brands. `gpu` is the GPU that has the property, "" for a property of the host.
    """

    name: str
    values: tuple[str, ...]
    gpu: str = ""


class FailingClauses(Struct, frozen=True, kw_only=True):
    """A refusal because clauses fail on the `facts` of a host.

    Each text in `alternatives` is clauses joined by commas (`driver>=535,driver<536`), all texts on the same properties; a host
    that met the clauses of one text would meet the requirement.
    """

    alternatives: tuple[str, ...]
    facts: tuple[GateFact, ...]


class NoValueMeets(Struct, frozen=True, kw_only=True):
    """A refusal because no value of the host's unknown facts meets the expression `text` of the variable `variable`."""

    variable: str
    text: str


class NotMetTogether(Struct, frozen=True, kw_only=True):
    """A refusal because no value of the host's unknown facts meets all expressions.

    `variable` and `text` are those of the first expression.
    """

    variable: str
    text: str


Refusal = FailingClauses | NoValueMeets | NotMetTogether
"""A reason why a host does not meet the requirements of an image."""


class GateResult(Struct, frozen=True):
    """The result of evaluating requirements on a host: the verdict (`yes`, `no` or `unknown`) and its reasons.

    `refusals` are the reasons if the verdict is `no`; `unknown` are the properties whose missing values decide the verdict, if
    it is `unknown`. `skipped` are the clauses about properties that no runtime knows.
    """

    verdict: str
    refusals: tuple[Refusal, ...] = ()
    unknown: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def check_gate(expressions: Sequence[Expression], facts: GateFacts) -> GateResult:
    """Return the result for a host: it must meet every expression on every one of its GPUs."""
    verdict = verdict_of(expressions, facts)
    skipped = tuple(dict.fromkeys(str(clause) for expression in expressions for clause in expression.skipped))
    if verdict == NO:
        return GateResult(NO, refusals=_refusals(expressions, facts), skipped=skipped)
    unknown = tuple(_deciding(expressions, facts)) if verdict == UNKNOWN else ()
    return GateResult(verdict, unknown=unknown, skipped=skipped)


def _deciding(expressions: Sequence[Expression], facts: GateFacts) -> Iterator[str]:
    """Yield the unknown properties of which two values, with all other properties equal, lead to different verdicts."""
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


def _refusals(expressions: Sequence[Expression], facts: GateFacts) -> tuple[Refusal, ...]:
    """Return why a host is refused: the clauses that fail in the first expression that one of its GPUs does not meet.

    The clauses are those of the alternatives with the fewest failing clauses: a host that met one of these alternatives would
    meet the expression. If each expression could be met by itself, the result is one `NotMetTogether`. The verdict must be
    `no`.
    """
    for gpu in gpus_of(facts):
        for expression in expressions:
            found = _failing(expression, facts, gpu)
            if found:
                return tuple(_failing_clauses(expression, found, facts, gpu))
    # Unknown facts, and no value of theirs meets all expressions at once.
    return tuple(NotMetTogether(variable=one.variable, text=one.text) for one in expressions[:1])


def _failing(expression: Expression, facts: GateFacts, gpu: GateGpu | None) -> list[tuple[Clause, ...]]:
    """Return, for each alternative, the clauses that fail for all values of unknown facts.

    [] if some values meet an alternative.
    """
    cases: list[Facts] = [
        {**of_host, **of_gpu}
        for of_host in completions([expression], facts)
        for of_gpu in completions_of_gpu([expression], gpu)
    ]
    if any(is_met(expression, case) for case in cases):
        return []
    return [tuple(one for one in term if not any(holds(one, case) for case in cases)) for term in expression.terms]


def _failing_clauses(
    expression: Expression, failing: list[tuple[Clause, ...]], facts: GateFacts, gpu: GateGpu | None
) -> Iterator[Refusal]:
    fewest = min((len(term) for term in failing if term), default=0)
    nearest = [term for term in failing if len(term) == fewest and term]
    if not nearest:
        yield NoValueMeets(variable=expression.variable, text=expression.text)
        return
    groups: dict[tuple[str, ...], list[tuple[Clause, ...]]] = {}
    for term in nearest:
        groups.setdefault(tuple(clause.name for clause in term), []).append(term)
    for names, terms in groups.items():
        alternatives = dict.fromkeys(",".join(str(clause) for clause in term) for term in terms)
        stated = dict.fromkeys(_fact(name, facts, gpu) for name in names)
        yield FailingClauses(alternatives=tuple(alternatives), facts=tuple(stated))


def _fact(name: str, facts: GateFacts, gpu: GateGpu | None) -> GateFact:
    if name in OF_HOST:
        return GateFact(name=name, values=(facts.cuda if name == "cuda" else facts.driver,))
    assert gpu is not None  # without a GPU these clauses hold
    return GateFact(name=name, values=(gpu.arch,) if name == "arch" else gpu.brands, gpu=gpu.label)
