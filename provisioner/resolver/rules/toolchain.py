"""Requirements of compiling: nvcc, the host compiler, and the GPU architectures to compile for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provisioner.grounds.predicate import KnowsTarget, NeedsNativeDriver
from provisioner.grounds.requirement import BuildNeeds, CompilesFor, CompilesForGpu, CompilesOnlyFor, Entails, Relation, Subject
from provisioner.matrix.need import Need
from provisioner.resolver.requirement import Candidate, Key, Labelled, Requirement, Within
from provisioner.resolver.rules.coverage import capability, coverage
from provisioner.resolver.rules.drivers import NativeDriver
from provisioner.resolver.rules.facts import binds, is_jetson
from provisioner.versions import Range, Version, dotted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping

    from provisioner.grounds.requirement import Ground
    from provisioner.matrix.model import Build, Matrix, Release
    from provisioner.places import HostPlace, Place
    from provisioner.request import Request, TargetHost
    from provisioner.resolver.rules.guards import Guards

_ARCHITECTURE = re.compile(r"(\d+)\.(\d)([af]?)(\+PTX)?")


class Toolchain:
    """The requirements of nvcc in one problem: on CUDA, and on the architectures to compile for."""

    def __init__(self, matrix: Matrix, request: Request, guards: Guards, keys: Mapping[str, tuple[Key, ...]]) -> None:
        self._matrix = matrix
        self._request = request
        self._targets = keys.get("arch_list", ())
        self._devices = {target.label: _devices(target, guards) for target in request.hosts}

    def needs(self, candidate: Candidate, release: Release | None) -> tuple[Need, ...]:
        """Return the needs of a candidate: those of its `release` unless that is None, with nvcc's need of CUDA replaced.

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
        """Yield the requirements of an nvcc on the architectures to compile for, and on drivers that have to compile its PTX.

        Nothing is yielded when the targets of its `build` are unknown. `place` is the line of the matrix to cite.
        """
        if build.sass is None:
            return
        known = frozenset(_spelled(target) for target in (*build.sass, *(build.ptx or ())))
        yield from self._ptx(candidate, known, place)
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

    def _ptx(self, candidate: Candidate, known: Collection[str], place: Place) -> Iterator[Requirement]:
        """Yield the requirement of native support of an nvcc's CUDA on each driver that has to compile its PTX for a GPU.

        `known` are the architectures that the nvcc can compile for. PTX is outside minor-version compatibility. Source: CUDA
        Compatibility guide, "Minor Version Compatibility", limitation on PTX.
        """
        spec = self._request.spec.build
        if spec is None or self._request.system != "linux":
            return
        cuda = Range.parse(f"=={dotted(candidate.version.release[:2])}.*")
        for label, devices in self._devices.items():
            lists = {device: spec.arch_list or tuple(serving(known, device, self._request)) for device in devices}
            through = tuple(sorted(device for device, names in lists.items() if names and _how(names, device) == "ptx"))
            if through and not is_jetson(self._matrix, self._request.host_by_label[label]):
                relation = Relation("nvcc", "driver for PTX")
                ground = candidate.entails(NeedsNativeDriver(through, cuda), relation, place)
                yield Requirement(Key("driver", label), NativeDriver(self._matrix, candidate.version), ground)


def toolchain_requirements(
    matrix: Matrix, request: Request, guards: Guards, *, domains: MutableMapping[Key, tuple[Candidate, ...]]
) -> list[Requirement]:
    """Add the keys of the GPU architectures to compile for to `domains`, and return the root requirements of compiling.

    They require a host compiler, and for CUDA nvcc and each architecture; [] when the spec compiles nothing.
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
    """Yield the root requirements on the architectures to compile for: those of the spec, otherwise of the hosts' GPUs.

    If the spec lists architectures, one of them must serve each GPU. Otherwise the architecture for a GPU is its own, or a
    lower one that serves it, the highest first.
    """
    nvcc = matrix.components.get("nvcc")
    builds = [build for release in (nvcc.releases if nvcc is not None else ()) for build in release.builds]
    sass = tuple(dict.fromkeys(_spelled(one) for build in builds for one in build.sass or ()))
    ptx = tuple(dict.fromkeys(_spelled(one) for build in builds for one in build.ptx or ()))
    assert request.spec.build is not None
    stated = request.spec.build.arch_list
    for name, ground in _stated(request) if stated else _derived(request, guards):
        key = Key(f"arch_list:{name}")
        if key in domains:
            continue
        allowed = (name,) if stated else (name, *serving((*sass, *ptx), name, request))
        domains[key] = tuple(Candidate(key, Version.named(one), one) for one in dict.fromkeys((*allowed, *sass)))
        yield Requirement(key, Labelled(frozenset(allowed)), ground)
    if stated and not any(text.startswith("gfx") for text in stated):
        for key in [key for key in domains if key.component == "gpu" and not key.is_package]:
            device = key.name.partition(":")[2]
            served = frozenset(one.label for one in domains[key] if _how(stated, one.label) != "none")
            place = request.place("build.arch_list")
            yield Requirement(key, Labelled(served), CompilesOnlyFor(architectures=stated, device=device, place=place))


def _stated(request: Request) -> Iterator[tuple[str, Ground]]:
    """Yield the GPU architectures that the spec lists to compile for, each with its ground."""
    assert request.spec.build is not None
    for index, text in enumerate(request.spec.build.arch_list):
        match = _ARCHITECTURE.fullmatch(text)
        if match is None:
            continue
        place = request.place(f"build.arch_list.{index}")
        name = f"{match[1]}.{match[2]}{match[3]}"
        yield name, CompilesFor(architecture=name, place=place)
        if match[4]:
            yield f"{name}+PTX", CompilesFor(architecture=name, place=place, is_ptx=True)


def _derived(request: Request, guards: Guards) -> Iterator[tuple[str, Ground]]:
    """Yield the GPU architectures of the hosts' GPUs, each with its ground."""
    for target in request.hosts:
        for device, place in _devices(target, guards).items():
            yield device, CompilesForGpu(architecture=device, host=target.label, place=place)


def _devices(target: TargetHost, guards: Guards) -> dict[str, HostPlace]:
    """Return the compute capabilities of a host's GPUs of NVIDIA, each with the line that states the first of them."""
    found: dict[str, HostPlace] = {}
    for index, gpu in enumerate(target.host.gpus or ()):
        device = guards.device(gpu)
        if device is not None and not device.startswith("gfx"):
            found.setdefault(device, target.place(f"gpus.{index}"))
    return found


def serving(names: Collection[str], device: str, request: Request) -> Iterator[str]:
    """Yield the architectures whose code a GPU runs, newest first, then those whose PTX it runs if the policy allows that.

    `names` are spelled as in TORCH_CUDA_ARCH_LIST; variants for one GPU or family (`9.0a`) are left out.
    """
    plain = [name for name in names if not name.removesuffix("+PTX").endswith(("a", "f"))]
    plain.sort(key=lambda name: capability(name.removesuffix("+PTX")), reverse=True)
    yield from (name for name in plain if not name.endswith("+PTX") and _how((name,), device) == "native")
    if "ptx-jit" in request.allowed:
        yield from (name for name in plain if name.endswith("+PTX") and _how((name,), device) == "ptx")


def _how(names: Iterable[str], device: str) -> str:
    """Return how code for some architectures runs on a GPU, as `coverage` does; `none` on an AMD GPU.

    `9.0+PTX` is machine code for 9.0 and PTX for it.
    """
    if device.startswith("gfx"):
        return "none"
    numbers = [(name.removesuffix("+PTX").replace(".", ""), name.endswith("+PTX")) for name in names]
    sass = tuple(f"sm_{number}" for number, _ in numbers)
    return coverage(sass, tuple(f"compute_{number}" for number, is_ptx in numbers if is_ptx), capability(device))


def _spelled(target: str) -> str:
    """Return a compiled target in the notation of TORCH_CUDA_ARCH_LIST: `9.0a` for `sm_90a`, `9.0+PTX` for `compute_90`."""
    kind, _, digits = target.partition("_")
    number = digits.rstrip("af")
    suffix = digits[len(number) :]
    return f"{number[:-1]}.{number[-1]}{suffix}{'+PTX' if kind == 'compute' else ''}"
