"""Evaluate the requirements of an image on a host, of which some facts may be unknown: yes, no or unknown.

An unknown fact is not guessed: every value that makes a difference is tried (each value that a requirement mentions, and one
between, below and above them), and the verdict is yes or no only if all values lead to it. This decides more cases than
evaluating clause by clause: a GPU of one of the brands tesla and nvidia meets `brand=tesla brand=nvidia`, whichever it is.

`nvidia-container-cli` evaluates once for each visible GPU, and each GPU must meet one of the alternatives (libnvidia-container
src/cli/configure.c); without a visible GPU, clauses on `arch` and `brand` hold. The toolkit's CSV mode, on Jetson, evaluates
for the first GPU only; a Jetson has one.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.gate.grammar import Clause, Numbers, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.gate.grammar import Expression

    Fact = str | Numbers
    Facts = dict[str, Fact]
    """One value for each property; () or "" for a property that does not apply, whose clauses hold."""

YES, NO, UNKNOWN = "yes", "no", "unknown"
OF_HOST = ("cuda", "driver")
OF_GPU = ("arch", "brand")
_ANOTHER = "a brand nobody mentions"


class GateGpu(Struct, frozen=True, kw_only=True):
    """One visible GPU: `arch` is its compute capability ("" if unknown), `brands` its possible brands (() if unknown).

    `label` is its name in messages.
    """

    arch: str = ""
    brands: tuple[str, ...] = ()
    label: str = "the GPU"


class GateFacts(Struct, frozen=True, kw_only=True):
    """The facts of a host that NVIDIA's container runtime checks: driver, the CUDA version of the driver, and visible GPUs.

    "" and None mean unknown; () for `gpus` means that no GPU is visible.
    """

    driver: str = ""
    cuda: str = ""
    gpus: tuple[GateGpu, ...] | None = None


def verdict_of(expressions: Sequence[Expression], facts: GateFacts) -> str:
    """Return `yes`, `no` or `unknown`: whether a host meets all expressions on every GPU."""
    found = set()
    for of_host in completions(expressions, facts, OF_HOST):
        on_each = {_on_one(expressions, gpu, of_host) for gpu in gpus_of(facts)}
        found.add(NO if NO in on_each else UNKNOWN if UNKNOWN in on_each else YES)
        if len(found) > 1 or UNKNOWN in found:
            return UNKNOWN
    return found.pop()


def _on_one(expressions: Sequence[Expression], gpu: GateGpu | None, of_host: Facts) -> str:
    found = set()
    for of_gpu in completions_of_gpu(expressions, gpu):
        found.add(YES if all(is_met(expression, {**of_host, **of_gpu}) for expression in expressions) else NO)
        if len(found) > 1:
            return UNKNOWN
    return found.pop()


def gpus_of(facts: GateFacts) -> tuple[GateGpu | None, ...]:
    """Return the GPUs to evaluate: one without facts if the GPUs are unknown, and (None,) if there is no visible GPU."""
    if facts.gpus is None:
        return (GateGpu(),)
    return facts.gpus or (None,)


def is_met(expression: Expression, facts: Facts) -> bool:
    """Return whether `facts`, of which none is unknown, meet one expression."""
    return not expression.terms or any(all(holds(clause, facts) for clause in term) for term in expression.terms)


def holds(clause: Clause, facts: Facts) -> bool:
    """Return whether one clause holds. A clause about a property that does not apply, as without a visible GPU, holds."""
    fact = facts[clause.name]
    return not fact or clause.holds_for(fact)


def completions(expressions: Sequence[Expression], facts: GateFacts, properties: Iterable[str] = OF_HOST) -> Iterator[Facts]:
    """Yield the combinations of values that the host's `properties` may have, as far as the expressions distinguish them."""
    names = tuple(properties)
    values = [_values(expressions, name, {"cuda": facts.cuda, "driver": facts.driver}[name]) for name in names]
    for chosen in product(*values):
        yield dict(zip(names, chosen, strict=True))


def completions_of_gpu(expressions: Sequence[Expression], gpu: GateGpu | None) -> Iterator[Facts]:
    """Yield the combinations of values that the facts of one GPU may have, as far as the expressions distinguish them."""
    if gpu is None:
        yield {"arch": (), "brand": ""}
        return
    brands: tuple[Fact, ...] = tuple(brand.lower() for brand in gpu.brands) or _brands(expressions)
    for arch, brand in product(_values(expressions, "arch", gpu.arch), brands):
        yield {"arch": arch, "brand": brand}


def _values(expressions: Sequence[Expression], name: str, version: str) -> tuple[Fact, ...]:
    """Return the numbers of a version; if it is unknown, one value for each case that the expressions distinguish."""
    numbers = numbers_of(version)
    if numbers:
        return (numbers,)
    mentioned = sorted({clause.numbers for clause in _about(expressions, name)})
    longest = max((len(one) for one in mentioned), default=0)
    # With one more number than any mentioned version has: right above each mentioned one, and below the next.
    above = [(*one, *(0,) * (longest - len(one)), 1) for one in mentioned]
    return ((0, *(0,) * longest, 1) if mentioned else (1,), *mentioned, *above)


def _brands(expressions: Sequence[Expression]) -> tuple[Fact, ...]:
    return (*dict.fromkeys(clause.value.lower() for clause in _about(expressions, "brand")), _ANOTHER)


def _about(expressions: Sequence[Expression], name: str) -> Iterator[Clause]:
    for expression in expressions:
        for term in expression.terms:
            yield from (clause for clause in term if clause.name == name)
