"""The scheduler of Kubernetes, as far as node affinity goes: an oracle that shares no line with what makes affinities."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.fleet.affinity import Affinity
    from provisioner.node_labels import Expression


def admits(affinity: Affinity, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is admitted.

    Terms are ORed, expressions ANDed, and "nil or empty term matches no objects" (kubernetes/component-helpers,
    scheduling/corev1/nodeaffinity/nodeaffinity.go @1961876b). A label that is missing, or is no integer where `Gt` and `Lt`
    want one, does not match (kubernetes/apimachinery, pkg/labels/selector.go @eed236ce, Requirement.Matches).
    """
    return any(term and all(_satisfied(one, labels.get(one.key)) for one in term) for term in affinity.terms)


def _satisfied(expression: Expression, value: str | None) -> bool:
    if expression.operator == "DoesNotExist":
        return value is None
    if expression.operator == "Exists":
        return value is not None
    if expression.operator == "In":
        return value is not None and value in expression.values
    number, bound = _integer(value), _integer(expression.values[0])
    if number is None or bound is None:
        return False
    return number > bound if expression.operator == "Gt" else number < bound


def _integer(text: str | None) -> int | None:
    """What Go's `strconv.ParseInt(text, 10, 64)` reads."""
    if text is None or not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
