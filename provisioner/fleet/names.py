"""Shorten lists of host names for messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.host.inventory import InventoryHost

_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")
_RUN = 3
"""The fewest consecutive numbers that are shortened to a run."""


def folded(hosts: Iterable[InventoryHost], *, most: int = 6) -> str:
    """Return the names of hosts in their order, with runs of numbers shortened (`node-07 … node-31`).

    Only the first `most` runs are written; the number of remaining machines follows.
    """
    runs = list(_runs(list(hosts)))
    shown = [_said(run) for run in runs[:most]]
    left = sum(host.count for run in runs[most:] for host in run)
    return ", ".join([*shown, f"and {left:,} more"] if left else shown)


def _runs(hosts: list[InventoryHost]) -> Iterator[list[InventoryHost]]:
    """Yield lists of consecutive hosts whose names count up by one."""
    run: list[InventoryHost] = []
    for host in hosts:
        if run and not _follows(run[-1].name, host.name):
            yield run
            run = []
        run.append(host)
    if run:
        yield run


def _follows(first: str, second: str) -> bool:
    one, other = _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(second)
    if one is None or other is None or one[1] != other[1] or one[3] != other[3]:
        return False
    is_padded = len(one[2]) == len(other[2]) or not (one[2].startswith("0") or other[2].startswith("0"))
    return is_padded and int(other[2]) == int(one[2]) + 1


def _said(run: list[InventoryHost]) -> str:
    names = [f"{host.name} ({host.count:,})" if host.count > 1 else host.name for host in run]
    return ", ".join(names) if len(names) < _RUN else f"{names[0]} … {names[-1]}"
