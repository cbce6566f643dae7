"""What solving a lock again would change, as `provision check` tells it: in lines below the lock's findings, and as JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from provisioner.lock.check.files import Offer
    from provisioner.lock.diff.comparison import Cause, Change, Comparison
    from provisioner.lock.diff.relock import Held
    from provisioner.workflow.relocking import Preview


_Told = TypeVar("_Told")

_MANY = 3
"""So many packages that are where they are because of one other are told in one line."""

_ASKS = re.compile(r"(\S+ \S+) (requires it now|required it before|requires)(?: \(?`([^`]*)`.*)?")
"""`torch 2.8.0 requires `triton==3.4.0`, which 3.3.1 is not`: who, how, and what."""

_WORDS = {"requires": "requires so", "requires it now": "brings along", "required it before": "brought along"}


def preview_lines(preview: Preview) -> Iterator[str]:
    """A preview in words, below the findings of its lock."""
    yield from (f"news: {offer.text}  [{offer.kind}-file]" for offer in preview.offers if not offer.is_alarm)
    if preview.system is not None:
        yield from _block("solving the system half again", _told(preview.system), len(_changes(preview.system)))
        yield "`provision check --changes` asks the indexes which packages would move"
    if preview.least is not None and preview.upgrade is not None:
        least, upgrade = _told(preview.least), _told(preview.upgrade)
        is_same = bool(least) and [*_moves(preview.least)] == [*_moves(preview.upgrade)]
        yield from _block("solving again", least, len(_changes(preview.least)))
        yield from _block("solving again with --upgrade", upgrade, len(_changes(preview.upgrade)), is_same=is_same)
        yield from (f"the new lock would record: {change.text}" for change in preview.least.of("inputs"))
    if preview.held:
        groups = _by_line(preview.held)
        yield f"{len(groups)} package{' is' if len(groups) == 1 else 's are'} held back even so:"
        yield from (f"  {line}" for line in _held_lines(groups))


def _by_line(held: Sequence[Held]) -> list[list[Held]]:
    """What is held back, alike on several platforms as one."""
    found: dict[str, list[Held]] = {}
    for one in held:
        found.setdefault(_held_line(one), []).append(one)
    return list(found.values())


def _held_lines(groups: Sequence[list[Held]]) -> Iterator[str]:
    """What holds on every platform that has something held back is said once; of the rest the platform is named."""
    platforms = {one.platform for group in groups for one in group}
    for together in _together(groups, lambda group: (_asked_by(group[0].causes), *(one.platform for one in group))):
        first = together[0]
        place = "" if len(first) == len(platforms) else f"on {' and '.join(one.platform for one in first)}: "
        if len(together) == 1:
            yield f"{place}{_held_line(first[0])}"
        else:
            names = "; ".join(f"{one.name} {one.version}, not {one.newest}" for one, *_ in together)
            yield f"{place}{_led([one.causes[0] for one, *_ in together])}: {names}"


def _together(items: Sequence[_Told], key: Callable[[_Told], tuple[Hashable, ...]]) -> Iterator[list[_Told]]:
    """Items one by one in their order, but many of one key at once; a key that begins with None is nobody's."""
    by_key: dict[tuple[Hashable, ...], list[_Told]] = {}
    for item in items:
        by_key.setdefault(key(item), []).append(item)
    for item in items:
        found = by_key[key(item)]
        if key(item)[0] is None or len(found) < _MANY:
            yield [item]
        elif found[0] is item:
            yield found


def _asked_by(causes: Sequence[Cause]) -> tuple[str, str] | None:
    """The package that alone is the cause, and how it is; None for other causes and for several."""
    match = _ASKS.fullmatch(causes[0].text) if len(causes) == 1 and causes[0].kind == "follows" else None
    return (match[1], match[2]) if match else None


def _led(causes: Sequence[Cause]) -> str:
    """`13 packages that torch 2.8.0 pins`."""
    found = [match for cause in causes if (match := _ASKS.fullmatch(cause.text))]
    is_pinned = all(re.search(r"==[^*,;]+(;|$)", match[3] or "") for match in found)
    words = "pins" if found[0][2] == "requires" and is_pinned else _WORDS[found[0][2]]
    return f"{len(causes)} packages that {found[0][1]} {words}"


def _told(comparison: Comparison) -> list[str]:
    """A line for each change and indented ones for its reasons, as `explain --diff` words them.

    Packages that do nothing but follow one other are told in one line.
    """
    from provisioner.lock.diff.compare_words import because, where_words

    lines = []
    for together in _together(_changes(comparison), _leader):
        first = together[0]
        where = where_words(first, comparison)
        if len(together) > 1:
            lines.append(f"{_led([one.causes[0] for one in together])}{where}: {'; '.join(map(_move, together))}")
            continue
        lines.append(f"{first.text}{where}")
        lines += [f"  {line}" for line in because(first)]
    return lines


def _leader(change: Change) -> tuple[Hashable, ...]:
    is_plain = change.section == "packages" and change.aspect == "version" and not change.is_breaking
    return (_asked_by(change.causes) if is_plain else None, change.change in {"added", "removed"}, change.platforms)


def _move(change: Change) -> str:
    return change.text if change.old and change.new else f"{change.subject} {change.new or f'{change.old} goes'}"


def _moves(comparison: Comparison) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What would change, whatever the reasons: without a lock to keep to these have other words."""
    return ((change.text, change.platforms) for change in _changes(comparison))


def _changes(comparison: Comparison) -> list[Change]:
    return [change for change in comparison.changes if change.section != "inputs"]


def _block(what: str, told: Sequence[str], count: int, *, is_same: bool = False) -> Iterator[str]:
    if is_same:
        yield f"{what} would change the same"
    elif told:
        yield f"{what} would change {count} thing{'' if count == 1 else 's'}:"
        yield from (f"  {line}" for line in told)
    else:
        yield f"{what} would change nothing"


def _held_line(held: Held) -> str:
    out = f", out since {held.uploaded}" if held.uploaded else ""
    first, *others = held.causes
    place = f"  ({first.where})" if first.where else ""
    more = f", and {len(others)} more such reason{'' if len(others) == 1 else 's'}" if others else ""
    return f"{held.name} {held.version}, not {held.newest}{out}: {first.text}{place}{more}"


def preview_data(preview: Preview) -> dict[str, object]:
    """A preview as JSON; null for what was asked and cannot be told, because an index is out of reach or nothing fits."""
    if preview.system is not None:
        return {"system": [_entry(change) for change in _changes(preview.system)]}
    least, upgrade = preview.least, preview.upgrade
    return {
        "least": None if least is None else [_entry(change) for change in _changes(least)],
        "upgrade": None if upgrade is None else [_entry(change) for change in _changes(upgrade)],
        "held": [_held_entry(held) for held in preview.held],
        "offers": [_offer_entry(offer) for offer in preview.offers],
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
        "text": change.text,
        "platforms": list(change.platforms),
        "breaking": change.is_breaking,
        "reasons": [_reason(cause) for cause in change.causes],
    }


def _held_entry(held: Held) -> dict[str, object]:
    return {
        "name": held.name,
        "version": held.version,
        "newest": held.newest,
        "uploaded": held.uploaded,
        "platform": held.platform,
        "reasons": [_reason(cause) for cause in held.causes],
    }


def _offer_entry(offer: Offer) -> dict[str, object]:
    from msgspec import to_builtins

    entry: dict[str, object] = to_builtins(offer)
    return entry


def _reason(cause: Cause) -> dict[str, object]:
    from msgspec import to_builtins

    return {key: value for key, value in to_builtins(cause).items() if value}
