"""Frameworks as components, and their slots.

PyTorch, TensorFlow and JAX are components of a problem if the spec names them, otherwise ordinary distributions. A slot is the
copy of the CUDA libraries that TensorFlow or JAX has for itself beside another framework.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version as PackageVersion

from provisioner.index.direct_reference import direct_reference
from provisioner.names import COMPONENT_OF_DISTRIBUTION, DISTRIBUTION_OF_COMPONENT, pep508
from provisioner.resolver.requirement import SLOTS, Candidate, Key, Labelled, ReleaseCandidate

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from packaging.requirements import Requirement as Pep508

    from provisioner.matrix.model import Build, Matrix
    from provisioner.spec.model import Spec

NO_LIBRARIES = frozenset({"pytorch", "tensorflow", "jax", "triton", "nvcc", "image", "python"})
"""Components that an environment has only once. Of every other component, each framework with a slot has a copy of its own."""


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
