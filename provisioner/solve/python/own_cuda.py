"""The CUDA runtimes that distributions bring for themselves, beside the frameworks': what they need of drivers and GPUs.

Two majors load side by side, for their libraries have names of their own; but the driver must run both, and the GPUs must be
served by both. That is required here. That there are two is named in the answer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from provisioner.solve.requirement import PACKAGE, Candidate, Key, Origin, Requirement
from provisioner.solve.rules.shared_files import listed
from provisioner.solve.stack import Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import ImpliedNeed, Matrix, Release
    from provisioner.matrix.need import Need
    from provisioner.solve.problem import Problem

CUDA = "cuda"
OF_A_HOST = frozenset({"driver", "gpu"})
_specifier = lru_cache(maxsize=512)(SpecifierSet)


def own_cuda_needs(problem: Problem, candidate: Candidate, row: ImpliedNeed, *, place: str) -> Iterator[Requirement]:
    """What the runtime that a version brings needs of every host; nothing where no GPU of NVIDIA's is used."""
    if problem.request.accelerator != CUDA:
        return
    for need in row.brings:
        runtime = _oldest(problem.matrix, need)
        name = candidate.key.name
        for one in problem.needs.of(runtime) if runtime is not None else ():
            if one.key.component in OF_A_HOST:
                text = f"{name} {candidate.label} brings CUDA {_major(need)}, which needs {one.key.component} {one.test}"
                group = f"{CUDA} needs {one.key.component}, {name}"
                yield Requirement(one.key, one.test, Origin("rule", name, group, f"{text}: {row.because}", place))


def brought(matrix: Matrix, pins: Mapping[Key, Candidate]) -> Iterator[tuple[Candidate, Need]]:
    """Every chosen distribution that brings a CUDA, with what it brings."""
    for distribution in matrix.distributions:
        chosen = pins.get(Key(distribution.name, PACKAGE))
        for row in distribution.implies if chosen is not None else ():
            if chosen is not None and row.brings and _specifier(row.versions).contains(chosen.pep440, prereleases=True):
                yield from ((chosen, need) for need in row.brings)


def own_runtimes(matrix: Matrix, pins: Mapping[Key, Candidate]) -> tuple[Candidate, ...]:
    """A CUDA release for each major that only distributions bring: what a gate has to let in beside the frameworks'."""
    chosen = [one.version for key, one in pins.items() if not key.is_package and key.component == CUDA]
    found: dict[str, Candidate] = {}
    for _, need in brought(matrix, pins):
        runtime = _oldest(matrix, need)
        if runtime is not None and not any(need.allows(version) for version in chosen):
            found.setdefault(runtime.label, runtime)
    return tuple(found[label] for label in sorted(found))


def mixed_cuda(matrix: Matrix, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Runtimes of several majors in one environment, each with what brings it."""
    majors: dict[str, dict[str, str]] = {}
    for key, one in pins.items():
        if not key.is_package and key.component == CUDA and one.version.release:
            framework = key.slot or "the framework"
            majors.setdefault(str(one.version.release[0]), {})[framework] = f"matrices/{CUDA}.yaml"
    for one, need in brought(matrix, pins):
        place = matrix.positions.get(f"distribution:{one.key.name}", "the matrix")
        majors.setdefault(_major(need), {})[f"{one.key.name} {one.label}"] = place
    if len(majors) < 2:
        return
    parts = [f"CUDA {major} of {listed(list(majors[major]))}" for major in sorted(majors, key=int)]
    names = listed([f"libcudart.so.{major}" for major in sorted(majors, key=int)])
    text = f"{' beside '.join(parts)}: {names} load side by side, and the driver runs both"
    last = max(majors, key=int)
    yield Relaxation(name="mixed-cuda", component=CUDA, text=text, where=next(iter(majors[last].values())))


def _oldest(matrix: Matrix, need: Need) -> Candidate | None:
    """The oldest release of what a distribution brings: within a major every driver that runs it runs the later ones too.

    Source: CUDA Compatibility guide, "Minor Version Compatibility".
    """
    component = matrix.components.get(CUDA)
    allowed: list[Release] = [one for one in component.releases if need.allows(one.version)] if component is not None else []
    oldest = min(allowed, key=lambda one: one.version, default=None)
    return None if oldest is None else Candidate(Key(CUDA), oldest.version, str(oldest.version), (oldest, None))


def _major(need: Need) -> str:
    return str(need.range.clauses[0].version.release[0]) if need.range.clauses else ""
