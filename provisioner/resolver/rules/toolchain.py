"""Requirements of compiling: nvcc, the host compiler, and the GPU architectures to compile for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.grounds.predicate import KnowsTarget
from provisioner.grounds.requirement import BuildNeeds, CompilesFor, CompilesForGpu, Entails, Relation, Subject
from provisioner.matrix.need import Need
from provisioner.resolver.requirement import Candidate, Key, Labelled, Requirement, Within
from provisioner.resolver.rules.facts import binds
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

    from provisioner.grounds.requirement import Ground
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.places import Place
    from provisioner.request import Request
    from provisioner.resolver.rules.guards import Guards

_ARCHITECTURE = re.compile(r"(\d+)\.(\d)([af]?)(\+PTX)?")


class Toolchain:
    """The requirements of nvcc in one problem: on CUDA, and on the architectures to compile for."""

    def __init__(self, request: Request, keys: Mapping[str, tuple[Key, ...]]) -> None:
        self._request = request
        self._targets = keys.get("arch_list", ())

    def needs(self, candidate: Candidate, release: Release | None) -> tuple[Need, ...]:
        """Return the needs of a candidate with its release, None if the matrix has none; for nvcc, that of CUDA is replaced.

        torch.utils.cpp_extension refuses to compile with an nvcc of another CUDA major than PyTorch's, and warns of another
        minor (_check_cuda_version in torch/utils/cpp_extension.py). So an nvcc that the spec requires or a host states needs a
        CUDA of the same major only, and one that the solver chooses a CUDA of the same minor.
        """
        requires = release.requires if release is not None else ()
        if candidate.key.component != "nvcc":
            return requires
        major, minor = (*candidate.version.release, 0)[:2]
        request = self._request
        is_given = "nvcc" in request.spec.requires or (
            request.runs == "host" and any(target.host.nvcc for target in request.hosts)
        )
        cuda = f"=={major}.*" if is_given else f"=={major}.{minor}.*"
        others = tuple(need for need in requires if need.component != "cuda")
        return (Need(component="cuda", range=Range.parse(cuda)), *others)

    def targets(self, candidate: Candidate, build: Build, place: Place) -> Iterator[Requirement]:
        """Yield the requirements that an nvcc can compile for every architecture; nothing when its targets are unknown."""
        if build.sass is None:
            return
        known = frozenset(_spelled(target) for target in (*build.sass, *(build.ptx or ())))
        for key in self._targets:
            name = key.name.partition(":")[2]
            ground = Entails(
                name="nvcc",
                subject=Subject("nvcc", candidate.label),
                predicate=KnowsTarget(name, is_known=name in known),
                relation=Relation("nvcc", "arch_list"),
                cited=place,
            )
            yield Requirement(key, Labelled(known), ground)


def toolchain_requirements(
    matrix: Matrix, request: Request, guards: Guards, *, domains: MutableMapping[Key, tuple[Candidate, ...]]
) -> list[Requirement]:
    """Add the keys of the GPU architectures to compile for to `domains`, and return the root requirements of compiling.

    These are a compiler, for CUDA also nvcc and each architecture; [] when the spec compiles nothing.
    """
    build = request.spec.build
    if build is None:
        return []
    roots: list[Requirement] = []
    place = request.place("build")
    compiler = {"linux": "gcc", "macos": "xcode"}[request.system]
    tools = ("nvcc", compiler) if request.accelerator == "cuda" else (compiler,)
    for name in tools:
        if name not in matrix.components or not matrix.components[name].releases:
            continue
        ground = BuildNeeds(build=build.kind, tool=name, place=place)
        keys = [key for key in domains if key.component == name]
        roots.extend(Requirement(key, Within(Range()), ground) for key in keys if binds(name, request) or not key.scope)
    if request.accelerator == "cuda":
        roots.extend(_architectures(matrix, request, guards, domains=domains))
    return roots


def _architectures(
    matrix: Matrix, request: Request, guards: Guards, *, domains: MutableMapping[Key, tuple[Candidate, ...]]
) -> Iterator[Requirement]:
    for name, ground in _wanted(request, guards):
        key = Key(f"arch_list:{name}")
        if key in domains:
            continue
        nvcc = matrix.components.get("nvcc")
        releases = nvcc.releases if nvcc is not None else ()
        known = dict.fromkeys(_spelled(one) for release in releases for build in release.builds for one in build.sass or ())
        known.setdefault(name)
        domains[key] = tuple(Candidate(key, Version.named(one), one) for one in known)
        yield Requirement(key, Labelled(frozenset({name})), ground)


def _wanted(request: Request, guards: Guards) -> Iterator[tuple[str, Ground]]:
    """Yield the GPU architectures to compile for, each with its ground: those of the spec, otherwise of the hosts' GPUs."""
    build = request.spec.build
    assert build is not None
    for index, text in enumerate(build.arch_list):
        match = _ARCHITECTURE.fullmatch(text)
        if match is None:
            continue
        place = request.place(f"build.arch_list.{index}")
        name = f"{match[1]}.{match[2]}{match[3]}"
        yield name, CompilesFor(architecture=name, place=place)
        if match[4]:
            yield f"{name}+PTX", CompilesFor(architecture=name, place=place, is_ptx=True)
    if build.arch_list:
        return
    for target in request.hosts:
        for index, gpu in enumerate(target.host.gpus or ()):
            device = guards.device(gpu)
            if device is not None and not device.startswith("gfx"):
                stated = target.place(f"gpus.{index}")
                yield device, CompilesForGpu(architecture=device, host=target.label, place=stated)


def _spelled(target: str) -> str:
    """Return a compiled target in the notation of TORCH_CUDA_ARCH_LIST: `9.0a` for `sm_90a`, `9.0+PTX` for `compute_90`."""
    kind, _, digits = target.partition("_")
    number = digits.rstrip("af")
    suffix = digits[len(number) :]
    return f"{number[:-1]}.{number[-1]}{suffix}{'+PTX' if kind == 'compute' else ''}"
