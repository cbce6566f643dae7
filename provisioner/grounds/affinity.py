"""The limits of a Kubernetes node affinity: labels do not show everything, so that it admits too few or too many nodes."""

from __future__ import annotations

from msgspec import Struct

from provisioner.versions import Range  # noqa: TC001 - part of types that are matched at run time


class LabelMismatch(Struct, frozen=True, kw_only=True):
    """A label of a node has none of the values that a stack needs; `value` is None if the node lacks the label."""

    label: str
    value: str | None
    allowed: tuple[str, ...]


class CapabilityMismatch(Struct, frozen=True, kw_only=True):
    """The labels of a node show none of the compute capabilities that a stack needs.

    `label` is that of the major number. `capability` is "" if the node lacks the label of the major or minor number.
    """

    label: str
    capability: str
    allowed: tuple[str, ...]


class VersionMismatch(Struct, frozen=True, kw_only=True):
    """The labels of a node show a version of its driver or kernel outside of the range that a stack needs.

    `label` is what the labels of its parts have in common (`nvidia.com/cuda.driver-version`). `version` is "" if the node lacks
    all of them.
    """

    label: str
    version: str
    allowed: Range


Mismatch = LabelMismatch | CapabilityMismatch | VersionMismatch
"""A requirement of a stack that the labels of a node do not show to be met."""


class FactDifference(Struct, frozen=True, kw_only=True):
    """A fact in which an admitted and a refused host with the same labels differ; None if a host does not state it."""

    fact: str
    admitted: str | None
    refused: str | None


class NamedLabel(Struct, frozen=True):
    """A label with names (product, machine, instance type, kernel release) that tells hosts apart, since no number differs."""

    label: str


class Unreached(Struct, frozen=True, kw_only=True):
    """Hosts of the stack that its affinity does not admit, because their labels do not show what the stack needs."""

    names: tuple[str, ...]
    lacking: tuple[Mismatch, ...]


class Inseparable(Struct, frozen=True, kw_only=True):
    """Hosts outside of the stack that its affinity admits, because they have the same labels as hosts of the stack.

    `admitted` are the names of the hosts of the stack, `refused` those of the others; `facts` are the facts in which they
    differ and that no label shows.
    """

    admitted: tuple[str, ...]
    refused: tuple[str, ...]
    facts: tuple[FactDifference, ...]


class UnlabelledRequirement(Struct, frozen=True):
    """A requirement of the stack that no label shows: a component and its range."""

    component: str
    range: str


AffinityLimit = NamedLabel | Unreached | Inseparable | UnlabelledRequirement
