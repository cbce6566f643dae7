"""The GPUs that rocBLAS of a ROCm release has kernels for; without rocBLAS no framework multiplies matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.grounds.predicate import CompiledFor
from provisioner.grounds.requirement import Entails, Relation, Subject
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.requirement import Candidate, Key, Labelled, Requirement
from provisioner.resolver.rules.coverage import runs_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.versions import Version

ROCBLAS = "rocblas"


@once_per_matrix
def _kernels(matrix: Matrix) -> dict[Version, tuple[Release, Build]]:
    """Return the rocBLAS release for each ROCm release, with the build that lists its targets.

    ROCm releases whose rocBLAS has unknown targets are left out.
    """
    component = matrix.components.get(ROCBLAS)
    return {
        version: (release, build)
        for release in (component.releases if component is not None else ())
        for build in release.builds
        if build.gfx is not None
        for need in release.requires
        if need.component == "rocm"
        for version in need.one_of
    }


def rocblas_requirements(matrix: Matrix, rocm: Candidate, gpus: tuple[Key, ...]) -> Iterator[Requirement]:
    """Yield the requirement of a ROCm release that its rocBLAS has kernels for every GPU, or for one that the GPU may run as.

    `gpus` are the keys of the hosts' GPUs. Nothing is yielded when the kernels of the release are unknown.
    """
    release, build = _kernels(matrix).get(rocm.version, (None, None))
    if release is None or build is None or build.gfx is None:
        return
    targets = build.gfx
    known = {key.name.partition(":")[2] for key in gpus} | {gpu.gfx for gpu in matrix.gpus if gpu.gfx}
    overrides = [one for one in matrix.overrides if runs_on(targets, one.runs_as)]
    passing = {gfx for one in overrides if all(need.allows(rocm.version) for need in one.when) for gfx in one.gfx}
    served = Labelled(frozenset({device for device in known if runs_on(targets, device)} | passing))
    ground = Entails(
        name=ROCBLAS,
        subject=Subject(ROCBLAS, f"{release.version} (ROCm {rocm.label})"),
        predicate=CompiledFor(targets),
        relation=Relation("rocm", "gpu", ROCBLAS),
        cited=matrix.positions.get(f"{ROCBLAS}=={release.version}"),
    )
    for key in gpus:
        yield Requirement(key, served, ground)
