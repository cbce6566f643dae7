"""The progress of a job, to be shown while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.index.activity import progress_line

if TYPE_CHECKING:
    from provisioner.index.client import PackageIndex


class Progress:
    """The progress of reading the indexes, as text; may be read by another thread while the job runs."""

    def __init__(self) -> None:
        self._sources: list[PackageIndex] = []

    def add(self, source: PackageIndex) -> None:
        """Include the activity of an index client."""
        self._sources.append(source)

    def __str__(self) -> str:
        """Return the progress as one line, as `progress_line` does: the counts so far and the oldest open request.

        "" before any index client exists.
        """
        return progress_line(source.activity for source in tuple(self._sources)) if self._sources else ""
