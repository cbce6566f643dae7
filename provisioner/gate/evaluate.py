"""Does a host meet the requirements of an image? Yes, no, or unknown with the facts that would settle it.

What nobody stated is not guessed: every value it could have that makes a difference is tried (each value a requirement
mentions, and one between, below and above them). Only if all lead to one answer is it the answer. That is sharper than asking
clause by clause: of `brand=tesla brand=nvidia` a GPU of one of these two brands meets one, whichever it is.

`nvidia-container-cli` asks once for each visible GPU, and each must pass on its own, by whichever alternative
(libnvidia-container src/cli/configure.c); without a visible GPU it takes clauses on `arch` and `brand` for met. The toolkit's
CSV mode, on Jetson, asks for the first GPU only; a Jetson has one.
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
    """One visible GPU. `arch` is its compute capability, "" when unknown; `brands` those it may be of, none when unknown."""

    arch: str = ""
    brands: tuple[str, ...] = ()
    label: str = "the GPU"


class GateFacts(Struct, frozen=True, kw_only=True):
    """What a runtime would know of a host: driver, the CUDA it reports, and the GPUs. "" and None are unknown; () is none."""

    driver: str = ""
    cuda: str = ""
    gpus: tuple[GateGpu, ...] | None = None


def verdict_of(expressions: Sequence[Expression], facts: GateFacts) -> str:
    """The bare verdict, without reasons."""
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
    """The GPUs to ask for: an unknown one where nothing is known, None where there is none."""
    if facts.gpus is None:
        return (GateGpu(),)
    return facts.gpus or (None,)


def is_met(expression: Expression, facts: Facts) -> bool:
    """Whether complete facts meet one expression."""
    return not expression.terms or any(all(holds(clause, facts) for clause in term) for term in expression.terms)


def holds(clause: Clause, facts: Facts) -> bool:
    """Whether one clause holds; a property that does not apply, without a visible GPU, holds."""
    fact = facts[clause.name]
    return not fact or clause.holds_for(fact)


def completions(expressions: Sequence[Expression], facts: GateFacts, properties: Iterable[str] = OF_HOST) -> Iterator[Facts]:
    """Every way the host's own facts may be, as far as it makes a difference."""
    names = tuple(properties)
    values = [_values(expressions, name, {"cuda": facts.cuda, "driver": facts.driver}[name]) for name in names]
    for chosen in product(*values):
        yield dict(zip(names, chosen, strict=True))


def completions_of_gpu(expressions: Sequence[Expression], gpu: GateGpu | None) -> Iterator[Facts]:
    """Every way one GPU may be, as far as it makes a difference."""
    if gpu is None:
        yield {"arch": (), "brand": ""}
        return
    brands: tuple[Fact, ...] = tuple(brand.lower() for brand in gpu.brands) or _brands(expressions)
    for arch, brand in product(_values(expressions, "arch", gpu.arch), brands):
        yield {"arch": arch, "brand": brand}


def _values(expressions: Sequence[Expression], name: str, stated: str) -> tuple[Fact, ...]:
    """The numbers of a stated version, else all that could make a difference; a text without a number states nothing."""
    numbers = numbers_of(stated)
    if numbers:
        return (numbers,)
    mentioned = sorted({clause.numbers for clause in _about(expressions, name)})
    longest = max((len(one) for one in mentioned), default=0)
    # One more number than anybody writes: right above each mentioned version, and below the next.
    above = [(*one, *(0,) * (longest - len(one)), 1) for one in mentioned]
    return ((0, *(0,) * longest, 1) if mentioned else (1,), *mentioned, *above)


def _brands(expressions: Sequence[Expression]) -> tuple[Fact, ...]:
    return (*dict.fromkeys(clause.value.lower() for clause in _about(expressions, "brand")), _ANOTHER)


def _about(expressions: Sequence[Expression], name: str) -> Iterator[Clause]:
    for expression in expressions:
        for term in expression.terms:
            yield from (clause for clause in term if clause.name == name)
