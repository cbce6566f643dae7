"""The progress of a job, to be shown while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.index.activity import progress_line
from provisioner.words.conflict import fixes_sought_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.conflict import Conflict
    from provisioner.index.client import PackageIndex


class Progress:
    """The progress of reading the indexes, as text; may be read by another thread while the job runs."""

    def __init__(self) -> None:
        self._sources: list[PackageIndex] = []
        self._refusal = ""
        self.conflicts: tuple[Conflict, ...] = ()
        """The conflicts known so far, for which fixes are looked for; () as long as there may be an answer."""

    def add(self, source: PackageIndex) -> None:
        """Include the activity of an index client."""
        self._sources.append(source)

    def refuse(self, conflicts: Sequence[Conflict]) -> None:
        """Note that there is no answer for the conflicts known so far, for which fixes are looked for from now on."""
        self.conflicts = tuple(conflicts)
        self._refusal = f"{fixes_sought_words(conflicts)}; "

    def __str__(self) -> str:
        """Return the progress as one line, as `progress_line` does: the counts so far and the oldest open request.

        It begins with why there is no answer, once that is known; "" before any index client exists.
        """
        return self._refusal + progress_line(source.activity for source in tuple(self._sources)) if self._sources else ""
