"""What distributions that are chosen already need of hosts, for a system half that is solved beside them without an index.

What they need of components that may move with them, such as the framework, is not said here: that is for who solves both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.resolver.python.distributions import DistributionFacts
from provisioner.resolver.requirement import FileCandidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key, Requirement


def needs_beside(problem: Problem, beside: Mapping[Key, Candidate]) -> Iterator[Requirement]:
    """Their driver and GPUs for a CUDA they bring, and their glibc, as far as the matrix knows more than metadata says."""
    facts = DistributionFacts(problem, "")
    for candidate in beside.values():
        for one in facts.of(candidate) if isinstance(candidate, FileCandidate) else ():
            if not one.key.is_package and problem.is_virtual(one.key.component):
                yield one
