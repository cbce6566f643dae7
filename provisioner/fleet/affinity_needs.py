"""Compute the requirements of a stack on a Kubernetes node, as constraints on labels, which each affinity has to imply."""

from __future__ import annotations

import re
from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS
from provisioner.fleet.labels import drivers_named
from provisioner.gate.drivers import drivers_by_capability
from provisioner.grounds.affinity import CapabilityMismatch, LabelMismatch, UnlabelledRequirement, VersionMismatch
from provisioner.node_labels import ARCHITECTURE, COMPUTE, DRIVER, KERNEL, LABELLED, OLD_DRIVER, PRODUCT, SYSTEM
from provisioner.versions import Range, ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.accelerators import Accelerator
    from provisioner.fleet.labels import LabelSet
    from provisioner.grounds.affinity import Mismatch
    from provisioner.resolver.stack import Stack
    from provisioner.versions import Clause

_INTEGER = re.compile(r"[+-]?[0-9]+")
_LARGEST = 2**63 - 1


class Bounds(Struct, frozen=True):
    """An interval of integers, both ends included; None is unbounded."""

    low: int | None = None
    high: int | None = None


class Absent(Struct, frozen=True):
    """The constraint that a node does not have the label."""


Constraint = frozenset[str] | Bounds | Absent
Box = dict[str, Constraint]
"""Labels with the constraint that each must meet: one term of an affinity, not yet written as match expressions.

A box holds the nodes, or label sets, that meet all its constraints.
"""


class Alternative(Struct, frozen=True, kw_only=True):
    """One way for a node to meet the requirements of a stack: constraints on labels, compute capability, driver and kernel.

    `values` has the allowed values of each label. `capabilities` are the allowed compute capabilities as (major, minor); None
    requires no NVIDIA GPU. An empty `driver` or `kernel` range allows every version.
    """

    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    capabilities: frozenset[tuple[int, int]] | None = None
    driver: Range = field(default_factory=Range)
    kernel: Range = field(default_factory=Range)

    def covers(self, box: Box) -> bool:
        """Return whether every node in the box meets this alternative."""
        for key, allowed in self.values.items():
            constraint = box.get(key)
            if not isinstance(constraint, frozenset) or not constraint <= allowed:
                return False
        if self.capabilities is not None and not self._runs_on(box):
            return False
        drivers = DRIVER if any(key in box for key in DRIVER) else OLD_DRIVER
        return _within(self.driver, box, drivers) and _within(self.kernel, box, KERNEL)

    def _runs_on(self, box: Box) -> bool:
        majors, minors = (box.get(key) for key in COMPUTE)
        if not isinstance(majors, frozenset) or not isinstance(minors, frozenset):
            return False
        assert self.capabilities is not None
        return all((integer(major), integer(minor)) in self.capabilities for major in majors for minor in minors)

    def thresholds(self) -> Iterator[int]:
        """Yield the numbers in the version ranges, and each plus one: the useful lower bounds of a version label."""
        for clause in (*self.driver.clauses, *self.kernel.clauses):
            yield from (number for part in clause.version.release[:3] for number in (part, part + 1))

    def lacking(self, labels: Mapping[str, str]) -> tuple[Mismatch, ...]:
        """Return the requirements of this alternative that a node's labels do not show to be met; () if they show all."""
        return tuple(self._lacking(labels))

    def _lacking(self, labels: Mapping[str, str]) -> Iterator[Mismatch]:
        for key, allowed in self.values.items():
            if labels.get(key) not in allowed:
                yield LabelMismatch(label=key, value=labels.get(key), allowed=tuple(sorted(allowed)))
        if self.capabilities is not None:
            found = tuple(labels.get(key, "") for key in COMPUTE)
            if tuple(integer(part) for part in found) not in self.capabilities:
                known = tuple(f"{major}.{minor}" for major, minor in sorted(self.capabilities))
                yield CapabilityMismatch(label=COMPUTE[0], capability=".".join(found) if all(found) else "", allowed=known)
        drivers = drivers_named(labels)
        for wanted, keys in ((self.driver, drivers), (self.kernel, KERNEL)):
            if not _within(wanted, {key: point_of(key, labels) for key in keys}, keys):
                text = ".".join(labels[key] for key in keys if labels.get(key))
                yield VersionMismatch(label=keys[0].removesuffix(".major"), version=text, allowed=wanted)


class Needs(Struct, frozen=True, kw_only=True):
    """The alternative ways for a node to meet the requirements of a stack.

    `unshown` are requirements that no label shows.
    """

    alternatives: tuple[Alternative, ...]
    unshown: tuple[UnlabelledRequirement, ...] = ()

    def covers(self, box: Box) -> bool:
        """Return whether every node in the box meets one and the same alternative."""
        return any(alternative.covers(box) for alternative in self.alternatives)

    def lacking(self, labels: Mapping[str, str]) -> tuple[Mismatch, ...]:
        """Return the requirements that a node's labels do not show to be met; () if they meet an alternative.

        The requirements are those of the alternative of which the labels fail to show the fewest.
        """
        return min((one.lacking(labels) for one in self.alternatives), key=len, default=())


def integer(text: str | None) -> int | None:
    """Return a label as the integer that Kubernetes compares, None if it is no integer of 64 bits.

    Kubernetes parses a label with `strconv.ParseInt(text, 10, 64)`.
    """
    if text is None or not _INTEGER.fullmatch(text) or len(text) > len(str(_LARGEST)) + 1:
        return None
    number = int(text)
    return number if -_LARGEST - 1 <= number <= _LARGEST else None


VERSIONS = frozenset({*DRIVER, *OLD_DRIVER, *KERNEL})
"""Labels that are compared as integers."""


def point_of(key: str, labels: Mapping[str, str]) -> Constraint:
    """Return the narrowest constraint that a node's own value of the label `key` meets."""
    value = labels.get(key)
    if value is None:
        return Absent()
    number = integer(value) if key in VERSIONS else None
    return frozenset({value}) if number is None or number < 0 else Bounds(number, number)


def needs_of(stack: Stack, admitted: Sequence[LabelSet]) -> Needs:
    """Return the requirements of a stack on any node.

    `admitted` are the label sets of the hosts that the stack was solved for. If the stack states no compute capabilities, those
    of these hosts are required, and for AMD GPUs their product and driver labels. Forward compatibility works only on certain
    products, which the compute capability does not show, so these hosts' products are required on driver branches that need it.
    """
    wanted = stack.host_requirements
    system, _, architecture = stack.platform.partition("/")
    values = {ARCHITECTURE: frozenset({architecture})}
    accelerator = ACCELERATORS[stack.accelerator]
    if not accelerator.vendor:
        values[SYSTEM] = frozenset({system})
    unshown = tuple(UnlabelledRequirement(name, text) for name, text in wanted.items() if name not in LABELLED)
    kernels, drivers = _ranges(wanted.get("kernel", "")), _ranges(wanted.get("driver", ""))
    if accelerator.product_labels:
        named = _by_product(accelerator, admitted, needs_driver=any(one in wanted for one in accelerator.drivers))
        return Needs(alternatives=_ways([Alternative(values=values | one) for one in named], kernels), unshown=unshown)
    if not accelerator.node_labels:
        return Needs(alternatives=_ways([Alternative(values=values)], kernels), unshown=unshown)
    capabilities = _capabilities(stack, admitted)
    served_by = drivers_by_capability(stack.require_cuda, capabilities) or tuple((one, capabilities) for one in drivers)
    plain = [Alternative(values=values, capabilities=served, driver=one) for one, served in served_by]
    ways = _ways(plain, kernels)
    if stack.basis != "forward-compat":
        return Needs(alternatives=ways, unshown=unshown)
    forward = _forward(Alternative(values=values, capabilities=capabilities), ways, admitted)
    return Needs(alternatives=(*ways, *_ways(forward, kernels)), unshown=unshown)


def _ways(alternatives: Iterable[Alternative], kernels: Sequence[Range]) -> tuple[Alternative, ...]:
    """Return alternatives with each of the ranges of kernels that a stack requires one of."""
    return tuple(replace(one, kernel=kernel) for one in alternatives for kernel in kernels)


def _ranges(text: str) -> tuple[Range, ...]:
    """Return the ranges in a requirement on versions; for a text that has none, one that no version is in."""
    try:
        return ranges_of(text)
    except ValueError:
        return (Range.parse("<0"),)


def _capabilities(stack: Stack, admitted: Sequence[LabelSet]) -> frozenset[tuple[int, int]]:
    """Return the compute capabilities the stack is compiled for; if it names none, those of the hosts it was solved for."""
    texts = [text.strip() for text in stack.host_requirements.get("gpu", "").split(",")]
    stated = [tuple(text.split(".")) for text in texts if re.fullmatch(r"\d+\.\d+", text)]
    own = [tuple(one.labels.get(key, "") for key in COMPUTE) for one in admitted]
    pairs = (tuple(integer(part) for part in pair) for pair in stated or own)
    return frozenset((major, minor) for major, minor in pairs if major is not None and minor is not None)


def _forward(plain: Alternative, ways: Sequence[Alternative], admitted: Sequence[LabelSet]) -> Iterator[Alternative]:
    """Yield an alternative for each driver branch of the `admitted` hosts that no alternative in `ways` admits.

    It admits this branch with the GPU products of these hosts only, as forward compatibility works on certain products.
    """
    products: dict[int, set[str]] = {}
    for one in admitted:
        major = integer(one.labels.get(drivers_named(one.labels)[0]))
        if major is not None and PRODUCT in one.labels and all(way.lacking(one.labels) for way in ways):
            products.setdefault(major, set()).add(one.labels[PRODUCT])
    for major, names in sorted(products.items()):
        yield Alternative(
            values={**plain.values, PRODUCT: frozenset(names)},
            capabilities=plain.capabilities,
            driver=Range.parse(f"=={major}.*"),
        )


def _by_product(
    accelerator: Accelerator, admitted: Sequence[LabelSet], *, needs_driver: bool
) -> Iterator[dict[str, frozenset[str]]]:
    """Yield the product labels, with `needs_driver` also the driver labels, of the hosts that the stack was solved for.

    The labels are names, so that other nodes are admitted only if they have the same ones.
    """
    for index, key in enumerate(accelerator.product_labels):
        better = accelerator.product_labels[:index]
        nodes = [one.labels for one in admitted if key in one.labels and not any(other in one.labels for other in better)]
        drivers = frozenset(labels[accelerator.driver_label] for labels in nodes if accelerator.driver_label in labels)
        if nodes:
            products = {key: frozenset(labels[key] for labels in nodes)}
            yield products | {accelerator.driver_label: drivers} if needs_driver else products


def _within(wanted: Range, box: Box, keys: tuple[str, ...]) -> bool:
    """Return whether every version in a box is in the range `wanted`; `keys` are the labels of major, minor and revision.

    The versions of a box are an interval, so it suffices to check both ends.
    """
    low, high = (tuple(end) for end in zip(*(_ends(box.get(key)) for key in keys), strict=True))
    assert len(low) == len(high) == len(keys)
    return all(_clause_holds(clause, low, high) for clause in wanted.clauses)


def _ends(constraint: Constraint | None) -> tuple[float, float]:
    if isinstance(constraint, Bounds):
        return (constraint.low or 0, inf if constraint.high is None else constraint.high)
    # An empty revision label belongs to a version without a revision.
    return (0, 0) if constraint == frozenset({""}) else (0, inf)


def _clause_holds(clause: Clause, low: tuple[float, ...], high: tuple[float, ...]) -> bool:
    release = clause.version.release
    if len(release) > len(low):
        return False
    padded = (*release, *(0,) * (len(low) - len(release)))
    length = len(release) if clause.is_prefix else len(low)
    operator = clause.operator
    if operator == ">=":
        return low >= padded
    if operator == ">":
        return low > padded
    if operator == "<":
        return high < padded
    if operator == "<=":
        return high <= padded
    if operator == "!=":
        return low[:length] > padded[:length] or high[:length] < padded[:length]
    if operator == "~=":
        return low >= padded and low[: len(release) - 1] == high[: len(release) - 1] == release[:-1]
    return low[:length] == high[:length] == padded[:length]
