"""What a lock asks of hosts, before and after: which machines fall out, which fit now, how the driver requirement is met."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.lock.comparison import Change
from provisioner.lock.reach import direction, fall_out, labels, may_refuse
from provisioner.resolver.rules.coverage import TARGET, capability, coverage
from provisioner.resolver.rules.gate import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.lock.model import LockedStack

_CAPABILITY = re.compile(r"\d+\.\d+")

NAMES = {"gpu": "GPUs", "amdgpu": "the amdgpu driver", "cuda_driver": "the CUDA driver", "webdriver": "the web driver"}
"""What a host fact is called where its key alone would not read well."""

BASES = {
    "native": "natively",
    "minor-version": "by minor-version compatibility",
    "forward-compat": "by the forward-compatibility package",
}


def host_changes(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """What one platform asks of its hosts, where the two locks differ; what explains the rest and costs most comes first."""
    if old.accelerator != new.accelerator:
        yield _of_accelerator(old.accelerator, new.accelerator)
    if old.runs != new.runs:
        text = f"it runs in a {new.runs} now" if new.runs == "container" else "it runs on the host itself now, without an image"
        yield Change(section="hosts", subject="runs", change="changed", text=text, old=old.runs, new=new.runs, is_breaking=True)
    yield from _gpus(old, new)
    facts = {**old.host_requirements, **new.host_requirements}.keys() - {"gpu"}
    for fact in sorted(facts, key=lambda name: (name != "driver", name)):
        before, after = old.host_requirements.get(fact, ""), new.host_requirements.get(fact, "")
        if before != after:
            yield _of_fact(fact, before, after)
    if set(old.arch_list) != set(new.arch_list):
        yield _of_targets(old.arch_list, new.arch_list)
    if old.basis != new.basis:
        yield _of_basis(old.basis, new.basis)
    if old.require_cuda != new.require_cuda:
        yield _of_gate(old.require_cuda, new.require_cuda)
    if old.environment.get(KEPT, "") != new.environment.get(KEPT, ""):
        yield _of_kept_gate(old, new)


def _gpus(old: LockedStack, new: LockedStack) -> Iterator[Change]:
    """The GPUs that fall out and that fit now.

    A lock lists GPUs only where its hosts stated some. Where one does not, its compiled targets say what they run natively,
    and are asked about the other's list and about the targets themselves.
    """
    before, after = (labels(stack.host_requirements.get("gpu", "")) for stack in (old, new))
    if before is None or after is None:  # a range, which only some platforms have
        if before != after:
            yield _of_fact("gpu", old.host_requirements.get("gpu", ""), new.host_requirements.get("gpu", ""))
        return
    uses = [stack.accelerator in {"cuda", "rocm"} for stack in (old, new)]
    note = ""
    if any(is_used and not found for is_used, found in zip(uses, (before, after), strict=True)):
        known = sorted({*before, *after, *_own_devices(old), *_own_devices(new)}, key=lambda device: (_number(device), device))
        before, after = (
            tuple(one for one in known if one in found or one in _run_by(stack, known))
            for found, stack in ((before, old), (after, new))
        )
        note = ", going by the compiled targets: no host of one of the locks stated its GPUs"
    lost, gained = _without(before, after), _without(after, before)
    if uses[0] != uses[1]:
        change = "tightened" if uses[1] else "loosened"
        text = "no GPU is required any more"
        if uses[1]:
            text = f"a GPU is required now: {listed(after)}" if after else "a GPU is required now"
            note = note if after else ""
    elif lost or gained:
        change = "changed" if lost and gained else "tightened" if lost else "loosened"
        text = _fall_and_fit(lost, gained)
    else:
        return
    yield Change(
        section="hosts", subject="gpu", change=change, text=text + note, old=", ".join(before), new=", ".join(after),
        lost=lost, gained=gained, is_breaking=uses[1] > uses[0] or (uses[1] == uses[0] and bool(lost)),
    )  # fmt: skip


def _fall_and_fit(lost: Sequence[str], gained: Sequence[str]) -> str:
    noun = "GPUs" if any(label.startswith("gfx") for label in (*lost, *gained)) else "GPUs of compute capability"
    parts = [f"{noun} {listed(lost)} fall out"] if lost else []
    parts += [f"{'' if lost else f'{noun} '}{listed(gained)} fit now"] if gained else []
    return "; ".join(parts)


def _own_devices(stack: LockedStack) -> tuple[str, ...]:
    """The devices that compiled targets are named after: 9.0 of `sm_90a`, gfx942 as it is."""
    found = (TARGET.fullmatch(text) for text in stack.arch_list)
    return tuple(f"{match[1]}.{match[2]}" for match in found if match) or stack.arch_list


def _run_by(stack: LockedStack, devices: Sequence[str]) -> tuple[str, ...]:
    """The devices that run the machine code of a stack."""
    if stack.accelerator == "rocm":
        return tuple(device for device in devices if device in stack.arch_list)
    targets = tuple(text for text in stack.arch_list if text.startswith("sm_") and TARGET.fullmatch(text))
    numbered = [device for device in devices if _CAPABILITY.fullmatch(device)]
    return tuple(device for device in numbered if coverage(targets, (), capability(device)) == "native")


def _number(device: str) -> tuple[int, ...]:
    return capability(device) if _CAPABILITY.fullmatch(device) else (0,)


def _of_fact(fact: str, old: str, new: str) -> Change:
    name, change = NAMES.get(fact, fact), direction(old, new)
    if not old:
        text = f"{name} `{new}` is required now, where nothing was"
    elif not new:
        text = f"{name} `{old}` is no longer required"
    else:
        text = f"{name} `{old}` became `{new}`"
    outside = fall_out(old, new)
    if outside:
        text += f": hosts with {name} {outside} fall out"
    elif change == "loosened" and new:
        text += ": more hosts fit now"
    is_breaking = change != "loosened"
    return Change(section="hosts", subject=fact, change=change, text=text, old=old, new=new, is_breaking=is_breaking)


def _of_accelerator(old: str, new: str) -> Change:
    text = f"accelerator {old} -> {new}" + (": no GPU is used any more" if new == "cpu" else "")
    return Change(section="hosts", subject="accelerator", change="changed", text=text, old=old, new=new, is_breaking=True)


def _of_targets(old: Sequence[str], new: Sequence[str]) -> Change:
    lost, gained = _without(old, new), _without(new, old)
    parts = [f"{listed(lost)} went"] if lost else []
    parts += [f"{listed(gained)} came"] if gained else []
    return Change(
        section="hosts", subject="arch_list", change="changed", text=f"compiled targets: {'; '.join(parts)}",
        old=" ".join(old), new=" ".join(new), lost=lost, gained=gained,
    )  # fmt: skip


def _of_basis(old: str, new: str) -> Change:
    if new:
        text = f"the driver requirement is met {BASES[new]} now" + (f", {BASES[old]} before" if old else "")
    else:
        text = f"there is no driver requirement any more, it was met {BASES[old]}"
    return Change(section="hosts", subject="basis", change="changed", text=text, old=old, new=new)


def _of_gate(old: str, new: str) -> Change:
    """Words for the variable a container runtime reads; the requirement itself is told with driver and GPUs."""
    change = "changed" if old and new else "added" if new else "removed"
    words = {"changed": f"`{old}` -> `{new}`", "added": f"`{new}` is new", "removed": f"`{old}` is gone"}
    text = f"NVIDIA_REQUIRE_CUDA {words[change]}"
    return Change(section="hosts", subject="require_cuda", change=change, text=text, old=old, new=new)


def _of_kept_gate(old: LockedStack, new: LockedStack) -> Change:
    """What a base image asks of hosts itself; it breaks where a host that met all of the old requirements may not meet it."""
    before, after = old.environment.get(KEPT, ""), new.environment.get(KEPT, "")
    if not before:
        change, text = "added", f"{_alternatives(after)} is required by the base image itself now"
    elif not after:
        change, text = "removed", f"{_alternatives(before)} is no longer required by the base image itself"
    else:
        change, text = "changed", f"the base image itself requires {_alternatives(after)}, it required {_alternatives(before)}"
    is_breaking = bool(after) and may_refuse((old.require_cuda, before), after)
    return Change(
        section="hosts", subject="require_base", change=change, text=f"{text} ({KEPT})", old=before, new=after,
        is_breaking=is_breaking,
    )  # fmt: skip


def _alternatives(text: str) -> str:
    """The first alternative of a requirement, and how many more there are: NVIDIA's have dozens."""
    first, *others = text.split()
    return f"`{first}`" + (
        f" or one of {len(others)} other alternatives" if len(others) > 1 else f" or `{others[0]}`" if others else ""
    )


def _without(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(one for one in some if one not in set(others))


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
