"""Changes in the host requirements of a lock: which hosts no longer meet them or meet them now, and how a driver meets them.

Locks record a host requirement as text: a range (`>=525.60.13`), a list of labels (`7.5, 8.0, 9.0`, `rhel 9 or ubuntu 24.04`),
or text that only the matrix understands. For text of the last kind only the difference itself is reported.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS
from provisioner.gate.evaluate import GateFacts, GateGpu, completions, completions_of_gpu, is_met
from provisioner.gate.grammar import GateError, parse
from provisioner.grounds.change import Change, FallOut, GpuBasis
from provisioner.resolver.rules.coverage import TARGET, capability, coverage
from provisioner.resolver.rules.gate import BASE_IMAGE_GATE
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.lock.format.model import LockedStack

_CAPABILITY = re.compile(r"\d+\.\d+")


def host_changes(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """Yield the changes of the host requirements on one platform; a change that explains others comes before these."""
    if old.accelerator != new.accelerator:
        yield _changed("accelerator", old.accelerator, new.accelerator, is_breaking=True)
    if old.runs != new.runs:
        yield _changed("runs", old.runs, new.runs, is_breaking=True)
    yield from _gpus(old, new)
    facts = {**old.host_requirements, **new.host_requirements}.keys() - {"gpu"}
    for fact in sorted(facts, key=lambda name: (name != "driver", name)):
        before, after = old.host_requirements.get(fact, ""), new.host_requirements.get(fact, "")
        if before != after:
            yield _of_fact(fact, before, after)
    if set(old.arch_list) != set(new.arch_list):
        lost, gained = _without(old.arch_list, new.arch_list), _without(new.arch_list, old.arch_list)
        targets = _changed("arch_list", " ".join(old.arch_list), " ".join(new.arch_list))
        yield replace(targets, lost=lost, gained=gained)
    if old.basis != new.basis:
        yield _changed("basis", old.basis, new.basis)
    if old.require_cuda != new.require_cuda:  # what a container runtime reads; driver and GPUs are changes of their own
        yield _set("require_cuda", old.require_cuda, new.require_cuda)
    before, after = old.environment.get(BASE_IMAGE_GATE, ""), new.environment.get(BASE_IMAGE_GATE, "")
    if before != after:
        # It is breaking if a host that met all of the old requirements may not meet what the base image requires now.
        is_breaking = bool(after) and may_refuse((old.require_cuda, before), after)
        yield _set("require_base", before, after, is_breaking=is_breaking)


def _changed(subject: str, old: str, new: str, *, is_breaking: bool = False) -> Change:
    return Change(section="hosts", subject=subject, change="changed", old=old, new=new, is_breaking=is_breaking)


def _set(subject: str, old: str, new: str, *, is_breaking: bool = False) -> Change:
    change = "changed" if old and new else "added" if new else "removed"
    return Change(section="hosts", subject=subject, change=change, old=old, new=new, is_breaking=is_breaking)


def _gpus(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """Yield the change of the supported GPUs, if there is one.

    A lock lists GPUs only if its hosts stated some. If a lock of a stack that uses GPUs lists none, compiled targets decide:
    the GPUs compared are those that either lock lists and those that compiled targets of either lock are named after, and a
    lock supports such a GPU if it lists the GPU or if the machine code of its build runs on the GPU.
    """
    before, after = (labels(stack.host_requirements.get("gpu", "")) for stack in (old, new))
    if before is None or after is None:  # a range, which only some platforms have
        if before != after:
            yield _of_fact("gpu", old.host_requirements.get("gpu", ""), new.host_requirements.get("gpu", ""))
        return
    uses = [ACCELERATORS[stack.accelerator] in GPU_ACCELERATORS for stack in (old, new)]
    is_by_targets = any(is_used and not found for is_used, found in zip(uses, (before, after), strict=True))
    if is_by_targets:
        known = sorted({*before, *after, *_own_devices(old), *_own_devices(new)}, key=lambda device: (_number(device), device))
        before, after = (
            tuple(one for one in known if one in found or one in _run_by(stack, known))
            for found, stack in ((before, old), (after, new))
        )
    lost, gained = _without(before, after), _without(after, before)
    if uses[0] != uses[1]:
        change = "tightened" if uses[1] else "loosened"
    elif lost or gained:
        change = "changed" if lost and gained else "tightened" if lost else "loosened"
    else:
        return
    is_required = uses[1] if uses[0] != uses[1] else None
    yield Change(
        section="hosts", subject="gpu", change=change, old=", ".join(before), new=", ".join(after), lost=lost, gained=gained,
        is_breaking=uses[1] > uses[0] or (uses[1] == uses[0] and bool(lost)),
        detail=GpuBasis(is_required=is_required, devices=after, is_by_targets=is_by_targets),
    )  # fmt: skip


def _own_devices(stack: LockedStack) -> tuple[str, ...]:
    """Return the devices that the compiled targets of a stack are named after: `9.0` for `sm_90a`, `gfx942` unchanged."""
    found = (TARGET.fullmatch(text) for text in stack.arch_list)
    return tuple(f"{match[1]}.{match[2]}" for match in found if match) or stack.arch_list


def _run_by(stack: LockedStack, devices: Sequence[str]) -> tuple[str, ...]:
    """Return the GPUs among `devices` on which the machine code of a stack runs, without PTX."""
    if stack.accelerator == "rocm":
        return tuple(device for device in devices if device in stack.arch_list)
    targets = tuple(text for text in stack.arch_list if text.startswith("sm_") and TARGET.fullmatch(text))
    numbered = [device for device in devices if _CAPABILITY.fullmatch(device)]
    return tuple(device for device in numbered if coverage(targets, (), capability(device)) == "native")


def _number(device: str) -> tuple[int, ...]:
    return capability(device) if _CAPABILITY.fullmatch(device) else (0,)


def _of_fact(fact: str, old: str, new: str) -> Change:
    change = direction(old, new)
    return Change(
        section="hosts", subject=fact, change=change, old=old, new=new, is_breaking=change != "loosened",
        detail=fall_out(old, new),
    )  # fmt: skip


def _without(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in some if one not in set(others))


_SIDES = {">=": ("floor", False), ">": ("floor", True), "<=": ("ceiling", False), "<": ("ceiling", True)}
_SEPARATOR = re.compile(r", | or ")
_COMPARISON = re.compile(r"[<>=~!]")


class Span(Struct, frozen=True):
    """A range of versions; each end is a version and whether that version is excluded, or None for no end."""

    floor: tuple[Version, bool] | None = None
    ceiling: tuple[Version, bool] | None = None

    @classmethod
    def parse(cls, text: str) -> Span | None:
        """Parse a range such as `>=525,<600`; None for other text, such as `==12.*` or words."""
        try:
            clauses = Range.parse(text).clauses
        except ValueError:
            return None
        span = cls()
        for clause in clauses:
            if clause.operator not in _SIDES or clause.is_prefix:
                return None
            side, is_open = _SIDES[clause.operator]
            end = (clause.version, is_open)
            if side == "floor":
                span = Span(max(span.floor or end, end), span.ceiling)
            else:
                span = Span(span.floor, min(span.ceiling or end, end, key=_ceiling_order))
        return span

    def reaches_below(self, other: Span) -> bool:
        """Return whether this span contains versions below the floor of the other."""
        return other.floor is not None and (self.floor is None or self.floor < other.floor)

    def reaches_above(self, other: Span) -> bool:
        """Return whether this span contains versions above the ceiling of the other."""
        if other.ceiling is None:
            return False
        return self.ceiling is None or _ceiling_order(other.ceiling) < _ceiling_order(self.ceiling)


def _ceiling_order(end: tuple[Version, bool]) -> tuple[Version, bool]:
    """Return a sort key for the ceilings of spans: `<5` comes before `<=5`."""
    return end[0], not end[1]


def labels(text: str) -> tuple[str, ...] | None:
    """Return the labels in a list such as `7.5, 8.0` or `rhel 9 or ubuntu 24.04`; None for a range, () for an empty text."""
    if _COMPARISON.search(text):
        return None
    return tuple(_SEPARATOR.split(text)) if text else ()


def direction(old: str, new: str) -> str:
    """Return how a new requirement changes the admitted hosts: `tightened`, `loosened`, or `changed` (both, or unknown).

    An empty requirement admits all hosts.
    """
    if not old or not new:
        return "tightened" if new else "loosened"
    before, after = Span.parse(old), Span.parse(new)
    if before is not None and after is not None:
        loses = before.reaches_below(after) or before.reaches_above(after)
        wins = after.reaches_below(before) or after.reaches_above(before)
    else:
        listed, lists = labels(old), labels(new)
        if listed is None or lists is None:
            return "changed"
        loses, wins = bool(set(listed) - set(lists)), bool(set(lists) - set(listed))
    if loses == wins:
        return "changed"
    return "tightened" if loses else "loosened"


def fall_out(old: str, new: str) -> FallOut | None:
    """Return the values of a host fact that met the old requirement and do not meet the new one; None when there are none."""
    before, after = Span.parse(old), Span.parse(new)
    if not new:
        return None
    if after is None or (before is None and old):
        return FallOut(outside=new) if direction(old, new) != "loosened" else None
    before = before or Span()
    below = str(after.floor[0]) if after.floor and before.reaches_below(after) else ""
    end, is_open = after.ceiling if after.ceiling and before.reaches_above(after) else ("", False)
    found = FallOut(below=below, above="" if is_open else str(end), start=str(end) if is_open else "")
    return found if found != FallOut() else None


def may_refuse(old: Iterable[str], new: str) -> bool:
    """Return whether some host could meet every old NVIDIA_REQUIRE_* value and not the new one; True if one is malformed."""
    try:
        before, after = [parse(one) for one in old], parse(new)
    except GateError:
        return True
    every, anything = [*before, after], GateFacts()
    hosts = product(completions(every, anything), tuple(completions_of_gpu(every, GateGpu())))
    facts = ({**of_host, **of_gpu} for of_host, of_gpu in hosts)
    return any(all(is_met(one, host) for one in before) and not is_met(after, host) for host in facts)
