"""The libraries that distributions carry, such as cuDNN: what they need of drivers and GPUs, whoever brought them along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.grounds.predicate import Bundles
from provisioner.grounds.requirement import Entails, Relation, Row, SameChoice, Subject
from provisioner.resolver.python.own_cuda import CUDA, OF_A_HOST
from provisioner.resolver.requirement import PACKAGE, Candidate, Key, ReleaseCandidate, Requirement, build_of
from provisioner.resolver.rules.carriers import CARRIED, carried_version, unlisted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.resolver.problem import Problem

COMPONENT_OF = {name: component for component, names in CARRIED.items() for name in names}


def own_library(problem: Problem, candidate: Candidate) -> ReleaseCandidate | None:
    """The release of a component that a distribution is, for NVIDIA's GPUs; None for a distribution that carries none."""
    component = COMPONENT_OF.get(candidate.key.name, "")
    key = Key(component)
    if problem.request.accelerator != CUDA or key not in problem.domains:
        return None
    listed, named = problem.domains[key], candidate.key.name.rpartition("-")[2]
    releases = (one for one in listed if isinstance(one, ReleaseCandidate))
    same = [one for one in releases if one.version == carried_version(candidate)]
    for_its_cuda = (one for one in same if (build := build_of(one)) is not None and build.name == named)
    return next(for_its_cuda, None) or next(iter(same), None) or unlisted(key, listed, candidate)


def own_library_needs(problem: Problem, candidate: Candidate) -> Iterator[Requirement]:
    """What the library that a version carries needs of every host; nothing where no GPU of NVIDIA's is used."""
    library = own_library(problem, candidate)
    name = candidate.key.name
    if library is None:
        return
    for one in problem.needs.of(library):
        if one.key.component in OF_A_HOST and isinstance(one.ground, Entails):
            ground = replace(
                one.ground,
                name=name,
                subject=Subject(name, candidate.label),
                predicate=Bundles(library.key.component, library.label, one.ground.predicate),
                relation=_through(one.ground.relation, name),
            )
            yield Requirement(one.key, one.test, ground)


def _through(relation: Relation | SameChoice | Row, name: str) -> Relation | Row:
    """Return a relation as that of the distribution that brings it in."""
    if isinstance(relation, Row):
        return Row(relation.table, relation.name, name)
    return Relation(relation.subject, relation.object, name)


def is_told_twice(requirement: Requirement, system: Iterable[Key]) -> bool:
    """Whether a need of a host is that of a distribution's library, and the stack has the library as a component."""
    component = COMPONENT_OF.get(requirement.ground.component, "")
    return requirement.key.component in OF_A_HOST and any(key.component == component for key in system)


def own_libraries(problem: Problem, pins: Mapping[Key, Candidate]) -> tuple[ReleaseCandidate, ...]:
    """What chosen distributions carry of which the system half has none: what a gate has to let in beside that."""
    known = {key.component for key in pins if not key.is_package}
    carriers = [pins[Key(name, PACKAGE)] for name in sorted(COMPONENT_OF) if Key(name, PACKAGE) in pins]
    found = (own_library(problem, one) for one in carriers if COMPONENT_OF[one.key.name] not in known)
    return tuple(one for one in found if one is not None)
