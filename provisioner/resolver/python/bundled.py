"""CUDA runtimes, and libraries such as cuDNN, that distributions bundle: their requirements on drivers and GPUs.

CUDA runtimes of two major versions can be loaded side by side, because their libraries have different names. But the driver
must run both, and both must support the GPUs. That is required here; `mixed_cuda` reports an answer with runtimes of two major
versions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.grounds.predicate import Bundles, BundlesCuda, IsOfCuda, without_reason
from provisioner.grounds.relaxation import MixedCuda
from provisioner.grounds.requirement import Entails, Relation, Row, SameChoice
from provisioner.matrix.need import Need
from provisioner.matrix.once import once_per_matrix
from provisioner.places import Place
from provisioner.resolver.requirement import PACKAGE, Candidate, Key, ReleaseCandidate, Requirement, build_of
from provisioner.resolver.rules.bundled import BUNDLED, bundled_version, unlisted_release
from provisioner.resolver.rules.devices import toolkit_code
from provisioner.versions import Range, Version, dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.matrix.model import Build, ImpliedNeed, Matrix, Release
    from provisioner.resolver.problem import Problem


CUDA = "cuda"
DRIVERS = frozenset({"driver", "jetson"})
"""The components of hosts that decide which CUDA runs: on a Jetson it is its Jetson Linux, which has the driver."""
HOST_COMPONENTS = DRIVERS | {"gpu"}
"""The components of hosts on which bundled runtimes and libraries have requirements."""

_OF_RUNTIMES = HOST_COMPONENTS | {"image"}
_specifier = lru_cache(maxsize=512)(SpecifierSet)


def bundled_cuda_requirements(
    problem: Problem, candidate: Candidate, row: ImpliedNeed, *, place: Place
) -> Iterator[Requirement]:
    """Yield the requirements on hosts of the CUDA runtimes that a version bundles; nothing unless the accelerator is CUDA.

    `row` is the row of the matrix that lists the runtimes, `place` its line.
    """
    if problem.request.accelerator != CUDA:
        return
    for need in row.brings:
        runtime = _oldest(problem.matrix, need)
        yield from runtime_requirements(problem, candidate, runtime, named=_major(need), because=row.because, place=place)


def runtime_requirements(
    problem: Problem,
    candidate: Candidate,
    runtime: ReleaseCandidate | None,
    *,
    named: str,
    because: str,
    place: Place,
) -> Iterator[Requirement]:
    """Yield the requirements on hosts of a CUDA runtime that a version of a distribution bundles.

    `runtime` is None, and nothing is yielded, if the matrix does not know the runtime. `named` is its release in messages,
    `because` the reason as text, and `place` the line of the matrix to cite.
    """
    for one in problem.needs.of(runtime) if runtime is not None else ():
        if one.key.component in _OF_RUNTIMES and isinstance(one.ground, Entails):
            predicate = BundlesCuda(named, without_reason(one.ground.predicate), because)
            relation = Relation(CUDA, one.key.component, candidate.key.distribution)
            yield Requirement(one.key, one.test, candidate.entails(predicate, relation, place))


def _bundling_cuda(matrix: Matrix, pins: Mapping[Key, Candidate]) -> Iterator[tuple[Candidate, Need]]:
    """Yield every chosen distribution that bundles CUDA runtimes, with the version range of each."""
    for distribution in matrix.distributions:
        chosen = pins.get(Key(distribution.name, PACKAGE))
        for row in distribution.implies if chosen is not None else ():
            if chosen is not None and row.brings and _specifier(row.versions).contains(chosen.pep440, prereleases=True):
                yield from ((chosen, need) for need in row.brings)


def bundled_runtimes(matrix: Matrix, pins: Mapping[Key, Candidate]) -> tuple[ReleaseCandidate, ...]:
    """Return the CUDA releases that distributions bundle and `pins` does not choose, the oldest of each bundled range.

    The image's NVIDIA_REQUIRE_CUDA must admit only hosts that run these, too.
    """
    chosen = [one.version for key, one in pins.items() if not key.is_package and key.component == CUDA]
    found: dict[str, ReleaseCandidate] = {}
    for _, need in _bundling_cuda(matrix, pins):
        runtime = _oldest(matrix, need)
        if runtime is not None and not any(need.allows(version) for version in chosen):
            found.setdefault(runtime.label, runtime)
    return tuple(found[label] for label in sorted(found))


def mixed_cuda(matrix: Matrix, pins: Mapping[Key, Candidate]) -> Iterator[MixedCuda]:
    """Yield a relaxation if one environment has CUDA runtimes of several major versions, with what brings each of them."""
    majors: dict[str, dict[str, Place]] = {}
    for key, one in pins.items():
        if not key.is_package and key.component == CUDA and one.version.release:
            framework = key.slot or "the framework"
            majors.setdefault(str(one.version.release[0]), {})[framework] = Place(f"matrices/{CUDA}.yaml")
    for one, need in _bundling_cuda(matrix, pins):
        if len({release.version.release[0] for release in _cuda_releases(matrix) if need.allows(release.version)}) > 1:
            continue  # it goes with whichever the others bring
        place = matrix.place_of(f"distribution:{one.key.name}")
        majors.setdefault(_major(need), {})[str(one)] = place
    if len(majors) < 2:
        return
    holders = tuple((major, tuple(majors[major])) for major in sorted(majors, key=int))
    last = max(majors, key=int)
    yield MixedCuda(component=CUDA, majors=holders, source=next(iter(majors[last].values())))


def _oldest(matrix: Matrix, need: Need) -> ReleaseCandidate | None:
    """Return the oldest CUDA release in a range; None when the matrix has none.

    Every driver that runs it also runs the later releases of the same major version.

    Source: CUDA Compatibility guide, "Minor Version Compatibility".
    """
    oldest = next((one for one in _cuda_releases(matrix) if need.allows(one.version)), None)
    return None if oldest is None else ReleaseCandidate(Key(CUDA), oldest.version, str(oldest.version), oldest)


@once_per_matrix
def _cuda_releases(matrix: Matrix) -> list[Release]:
    """Return the CUDA releases, oldest first."""
    component = matrix.components.get(CUDA)
    return sorted(component.releases, key=lambda one: one.version) if component is not None else []


def runtime_of_series(matrix: Matrix, series: str) -> ReleaseCandidate | None:
    """Return the newest CUDA release of a series such as `13.3`, else the oldest of its major version.

    None when the matrix has no release of that major version. Every driver that runs one release of a major version runs the
    others by minor-version compatibility.
    """
    numbers = Version.parse(series).release
    component = matrix.components.get(CUDA)
    of_series = [one for one in (component.releases if component else ()) if one.version.release[:2] == numbers[:2]]
    newest = max(of_series, key=lambda one: one.version, default=None)
    if newest is None:
        return _oldest(matrix, Need(component=CUDA, range=Range.parse(f"=={numbers[0]}.*")))
    return ReleaseCandidate(Key(CUDA), newest.version, str(newest.version), newest)


def _major(need: Need) -> str:
    return str(need.range.clauses[0].version.release[0]) if need.range.clauses else ""


COMPONENT_BUNDLED_BY = {name: component for component, names in BUNDLED.items() for name in names}


def bundled_library(problem: Problem, candidate: Candidate) -> ReleaseCandidate | None:
    """Return the release of the component that a distribution bundles.

    None when it bundles none, when the accelerator is not CUDA, and when the problem does not have the component.
    """
    component = COMPONENT_BUNDLED_BY.get(candidate.key.name, "")
    key = Key(component)
    if problem.request.accelerator != CUDA or key not in problem.domains:
        return None
    listed, named = problem.domains[key], candidate.key.name.rpartition("-")[2]
    releases = (one for one in listed if isinstance(one, ReleaseCandidate))
    version = bundled_version(candidate)
    same = [one for one in releases if one.version == version]
    for_its_cuda = (one for one in same if (build := build_of(one)) is not None and build.name == named)
    return next(for_its_cuda, None) or next(iter(same), None) or unlisted_release(key, listed, candidate)


def is_known_library(matrix: Matrix, name: str) -> bool:
    """Return whether a distribution bundles a component, or is one of NVIDIA's libraries: others need nothing of that."""
    return name in COMPONENT_BUNDLED_BY or name in _toolkit_libraries(matrix)


def bundled_library_requirements(problem: Problem, candidate: Candidate) -> Iterator[Requirement]:
    """Yield the requirements on hosts of the library that a version bundles; nothing unless the accelerator is CUDA.

    A library that the spec itself names will be used, so the hosts must run the CUDA release that it is for. If the spec names
    no framework, the library's own GPU code must run on the GPUs, too; a framework calls only what its own GPUs need.
    """
    library = bundled_library(problem, candidate)
    request, build = problem.request, build_of(library)
    is_library = library is not None or candidate.key.project in _toolkit_libraries(problem.matrix)
    is_named = is_library and candidate.key.project in request.named_packages
    if library is not None:
        found = [one for one in problem.needs.of(library) if one.key.component in HOST_COMPONENTS]
        if is_named and not request.names_framework and build is not None and build.sass is not None:
            drivers = (one for one in found if one.key.component != "gpu")
            found = [*drivers, *problem.needs.on_gpus(library, replace(build, accelerator=CUDA))]
        yield from (_carried(candidate, one, library) for one in found if isinstance(one.ground, Entails))
    if is_named and request.accelerator == CUDA:
        yield from _of_its_cuda(problem, candidate, _cuda_of(problem.matrix, candidate, build))


def _carried(candidate: Candidate, one: Requirement, library: Candidate) -> Requirement:
    """Return a requirement of a library as one of the distribution that bundles it."""
    assert isinstance(one.ground, Entails)
    name = candidate.key.name
    ground = replace(
        one.ground,
        name=name,
        subject=candidate.subject,
        predicate=Bundles(library.key.component, library.label, one.ground.predicate),
        relation=_through(one.ground.relation, name),
    )
    return Requirement(one.key, one.test, ground)


def _of_its_cuda(problem: Problem, candidate: Candidate, releases: Sequence[ReleaseCandidate]) -> Iterator[Requirement]:
    """Yield the requirements on hosts of the CUDA releases that a library is for; `releases` has them oldest first.

    A driver that runs one release of a major version runs them all; a GPU that any release supports is supported by the newest.
    """
    if not releases:
        return
    oldest, newest = releases[0], releases[-1]
    series = {dotted(one.version.release[:2]) for one in releases}
    cuda = series.pop() if len(series) == 1 else str(newest.version.release[0])
    code = toolkit_code(problem.matrix, newest.version)
    wanted = [one for one in problem.needs.of(oldest) if one.key.component in DRIVERS]
    if problem.needs.devices.gpus:
        by_rule = (one for one in problem.needs.of(newest) if one.key.component == "gpu")
        wanted.extend(by_rule if code is None else problem.needs.on_gpus(newest, code))
    for one in wanted:
        if isinstance(one.ground, Entails):
            ground = replace(
                one.ground,
                name=candidate.key.name,
                subject=candidate.subject,
                predicate=IsOfCuda(cuda, without_reason(one.ground.predicate)),
                relation=Relation(CUDA, one.key.component, candidate.key.name),
            )
            yield Requirement(one.key, one.test, ground)


def _cuda_of(matrix: Matrix, candidate: Candidate, build: Build | None) -> tuple[ReleaseCandidate, ...]:
    """Return the CUDA releases that a library's distribution is for, oldest first; () when the matrix does not know them.

    `build` is the build of the component that the distribution bundles, None if unknown. A version that the matrix does not
    list counts as being for the CUDA of every listed version of the distribution.
    """
    listed = _toolkit_libraries(matrix).get(candidate.key.project, {})
    of_build = tuple(need for need in (build.requires if build is not None else ()) if need.component == CUDA)
    needs = of_build or listed.get(bundled_version(candidate)) or tuple(need for some in listed.values() for need in some)
    component = matrix.components.get(CUDA)
    found = [one for one in (component.releases if component else ()) if any(need.allows(one.version) for need in needs)]
    found.sort(key=lambda one: one.version)
    return tuple(ReleaseCandidate(Key(CUDA), one.version, str(one.version), one) for one in found)


@once_per_matrix
def _toolkit_libraries(matrix: Matrix) -> dict[str, dict[Version, tuple[Need, ...]]]:
    """Return the needs of CUDA of NVIDIA's library distributions, by the distribution's name and the library's version."""
    found: dict[str, dict[Version, tuple[Need, ...]]] = {}
    for component in matrix.components.values():
        for release in component.releases:
            for build in release.builds:
                if not build.artefact.startswith("nvidia_"):  # names of wheels have underscores
                    continue
                needs = tuple(need for need in build.requires if need.component == CUDA)
                if needs:
                    name = canonicalize_name(build.artefact.partition("-")[0])
                    known = found.setdefault(name, {})
                    known[release.version] = (*known.get(release.version, ()), *needs)
    return found


def _through(relation: Relation | SameChoice | Row, name: str) -> Relation | Row:
    """Return the relation of a requirement of a component as one of the distribution `name`, which bundles the component."""
    if isinstance(relation, Row):
        return Row(relation.table, relation.name, name)
    return Relation(relation.subject, relation.object, name)


def is_reported_for_component(requirement: Requirement, system: Iterable[Key]) -> bool:
    """Return whether a requirement on a host is of a bundled library that is also a component in `system`.

    That component has the same requirement, which is therefore reported already.
    """
    component = COMPONENT_BUNDLED_BY.get(requirement.ground.component, "")
    return requirement.key.component in HOST_COMPONENTS and any(key.component == component for key in system)


def bundled_libraries(problem: Problem, pins: Mapping[Key, Candidate]) -> tuple[ReleaseCandidate, ...]:
    """Return the library releases that chosen distributions bundle, except those of components that are chosen themselves.

    The image's NVIDIA_REQUIRE_CUDA must admit only hosts that run these, too.
    """
    known = {key.component for key in pins if not key.is_package}
    bundling = [pins[Key(name, PACKAGE)] for name in sorted(COMPONENT_BUNDLED_BY) if Key(name, PACKAGE) in pins]
    found = (bundled_library(problem, one) for one in bundling if COMPONENT_BUNDLED_BY[one.key.name] not in known)
    return tuple(one for one in found if one is not None)
