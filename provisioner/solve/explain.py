"""Words for people: a stack as lines, a conflict as request, rules, fact and conclusion, hints as what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.solve.stack import Conflict, Hint, Reason, Stack

SUMMARIZED = ("tensorflow", "jax", "cuda", "rocm", "driver", "amdgpu", "webdriver", "python")


def conflict_lines(conflict: Conflict) -> tuple[str, ...]:
    """One line for each member, each with its source."""
    return tuple(_line(member) for member in conflict.members)


def _line(reason: Reason) -> str:
    return f"{reason.text}  ({reason.where})" if reason.where else reason.text


def hint_line(hint: Hint) -> str:
    """A hint and what it would give."""
    gives = ", ".join(f"{name} {value}" for name, value in hint.gives.items() if name != "pytorch_build")
    build = hint.gives.get("pytorch_build")
    if build and "pytorch" in hint.gives:
        gives = gives.replace(f"pytorch {hint.gives['pytorch']}", f"pytorch {hint.gives['pytorch']}+{build}")
    return f"{hint.text}: gives {gives}" if gives else hint.text


def stack_rows(stack: Stack) -> list[tuple[str, str, str]]:
    """Component, what was chosen, and what bound it: the fact or the request, else the rule of the highest component."""
    reasons: dict[str, Reason] = {}
    for pin in stack.pins:
        for reason in pin.reasons:
            kept = reasons.get(pin.component)
            if kept is None or _weight(reason) > _weight(kept):
                reasons[pin.component] = reason
    return [(name, value, _line(reasons[name]) if name in reasons else "") for name, value in stack.components.items() if value]


def _weight(reason: Reason) -> int:
    return ("rule", "request", "fact").index(reason.kind)


def summary(stack: Stack) -> str:
    """One line: what is decided, by which basis, with which verdict."""
    framework = stack.components.get("pytorch")
    build = stack.components.get("pytorch_build")
    parts = [f"pytorch {framework}+{build}"] if framework else []
    parts.extend(f"{name} {stack.components[name]}" for name in SUMMARIZED if name in stack.components)
    if stack.packages:
        count = len(stack.packages)
        parts.append(f"{count} package{'' if count == 1 else 's'}")
    basis = f", basis {stack.basis}" if stack.basis else ""
    return f"{', '.join(parts)}{basis}, verdict {stack.verdict}"
