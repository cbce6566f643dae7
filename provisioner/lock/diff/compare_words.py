"""A comparison in words for a review: Markdown that reads as plain text, packages grouped by what moved them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.lock.diff.system import arrow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.lock.diff.comparison import Cause, Change, Comparison

_TITLES = {
    "hosts": "Hosts",
    "system": "System",
    "packages": "Packages",
    "inputs": "What the locks were made from",
}
_BREAKING = "Breaks what ran before"

_HEADLINES = ("pytorch", "tensorflow", "jax", "cuda", "rocm", "python")

_STARRED = re.compile(r"(?<!\S)[^\s*]+\*(?=[\s,;)]|$)")

_MOST_CAUSES = 2
"""Reasons told for one change of the system; JSON has all of them."""

_KINDS = ("added", "removed", "upgraded", "downgraded")


def comparison_lines(comparison: Comparison, *, old: str, new: str) -> list[str]:
    """The whole comparison of two files called `old` and `new`; one line where nothing changed."""
    lines = [f"## {old} -> {new}", "", summary(comparison)]
    lines += [line for note in comparison.notes for line in ("", note)]
    breaking = [change for change in comparison.changes if change.is_breaking]
    lines += _section(_BREAKING, breaking, comparison)
    for section in ("hosts", "system"):
        lines += _section(_TITLES[section], [one for one in comparison.of(section) if not one.is_breaking], comparison)
    lines += _package_section(comparison)
    lines += _section(_TITLES["inputs"], comparison.of("inputs"), comparison)
    return [_literal(line) for line in lines]


def _literal(line: str) -> str:
    """A line whose stars stay stars when it is read as Markdown: `==12.*` goes into backticks."""
    parts = line.split("`")
    return "`".join(_STARRED.sub(r"`\g<0>`", part) if index % 2 == 0 else part for index, part in enumerate(parts))


def summary(comparison: Comparison) -> str:
    """One sentence: what breaks, what moved, how many packages."""
    if not comparison.changes:
        return "Nothing changed."
    breaking = [change for change in comparison.changes if change.is_breaking]
    parts = []
    if breaking:
        parts.append(f"**{len(breaking)} {'change breaks' if len(breaking) == 1 else 'changes break'} what ran before**")
    elif comparison.platforms:
        parts.append("no host falls out")
    moved = {change.subject: change for change in comparison.of("system")}
    parts += [arrow(name, moved[name].old, moved[name].new) for name in _HEADLINES if name in moved]
    packages = comparison.of("packages")
    if packages:
        parts.append(_package_counts(packages, comparison.unchanged))
    words = "; ".join(parts)
    return f"{words[0].upper()}{words[1:]}."


def _package_counts(packages: Sequence[Change], unchanged: int) -> str:
    """`3 packages added, 1 downgraded, 2 from another file or index; 30 unchanged`."""
    moved = [change for change in packages if change.aspect == "version"]
    counts = [(kind, sum(change.change == kind for change in moved)) for kind in _KINDS]
    others = len({change.subject for change in packages} - {change.subject for change in moved})
    rebuilt = sum(change.change == "changed" for change in moved)
    named = [
        f"{count} {kind}" for kind, count in [*counts, ("of another build", rebuilt), ("otherwise changed", others)] if count
    ]
    return f"packages: {', '.join(named)}, {unchanged} unchanged"


def _section(title: str, changes: Sequence[Change], comparison: Comparison) -> list[str]:
    if not changes:
        return []
    lines = ["", f"### {title}", ""]
    for change in changes:
        lines.append(f"- {change.text}{where_words(change, comparison)}")
        lines += [f"  - {line}" for line in because(change)]
    return lines


def where_words(change: Change, comparison: Comparison) -> str:
    """The platforms of a change that is not true of all."""
    is_partial = change.platforms and len(change.platforms) < len(comparison.platforms)
    return f" ({', '.join(change.platforms)})" if is_partial else ""


def because(change: Change) -> Iterator[str]:
    """The first reasons of a change, a line each, and how many more there are."""
    for cause in change.causes[:_MOST_CAUSES]:
        words = cause.text if cause.kind == "unknown" else f"because {cause.text}"
        yield f"cause {words}" if cause.kind == "unknown" else f"{words}{f'  ({cause.where})' if cause.where else ''}"
    more = len(change.causes) - _MOST_CAUSES
    if more > 0:
        yield f"and {more} more such reason{'' if more == 1 else 's'}"


def _package_section(comparison: Comparison) -> list[str]:
    """Packages by what moved them: the change at the end of each chain of causes, largest group first."""
    changes = [change for change in comparison.of("packages") if not change.is_breaking]
    if not changes:
        return []
    roots = _roots(comparison)
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(_group(change, roots, comparison), []).append(change)
    lines = ["", f"### {_TITLES['packages']}", ""]
    for title, members in sorted(groups.items(), key=lambda item: (_RANK.get(item[0], 0), -len(item[1]), item[0])):
        lines.append(f"- {_count(members)} {title}:")
        lines += [f"  - {change.text}{_detail(change, roots)}{where_words(change, comparison)}" for change in members]
    return lines


_OF_SPEC, _OF_INDEX, _OF_MATRIX, _OF_NOTHING = (
    "as the spec asks",
    "released since the old lock",
    "by other rules of the matrix",
    "for a reason the locks do not record",
)
_RANK = {_OF_SPEC: -1, _OF_MATRIX: 1, _OF_INDEX: 2, _OF_NOTHING: 3}
_BY_KIND = {"spec": _OF_SPEC, "index": _OF_INDEX, "matrix": _OF_MATRIX, "unknown": _OF_NOTHING}


def _count(members: Sequence[Change]) -> str:
    count = len({change.subject for change in members})
    return f"{count} package{'' if count == 1 else 's'}"


def _group(change: Change, roots: Mapping[str, str], comparison: Comparison) -> str:
    cause = change.causes[0]
    if cause.kind != "follows":
        return _BY_KIND[cause.kind]
    root = roots.get(cause.subject, cause.subject)
    found = next((one for one in comparison.changes if one.subject == root and one.aspect in {"", "version"}), None)
    return f"following {_led_by(root, found)}"


def _led_by(root: str, change: Change | None) -> str:
    if change is None:
        return root
    if change.old and change.new:
        return arrow(root, change.old, change.new)
    return f"{root} {change.new}, which is new" if change.new else f"{root} {change.old}, which is gone"


def _detail(change: Change, roots: Mapping[str, str]) -> str:
    """Why this member, where the title of its group does not say it: the words of the spec, a date, a longer chain."""
    cause = change.causes[0]
    if cause.kind in {"spec", "index", "matrix"}:
        return f": {cause.text}"
    is_direct = roots.get(cause.subject, cause.subject) == cause.subject or cause.subject == "torch"
    return "" if cause.kind == "unknown" or is_direct else f" (through {cause.subject})"


def _roots(comparison: Comparison) -> dict[str, str]:
    """For everything that changed, the change at the end of what it follows: itself, where it follows nothing."""
    causes: dict[str, Sequence[Cause]] = {}
    for change in comparison.changes:
        if change.aspect in {"", "version"}:
            causes.setdefault(change.subject, change.causes)
    roots = {}
    for subject in causes:
        seen = [subject]
        while (step := _followed(causes.get(seen[-1], ()))) is not None and step not in seen and step in causes:
            seen.append(step)
        roots[subject] = seen[-1]
    return roots


def _followed(causes: Sequence[Cause]) -> str | None:
    return causes[0].subject if causes and causes[0].kind == "follows" else None
