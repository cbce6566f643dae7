"""Refusals of the NVIDIA_REQUIRE_CUDA of an image as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.gate.check import FailingClauses, GateFact, NotMetTogether, NoValueMeets

if TYPE_CHECKING:
    from provisioner.gate.check import Refusal

MOST_ALTERNATIVES = 3
"""The number of alternatives that a sentence names: NVIDIA's own images name a dozen brands for each driver branch."""


def refusal_words(refusal: Refusal) -> str:
    """Return why an image refuses a host: `cuda>=13.1: the driver's CUDA is 13.0`."""
    match refusal:
        case FailingClauses(alternatives=alternatives, facts=facts):
            others = len(alternatives) - MOST_ALTERNATIVES
            more = f" or {others} more" if others > 0 else ""
            return f"{' or '.join(alternatives[:MOST_ALTERNATIVES])}{more}: {' and '.join(map(_fact_words, facts))}"
        case NoValueMeets(variable=variable, text=text):
            return f"no value of its unknown facts meets {variable} `{text}`"
        case NotMetTogether(variable=variable, text=text):
            return f"{variable} `{text}` cannot be met together with the others"


def _fact_words(fact: GateFact) -> str:
    value = " or ".join(fact.values)
    match fact.name:
        case "cuda":
            return f"the driver's CUDA is {value}"
        case "arch":
            return f"the compute capability of {fact.gpu} is {value}"
        case "brand":
            return f"the brand of {fact.gpu} is {value}"
    return f"the {fact.name} is {value}"
