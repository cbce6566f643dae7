"""How much of an index may still be read: without end for an answer and its proof, bounded for the ways out of a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.requirement import WheelCandidate

if TYPE_CHECKING:
    from provisioner.resolver.requirement import Candidate, Key


class Patience:
    """Counts the versions whose metadata was asked for, each once, whatever a cache holds of it.

    So the same conflict has the same hints everywhere; seconds, or what is missing in a cache, would make them differ.
    """

    def __init__(self) -> None:
        self._asked: set[tuple[Key, str]] = set()
        self._left: int | None = None
        self._share = 0

    def end_after(self, count: int) -> None:
        """From now on so many versions more in all, besides those asked about before; none until a share is given.

        Said again it changes nothing: who looks for ways out in several environments has one budget.
        """
        self._left = count if self._left is None else self._left
        self._share = 0

    def share(self, count: int) -> None:
        """So many of those that are left may be asked about next: one way out must not use up what the others need."""
        self._share = count

    def ask(self, candidate: Candidate) -> None:
        """Called before the metadata of a distribution's version is read; raises `UnavailableError` at the end."""
        question = (candidate.key, candidate.label)
        if isinstance(candidate, WheelCandidate) or candidate.has_no_file or question in self._asked:
            return
        if self._left is not None:
            if not min(self._left, self._share):
                raise UnavailableError(f"{candidate.key.name} {candidate.label} was not looked at: too much was read before")
            self._left -= 1
            self._share -= 1
        self._asked.add(question)
