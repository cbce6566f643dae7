"""The CUDA runtimes that distributions bring for themselves, beside the frameworks': what they need of drivers and GPUs.

Two majors load side by side, for their libraries have names of their own; but the driver must run both, and the GPUs must be
served by both. That is required here. That there are two is named in the answer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.grounds.predicate import BundlesCuda, Needs
from provisioner.grounds.relaxation import MixedCuda
from provisioner.grounds.requirement import Entails, Relation, Subject
from provisioner.places import Place
from provisioner.resolver.requirement import PACKAGE, Candidate, Key, ReleaseCandidate, Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.predicate import Predicate
    from provisioner.matrix.model import Matrix, Release
    from provisioner.matrix.model_distributions import ImpliedNeed
    from provisioner.matrix.need import Need
    from provisioner.resolver.problem import Problem

CUDA = "cuda"
OF_A_HOST = frozenset({"driver", "gpu"})
_specifier = lru_cache(maxsize=512)(SpecifierSet)


def own_cuda_needs(problem: Problem, candidate: Candidate, row: ImpliedNeed, *, place: Place) -> Iterator[Requirement]:
    """What the runtime that a version brings needs of every host; nothing where no GPU of NVIDIA's is used."""
    if problem.request.accelerator != CUDA:
        return
    for need in row.brings:
        runtime = _oldest(problem.matrix, need)
        name = candidate.key.name
        for one in problem.needs.of(runtime) if runtime is not None else ():
            if one.key.component in OF_A_HOST and isinstance(one.ground, Entails):
                ground = Entails(
                    name=name,
                    subject=Subject(name, candidate.label),
                    predicate=BundlesCuda(_major(need), without_reason(one.ground.predicate), row.because),
                    relation=Relation(CUDA, one.key.component, name),
                    cited=place,
                )
                yield Requirement(one.key, one.test, ground)


def brought(matrix: Matrix, pins: Mapping[Key, Candidate]) -> Iterator[tuple[Candidate, Need]]:
    """Every chosen distribution that brings a CUDA, with what it brings."""
    for distribution in matrix.distributions:
        chosen = pins.get(Key(distribution.name, PACKAGE))
        for row in distribution.implied if chosen is not None else ():
            if chosen is not None and row.brings and _specifier(row.versions).contains(chosen.pep440, prereleases=True):
                yield from ((chosen, need) for need in row.brings)


def own_runtimes(matrix: Matrix, pins: Mapping[Key, Candidate]) -> tuple[ReleaseCandidate, ...]:
    """A CUDA release for each major that only distributions bring: what a gate has to let in beside the frameworks'."""
    chosen = [one.version for key, one in pins.items() if not key.is_package and key.component == CUDA]
    found: dict[str, ReleaseCandidate] = {}
    for _, need in brought(matrix, pins):
        runtime = _oldest(matrix, need)
        if runtime is not None and not any(need.allows(version) for version in chosen):
            found.setdefault(runtime.label, runtime)
    return tuple(found[label] for label in sorted(found))


def mixed_cuda(matrix: Matrix, pins: Mapping[Key, Candidate]) -> Iterator[MixedCuda]:
    """Runtimes of several majors in one environment, each with what brings it."""
    majors: dict[str, dict[str, Place]] = {}
    for key, one in pins.items():
        if not key.is_package and key.component == CUDA and one.version.release:
            framework = key.slot or "the framework"
            majors.setdefault(str(one.version.release[0]), {})[framework] = Place(f"matrices/{CUDA}.yaml")
    for one, need in brought(matrix, pins):
        place = Place.parse(matrix.positions.get(f"distribution:{one.key.name}", "the matrix"))
        majors.setdefault(_major(need), {})[f"{one.key.name} {one.label}"] = place
    if len(majors) < 2:
        return
    holders = tuple((major, tuple(majors[major])) for major in sorted(majors, key=int))
    last = max(majors, key=int)
    yield MixedCuda(component=CUDA, majors=holders, source=next(iter(majors[last].values())))


def without_reason(predicate: Predicate) -> Predicate:
    """Return a predicate without the reason that a row gives: who bundles the thing has a reason of their own."""
    return replace(predicate, because="") if isinstance(predicate, Needs) else predicate


def _oldest(matrix: Matrix, need: Need) -> ReleaseCandidate | None:
    """The oldest release of what a distribution brings: within a major every driver that runs it runs the later ones too.

    Source: CUDA Compatibility guide, "Minor Version Compatibility".
    """
    component = matrix.components.get(CUDA)
    allowed: list[Release] = [one for one in component.releases if need.allows(one.version)] if component is not None else []
    oldest = min(allowed, key=lambda one: one.version, default=None)
    return None if oldest is None else ReleaseCandidate(Key(CUDA), oldest.version, str(oldest.version), oldest)


def _major(need: Need) -> str:
    return str(need.range.clauses[0].version.release[0]) if need.range.clauses else ""
