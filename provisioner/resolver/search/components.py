"""The components of a problem with packages, searched on their own: which versions of distributions no components go with.

A version of a distribution may need a CUDA, a driver or a build of PyTorch that the hosts rule out. resolvelib would find that
out again for every choice of what it decides in between; here one search, over the components and PyTorch's wheels alone,
decides it once for all versions with the same needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.errors import UnavailableError
from provisioner.resolver.requirement import TORCH
from provisioner.resolver.search.complete import CompleteSearch

if TYPE_CHECKING:
    from provisioner.resolver.requirement import Candidate, Key, Requirement, Test
    from provisioner.resolver.search.instance import ProblemInstance


class ComponentSearch:
    """A complete search of the components of an instance, asked about the needs of one version at a time."""

    def __init__(self, instance: ProblemInstance) -> None:
        self._instance = instance
        self._search = CompleteSearch(instance, includes=_is_of_components)
        self._admitted: dict[frozenset[tuple[Key, Test]], bool] = {}

    def admits(self, candidate: Candidate) -> bool:
        """Return whether some choice of components meets the requirements of a version of a distribution.

        True when that is unknown, because an index cannot be reached. The metadata of the version is read.
        """
        try:
            needed = [one for one in self._instance.requirements(candidate) if not one.key.is_package]
            return self._admits(needed)
        except UnavailableError:
            return True

    def _admits(self, needed: list[Requirement]) -> bool:
        needs = frozenset((one.key, one.test) for one in needed)
        if needs not in self._admitted:
            self._admitted[needs] = self._search.admits(needed) if needed else True
        return self._admitted[needs]


def _is_of_components(key: Key) -> bool:
    return not key.is_package or key == TORCH
