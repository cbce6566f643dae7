"""The limits of a Kubernetes node affinity, which admits too few or too many nodes because labels do not show every fact."""

from __future__ import annotations

from msgspec import Struct

from provisioner.versions import Range  # noqa: TC001 - part of types that are matched at run time


class LabelMismatch(Struct, frozen=True, kw_only=True):
    """A label of a node without any of the values that a stack needs, which are `allowed`.

    `value` is the label's value, None if the node lacks the label.
    """

    label: str
    value: str | None
    allowed: tuple[str, ...]


class CapabilityMismatch(Struct, frozen=True, kw_only=True):
    """A node whose labels show none of the compute capabilities in `allowed`, which a stack needs.

    `label` is the label of the major number. `capability` is the node's, "" if it lacks the label of the major or minor number.
    """

    label: str
    capability: str
    allowed: tuple[str, ...]


class VersionMismatch(Struct, frozen=True, kw_only=True):
    """A node whose labels show a version of its driver or kernel outside `allowed`, the range that a stack needs.

    `label` is what the labels of the version's numbers have in common (`nvidia.com/cuda.driver-version`). `version` is "" if
    the node lacks all of these labels.
    """

    label: str
    version: str
    allowed: Range


Mismatch = LabelMismatch | CapabilityMismatch | VersionMismatch
"""A requirement of a stack that the labels of a node do not show to be met."""


class FactDifference(Struct, frozen=True, kw_only=True):
    """A fact in which two hosts with the same labels differ.

    `admitted` is its value on the host that belongs to the stack, `refused` its value on the other; None if a host does not
    state it.
    """

    fact: str
    admitted: str | None
    refused: str | None


class NamedLabel(Struct, frozen=True):
    """A label whose value is a name, as of a product or an instance type, used because no numeric label separates the hosts."""

    label: str


class Unreached(Struct, frozen=True, kw_only=True):
    """Hosts of the stack that its affinity does not admit, because their labels do not show what the stack needs.

    `names` are the hosts, `lacking` the requirements that the labels do not show to be met.
    """

    names: tuple[str, ...]
    lacking: tuple[Mismatch, ...]


class Inseparable(Struct, frozen=True, kw_only=True):
    """Hosts that do not belong to the stack but are admitted by its affinity, since they have the same labels as hosts that do.

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
