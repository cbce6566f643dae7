"""Doubts about libraries of CUDA and ROCm: those that no chosen part has, and those of which a host has another version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import ACCELERATORS
from provisioner.components import FRAMEWORKS
from provisioner.grounds.doubt import MissingLibraries, ShadowedLibrary, UnreachedLibraries, Unrealised
from provisioner.grounds.requirement import Subject
from provisioner.resolver.python.libraries import (
    CUDNN,
    IMAGE,
    Libraries,
    LibraryRequirements,
    brings_rocm,
    cuda_of,
    library_of,
)
from provisioner.resolver.python.wheels import ROCM, GpuWheels
from provisioner.resolver.requirement import PACKAGE, PYTORCH, SLOTS, ImageCandidate, Key, release_of
from provisioner.resolver.rules.bundled import BUNDLED
from provisioner.resolver.rules.images import realises_toolkit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.matrix.model import GpuWheel
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.libraries import Group
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance

SEARCHED_FIRST = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD"})
"""The variables whose libraries the Linux loader takes before those in a RUNPATH."""


def missing_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[MissingLibraries]:
    """Yield a doubt for each chosen wheel that needs libraries of CUDA or ROCm which no chosen part provides."""
    problem, libraries = instance.problem, _libraries(instance)
    for candidate, groups in libraries.lacking(pins):
        providers = tuple(libraries.providers_of(groups))
        yield MissingLibraries(
            subject=Subject(candidate.key.project, candidate.label),
            sonames=tuple(max(group) for group in groups),
            providers=providers,
            is_reached=libraries.is_reaching(candidate, providers),
            runtime=_runtime_of(libraries, groups),
            in_container=problem.request.runs == "container",
        )


def _runtime_of(libraries: Libraries, groups: Iterable[Group]) -> str:
    """Return the oldest ROCm that contains all of some libraries, such as `ROCm 7`; "" for libraries of CUDA."""
    majors = [{major for component, major in libraries.releases_of(group) if component == ROCM} for group in groups]
    common = set.intersection(*majors) if majors else set()
    return f"{ACCELERATORS[ROCM].label} {min(common)}" if common else ""


def unreached_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[UnreachedLibraries]:
    """Yield a doubt for each chosen wheel that needs libraries of other wheels, in folders where the loader does not look.

    Libraries that PyTorch loads are a doubt of their own.
    """
    for candidate, missed in _libraries(instance).unreached(pins):
        for is_of_pytorch in (True, False):
            some = [one for one in missed if one.is_of_pytorch is is_of_pytorch]
            if some:
                yield UnreachedLibraries(
                    subject=Subject(candidate.key.project, candidate.label),
                    sonames=tuple(sorted(one.soname for one in some)),
                    providers=tuple(sorted({one.provider for one in some} - {""})),
                    folders=tuple(sorted({one.folder for one in some} - {""})),
                    is_of_pytorch=is_of_pytorch,
                )


def _libraries(instance: ProblemInstance) -> Libraries:
    problem = instance.problem
    return Libraries(problem, GpuWheels(problem, "")) if instance.finder is None else instance.finder.libraries


def shadowed_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[ShadowedLibrary]:
    """Yield a doubt for each library of a host that the loader finds before that of the chosen wheels, in another version.

    The loader searches LD_LIBRARY_PATH before the RUNPATH of a library and after its RPATH (ld.so(8)). PyTorch's libraries have
    an RPATH, so they load those of their own wheels; cuDNN finds its parts through a RUNPATH, so parts of two versions would
    mix. Measured in libtorch_global_deps.so of torch 2.3.1, 2.9.1 and 2.15.0, libcudnn.so.8 of nvidia-cudnn-cu12 8.9.2.26 and
    libcudnn.so.9 of 9.10.2.21.
    """
    request = instance.problem.request
    if not request.loads_host_libraries:
        return
    has_rpath = PYTORCH in pins and not any(Key(name) in pins for name in SLOTS)
    for target in request.hosts:
        has = target.host.libraries
        variables = tuple(one for one in has.on_path if one in SEARCHED_FIRST) if has is not None else ()
        for name, version in has.versions.items() if has is not None and variables else ():
            chosen = _of_wheels(name, pins) if name == CUDNN or not has_rpath else ""
            if chosen and _is_other(version, chosen):
                yield ShadowedLibrary(host=target.label, library=name, stated=version, chosen=chosen, variables=variables)


def _of_wheels(library: str, pins: Mapping[Key, Candidate]) -> str:
    """Return the version of a library in the chosen wheels; "" when none contains it."""
    component = pins.get(Key(library))
    names = (f"nvidia-{library}{suffix}" for suffix in ("", "-cu11", "-cu12", "-cu13"))
    found = next((one for name in names if (one := pins.get(Key(name, PACKAGE))) is not None), None)
    if found is not None:
        return str(found.pep440)
    return component.version.text.partition("+")[0] if component is not None else ""


def unrealised(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Unrealised]:
    """Yield a doubt for CUDA, ROCm and each library of them that the spec requires without a framework, and a container lacks.

    Neither the base image nor a chosen package is then known to contain it.
    """
    problem = instance.problem
    request = problem.request
    image = next((one.image for one in pins.values() if isinstance(one, ImageCandidate)), None)
    if image is None or any(Key(name) in pins for name in FRAMEWORKS):
        return
    for name in request.spec.requires:
        if (part := pins.get(Key(name))) is None or not _is_of_rocm(part):
            continue
        # No base image of the matrix has ROCm, and no wheel of a library of it stands alone.
        yield Unrealised(
            subject=Subject(name, part.label),
            image=image.reference.partition("@")[0],
            distribution="",
            is_version=False,
            base="",
        )
    held = {"cuda": image.cuda, "cudnn": image.cudnn}
    names = {key.project for key in pins if key.is_package} | request.named_packages
    cuda = pins.get(Key("cuda"))
    runtimes = _with_runtime(problem.matrix.wheels)
    for component in request.toolkit:
        chosen = pins.get(Key(component))
        carriers = BUNDLED.get(component, runtimes)
        if chosen is None or held.get(component) or names.intersection(carriers):
            continue
        fitting = [name for name in carriers if cuda is not None and cuda_of(name) == cuda.version.release[0]]
        yield Unrealised(
            subject=Subject(component, chosen.label),
            image=image.reference.partition("@")[0],
            distribution=fitting[0] if fitting else "",
            is_version=component != "cuda",
            base="cuda-runtime" if component == "cuda" and not realises_toolkit(request) else "",
        )


def _is_of_rocm(candidate: Candidate) -> bool:
    """Return whether a candidate is a release of ROCm, or of a library that a release of ROCm contains."""
    release = release_of(candidate)
    needs = release.requires if release is not None else ()
    return candidate.key.component == ROCM or any(need.component == ROCM for need in needs)


def lacks_toolkit(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether a container would lack the CUDA or cuDNN that the spec requires, which some base images have."""
    return any(one.subject.name in {"cuda", CUDNN} for one in unrealised(instance, pins))


def _with_runtime(rows: Iterable[GpuWheel]) -> tuple[str, ...]:
    """Return the distributions whose wheels provide the CUDA runtime library."""
    return tuple(dict.fromkeys(row.distribution for row in rows if any(library_of(one) == "libcudart" for one in row.provides)))


def _is_other(stated: str, chosen: str) -> bool:
    """Return whether two versions of a library differ but have the same major version, and therefore the same soname."""
    numbers = [text.split(".") for text in (stated, chosen)]
    shortest = min(map(len, numbers))
    return numbers[0][0] == numbers[1][0] and numbers[0][:shortest] != numbers[1][:shortest]


def is_lacking(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether chosen wheels lack libraries, so that a second search is worth it.

    If the host or an unknown base image may have the libraries, the result is True only when other versions of the chosen
    components and distributions may provide all of them.
    """
    if instance.finder is None:
        return False
    libraries = instance.finder.libraries
    lacking = libraries.lacking(pins)
    if not lacking or not may_be_elsewhere(instance.problem, pins):
        return bool(lacking)
    return LibraryRequirements(instance.problem, libraries, pins, instance.candidates).may_close(lacking)


def may_be_elsewhere(problem: Problem, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether libraries that no chosen part provides may be on a host, or in a base image that the matrix lacks."""
    image = pins.get(IMAGE)
    if problem.request.accelerator == ROCM and not brings_rocm(pins):
        return True  # the matrix has no image with ROCm, so that no other answer has it: the way out is an image of one's own
    return problem.request.runs == "host" or not isinstance(image, ImageCandidate) or not image.image.kind
