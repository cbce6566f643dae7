"""What is missing where nothing may be asked for: one thing, or everything that is known to be missing, in one error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence


class NotCachedError(UnavailableError):
    """Something is neither in the cache nor may it be asked for; `what` names it and its index."""

    def __init__(self, what: str) -> None:
        super().__init__(f"offline: {what} is not in the cache; run once without --offline")
        self.what = what


def all_missing(found: Sequence[NotCachedError]) -> UnavailableError:
    """One error for everything that is known to be missing; at least one thing is."""
    if len(found) == 1:
        return found[0]
    return UnavailableError(
        f"offline: {len(found)} things that are needed are not in the cache; run once without --offline",
        causes=tuple(error.what for error in found),
        hints=("what these need in turn shows only when they have been read",),
    )
