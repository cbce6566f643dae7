"""Words for people: a stack as lines, a conflict as request, rules, fact and conclusion, hints as what would do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from provisioner.solve.stack import Conflict, Hint, Reason, Stack

MOST_LINES = 15
"""What fits on a screen beside the hints; who reads more than that reads JSON."""

MOST_GIVEN = 12
"""As many versions as a reader of a hint compares; a spec may pin two hundred, and a hint repeats those that stay."""

SUMMARIZED = ("tensorflow", "jax", "cuda", "rocm", "driver", "amdgpu", "webdriver", "python")

_IS_ITSELF = re.compile(r"(?P<name>\S+) (?P<version>\S+) is installed as (?P=name)==(?P=version)")


def conflict_lines(conflict: Conflict) -> tuple[str, ...]:
    """One line for each member, each with its source, and what follows; never more than `MOST_LINES`."""
    end = (conflict.conclusion,) if conflict.conclusion else ()
    lines = [(member.kind, reason_line(member)) for member in conflict.members if not _says_the_same_twice(member, conflict)]
    for kind in ("rule", "fact", "request"):
        lines = _shortened(lines, kind, MOST_LINES - len(end))
    return (*(line for _, line in lines), *end)


def _says_the_same_twice(member: Reason, conflict: Conflict) -> bool:
    """Whether a line only says that a component is the distribution of its name and version, of which others tell the rest."""
    name = member.component
    is_same = all(
        (match := _IS_ITSELF.fullmatch(part)) is not None and match["name"] == name for part in member.text.split("; ")
    )
    others = (other for other in conflict.members if other is not member)
    return is_same and any(other.kind == "rule" and other.text.startswith(f"{name} ") for other in others)


def _shortened(lines: list[tuple[str, str]], kind: str, most: int) -> list[tuple[str, str]]:
    """Count the last lines of a kind instead of showing them, where there are too many lines."""
    too_many = len(lines) - most
    of_kind = [index for index, line in enumerate(lines) if line[0] == kind]
    if too_many <= 0 or len(of_kind) < 2:
        return lines
    left_out = of_kind[-min(too_many + 1, len(of_kind) - 1) :]
    names = {"rule": "rules", "fact": "facts", "request": "requests"}
    note = (kind, f"and {len(left_out)} more {names[kind]}, listed under --format json")
    return [note if index == left_out[0] else line for index, line in enumerate(lines) if index not in left_out[1:]]


def reason_line(reason: Reason) -> str:
    """One reason with its source."""
    return f"{reason.text}  ({reason.where})" if reason.where else reason.text


def hint_line(hint: Hint) -> str:
    """A hint and what it would give: all of it, or of many requests what the hint names and the components first."""
    given = {name: value for name, value in hint.gives.items() if name != "pytorch_build"}
    build = hint.gives.get("pytorch_build")
    if build and "pytorch" in given:
        given["pytorch"] = f"{given['pytorch']}+{build}"
    words = hint.text.split()
    wanted = sorted(given, key=lambda name: (name not in SUMMARIZED and name != "pytorch", name not in words))
    shown = {*(wanted if len(wanted) <= MOST_GIVEN else wanted[: MOST_GIVEN - 1])}
    told = [f"{name} {value}" for name, value in given.items() if name in shown]
    more = len(given) - len(told)
    rest = [f"and {more} more, listed under --format json"] if more else []
    return f"{hint.text}: gives {', '.join([*told, *rest])}" if told else hint.text


def stack_rows(stack: Stack) -> list[tuple[str, str, str]]:
    """Component, what was chosen, and what bound it: the fact or the request, else the rule of the highest component.

    Where a package holds a component back, that is what bound it.
    """
    reasons: dict[str, Reason] = {}
    held_by = {one.component: one.where for one in stack.held_back if one.where}
    for pin in stack.pins:
        for reason in pin.reasons:
            kept = reasons.get(pin.component)
            by = held_by.get(pin.component)
            if kept is None or _weight(reason, by) > _weight(kept, by):
                reasons[pin.component] = reason
    return [
        (name, value, reason_line(reasons[name]) if name in reasons else "")
        for name, value in stack.components.items()
        if value
    ]


def package_rows(stack: Stack) -> list[tuple[str, str, str]]:
    """Distribution, version, and who needs it in which range."""
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


def _weight(reason: Reason, held_by: str | None) -> tuple[bool, int]:
    return reason.where == held_by, ("rule", "request", "fact").index(reason.kind)


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
