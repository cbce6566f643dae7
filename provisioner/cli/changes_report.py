"""The changes that solving a lock again would make, as `provision check` prints them below the lock's findings and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from packaging.requirements import Requirement

from provisioner.grounds.change import BroughtAlong, ByDependent, FreedFrom, TakenAlong, cause_fields
from provisioner.words.change import because, cause_source, cause_words, change_words, where_words
from provisioner.words.finding import drift_words
from provisioner.words.notation import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from provisioner.grounds.change import Cause, Change, Comparison, Held
    from provisioner.grounds.finding import FileDrift
    from provisioner.grounds.requirement import Subject
    from provisioner.workflow.relocking import Preview


Item = TypeVar("Item")

_MANY = 3
"""The fewest packages that are combined in one line because another package is their common cause."""

_WORDS = {BroughtAlong: "brings along", TakenAlong: "brought along"}


def preview_lines(preview: Preview) -> Iterator[str]:
    """Yield the lines of a preview, to be printed below the findings of its lock."""
    yield from (f"news: {drift_words(one)}  [{one.kind}-file]" for one in preview.drifts if not one.is_alarm)
    if preview.system is not None:
        yield from _block("solving the system half again", _comparison_lines(preview.system), len(_changes(preview.system)))
        yield "`provision check --changes` asks the indexes which packages would move"
    if preview.moves_packages:
        yield "with other versions of its packages the system half has an answer: `provision check --changes` asks the indexes"
    if preview.least is not None and preview.upgrade is not None:
        least, upgrade = _comparison_lines(preview.least), _comparison_lines(preview.upgrade)
        is_same = bool(least) and [*_moves(preview.least)] == [*_moves(preview.upgrade)]
        yield from _block("solving again", least, len(_changes(preview.least)))
        yield from _block("solving again with --upgrade", upgrade, len(_changes(preview.upgrade)), is_same=is_same)
        yield from (f"the new lock would record: {change_words(change)}" for change in preview.least.of("inputs"))
    if preview.held:
        groups = _by_line(preview.held)
        yield f"{len(groups)} package{' is' if len(groups) == 1 else 's are'} held back even so:"
        yield from (f"  {line}" for line in _held_lines(groups))


def _by_line(held: Sequence[Held]) -> list[list[Held]]:
    """Return the packages held back (outdated even after an upgrade), grouped by their text, so that platforms share lines."""
    found: dict[str, list[Held]] = {}
    for one in held:
        found.setdefault(_held_line(one), []).append(one)
    return list(found.values())


def _held_lines(groups: Sequence[list[Held]]) -> Iterator[str]:
    """Yield a line for each group of packages held back, or for several groups with one cause.

    A line names its platforms unless these are all platforms that occur in `groups`.
    """
    platforms = {one.platform for group in groups for one in group}
    for together in _together(groups, lambda group: (_required_by(group[0].causes), *(one.platform for one in group))):
        first = together[0]
        place = "" if len(first) == len(platforms) else f"on {' and '.join(one.platform for one in first)}: "
        if len(together) == 1:
            yield f"{place}{_held_line(first[0])}"
        else:
            names = "; ".join(f"{one.name} {one.version}, not {one.newest}" for one, *_ in together)
            yield f"{place}{_led([one.causes[0] for one, *_ in together])}: {names}"


def _together(items: Sequence[Item], key: Callable[[Item], tuple[Hashable, ...]]) -> Iterator[list[Item]]:
    """Yield the items in groups with equal `key`, in the order of the first item of each group.

    Items of which fewer than `_MANY` share a key, or whose key begins with None, are yielded as groups of one.
    """
    by_key: dict[tuple[Hashable, ...], list[Item]] = {}
    for item in items:
        by_key.setdefault(key(item), []).append(item)
    for item in items:
        found = by_key[key(item)]
        if key(item)[0] is None or len(found) < _MANY:
            yield [item]
        elif found[0] is item:
            yield found


def _required_by(causes: Sequence[Cause]) -> tuple[Subject, type[ByDependent]] | None:
    """Return the package whose requirement is the only cause of a change, and the kind of the cause; None otherwise."""
    cause = causes[0]
    if len(causes) > 1 or not isinstance(cause, ByDependent) or isinstance(cause, FreedFrom):
        return None
    return cause.dependent, type(cause)


def _led(causes: Sequence[Cause]) -> str:
    """Return the beginning of a line about several packages with one cause: `13 packages that torch 2.8.0 pins`."""
    found = _required_by(causes[:1])
    assert found is not None, "packages are combined where another package requires them"
    dependent, kind = found
    requirements = [Requirement(cause.requirement) for cause in causes if isinstance(cause, ByDependent) and cause.requirement]
    verb = _WORDS.get(kind) or ("pins" if all(map(_is_pin, requirements)) else "requires so")
    return f"{len(causes)} packages that {dependent} {verb}"


def _is_pin(requirement: Requirement) -> bool:
    clauses = list(requirement.specifier)
    return len(clauses) == 1 and clauses[0].operator == "==" and not clauses[0].version.endswith("*")


def _comparison_lines(comparison: Comparison) -> list[str]:
    """Return a line for each change and indented lines for its reasons, in the words of `explain --diff`.

    Packages that only follow a change of one other package are combined in one line.
    """
    lines = []
    for together in _together(_changes(comparison), _leader):
        first = together[0]
        where = where_words(first, comparison)
        if len(together) > 1:
            lines.append(f"{_led([one.causes[0] for one in together])}{where}: {'; '.join(map(_move, together))}")
            continue
        lines.append(f"{change_words(first)}{where}")
        lines += [f"  {line}" for line in because(first)]
    return lines


def _leader(change: Change) -> tuple[Hashable, ...]:
    is_plain = change.section == "packages" and change.aspect == "version" and not change.is_breaking
    return (_required_by(change.causes) if is_plain else None, change.change in {"added", "removed"}, change.platforms)


def _move(change: Change) -> str:
    return change_words(change) if change.old and change.new else f"{change.subject} {change.new or f'{change.old} goes'}"


def _moves(comparison: Comparison) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the text and the platforms of each change, to compare two previews without reasons, which `--upgrade` alters."""
    return ((change_words(change), change.platforms) for change in _changes(comparison))


def _changes(comparison: Comparison) -> list[Change]:
    return [change for change in comparison.changes if change.section != "inputs"]


def _block(what: str, lines: Sequence[str], count: int, *, is_same: bool = False) -> Iterator[str]:
    if is_same:
        yield f"{what} would change the same"
    elif lines:
        yield f"{what} would change {counted(count, 'thing')}:"
        yield from (f"  {line}" for line in lines)
    else:
        yield f"{what} would change nothing"


def _held_line(held: Held) -> str:
    out = f", out since {held.uploaded}" if held.uploaded else ""
    first, *others = held.causes
    source = cause_source(first)
    place = f"  ({source})" if source else ""
    more = f", and {counted(len(others), 'more such reason')}" if others else ""
    return f"{held.name} {held.version}, not {held.newest}{out}: {cause_words(first)}{place}{more}"


def preview_data(preview: Preview) -> dict[str, object]:
    """Return a preview as JSON; a comparison that could not be computed (index out of reach, nothing fits) is null."""
    if preview.moves_packages:
        return {"system": None}
    if preview.system is not None:
        return {"system": [_entry(change) for change in _changes(preview.system)]}
    least, upgrade = preview.least, preview.upgrade
    return {
        "least": None if least is None else [_entry(change) for change in _changes(least)],
        "upgrade": None if upgrade is None else [_entry(change) for change in _changes(upgrade)],
        "held": [_held_entry(held) for held in preview.held],
        "offers": [_drift_entry(drift) for drift in preview.drifts],
        "inputs": None if least is None else [_entry(change) for change in least.of("inputs")],
    }


def _entry(change: Change) -> dict[str, object]:
    return {
        "name": change.subject,
        "section": change.section,
        "kind": change.change,
        "aspect": change.aspect,
        "from": change.old,
        "to": change.new,
        "text": change_words(change),
        "platforms": list(change.platforms),
        "breaking": change.is_breaking,
        "reasons": [cause_data(cause) for cause in change.causes],
    }


def _held_entry(held: Held) -> dict[str, object]:
    return {
        "name": held.name,
        "version": held.version,
        "newest": held.newest,
        "uploaded": held.uploaded,
        "platform": held.platform,
        "reasons": [cause_data(cause) for cause in held.causes],
    }


def _drift_entry(drift: FileDrift) -> dict[str, object]:
    return {
        "kind": drift.kind,
        "name": drift.package.name,
        "version": drift.package.label,
        "filename": drift.filename,
        "index": drift.index,
        "text": drift_words(drift),
        "said": drift.locked,
        "says": drift.offered,
    }


def cause_data(cause: Cause) -> dict[str, object]:
    """Return a cause of a change as JSON: its text, its subject, its place and its fields; empty ones are left out."""
    from msgspec import to_builtins

    words = {"kind": cause.kind, "text": cause_words(cause), "subject": cause.subject, "where": cause_source(cause)}
    return {key: value for key, value in {**to_builtins(cause_fields(cause)), **words}.items() if value}
