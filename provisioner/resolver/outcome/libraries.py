"""Doubts about libraries of CUDA and ROCm: those that no chosen part has, and those of which a host has another version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.accelerators import ACCELERATORS
from provisioner.components import FRAMEWORKS, RUNTIME_LIBRARIES
from provisioner.grounds.choice import WithoutLibraries
from provisioner.grounds.doubt import MissingLibraries, ShadowedLibrary, UnreachedLibraries, Unrealised
from provisioner.grounds.requirement import Subject
from provisioner.resolver.outcome.host_setup import host_setups
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
from provisioner.resolver.rules.bundled import BUNDLED, CUDA
from provisioner.resolver.rules.images import realises_toolkit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.matrix.model import GpuWheel, ImageFacts
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.libraries import Group
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance

SEARCHED_FIRST = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD"})
"""The variables whose libraries the Linux loader takes before those in a RUNPATH."""

DCGM, TRITON = "dcgm", "triton"


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
    for candidate, sonames in libraries.unknown(pins):
        yield MissingLibraries(
            subject=Subject(candidate.key.project, candidate.label),
            sonames=sonames,
            providers=(),
            is_reached=True,
            in_container=problem.request.runs == "container",
        )


def without_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[WithoutLibraries]:
    """Yield a warning for each chosen wheel that can do without libraries, where no chosen part provides them."""
    libraries = _libraries(instance)
    for candidate, row in libraries.lacking_optional(pins):
        yield WithoutLibraries(name=candidate.key.project, version=candidate.label, sonames=row.libraries, gives=row.gives)


def _runtime_of(libraries: Libraries, groups: Iterable[Group]) -> str:
    """Return the oldest ROCm that contains the last of each group of libraries, such as `ROCm 7`; "" for libraries of CUDA."""
    majors = [{major for component, major in libraries.releases_of((max(group),)) if component == ROCM} for group in groups]
    common = set.intersection(*majors) if majors else set()
    return f"{ACCELERATORS[ROCM].label} {min(common)}" if common else ""


def unreached_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[UnreachedLibraries]:
    """Yield a doubt for each chosen wheel that needs libraries of other wheels, in folders where the loader does not look.

    Libraries that PyTorch loads are a doubt of their own.
    """
    libraries = _libraries(instance)
    for candidate, missed in libraries.unreached(pins):
        for is_of_pytorch in (True, False):
            some = [one for one in missed if one.is_of_pytorch is is_of_pytorch]
            if some:
                yield UnreachedLibraries(
                    subject=Subject(candidate.key.project, candidate.label),
                    sonames=tuple(sorted(one.soname for one in some)),
                    providers=tuple(sorted({one.provider for one in some} - {""})),
                    folders=tuple(sorted({one.folder for one in some} - {""})),
                    is_of_pytorch=is_of_pytorch,
                    call=libraries.loading_call(candidate),
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
    """Yield a doubt for CUDA, ROCm, Triton and each library or tool of them that the spec requires and that is lacking.

    Nothing is lacking beside a framework, which brings its own. Otherwise a chosen package, the base image, or without a
    container every host, has to be known to have it.
    """
    problem = instance.problem
    request = problem.request
    image = next((one.image for one in pins.values() if isinstance(one, ImageCandidate)), None)
    if (image is None and request.runs != "host") or any(Key(name) in pins for name in FRAMEWORKS):
        return
    reference = image.reference.partition("@")[0] if image is not None else ""
    for name in request.spec.requires if image is not None else ():
        if (part := pins.get(Key(name))) is not None and _is_of_rocm(part):
            # No base image of the matrix has ROCm, and no wheel of a library of it stands alone.
            subject = Subject(name, part.label)
            yield Unrealised(subject=subject, image=reference, distribution="", is_version=False, base="")
    held = _held_by_image(instance, image) if image is not None else _held_by_hosts(instance.problem, pins)
    packages: dict[str, Candidate] = {key.project: one for key, one in pins.items() if key.is_package}
    cuda = pins.get(Key(CUDA))

    def is_carried(component: str, chosen: Candidate, carriers: Iterable[str]) -> bool:
        """Return whether a package brings a component, of which all but CUDA have the version of their distribution."""
        brought = [packages.get(name) for name in carriers if name in packages or name in request.named_packages]
        return any(component == CUDA or one is None or str(one.pep440) == chosen.label for one in brought)

    for component in (*request.toolkit, *([TRITON] if TRITON in request.spec.requires else [])):
        chosen = pins.get(Key(component))
        carriers = _carriers(problem, component)
        if chosen is None or component in held or is_carried(component, chosen, carriers):
            continue
        is_of_one_name = len(carriers) == 1  # Triton's wheel is for every CUDA
        fitting = [name for name in carriers if is_of_one_name or (cuda and cuda_of(name) == cuda.version.release[0])]
        is_in_images = image is not None and component in {CUDA, *RUNTIME_LIBRARIES} and not realises_toolkit(request)
        yield Unrealised(
            subject=Subject(component, chosen.label),
            image=reference,
            distribution=fitting[0] if fitting else "",
            is_version=component != CUDA,
            base="cuda-runtime" if is_in_images else "",
            is_installed=image is None and component in _INSTALLED,
        )


def lacking_services(problem: Problem, pins: Mapping[Key, Candidate]) -> Iterator[Unrealised]:
    """Yield a doubt for DCGM if the spec requires it: only hosts have it, and no profile states it."""
    if DCGM in problem.request.spec.requires:
        for label in dict.fromkeys(one.label for key, one in pins.items() if key.component == DCGM and not key.is_package):
            yield Unrealised(subject=Subject(DCGM, label), image="", distribution="", is_version=False, is_service=True)


def _is_of_rocm(candidate: Candidate) -> bool:
    """Return whether a candidate is a release of ROCm, or of a library that a release of ROCm contains."""
    release = release_of(candidate)
    needs = release.requires if release is not None else ()
    return candidate.key.component == ROCM or any(need.component == ROCM for need in needs)


_INSTALLED = {CUDA: "nvcc", "nvcc": "nvcc", CUDNN: CUDNN, "nccl": "nccl"} | dict.fromkeys(RUNTIME_LIBRARIES, "nvcc")
"""The component of a step of a host's setup -> what of it the step installs: the toolkit has its libraries."""


def _carriers(problem: Problem, component: str) -> tuple[str, ...]:
    """Return NVIDIA's distributions of CUDA, or of a library or tool of it."""
    if component == CUDA:
        return _with_runtime(problem.matrix.wheels)
    if component in BUNDLED:
        return BUNDLED[component]
    builds = (build for release in problem.matrix.components[component].releases for build in release.builds)
    return tuple(sorted({canonicalize_name(build.artefact.partition("-")[0]) for build in builds if build.artefact}))


def _held_by_image(instance: ProblemInstance, image: ImageFacts) -> set[str]:
    """Return which of CUDA, its libraries and its compiler a base image has."""
    found = {CUDA} if image.cuda else set()
    found |= {CUDNN} if image.cudnn else set()
    found |= {"nvcc"} if image.kind == "cuda-devel" else set()
    has = {library_of(soname).lower() for soname in _libraries(instance).of_image(image)}
    return found | {name for name in RUNTIME_LIBRARIES if f"lib{name}" in has}


def _held_by_hosts(problem: Problem, pins: Mapping[Key, Candidate]) -> set[str]:
    """Return which of CUDA, its libraries and its compiler every host states, or the setup of the hosts installs."""
    steps = [{step.component for step in setup.steps} for setup in host_setups(problem, pins)]
    installed = {name for name, step in _INSTALLED.items() if steps and all(step in some for some in steps)}
    stated = []
    for target in problem.request.hosts:
        libraries = target.host.libraries.versions if target.host.libraries is not None else {}
        stated.append({*libraries, *([CUDA, "nvcc", *RUNTIME_LIBRARIES] if target.host.nvcc else [])})
    return installed | (set.intersection(*stated) if stated else set())


def lacks_toolkit(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether a container would lack CUDA, or a library of it, that the spec requires and some base images have."""
    in_images = {CUDA, CUDNN, *RUNTIME_LIBRARIES}
    return any(one.image and one.subject.name in in_images for one in unrealised(instance, pins))


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
