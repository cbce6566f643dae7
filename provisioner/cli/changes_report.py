"""What solving a lock again would change, as `provision check` tells it: in lines below the lock's findings, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.cli.check_changes import Renewal
    from provisioner.lock.changes import Held
    from provisioner.lock.comparison import Cause, Change, Comparison
    from provisioner.lock.offered import Offer


def renewal_lines(renewal: Renewal) -> Iterator[str]:
    """A renewal in words, below the findings of its lock."""
    yield from (f"news: {offer.text}  [{offer.kind}-file]" for offer in renewal.offers if not offer.is_alarm)
    if renewal.system is not None:
        told = _told(renewal.system)
        yield from _block("solving the system half again", told)
        yield "`provision check --changes` asks the indexes which packages would move"
    if renewal.least is not None and renewal.upgrade is not None:
        least, upgrade = _told(renewal.least), _told(renewal.upgrade)
        yield from _block("solving again", least)
        yield from _block("solving again with --upgrade", upgrade, is_same=bool(least) and least == upgrade)
        yield from (f"the new lock would record: {change.text}" for change in renewal.least.of("inputs"))
    if renewal.held:
        lines = list(_held_lines(renewal.held))
        yield f"{len(lines)} package{' is' if len(lines) == 1 else 's are'} held back even so:"
        yield from (f"  {line}" for line in lines)


def _held_lines(held: Sequence[Held]) -> Iterator[str]:
    """What holds on every platform that has something held back is said once; of the rest the platform is named."""
    platforms = {one.platform for one in held}
    found: dict[str, list[str]] = {}
    for one in held:
        found.setdefault(_held_line(one), []).append(one.platform)
    for line, on in found.items():
        yield line if len(on) == len(platforms) else f"on {' and '.join(on)}: {line}"


def _told(comparison: Comparison) -> list[str]:
    """A line for each change and indented ones for its reasons, as `explain --diff` words them."""
    from provisioner.lock.compare_words import because, where_words

    lines = []
    for change in _changes(comparison):
        lines.append(f"{change.text}{where_words(change, comparison)}")
        lines += [f"  {line}" for line in because(change)]
    return lines


def _changes(comparison: Comparison) -> list[Change]:
    return [change for change in comparison.changes if change.section != "inputs"]


def _block(what: str, told: list[str], *, is_same: bool = False) -> Iterator[str]:
    if is_same:
        yield f"{what} would change the same"
    elif told:
        count = sum(not line.startswith(" ") for line in told)
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


def renewal_data(renewal: Renewal) -> dict[str, object]:
    """A renewal as JSON; null for what was asked and cannot be told, because an index is out of reach or nothing fits."""
    if renewal.system is not None:
        return {"system": [_entry(change) for change in _changes(renewal.system)]}
    least, upgrade = renewal.least, renewal.upgrade
    return {
        "least": None if least is None else [_entry(change) for change in _changes(least)],
        "upgrade": None if upgrade is None else [_entry(change) for change in _changes(upgrade)],
        "held": [_held_entry(held) for held in renewal.held],
        "offers": [_offer_entry(offer) for offer in renewal.offers],
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
