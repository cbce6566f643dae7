"""How far a job is, for whoever shows it while the job runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.index.activity import progress_line

if TYPE_CHECKING:
    from provisioner.index.client import PackageIndex


class Progress:
    """How far the reading of indexes is; another thread may ask while a job runs."""

    def __init__(self) -> None:
        self._sources: list[PackageIndex] = []

    def add(self, source: PackageIndex) -> None:
        """Count what an index client reads."""
        self._sources.append(source)

    def __str__(self) -> str:
        """Return what was read so far, and what is waited for; "" before anything is read."""
        return progress_line(source.activity for source in tuple(self._sources)) if self._sources else ""
