"""CUDA libraries that chosen wheels need to be there and that nothing chosen is known to provide.

A wheel either contains the libraries that its own link to, or another wheel, the framework or the base image does. Without one
an import fails; if it is opened at run time, the program falls back to the CPU or stops at its first kernel.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.components import FRAMEWORKS
from provisioner.grounds.doubt import MissingLibraries, Unrealised
from provisioner.grounds.requirement import Subject
from provisioner.resolver.python.wheels import GpuWheels
from provisioner.resolver.requirement import ImageCandidate, Key, build_of
from provisioner.resolver.rules.bundled import BUNDLED
from provisioner.resolver.rules.images import realises_toolkit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.matrix.model import GpuWheel
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance

_NEEDED = frozenset(
    {"libcudart", "libcublas", "libcublasLt", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse"}
)
"""Libraries that a wheel with kernels uses whenever it runs, also where it opens them itself.

Others that wheels open, such as NCCL or cuTENSOR, are for uses that a program may never make.
"""

_CUDA_OF_NAME = re.compile(r"-cu(\d+)$")
_FIRST_WITHOUT_SUFFIX = 13
"""The CUDA release from which NVIDIA's wheels have no suffix (`nvidia-cublas`). Source: PyPI, nvidia-cublas 13.0.0.19."""


def missing_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[MissingLibraries]:
    """Yield a doubt for each chosen wheel with libraries to link to that nothing chosen provides."""
    wheels = GpuWheels(instance.problem, "")
    chosen = [(key, one, row) for key, one in pins.items() if key.is_package and (row := wheels.row_of(one)) is not None]
    needed = [(key, one, groups) for key, one, row in chosen if (groups := list(_groups(row)))]
    if not needed:
        return
    providers = _providers(instance.problem.matrix.wheels)
    names = {key.project for key in pins if key.is_package}
    provided = {soname for soname, owners in providers.items() if owners & names}
    provided.update(_of_framework(pins, providers))
    provided.update(_of_image(pins, providers))
    for key, candidate, groups in needed:
        lacking = [group for group in groups if not provided.intersection(group) and any(one in providers for one in group)]
        if lacking:
            sonames = tuple(max(group) for group in lacking)
            owners = sorted({min(providers[one]) for group in lacking for one in group if one in providers and one in sonames})
            is_container = instance.problem.request.runs == "container"
            subject = Subject(key.project, candidate.label)
            yield MissingLibraries(subject=subject, sonames=sonames, providers=tuple(owners), in_container=is_container)


def unrealised(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Unrealised]:
    """Yield a doubt for CUDA and each library that the spec asks for by itself and that its container would not have."""
    problem = instance.problem
    request = problem.request
    image = next((one.image for one in pins.values() if isinstance(one, ImageCandidate)), None)
    if image is None or not request.toolkit or any(Key(name) in pins for name in FRAMEWORKS):
        return
    held = {"cuda": image.cuda, "cudnn": image.cudnn}
    names = {key.project for key in pins if key.is_package} | request.named_packages
    cuda = pins.get(Key("cuda"))
    runtimes = _with_runtime(problem.matrix.wheels)
    for component in request.toolkit:
        chosen = pins.get(Key(component))
        carriers = BUNDLED.get(component, runtimes)
        if chosen is None or held.get(component) or names.intersection(carriers):
            continue
        fitting = [name for name in carriers if cuda is not None and _cuda_of(name) == cuda.version.release[0]]
        yield Unrealised(
            subject=Subject(component, chosen.label),
            image=image.reference.partition("@")[0],
            distribution=fitting[0] if fitting else "",
            is_version=component != "cuda",
            base="cuda-runtime" if component == "cuda" and not realises_toolkit(request) else "",
        )


def _with_runtime(rows: Iterable[GpuWheel]) -> tuple[str, ...]:
    """Return the distributions that are CUDA's runtime library."""
    return tuple(dict.fromkeys(row.distribution for row in rows if any(_library(one) == "libcudart" for one in row.provides)))


def _groups(row: GpuWheel) -> Iterator[tuple[str, ...]]:
    """Yield the libraries that a wheel needs, each as the sonames of which one must be there."""
    if not (row.sass or row.ptx):
        return
    by_name: dict[str, list[str]] = {}
    for soname in (*row.links, *(one for one in row.opens if _library(one) in _NEEDED)):
        by_name.setdefault(_library(soname), []).append(soname)
    yield from (tuple(some) for some in by_name.values())


def _library(soname: str) -> str:
    return soname.partition(".so")[0]


def _providers(rows: Iterable[GpuWheel]) -> dict[str, set[str]]:
    """Return the distributions whose wheels contain each library, by its soname."""
    found: dict[str, set[str]] = {}
    for row in rows:
        for soname in row.provides:
            found.setdefault(soname, set()).add(row.distribution)
    return found


def _of_framework(pins: Mapping[Key, Candidate], providers: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the libraries that a framework with CUDA has, in its own wheel or in those that it depends on."""
    if not any((build := build_of(pins.get(Key(name)))) is not None and build.accelerator == "cuda" for name in FRAMEWORKS):
        return
    for key in ("cuda", "cudnn"):
        chosen = pins.get(Key(key))
        if chosen is not None and chosen.version.release:
            yield from _of_release(key, chosen.version.release[0], providers)


def _of_image(pins: Mapping[Key, Candidate], providers: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the libraries that the base image has: the toolkit's, of an image of kind `cuda-base` only the CUDA runtime."""
    image = next((one.image for one in pins.values() if isinstance(one, ImageCandidate)), None)
    if image is None:
        return
    if image.cuda:
        found = _of_release("cuda", int(image.cuda.partition(".")[0]), providers)
        yield from (one for one in found if image.kind != "cuda-base" or _library(one) == "libcudart")
    if image.cudnn:
        yield from _of_release("cudnn", int(image.cudnn.partition(".")[0]), providers)


def _of_release(component: str, major: int, providers: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield the libraries of cuDNN, or of a CUDA toolkit without cuDNN, of a major version."""
    for soname, owners in providers.items():
        if _library(soname).startswith("libcudnn"):
            if component == "cudnn" and soname.endswith(f".so.{major}"):
                yield soname
        elif component == "cuda" and any(_cuda_of(name) == major for name in owners):
            yield soname


def _cuda_of(distribution: str) -> int:
    """Return the major CUDA version that NVIDIA's wheels of a name are for."""
    match = _CUDA_OF_NAME.search(distribution)
    return int(match[1]) if match else _FIRST_WITHOUT_SUFFIX
