"""The components of a problem with packages, searched on their own: which versions of distributions no components go with.

A version of a distribution may need a CUDA, a driver or a build of PyTorch that the hosts rule out. resolvelib would find that
out again for every choice of what it decides in between; here one search, over the components and PyTorch's wheels alone,
decides it once for all versions with the same needs.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.requirement import TORCH
from provisioner.resolver.search.complete import CompleteSearch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provisioner.resolver.requirement import Candidate, Key, Requirement, Test
    from provisioner.resolver.search.instance import ProblemInstance


class ComponentSearch:
    """A complete search of the components of an instance, asked about the needs of one version at a time."""

    def __init__(self, instance: ProblemInstance) -> None:
        self._instance = instance
        self._search = CompleteSearch(instance, includes=_is_of_components)
        self._admitted: dict[frozenset[tuple[Key, Test]], bool] = {}
        self._verdicts: dict[Candidate, bool] = {}

    @cached_property
    def is_possible(self) -> bool:
        """Whether there is a choice of components at all; True when that is unknown, because an index cannot be reached."""
        try:
            return self._search.admits(())
        except UnavailableError:
            return True

    def admits(self, candidate: Candidate) -> bool:
        """Return whether some choice of components goes with a candidate.

        That of a component is part of the choice; the requirements of a version of a distribution are met by it. These are
        read from its metadata only if what is known without it can be met. True when that is unknown, because an index cannot
        be reached.
        """
        found = self._verdicts.get(candidate)
        if found is None:
            try:
                found = self._verdicts[candidate] = self._is_admitted(candidate)
            except UnavailableError:  # it may be read later: a budget is for one fix
                return True
        return found

    def _is_admitted(self, candidate: Candidate) -> bool:
        if _is_of_components(candidate.key):
            return not self._is_refused(candidate)
        known = self._instance.known_requirements(candidate)
        return self._admits(known) and self._admits(self._instance.requirements(candidate))

    def _is_refused(self, candidate: Candidate) -> bool:
        return self._search.refutes(given=[candidate], present=[candidate.key])

    def _admits(self, requirements: Iterable[Requirement]) -> bool:
        needed = [one for one in requirements if not one.key.is_package]
        needs = frozenset((one.key, one.test) for one in needed)
        if needs not in self._admitted:
            self._admitted[needs] = self._search.admits(needed) if needed else True
        return self._admitted[needs]


def _is_of_components(key: Key) -> bool:
    return not key.is_package or key == TORCH
