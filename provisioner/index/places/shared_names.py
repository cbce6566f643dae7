"""Names that nobody claims, where several indexes are configured: which index they came from, and which others know them.

A name has its files from the first index that knows it, and whoever may upload to that one could have put it there. So what
came from another index than the default one is told, and so is a name that more than one knows: only the user can say whose it
is (`indexes[].packages`). The other indexes are asked for the names of an answer alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.errors import UnavailableError
from provisioner.index.address import public_url
from provisioner.index.cache import NotCachedError
from provisioner.index.routing import default_index, open_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from concurrent.futures import Executor

    from packaging.utils import NormalizedName

    from provisioner.index.http.settings import IndexLocation, IndexSettings

    HasOthers = Callable[[IndexLocation, NormalizedName], bool]

FEW = 8
"""How many names a line has room for."""


class _Asked(Struct, frozen=True, kw_only=True):
    """What an index said of names that came from another: those it knows, and those of which it is not known, and why."""

    index: IndexLocation
    known: frozenset[NormalizedName] = frozenset()
    unknown: tuple[NormalizedName, ...] = ()
    reason: str = ""


def unclaimed(chosen: Mapping[NormalizedName, str], settings: IndexSettings) -> dict[NormalizedName, IndexLocation]:
    """Of names, each with the index its file is from, those that nobody claims, with that index; no find-links."""
    by_name = {one.name: one for one in open_indexes(settings)}
    return {name: by_name[index] for name, index in sorted(chosen.items()) if index in by_name}


def doubts(
    chosen: Mapping[NormalizedName, IndexLocation],
    settings: IndexSettings,
    has_others: HasOthers,
    *,
    workers: Callable[[], Executor],
    told: Collection[str] = (),
) -> tuple[str, ...]:
    """What a user should hear of where unclaimed names came from, one line each; nothing where one index is for all names.

    Of names that were `told` before it is no news that they are not from the default index; that others know them is, for
    these may have come since. `has_others` says whether an index has other files under a name, and may raise
    `UnavailableError`, which is told, too.
    """
    order = open_indexes(settings)
    default = default_index(settings)
    if len(order) < 2 or default is None or not chosen:
        return ()
    asked = [_ask(index, _later(index, chosen, order), has_others, workers) for index in order[1:]]
    lines: list[str] = []
    for index in order:
        own = [name for name, owner in chosen.items() if owner == index]
        rivals = {name: tuple(one.index for one in asked if name in one.known) for name in own}
        ways = dict.fromkeys(found for found in rivals.values() if found)
        lines.extend(_known_to_several(index, others, [name for name in own if rivals[name] == others]) for others in ways)
        alone = [name for name in own if not rivals[name] and name not in told]
        if alone and index != default:
            lines.append(f"from index {place(index)} and not from {place(default)}, which is the default: {names(alone)}")
    return (*lines, *(_not_known(one) for one in asked if one.unknown))


def place(index: IndexLocation) -> str:
    """An index by its name and its address, as one says it to a user."""
    return f"`{index.name}` ({public_url(index.url)})"


def names(found: Sequence[str]) -> str:
    """Names one after another; of many the first ones and how many more there are."""
    rest = len(found) - FEW
    return ", ".join(found) if rest <= 1 else f"{', '.join(found[:FEW])} and {rest} more"


def _later(
    index: IndexLocation, chosen: Mapping[NormalizedName, IndexLocation], order: Sequence[IndexLocation]
) -> list[NormalizedName]:
    """The names that came from an index before this one: it was not asked for them. Those before it do not know the others."""
    before = order[: order.index(index)]
    return [name for name, owner in chosen.items() if owner in before]


def _ask(
    index: IndexLocation, wanted: Sequence[NormalizedName], has_others: HasOthers, workers: Callable[[], Executor]
) -> _Asked:
    if not wanted:
        return _Asked(index=index)

    def ask(name: NormalizedName) -> bool | UnavailableError:
        try:
            return has_others(index, name)
        except UnavailableError as error:
            return error

    found = [ask(wanted[0])]
    if isinstance(found[0], UnavailableError) and not isinstance(found[0], NotCachedError):
        # An index out of reach is not waited for once for each name.
        return _Asked(index=index, unknown=tuple(wanted), reason=found[0].message)
    if len(wanted) > 1:
        found += workers().map(ask, wanted[1:])
    errors = {name: answer for name, answer in zip(wanted, found, strict=True) if isinstance(answer, UnavailableError)}
    return _Asked(
        index=index,
        known=frozenset(name for name, answer in zip(wanted, found, strict=True) if answer is True),
        unknown=tuple(errors),
        reason=next((_reason(error) for error in errors.values()), ""),
    )


def _reason(error: UnavailableError) -> str:
    return "offline, and not in the cache" if isinstance(error, NotCachedError) else error.message


def _known_to_several(index: IndexLocation, others: Sequence[IndexLocation], found: Sequence[str]) -> str:
    where = " and ".join(place(one) for one in others)
    entry = f"`packages: [{', '.join(found)}]`" if len(found) <= FEW else "`packages:`"
    have = "has" if len(others) == 1 else "have"
    these, whose = ("this name", "whose it is") if len(found) == 1 else ("these names", "whose they are")
    return (
        f"{names(found)}: taken from index {place(index)}, and {where} {have} other files under {these}, too; "
        f"say {whose} under `indexes:`, by {entry}"
    )


def _not_known(asked: _Asked) -> str:
    which = f"other files under {names(asked.unknown)}"
    return f"whether index {place(asked.index)} has {which} is not known: {asked.reason}"
