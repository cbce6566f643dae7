"""The libraries that distributions carry, such as cuDNN: what they need of drivers and GPUs, whoever brought them along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.python.own_cuda import CUDA, OF_A_HOST
from provisioner.solve.requirement import PACKAGE, Candidate, Key, Requirement
from provisioner.solve.rules.carriers import CARRIED, carried_version, unlisted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.solve.problem import Problem

COMPONENT_OF = {name: component for component, names in CARRIED.items() for name in names}


def own_library(problem: Problem, candidate: Candidate) -> Candidate | None:
    """The release of a component that a distribution is, for NVIDIA's GPUs; None for a distribution that carries none."""
    component = COMPONENT_OF.get(candidate.key.name, "")
    key = Key(component)
    if problem.request.accelerator != CUDA or key not in problem.domains:
        return None
    listed, named = problem.domains[key], candidate.key.name.rpartition("-")[2]
    same = [one for one in listed if one.version == carried_version(candidate)]
    for_its_cuda = (one for one in same if one.subject[1] is not None and one.subject[1].name == named)
    return next(for_its_cuda, None) or next(iter(same), None) or unlisted(key, listed, candidate)


def own_library_needs(problem: Problem, candidate: Candidate) -> Iterator[Requirement]:
    """What the library that a version carries needs of every host; nothing where no GPU of NVIDIA's is used."""
    library = own_library(problem, candidate)
    name = candidate.key.name
    for one in problem.needs.of(library) if library is not None else ():
        if one.key.component in OF_A_HOST:
            said = f"{library.key.component} {library.label}" if library is not None else ""
            text = f"{name} {candidate.label} carries {said}, which {one.origin.text.removeprefix(said).strip()}"
            group = f"{one.origin.group}, {name}"
            yield Requirement(one.key, one.test, one.origin._replace(component=name, group=group, text=text))


def is_told_twice(requirement: Requirement, system: Iterable[Key]) -> bool:
    """Whether a need of a host is that of a distribution's library, and the stack has the library as a component."""
    component = COMPONENT_OF.get(requirement.origin.component, "")
    return requirement.key.component in OF_A_HOST and any(key.component == component for key in system)


def own_libraries(problem: Problem, pins: Mapping[Key, Candidate]) -> tuple[Candidate, ...]:
    """What chosen distributions carry of which the system half has none: what a gate has to let in beside that."""
    known = {key.component for key in pins if not key.is_package}
    carriers = [pins[Key(name, PACKAGE)] for name in sorted(COMPONENT_OF) if Key(name, PACKAGE) in pins]
    found = (own_library(problem, one) for one in carriers if COMPONENT_OF[one.key.name] not in known)
    return tuple(one for one in found if one is not None)
