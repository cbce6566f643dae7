"""Search for the terms of an affinity: boxes as wide as possible that hold admitted hosts and no refused ones.

A box is a set of constraints, at most one for each label, and holds the label sets that meet all of them. The search is the
expansion step of two-level logic minimisation (Brayton and others, ESPRESSO, 1984): start at the labels of one admitted host,
and drop or loosen one label after the other as long as the box stays within the requirements of the stack and holds no refused
host. The labels that are loosened last are the most likely to remain, so names are loosened first and compute capabilities
last. Every order gives correct boxes; the order decides how few and how readable they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.fleet.affinity_needs import Absent, Bounds, integer, point_of
from provisioner.node_labels import (
    AMD_DEVICE,
    AMD_DRIVER,
    AMD_PRODUCT,
    ARCHITECTURE,
    COMPUTE,
    INSTANCE,
    KERNEL,
    KERNEL_FULL,
    MACHINE,
    OS_ID,
    OS_VERSION,
    PRODUCT,
    SYSTEM,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.fleet.affinity_needs import Box, Constraint, Needs

LAST_RESORT = (KERNEL_FULL, INSTANCE, MACHINE, PRODUCT)
"""Labels with names instead of numbers, which remain in a box only if no other label tells admitted and refused hosts apart."""

_NAMES_LOOSENED_FIRST = (*LAST_RESORT, OS_VERSION, OS_ID, AMD_DRIVER, AMD_PRODUCT, AMD_DEVICE, SYSTEM, ARCHITECTURE)


def holds(constraint: Constraint, value: str | None) -> bool:
    """Return whether the value of a label, None for a missing label, meets a constraint."""
    if isinstance(constraint, Absent):
        return value is None
    if isinstance(constraint, Bounds):
        number = integer(value)
        is_above = number is not None and (constraint.low is None or number >= constraint.low)
        return is_above and (constraint.high is None or (number is not None and number <= constraint.high))
    return value is not None and value in constraint


class Population:
    """Label sets as bits of integers, to compute quickly which of them a box holds.

    In a mask, bit `i` stands for the label set at index `i` of `sets`.
    """

    def __init__(self, sets: Sequence[Mapping[str, str]]) -> None:
        self.sets = sets
        self.all = (1 << len(sets)) - 1
        self._values: dict[str, dict[str | None, int]] = {}
        self._known: dict[tuple[str, Constraint], int] = {}

    def values(self, key: str) -> dict[str | None, int]:
        """Return the values of a label, None for a missing label, each with the mask of the label sets that have it."""
        if key not in self._values:
            found: dict[str | None, int] = {}
            for index, labels in enumerate(self.sets):
                value = labels.get(key)
                found[value] = found.get(value, 0) | 1 << index
            self._values[key] = found
        return self._values[key]

    def meeting(self, key: str, constraint: Constraint) -> int:
        """Return the mask of the label sets whose value of the label `key` meets a constraint."""
        known = self._known.get((key, constraint))
        if known is None:
            masks = (mask for value, mask in self.values(key).items() if holds(constraint, value))
            known = self._known[key, constraint] = sum(masks)
        return known

    def within(self, box: Box, *, without: tuple[str, ...] = ()) -> int:
        """Return the mask of the label sets that a box holds, ignoring its constraints on the labels in `without`."""
        mask = self.all
        for key, constraint in box.items():
            if key not in without:
                mask &= self.meeting(key, constraint)
        return mask


def point(labels: Mapping[str, str], drivers: tuple[str, ...]) -> Box:
    """Return the narrowest box around one label set; `drivers` are the names of the driver's version labels."""
    keys = (*_NAMES_LOOSENED_FIRST, *KERNEL, *drivers, *COMPUTE)
    return {key: point_of(key, labels) for key in keys}


class Expansion:
    """Widens boxes within `needs`, and never onto a refused label set that the box did not hold from the start."""

    def __init__(self, admitted: Population, refused: Population, needs: Needs, drivers: tuple[str, ...]) -> None:
        self._admitted = admitted
        self._refused = refused
        self._needs = needs
        self._drivers = drivers
        self._floors = sorted({0, *(low for one in needs.alternatives for low in one.thresholds())})
        self._inseparable = 0

    def boxes(self, labels: Mapping[str, str]) -> Iterator[Box]:
        """Yield wide boxes that hold the admitted label set `labels`.

        Each loosens the labels in another order; the order that usually gives the most readable box comes first.
        """
        start = point(labels, self._drivers)
        self._inseparable = self._refused.within(start)
        # Drop the constraint that a label is missing, unless it is needed to tell a host without a GPU from one with a GPU.
        for key in [key for key, constraint in start.items() if isinstance(constraint, Absent)]:
            self._may(start, key, None)
        for is_capability_last in (True, False):
            for is_major_first in (True, False):
                box = dict(start)
                self._names(box)
                self._version(box, KERNEL)
                if not is_capability_last:
                    self._capability(box, is_major_first=is_major_first)
                self._version(box, self._drivers)
                if is_capability_last:
                    self._capability(box, is_major_first=is_major_first)
                self._names(box)
                yield box

    def _may(self, box: Box, key: str, constraint: Constraint | None) -> bool:
        """Replace the constraint on the label `key`, or drop it (None), if the box stays correct; return whether it did.

        A box is correct if it lies within the needs of the stack and holds no refused label set that labels can exclude.
        """
        wider = {one: kept for one, kept in box.items() if one != key}
        if constraint is not None:
            wider[key] = constraint
        if self._refused.within(wider) & ~self._inseparable or not self._needs.covers(wider):
            return False
        box.clear()
        box.update(wider)
        return True

    def _names(self, box: Box) -> None:
        for key in _NAMES_LOOSENED_FIRST:
            if key in box and not self._may(box, key, None):
                self._widen(box, key)

    def _widen(self, box: Box, key: str) -> None:
        """Allow other values of the label `key` that admitted hosts have, each of them if the box stays correct."""
        values = sorted(value for value in self._admitted.values(key) if value is not None)
        for value in sorted(values, key=lambda text: (integer(text) or 0, text)):
            constraint = box.get(key)
            if isinstance(constraint, frozenset) and value not in constraint:
                self._may(box, key, constraint | {value})

    def _capability(self, box: Box, *, is_major_first: bool) -> None:
        for key in COMPUTE if is_major_first else reversed(COMPUTE):
            self._widen(box, key)
        for key in reversed(COMPUTE):
            if key in box:
                self._may(box, key, None)

    def _version(self, box: Box, keys: tuple[str, ...]) -> None:
        """Loosen the numbers of a version from last to first: a number is bounded only if the numbers before it are fixed.

        So the versions of a box are an interval; `major above 524, minor above 59` is not one, and would refuse 550.54.
        """
        for key in reversed(keys):
            if key in box and not self._may(box, key, None):
                self._loosen(box, key)
                return

    def _loosen(self, box: Box, key: str) -> None:
        constraint = box[key]
        if not isinstance(constraint, Bounds):
            return
        # Only refused sets that no other label excludes limit the bounds.
        others = self._refused.within(box, without=(key,)) & ~self._inseparable
        values = [integer(value) for value, mask in self._refused.values(key).items() if mask & others]
        numbers = sorted(number for number in values if number is not None and number >= 0)
        own = constraint.low or 0
        above = next((number - 1 for number in numbers if number > own), None)
        # One bound always stays, because no expression requires that a label is any number.
        highs = [*([None] if own else []), *([above] if above is not None and above >= own else [])]
        for high in highs:
            if self._may(box, key, Bounds(own, high)):
                break
        top = box[key]
        assert isinstance(top, Bounds)
        least = 1 if top.high is None else 0
        below = next((number + 1 for number in reversed(numbers) if number < own), least)
        for low in sorted({below, *self._floors}):
            if max(below, least) <= low < own and self._may(box, key, Bounds(low, top.high)):
                break


def fewest(candidates: Sequence[tuple[Box, int]], wanted: int) -> list[Box]:
    """Return few boxes that together hold every label set in the mask `wanted`.

    `candidates` are boxes with the masks of the label sets they hold; each label set of `wanted` must be in one of the boxes.
    The box that holds the most label sets not yet covered is chosen next, of equal ones the one with the fewest labels. Chosen
    boxes that the others make superfluous are dropped at the end.
    """
    chosen: list[tuple[Box, int]] = []
    left = wanted
    while left:
        best = max(candidates, key=lambda one: ((one[1] & left).bit_count(), -len(one[0])))
        assert best[1] & left, "every host is in the boxes grown around it"
        chosen.append(best)
        left &= ~best[1]
    for one in list(reversed(chosen)):
        rest = 0
        for other in chosen:
            rest |= other[1] if other is not one else 0
        if wanted & ~rest == wanted & ~(rest | one[1]):
            chosen.remove(one)
    return [box for box, _ in chosen]
