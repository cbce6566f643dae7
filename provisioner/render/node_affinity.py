"""Compute the Kubernetes nodes that a locked stack runs on, as terms of a node affinity, from the lock alone.

A node is admitted if its labels show what the stack requires: architecture, compute capability, driver and kernel. Versions are
compared as integers, one label for each of the first three numbers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.gate.drivers import drivers_by_capability
from provisioner.node_labels import ARCHITECTURE, COMPUTE, DRIVER, KERNEL, LABELLED, Expression, between
from provisioner.render.header import UnrenderableError
from provisioner.versions import ranges_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.lock.format.model import LockedStack
    from provisioner.node_labels import Term
    from provisioner.versions import Clause, Range

    Numbers = tuple[int, ...]
    Served = tuple[tuple[Range, frozenset[tuple[int, int]]], ...]
    Interval = tuple[Numbers, Numbers | None]
    """Versions from the first, which is included, to the second, which is not; None is unbounded."""

_LENGTH = len(DRIVER)
_ALL: Interval = ((0,) * _LENGTH, None)


def node_terms(stacks: Iterable[LockedStack]) -> tuple[Term, ...]:
    """Return the terms of which a node has to meet one, so that the stack of its platform runs on it.

    The terms begin with the architectures. Raises `UnrenderableError` for a requirement of more numbers than the labels show.
    """
    architectures: dict[tuple[Term, ...], list[str]] = {}
    for stack in stacks:
        architectures.setdefault(tuple(_terms(stack)), []).append(stack.platform.partition("/")[2])
    return tuple(
        (Expression(key=ARCHITECTURE, operator="In", values=tuple(sorted(names))), *term)
        for terms, names in architectures.items()
        for term in terms
    )


def unlabelled(stacks: Iterable[LockedStack]) -> tuple[str, ...]:
    """Return the requirements on a host that no label shows, such as `driver_module open`, each once."""
    return tuple(
        dict.fromkeys(
            f"{fact} {wanted}"
            for stack in stacks
            for fact, wanted in stack.host_requirements.items()
            if fact != "kernel" and (fact not in LABELLED or ACCELERATORS[stack.accelerator].product_labels)
        )
    )


def _terms(stack: LockedStack) -> Iterator[Term]:
    ranges = ranges_of_lock(stack.host_requirements.get("kernel", ""))
    kernels = [tuple(box) for one in ranges for box in _boxes_of(one, KERNEL)]
    served_by = drivers_of(stack)
    if not served_by:
        yield from kernels
    for drivers, served in served_by:
        for gpus in _gpus(served):
            for box in _boxes_of(drivers, DRIVER):
                yield from ((*gpus, *box, *kernel) for kernel in kernels)


def drivers_of(stack: LockedStack) -> Served:
    """Return the ranges of NVIDIA drivers that a stack runs with, each with the compute capabilities that it serves.

    The result is empty for a stack that needs no NVIDIA GPU, and a range serves no capability if the lock names none.
    """
    if ACCELERATORS[stack.accelerator].target_key != "compute_capability":
        return ()
    wanted = stack.host_requirements
    capabilities = frozenset(_capabilities(wanted.get("gpu", "")))
    stated = tuple((one, capabilities) for one in ranges_of_lock(wanted.get("driver", "")))
    return drivers_by_capability(stack.require_cuda, capabilities) or stated


def _capabilities(text: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer(r"(\d+)\.(\d+)", text):
        yield int(match[1]), int(match[2])


def _gpus(capabilities: frozenset[tuple[int, int]]) -> Iterator[Term]:
    """Yield terms that together admit the compute capabilities; majors with the same minors share one."""
    if not capabilities:
        yield (Expression(key=COMPUTE[0], operator="Exists"),)
    majors: dict[tuple[int, ...], list[int]] = {}
    for major in sorted({major for major, _ in capabilities}):
        minors = tuple(sorted(minor for other, minor in capabilities if other == major))
        majors.setdefault(minors, []).append(major)
    for minors, those in majors.items():
        yield tuple(
            Expression(key=key, operator="In", values=tuple(map(str, numbers)))
            for key, numbers in zip(COMPUTE, (those, minors), strict=True)
        )


def ranges_of_lock(text: str) -> tuple[Range, ...]:
    """Return the ranges in a requirement of a lock, of which a version must be in one; raises `UnrenderableError` for none."""
    try:
        return ranges_of(text)
    except ValueError:
        raise UnrenderableError(f"labels of nodes cannot express the requirement `{text}`") from None


def _boxes_of(wanted: Range, keys: tuple[str, ...]) -> Iterator[Term]:
    """Yield terms that together admit the versions of a range; `keys` are the labels of major, minor and revision."""
    for low, high in intervals(wanted):
        for bounds in _boxes(low, high):
            yield tuple(one for key, (least, most) in zip(keys, bounds, strict=False) for one in _numbers(key, least, most))


def _numbers(key: str, least: int | None, most: int | None) -> Iterator[Expression]:
    """Yield the expressions for a number between two others; one number is listed as versions spell it: `6` and `06`."""
    if least is not None and least == most:
        yield Expression(key=key, operator="In", values=(str(least), f"0{least}") if least < 10 else (str(least),))
    else:
        yield from between(key, least, most)


def intervals(wanted: Range) -> list[Interval]:
    """Return the versions of a range as intervals; raises `UnrenderableError` for a version of too many numbers."""
    found = [_ALL]
    for clause in wanted.clauses:
        found = [both for one in found for other in _allowed(clause) if (both := _overlap(one, other))]
    return found


def _allowed(clause: Clause) -> tuple[Interval, ...]:
    """Return the versions that a clause allows, as intervals; raises `UnrenderableError` for a version of too many numbers."""
    release = clause.version.release
    if len(release) > _LENGTH:
        raise UnrenderableError(f"node labels show {_LENGTH} numbers of a version, and the lock requires {clause}")
    first, after = (_padded(one.release) for one in clause.edges(_LENGTH))
    if clause.operator == "~=":
        return ((first, after),)
    return {
        ">=": ((first, None),),
        ">": ((after, None),),
        "<": ((_ALL[0], first),),
        "<=": ((_ALL[0], after),),
        "==": ((first, after),),
        "===": ((first, after),),
        "!=": ((_ALL[0], first), (after, None)),
    }[clause.operator]


def _padded(release: Numbers) -> Numbers:
    return (*release, *(0,) * (_LENGTH - len(release)))


def _overlap(one: Interval, other: Interval) -> Interval | None:
    low = max(one[0], other[0])
    ends = [end for end in (one[1], other[1]) if end is not None]
    high = min(ends) if ends else None
    return None if high is not None and high <= low else (low, high)


def _boxes(low: Numbers, high: Numbers | None) -> Iterator[tuple[tuple[int | None, int | None], ...]]:
    """Yield the versions of an interval as boxes: for each number, from the first on, its least and greatest value."""
    if not low:
        return
    (first, *rest), above = low, () if high is None else high[1:]
    if high is not None and first == high[0]:
        yield from (((first, first), *box) for box in _boxes(tuple(rest), above))
        return
    start = first
    if any(rest):
        yield from (((first, first), *box) for box in _boxes(tuple(rest), None))
        start = first + 1
    if high is None:
        yield ((start, None),)
        return
    if start < high[0]:
        yield ((start, high[0] - 1),)
    if any(above):
        yield from (((high[0], high[0]), *box) for box in _boxes((0,) * len(above), above))
