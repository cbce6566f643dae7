"""Frameworks as components, and their slots.

PyTorch, TensorFlow and JAX are components of a problem if the spec names them, otherwise ordinary distributions. A slot is the
copy of the CUDA libraries that TensorFlow or JAX has for itself beside another framework.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version as PackageVersion

from provisioner.accelerators import ON_GPUS, RUNTIMES
from provisioner.components import CUDA_LIBRARIES
from provisioner.index.direct_reference import direct_reference
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_OF_COMPONENT, pep508
from provisioner.resolver.choices.variants import variants_of
from provisioner.resolver.requirement import SLOTS, Candidate, Key, Labelled, ReleaseCandidate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from packaging.requirements import Requirement as Pep508

    from provisioner.matrix.model import Build, Component, Matrix, Release
    from provisioner.request import Request
    from provisioner.spec.model import Spec

NO_LIBRARIES = frozenset({"pytorch", "tensorflow", "jax", "triton", "nvcc", "image", "python"})
"""Components that an environment has only once. Of every other component, each framework with a slot has a copy of its own."""

GPU_PLUGINS = {
    ("jax", "cuda"): ("jax-cuda",),
    ("jax", "rocm"): ("jax-rocm",),
    ("tensorflow", "cuda"): ("nvidia-cudnn-",),
}
"""The beginnings of the names of distributions without which a framework computes on the CPU, and says so in its log alone.

Sources: "Installing JAX" (jax[cuda12] brings jax-cuda12-plugin); "Install TensorFlow with pip" (tensorflow[and-cuda] brings
cuDNN, which otherwise must be the system's).
"""


def components_of(matrix: Matrix, spec: Spec) -> frozenset[str]:
    """Return the frameworks that are components of the problem: PyTorch always, others if the spec names them without a marker.

    Any other framework, which only the metadata of a package may require, remains an ordinary distribution.
    """
    named = set(spec.requires)
    for text in spec.packages:
        requirement = pep508(text)
        if requirement.marker is None:
            named.add(COMPONENT_OF_DISTRIBUTION.get(canonicalize_name(requirement.name), ""))
    known = {name for name in SLOTS if name in matrix.components and matrix.components[name].releases}
    return frozenset({"pytorch"} | (named & known))


def slots_of(components: Collection[str], spec: Spec) -> tuple[str, ...]:
    """Return the frameworks with a slot, a CUDA runtime of their own; () when no two frameworks share the environment.

    `components` are the frameworks that are components of the problem. A wheel of TensorFlow or JAX loads CUDA from the wheels
    it requires (nvidia-*-cu12, …-cu13), and so does PyTorch. If both are for the same CUDA major, the metadata of those wheels
    decides whether they agree; otherwise the wheels have different files. Any other package may require PyTorch, so it counts
    as another framework.
    """
    requested = [name for name in SLOTS if name in components]
    names = {canonicalize_name(pep508(text).name) for text in spec.packages}
    others = names - {DISTRIBUTION_OF_COMPONENT[name] for name in requested}
    is_shared = "pytorch" in spec.requires or "pytorch_build" in spec.requires or bool(others) or len(requested) > 1
    return tuple(requested) if is_shared else ()


def slot_keys(keys: Iterable[Key], slots: Collection[str], virtual: Collection[str]) -> dict[Key, Key]:
    """Return the key of every library for each slot, such as `cudnn:jax`, and the key of its candidates, such as `cudnn`.

    A library is a shared component that is neither in `NO_LIBRARIES` nor in `virtual`, the names that hosts or the target fix.
    """
    libraries = [key for key in keys if not key.scope and key.name not in (*NO_LIBRARIES, *virtual) and ":" not in key.name]
    return {Key(f"{key.name}:{slot}"): key for slot in slots for key in libraries}


def is_taken_as_named(component: Component, request: Request) -> bool:
    """Return whether a framework is installed as the packages of the spec name it, without what GPUs alone would call for.

    That is so for a framework other than PyTorch that the packages name without extras, unless the spec asks for computing on
    a GPU in another way: by `accelerator`, by the framework, a runtime or a library of CUDA under `requires`, or by a package
    that only GPUs need. It is not so either if all releases that the packages allow use GPUs as they are named.
    """
    spec, name = request.spec, component.name
    if name not in SLOTS or request.accelerator not in ON_GPUS or spec.accelerator is not None:
        return False
    if not spec.requires.keys().isdisjoint({name, *RUNTIMES, *CUDA_LIBRARIES}):
        return False
    named = [requirement for requirement in map(pep508, spec.packages) if requirement.marker is None]
    lines = [one for one in named if canonicalize_name(one.name) == DISTRIBUTION_OF_COMPONENT[name]]
    plugins = GPU_PLUGINS.get((name, request.accelerator), ())
    if not lines or any(one.extras for one in lines) or any(canonicalize_name(one.name).startswith(plugins) for one in named):
        return False
    allowed = (one for one in component.releases if all(_allows(line, one) for line in lines))
    return any(not any(is_plain_for_gpus(one, build, request) for build in one.builds) for one in allowed)


def is_plain_for_gpus(release: Release, build: Build, request: Request) -> bool:
    """Return whether a build for the GPUs of a target is installed as the framework's distribution, without extras.

    A build for Jetsons is not: it has an index of its own.
    """
    platforms = build.platforms or release.platforms
    is_for_target = build.accelerator == request.accelerator and (not platforms or request.platform in platforms)
    return is_for_target and not build.install and not any(need.component == "jetson" for need in build.requires)


def _allows(requirement: Pep508, release: Release) -> bool:
    return requirement.specifier.contains(str(release.version), prereleases=True)


def install_for(matrix: Matrix, request: Request, component: str, *, of: Release | None = None) -> str:
    """Return what is installed of a framework for the accelerator of a target, such as `tensorflow[and-cuda]`.

    It is that of the most preferred build of the release `of`, or else of the newest release that has one; "" if none has.
    """
    every = variants_of(matrix).built_for(component, frozenset({request.accelerator}))
    builds = ((one.release, one.build) for one in every if one.build is not None and one.build.install)
    for_target = [
        (release, build)
        for release, build in builds
        if request.platform in (build.platforms or release.platforms or (request.platform,))
    ]
    return next((build.install for _, build in sorted(for_target, key=lambda pair: pair[0] is not of)), "")


def install_requirement(component: str, release: str, build: Build | None) -> Pep508:
    """Return the requirement that installs a build of a framework at exactly `release`, such as `jax[cuda12]==0.6.0`."""
    name = (build.install if build is not None else "") or DISTRIBUTION_OF_COMPONENT[component]
    bare = pep508(name)
    extras = f"[{','.join(sorted(bare.extras))}]" if bare.extras else ""
    return pep508(f"{bare.name}{extras}=={release}")


def builds_of_file(requirement: Pep508, builds: Iterable[Candidate]) -> Labelled:
    """Return the test for those of `builds` that the wheel at a requirement's URL may be, by the version in the file name.

    The wheel `torch-2.7.1+cu126-…` is the build cu126. No build passes if the file is no wheel, or if the matrix does not list
    its version, because the requirements of that version are then unknown. Raises `DirectReferenceError` when the URL names no
    file.
    """
    assert requirement.url is not None
    filename = direct_reference(requirement.name, requirement.url, Path()).filename
    try:
        version = parse_wheel_filename(filename)[1]
    except InvalidWheelFilename:
        return Labelled(frozenset())
    releases = (one for one in builds if isinstance(one, ReleaseCandidate))
    return Labelled(frozenset(one.label for one in releases if published_version(one) == version))


def published_version(candidate: ReleaseCandidate) -> PackageVersion:
    """Return the version in the file names of a build's wheels, such as `2.7.1+cu126`."""
    release, build = candidate.release, candidate.build
    local = build.local if build is not None else ""
    return PackageVersion(f"{release.version}+{local}" if local else str(release.version))
