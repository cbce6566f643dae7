"""The candidates of every key, listed when somebody first asks: most problems touch a tenth of the matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from provisioner.resolver.requirement import Candidate, Key

Candidates = tuple[Candidate, ...]


class Domains(MutableMapping[Key, Candidates]):
    """Candidates by key, most wanted first."""

    def __init__(self) -> None:
        self._known: dict[Key, Candidates | Callable[[], Candidates]] = {}

    def defer(self, key: Key, listing: Callable[[], Candidates]) -> None:
        """Add a key whose candidates `listing` returns, once, when they are asked for."""
        self._known[key] = listing

    def __getitem__(self, key: Key) -> Candidates:
        found = self._known[key]
        if not isinstance(found, tuple):
            found = self._known[key] = found()
        return found

    def __setitem__(self, key: Key, candidates: Candidates) -> None:
        self._known[key] = candidates

    def __delitem__(self, key: Key) -> None:
        del self._known[key]

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def __iter__(self) -> Iterator[Key]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
