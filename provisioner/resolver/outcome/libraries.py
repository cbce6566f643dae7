"""CUDA libraries that chosen wheels need to be there and that nothing chosen is known to provide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.doubt import MissingLibraries
from provisioner.grounds.requirement import Subject
from provisioner.resolver.python.libraries import IMAGE, Libraries, LibraryRequirements
from provisioner.resolver.python.wheels import GpuWheels
from provisioner.resolver.requirement import ImageCandidate, Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance


def missing_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[MissingLibraries]:
    """Yield a doubt for each chosen wheel that needs libraries of CUDA which nothing chosen provides."""
    problem = instance.problem
    libraries = Libraries(problem, GpuWheels(problem, "")) if instance.finder is None else instance.finder.libraries
    for candidate, groups in libraries.lacking(pins):
        yield MissingLibraries(
            subject=Subject(candidate.key.project, candidate.label),
            sonames=tuple(max(group) for group in groups),
            providers=tuple(libraries.providers_of(groups)),
            in_container=problem.request.runs == "container",
        )


def is_lacking(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether chosen wheels need libraries that nothing chosen has, so that another search is worth it.

    It is not where only the machine can have them: nothing else of the answer has them in any version.
    """
    if instance.finder is None:
        return False
    libraries = instance.finder.libraries
    lacking = libraries.lacking(pins)
    if not lacking or not may_be_elsewhere(instance.problem, pins):
        return bool(lacking)
    return LibraryRequirements(instance.problem, libraries, pins, instance.candidates).may_close(lacking)


def may_be_elsewhere(problem: Problem, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether libraries that nothing chosen has may be there all the same: on a host, or in an image nobody knows."""
    image = pins.get(IMAGE)
    return problem.request.runs == "host" or not isinstance(image, ImageCandidate) or not image.image.kind
