"""Whether any part of an answer computes on the accelerator that the spec asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ON_GPUS, RUNTIMES
from provisioner.components import DRIVERS, FRAMEWORKS
from provisioner.grounds.doubt import NothingAccelerated
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.python.bundled import COMPONENT_BUNDLED_BY
from provisioner.resolver.python.wheels import bringing, uses_gpus, with_gpu_code
from provisioner.resolver.requirement import PACKAGE, FileCandidate, Key, build_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import Matrix
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance


def nothing_accelerated(problem: Problem, pins: Mapping[Key, Candidate]) -> Iterator[NothingAccelerated]:
    """Yield a doubt if the spec asks for CUDA or ROCm and no chosen package is known to compute on it.

    No doubt is yielded for an answer without packages, nor if the spec names no accelerator. The accelerator then follows from
    the hosts' GPUs, and many programs on machines with GPUs compute on the processor.
    """
    request = problem.request
    if request.spec.accelerator not in ON_GPUS or not any(isinstance(one, FileCandidate) for one in pins.values()):
        return
    if is_accelerated(problem, pins):
        return
    twins = {row.name: row.gpu_twin for row in problem.matrix.distributions if row.gpu_twin and request.accelerator == "cuda"}
    instead = tuple((name, twin) for name, twin in sorted(twins.items()) if Key(name, PACKAGE) in pins)
    yield NothingAccelerated(accelerator=request.accelerator, instead=instead)


def is_accelerated(problem: Problem, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether any chosen candidate computes on the request's accelerator, or may do so."""
    if problem.request.spec.build is not None or any(key.component in RUNTIMES for key in pins if not key.is_package):
        return True
    builds = (build_of(pins.get(Key(name))) for name in FRAMEWORKS)
    if any(build is not None and build.accelerator == problem.request.accelerator for build in builds):
        return True
    return any(_may_use_gpus(problem, one) for key, one in pins.items() if key.is_package)


def is_about_gpus(instance: ProblemInstance, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate]) -> bool:
    """Return whether the spec asks for a GPU or a driver, or any chosen candidate may compute on a GPU.

    Packages that were left out of the search may do so, unless all of them are known: `beside`, those of a lock.
    """
    problem = instance.problem
    spec = problem.request.spec
    if spec.accelerator is not None or any(name in spec.requires for name in (*DRIVERS, "driver_module")):
        return True
    is_left_out = instance.finder is None and bool(problem.packages) and not beside
    return is_left_out or is_accelerated(problem, {**pins, **beside})


def _may_use_gpus(problem: Problem, candidate: Candidate) -> bool:
    request, name = problem.request, candidate.key.project
    uses = uses_gpus(problem.matrix, candidate, platform=request.platform, accelerator=request.accelerator)
    if uses is not None:
        return uses
    if candidate.is_source and name in _with_gpu_wheels(problem.matrix):
        return False
    is_of_build = isinstance(candidate, FileCandidate) and bool(candidate.pep440.local)
    is_bringing = name in bringing(problem.matrix)
    return (
        is_of_build
        or candidate.is_source
        or is_bringing
        or name in with_gpu_code(problem.matrix)
        or name in COMPONENT_BUNDLED_BY
    )


def on_cpu_alone(problem: Problem, pins: Mapping[Key, Candidate]) -> Iterator[Candidate]:
    """Yield the chosen distributions that compute on the CPU alone, and would use a GPU under another file or name.

    These are wheels with neither GPU code nor GPU libraries, of distributions with GPU code in other wheels or a GPU variant,
    and source distributions that are compiled for the CPU as they stand.
    """
    request, matrix = problem.request, problem.matrix
    elsewhere = _with_gpu_wheels(matrix)
    known = with_gpu_code(matrix) | elsewhere | {row.name for row in matrix.distributions if row.gpu_twin}
    for key, one in pins.items():
        if not key.is_package or key.project not in known or "[" in key.name:
            continue
        is_compiled_for_cpu = one.is_source and key.project in elsewhere
        if is_compiled_for_cpu or uses_gpus(matrix, one, platform=request.platform, accelerator=request.accelerator) is False:
            yield one


@once_per_matrix
def _with_gpu_wheels(matrix: Matrix) -> frozenset[str]:
    """Return the distributions whose wheels that use a GPU are published outside the package index alone."""
    return frozenset(row.name for row in matrix.distributions if row.gpu_wheels)
