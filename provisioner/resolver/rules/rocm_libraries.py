"""The GPUs that the libraries of a ROCm release have kernels for, and what a GPU without kernels in one of them means.

The file of a library in the matrix says that (`Kernels`). Without rocBLAS no framework multiplies matrices: the release is
refused. RCCL is needed on several GPUs only, and hipBLASLt has a substitute: their lack is reported beside the answer, unless
the spec names the library itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.accelerators import ACCELERATORS
from provisioner.grounds.predicate import CompiledFor
from provisioner.grounds.requirement import Entails, Relation, Subject
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.requirement import Candidate, Key, Labelled, Requirement
from provisioner.resolver.rules.coverage import runs_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.matrix.model import Kernels, Matrix, Release
    from provisioner.versions import Version


class CarriedLibrary(Struct, frozen=True):
    """A release of a library in a release of its runtime, with its targets; `lack` is the row of the matrix on that library."""

    name: str
    release: Release
    runtime: Version
    targets: tuple[str, ...]
    lack: Kernels

    @property
    def subject(self) -> Subject:
        """The library as messages name it: `rocblas` `5.2.0 (ROCm 7.2.3)`."""
        return Subject(self.name, f"{self.release.version} ({ACCELERATORS[self.lack.of].label} {self.runtime})")

    def serves(self, matrix: Matrix, device: str) -> bool:
        """Return whether the library has kernels for a GPU, or for a target that the GPU may run as."""
        return runs_on(self.targets, device) or any(
            device in one.gfx and runs_on(self.targets, one.runs_as) and all(need.allows(self.runtime) for need in one.when)
            for one in matrix.overrides
        )


@once_per_matrix
def _carried(matrix: Matrix) -> dict[tuple[str, Version], tuple[CarriedLibrary, ...]]:
    """Return the libraries with known targets, by name and version of the runtime that contains them, and by their own."""
    found: dict[tuple[str, Version], list[CarriedLibrary]] = {}
    for name, row in matrix.kernels.items():
        for release in matrix.components[name].releases:
            for targets in (build.gfx for build in release.builds if build.gfx is not None):
                for runtime in (version for need in release.requires if need.component == row.of for version in need.one_of):
                    one = CarriedLibrary(name, release, runtime, targets, row)
                    found.setdefault((row.of, runtime), []).append(one)
                    found.setdefault((name, release.version), []).append(one)
    return {key: tuple(some) for key, some in found.items()}


def carried_libraries(matrix: Matrix, candidate: Candidate) -> tuple[CarriedLibrary, ...]:
    """Return the libraries with known targets in a runtime's release; for a library's own release, that in each runtime."""
    return _carried(matrix).get((candidate.key.component, candidate.version), ())


def kernel_requirements(matrix: Matrix, candidate: Candidate, gpus: tuple[Key, ...]) -> Iterator[Requirement]:
    """Yield the requirements of a runtime's release, or of a library that the spec names, that it has kernels for every GPU.

    `gpus` are the keys of the hosts' GPUs. Nothing is yielded for libraries whose kernels are unknown.
    """
    is_library = candidate.key.component in matrix.kernels
    found = [one for one in carried_libraries(matrix, candidate) if is_library or one.lack.lack == "refused"]
    known = {key.name.partition(":")[2] for key in gpus} | {gpu.gfx for gpu in matrix.gpus if gpu.gfx}
    for name in dict.fromkeys(one.name for one in found):
        same = [one for one in found if one.name == name]
        served = Labelled(frozenset(device for device in known if any(one.serves(matrix, device) for one in same)))
        subject = candidate.subject if is_library else same[0].subject
        ground = Entails(
            name=name,
            subject=subject,
            predicate=CompiledFor(same[0].targets),
            relation=Relation(candidate.key.component, "gpu", name),
            cited=matrix.positions.get(f"{name}=={same[0].release.version}"),
        )
        yield from (Requirement(key, served, ground) for key in gpus)
