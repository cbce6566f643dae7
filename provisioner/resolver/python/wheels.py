"""Requirements of wheels on GPUs, drivers and NumPy, from the GPU code that the matrix measured in them.

A wheel is excluded if it has GPU code but none for a GPU of the target, or a CUDA runtime that the target's driver cannot run.
A wheel that was not measured, of a distribution with GPU code, is a doubt.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.accelerators import ON_GPUS, ROCM_LIBRARIES
from provisioner.grounds.bound import Specifier
from provisioner.grounds.predicate import BuiltFor, Requires
from provisioner.grounds.requirement import Relation
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.python.bundled import CUDA, DRIVERS, runtime_of_series, runtime_requirements
from provisioner.resolver.python.named_builds import named_cuda
from provisioner.resolver.requirement import PACKAGE, FileCandidate, Key, Labelled, Matching, Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.matrix.model import DeclaredCode, DeclaredTargets, GpuWheel, ImpliedNeed, Matrix, SeenToRun, SystemWheel
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate

ROCM = "rocm"
USELESS = 3
"""The rank of a version that a measurement or a limit of the matrix excludes on the hosts."""
Measured = TypeVar("Measured", bound="GpuWheel | SystemWheel")
_specifier = lru_cache(maxsize=1024)(SpecifierSet)


class GpuWheels:
    """The measured wheels of the matrix, for one target.

    `variant_index` is the index of the PyTorch build, whose wheels were not measured; "" for the default index.
    """

    def __init__(self, problem: Problem, variant_index: str) -> None:
        self._problem = problem
        self._variant_index = variant_index
        is_about_gpus = problem.request.accelerator in ON_GPUS and problem.needs.devices.are_known
        self._rows: Mapping[str, Sequence[GpuWheel]] = _by_distribution(problem.matrix) if is_about_gpus else {}
        self._with_gpu_code = with_gpu_code(problem.matrix) if is_about_gpus else frozenset()
        is_about_cuda = is_about_gpus and problem.request.accelerator == CUDA
        self._declared = _declared(problem.matrix) if is_about_cuda else {}
        self._served: dict[int, bool] = {}
        self._of_others: dict[str, bool] = {}
        self._row_of: dict[Candidate, GpuWheel | None] = {}

    @cached_property
    def distributions(self) -> frozenset[str]:
        """The distributions of which some wheels were measured."""
        return frozenset(self._rows)

    def rows_of(self, key: Key, *, of_any_platform: bool = False) -> tuple[GpuWheel, ...]:
        """Return the rows with measurements of a distribution's wheels, on the target's platform or on any platform."""
        rows = self._rows.get(key.project, ())
        return tuple(row for row in rows if of_any_platform or _is_for(row, self._problem.request.platform))

    def row_of(self, candidate: Candidate) -> GpuWheel | None:
        """Return the row with the measurement that covers a version's wheel on the target's platform.

        None when there is none.
        """
        rows = self._rows.get(candidate.key.project, ())
        if not rows:
            return None
        if candidate not in self._row_of:
            platform = self._problem.request.platform
            fitting = (row for row in rows if _is_for(row, platform) and _stands_for(row, candidate))
            self._row_of[candidate] = next(fitting, None) if self._is_of_default_index(candidate) else None
        return self._row_of[candidate]

    def is_unmeasured(self, candidate: Candidate) -> bool:
        """Return whether a wheel was not measured and may have GPU code, as other versions of its distribution do.

        False for libraries that other distributions use, and for the wheels of components: the rules of their component cover
        them.
        """
        return self._is_unmeasured(candidate, self.row_of(candidate))

    def _is_unmeasured(self, candidate: Candidate, row: GpuWheel | None) -> bool:
        name = candidate.key.project
        if name not in self._with_gpu_code or not isinstance(candidate, FileCandidate) or candidate.pep440.local:
            return False  # a local version names the PyTorch build for whose GPUs it was compiled
        file = candidate.release.file
        if file is None or not file.filename.endswith(".whl"):
            return False
        if row is None:  # also a wheel tagged for any platform: it may contain GPU code nevertheless
            return True
        targets = row.gfx if self._problem.request.accelerator == ROCM else row.sass
        return targets is None and not self._problem.needs.devices.is_for_others(row)

    def declared_for_others(self, candidate: Candidate) -> DeclaredCode | None:
        """Return the targets that the recipe of an unread wheel declares, if one of the hosts' GPUs runs none of them.

        None if they suffice, and for a wheel that was measured or of which no recipe is known.
        """
        name = candidate.key.project
        if name not in self._declared or not isinstance(candidate, FileCandidate) or self.row_of(candidate) is not None:
            return None
        code = declared_code(self._problem.matrix, name, candidate.pep440.public, build=named_cuda(candidate.release))
        return code if code is not None and self._problem.needs.devices.unserved_by(code) else None

    def undocumented(self, candidate: Candidate) -> tuple[SeenToRun, ...]:
        """Return the rows about GPUs of the hosts that were seen to run code like a wheel's, without NVIDIA's promise."""
        row = self.row_of(candidate)
        return self._problem.needs.devices.undocumented(self._without_components(row)) if row is not None else ()

    def of(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield the requirements of a version's wheel on GPUs, on drivers and on NumPy."""
        measured = self.row_of(candidate)
        if self._is_unmeasured(candidate, measured):
            yield from self._problem.needs.devices.of_unmeasured(candidate, uploaded(candidate))
        row = measured or self._of_others_around(candidate)
        if row is None:
            yield from self._of_another_platform(candidate)
            return
        place = self._problem.matrix.place_of(f"wheel:{row.distribution} {row.versions}")
        yield from self._problem.needs.devices.of_wheel(candidate, self._without_components(row), place)
        if row.runtime and self._problem.request.accelerator == CUDA and not self._is_said_to_bundle_cuda(candidate):
            runtime, because = runtime_of_series(self._problem.matrix, row.runtime), "its wheel contains that runtime"
            found = runtime_requirements(self._problem, candidate, runtime, named=row.runtime, because=because, place=place)
            # The wheel's own targets decide which GPUs it supports.
            yield from (one for one in found if one.key.component in DRIVERS)
        if row.numpy:
            predicate = Requires("numpy", (Specifier(row.numpy),), "its compiled modules cannot be imported with another NumPy")
            ground = candidate.entails(predicate, Relation(row.distribution, "numpy", "undeclared"), place)
            yield Requirement(Key("numpy", PACKAGE), Matching(SpecifierSet(row.numpy)), ground)

    def _of_another_platform(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield the requirement on the platform of a wheel that is tagged for any, and was measured for another one alone.

        Its libraries are for that platform, whatever its tag says.
        """
        file = candidate.release.file if isinstance(candidate, FileCandidate) else None
        name = file.filename if file is not None else ""
        rows = [
            row
            for row in self._rows.get(candidate.key.project, ())
            if name.endswith("-any.whl") and _stands_for(row, candidate)
        ]
        if rows and all(any(of.endswith("-any.whl") for of in row.artefacts) for row in rows):
            platforms = tuple(sorted({platform for row in rows for platform in row.platforms}))
            place = self._problem.matrix.place_of(f"wheel:{rows[0].distribution} {rows[0].versions}")
            ground = candidate.entails(BuiltFor(platforms), Relation(rows[0].distribution, "platform"), place)
            yield Requirement(Key("platform"), Labelled(frozenset(platforms)), ground)

    def _of_others_around(self, candidate: Candidate) -> GpuWheel | None:
        """Return the measured row below an unmeasured version if that and the next row are for another vendor's GPUs alone.

        The version is taken to be for the same GPUs, so that it is no way around the measured ones.
        """
        if not self._is_of_default_index(candidate) or not self._has_rows_of_others(candidate.key):
            return None
        around = neighbours(self.rows_of(candidate.key), candidate.pep440)
        return around[0] if len(around) > 1 and all(map(self._problem.needs.devices.is_for_others, around)) else None

    def _has_rows_of_others(self, key: Key) -> bool:
        found = self._of_others.get(key.project)
        if found is None:
            rows = self._rows.get(key.project, ())
            found = self._of_others[key.project] = any(map(self._problem.needs.devices.is_for_others, rows))
        return found

    def rank(self, candidate: Candidate) -> int:
        """Return 0 for a version ordered by its number alone, and more the later one is to be tried.

        1 is for one with unmeasured GPU code, or whose recipe declares none for a GPU of a host, 2 for one that is too old for
        more than PTX, `USELESS` for one that has no code for some GPU of a host, so that its metadata need not be read.
        """
        row = self.row_of(candidate) or self._of_others_around(candidate)
        if row is not None:
            if id(row) not in self._served:
                self._served[id(row)] = self._problem.needs.devices.is_served_by(self._without_components(row))
            if not self._served[id(row)]:
                return USELESS
        if not self._is_unmeasured(candidate, row):
            return 0 if self.declared_for_others(candidate) is None else 1
        if self._problem.needs.devices.older_than(uploaded(candidate)) is None:
            return 1
        return 2 if "ptx-jit" in self._problem.request.allowed else USELESS

    def _without_components(self, row: GpuWheel) -> GpuWheel:
        """Return a row without targets if its distribution is a component or a library of NVIDIA's; otherwise the row itself.

        The rows of the component, and of the library's toolkit, state which GPUs they support. Such libraries choose among
        kernels at run time and compile others, so measuring a part of their code would prove little.
        """
        if row.distribution in self._with_gpu_code:
            return row
        # Wheels with kernels work on GPUs unknown to their GPU compiler; NVRTC compiles for the target that its caller names.
        is_compiling = not (row.sass or row.ptx or row.distribution.startswith("nvidia-"))
        return replace(row, sass=(), ptx=(), gfx=(), compiler=row.compiler if is_compiling else "")

    def _is_said_to_bundle_cuda(self, candidate: Candidate) -> bool:
        """Return whether a row of the matrix on the distribution states the CUDA runtime that a version bundles."""
        rows = bringing(self._problem.matrix).get(candidate.key.project, ())
        return any(_covers(row.versions, candidate.pep440) for row in rows)

    def _is_of_default_index(self, candidate: Candidate) -> bool:
        if not isinstance(candidate, FileCandidate) or candidate.pep440.local:
            return False
        file = candidate.release.file
        return file is None or (file.filename.endswith(".whl") and file.index != (self._variant_index or None))


def uses_gpus(matrix: Matrix, candidate: Candidate, *, platform: str, accelerator: str) -> bool | None:
    """Return whether a version's wheel contains GPU code for an accelerator, or uses or contains libraries of it.

    None when unknown: no wheel of the distribution was measured, or none that covers this version, it is a source distribution,
    or its local version names a build, which may be for GPUs.
    """
    rows = _by_distribution(matrix).get(candidate.key.project, [])
    if not rows or not isinstance(candidate, FileCandidate) or candidate.pep440.local or candidate.has_no_file:
        return None
    found = [row for row in rows if _is_for(row, platform) and _stands_for(row, candidate)]
    if not found or not candidate.release.is_wheel:
        return None
    row, sonames = found[0], (*found[0].links, *found[0].opens, *found[0].provides)
    if accelerator == ROCM:
        return bool(row.gfx) or any(name.startswith(ROCM_LIBRARIES) for name in sonames)
    has_code = row.sass is None or row.sass or row.ptx or row.runtime or row.compiler
    return bool(has_code) or any(not name.startswith((*ROCM_LIBRARIES, "libtorch", "libc10.")) for name in sonames)


def uploaded(candidate: Candidate) -> str:
    """Return the day on which a version's file was uploaded, such as `2019-06-11`; "" when its index does not tell."""
    file = candidate.release.file if isinstance(candidate, FileCandidate) else None
    return (file.upload_time or "")[: len("2019-06-11")] if file is not None else ""


def neighbours(rows: Iterable[Measured], version: PackageVersion) -> list[Measured]:
    """Return the row of the nearest measured version below a version and that of the nearest one above, if they exist."""
    found = sorted(((first_of(row), row) for row in rows), key=lambda pair: pair[0])
    below = [row for first, row in found if first < version]
    above = [row for first, row in found if first >= version]
    return [*below[-1:], *above[:1]]


def first_of(row: GpuWheel | SystemWheel) -> PackageVersion:
    """Return the lowest version in a row's specifier, such as 1.16.0 of `>=1.16.0,<=1.17.1`."""
    return _lowest(row.versions)


@lru_cache(maxsize=1024)
def _lowest(versions: str) -> PackageVersion:
    return min((PackageVersion(one.version.removesuffix(".*")) for one in SpecifierSet(versions)), default=PackageVersion("0"))


def _is_for(row: GpuWheel, platform: str) -> bool:
    return not row.platforms or platform in row.platforms


def _stands_for(row: GpuWheel, candidate: Candidate) -> bool:
    return _covers(row.versions, candidate.pep440)


@lru_cache(maxsize=65536)  # the locks of a repository have many packages in common
def _covers(versions: str, version: PackageVersion) -> bool:
    return _specifier(versions).contains(version, prereleases=True)


def declared_code(matrix: Matrix, distribution: str, version: str, *, build: str) -> DeclaredCode | None:
    """Return the targets that the recipe of a distribution's wheel declares; None when no row of the matrix tells them.

    `version` is without a local version, `build` the CUDA for which the wheel is compiled, such as `cu12` or `cu128`.
    """
    rows = _declared(matrix).get(distribution, ())
    fitting = (row.builds for row in rows if _specifier(row.versions).contains(version, prereleases=True))
    builds: Mapping[str, DeclaredCode] = next(fitting, {})
    return builds.get(build, builds.get(build[: len("cu12")]))


@once_per_matrix
def bringing(matrix: Matrix) -> dict[str, list[ImpliedNeed]]:
    """Return the rows that state what a distribution brings with it, by its name."""
    found = {one.name: [row for row in one.implies if row.brings] for one in matrix.distributions}
    return {name: rows for name, rows in found.items() if rows}


@once_per_matrix
def _declared(matrix: Matrix) -> dict[str, list[DeclaredTargets]]:
    found: dict[str, list[DeclaredTargets]] = {}
    for row in matrix.declared:
        for name in row.distributions:
            found.setdefault(name, []).append(row)
    return found


@once_per_matrix
def _by_distribution(matrix: Matrix) -> dict[str, list[GpuWheel]]:
    found: dict[str, list[GpuWheel]] = {}
    for row in matrix.wheels:
        found.setdefault(row.distribution, []).append(row)
    return found


@once_per_matrix
def of_libraries(matrix: Matrix) -> frozenset[str]:
    """Return the distributions of libraries for others: all of their measured releases contain such libraries.

    Another one, such as a release of Warp with a CUDA runtime in it, contains them for itself alone: its next release may have
    none, and nothing else looks into its folders.
    """
    return frozenset(name for name, rows in _by_distribution(matrix).items() if all(row.provides for row in rows))


@once_per_matrix
def with_gpu_code(matrix: Matrix) -> frozenset[str]:
    """Return the distributions that have, or may have, GPU code and are neither a component nor a library for others.

    Some of these contain a copy of a library for themselves, as releases of CuPy and of Warp do (`of_libraries`).
    """
    libraries = of_libraries(matrix)
    rows = {name: some for name, some in _by_distribution(matrix).items() if name not in libraries}
    found = {name for name, some in rows.items() if any(row.sass is None or row.sass or row.ptx or row.gfx for row in some)}
    builds = (build for one in matrix.components.values() for release in one.releases for build in release.builds)
    measured = {build.artefact.partition("-")[0] for build in builds}
    return frozenset(found.difference(canonicalize_name(name) for name in measured))
