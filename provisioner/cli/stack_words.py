"""A stack as rows and as one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.words.ground import say_with_source
from provisioner.words.notation import counted

if TYPE_CHECKING:
    from provisioner.grounds.requirement import Ground
    from provisioner.resolver.stack import Stack

SUMMARIZED = ("tensorflow", "jax", "cuda", "rocm", "driver", "amdgpu", "webdriver", "python")


def stack_rows(stack: Stack) -> list[tuple[str, str, str]]:
    """Return each component, what was chosen, and what bound it: the fact, the request, or the rule of the highest component.

    Where a package holds a component back, that is what bound it.
    """
    reasons: dict[str, Ground] = {}
    held_by = {one.component: one.by for one in stack.held_back}
    for pin in stack.pins:
        for reason in pin.reasons:
            kept = reasons.get(pin.component)
            by = held_by.get(pin.component)
            if kept is None or _weight(reason, by) > _weight(kept, by):
                reasons[pin.component] = reason
    return [
        (name, value, say_with_source(reasons[name]) if name in reasons else "")
        for name, value in stack.components.items()
        if value
    ]


def _weight(reason: Ground, held_by: Ground | None) -> tuple[bool, int]:
    is_holding = held_by is not None and held_by.source is not None and reason.source == held_by.source
    return is_holding, ("rule", "request", "fact").index(reason.kind)


def package_rows(stack: Stack) -> list[tuple[str, str, str]]:
    """Return each distribution, its version, and who needs it in which range."""
    needed: dict[str, list[str]] = {}
    for package in stack.packages:
        for text in package.requires:
            needed.setdefault(canonicalize_name(Requirement(text).name), []).append(f"{package.name} needs {text}")
    rows = []
    for package in stack.packages:
        by = needed.get(package.name, [])
        more = f" and {len(by) - 1} more" if len(by) > 1 else ""
        rows.append((package.name, package.version, f"{by[0]}{more}" if by else ""))
    return rows


def summary(stack: Stack, *, verdict: str = "") -> str:
    """Return the choices of a stack and its verdict, or the one given, as one line."""
    return f"{choices(stack)}, verdict {verdict or stack.verdict}"


def choices(stack: Stack) -> str:
    """Return what was chosen where people look first, and how CUDA runs, as one line."""
    framework = stack.components.get("pytorch")
    build = stack.components.get("pytorch_build")
    parts = [f"pytorch {framework}+{build}"] if framework else []
    parts.extend(f"{name} {stack.components[name]}" for name in SUMMARIZED if name in stack.components)
    if stack.packages:
        parts.append(counted(len(stack.packages), "package"))
    basis = f", basis {stack.basis}" if stack.basis else ""
    return f"{', '.join(parts)}{basis}"
