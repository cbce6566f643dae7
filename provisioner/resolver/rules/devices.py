"""Requirements on GPUs: the compiled code of a framework, library or wheel must run on every GPU of every host.

If the spec requires CUDA or its libraries without a framework, the CUDA release must be able to compile for every GPU, and a
library must have code for it. With a framework neither is required: it has code only for GPUs that its CUDA can compile for,
and calls from its libraries only what its own GPUs need.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import ROCM_LIBRARIES
from provisioner.components import CUDA_LIBRARIES, FRAMEWORKS
from provisioner.grounds.bound import Versions
from provisioner.grounds.predicate import (
    BundlesCompiler,
    CompiledFor,
    KnowsTarget,
    LinksToRocm,
    NeedsNativeDriver,
    OlderThanCompiler,
    Unmeasured,
)
from provisioner.grounds.predicate import Needs as NeedsComponent
from provisioner.grounds.requirement import EXPECTATION, Relation, Row
from provisioner.matrix.model import Build
from provisioner.matrix.need import Need
from provisioner.matrix.once import once_per_matrix
from provisioner.resolver.requirement import Candidate, Key, Labelled, Requirement, build_of
from provisioner.resolver.rules.coverage import Target, capability, coverage, override_for, runs_natively, runs_on
from provisioner.resolver.rules.drivers import NativeDriver
from provisioner.resolver.rules.facts import all_boards, boards, is_jetson
from provisioner.versions import Range, Version, dotted, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.predicate import Predicate
    from provisioner.grounds.requirement import Ground
    from provisioner.matrix.model import DeclaredCode, GfxOverride, GpuWheel, Matrix, SeenToRun
    from provisioner.places import Place
    from provisioner.request import Request
    from provisioner.resolver.rules.guards import Guards

CUDA: Final = "cuda"


def version_of_device(target: str) -> Version:
    """Return the version of the candidate for a GPU: a compute capability as a number, a gfx target as a name."""
    return Version.named(target) if target.startswith("gfx") else Version.parse(target)


class NotOfOtherBoards(Struct, frozen=True):
    """The test that a Jetson Linux is of none of the ranges `other`, whose boards all have GPUs that the code is not for."""

    other: tuple[Range, ...]

    def allows(self, candidate: Candidate) -> bool:
        """Return whether a release of Jetson Linux runs on a board that the code may be for."""
        return not any(releases.allows(candidate.version) for releases in self.other)

    def __str__(self) -> str:
        return " and ".join(f"not {releases}" for releases in self.other)


class Devices:
    """The requirements of builds on the GPUs of one problem; `gpus` are the keys of the hosts' GPUs, such as `gpu:9.0`."""

    def __init__(self, matrix: Matrix, request: Request, guards: Guards, gpus: tuple[Key, ...]) -> None:
        self._matrix = matrix
        self._request = request
        self.gpus = gpus
        self._is_toolkit_alone = bool(request.toolkit)
        gpu = matrix.components.get("gpu")
        self._capabilities = frozenset(str(release.version) for release in gpu.releases) if gpu else frozenset[str]()
        self.by_key = {key: version_of_device(target) for key in gpus if (target := key.name.partition(":")[2])}
        """The compute capability or gfx target, as a version, in the name of each key that has one."""
        self.newer = frozenset(
            key for key, device in self.by_key.items() if gpu is not None and gpu.newest_before(device) is not None
        )
        """The keys of GPUs that are newer than every GPU of the matrix."""
        self._devices = {
            target.label: tuple(found for one in target.host.gpus or () if (found := guards.device(one)))
            for target in request.hosts
        }
        self._jetsons = frozenset(target.label for target in request.hosts if is_jetson(matrix, target.host))
        """The labels of the hosts that are Jetsons: they have NVIDIA's libraries from JetPack, which differ from those in its
        packages."""
        self._boards = tuple(target.label for target in request.hosts if boards(matrix, target.host))
        """The labels of the hosts that state their Jetson Linux and no GPU, which is that of one of several boards."""
        self._seen_to_run = {
            target.label: rows
            for target in request.hosts
            if (rows := tuple(row for row in matrix.seen_to_run if guards.may_hold(row.on, target)))
        }
        """The rows about GPUs that run more code than is documented, by the label of the host on which they may hold."""

    def of_code(self, candidate: Candidate, code: Build, place: Place) -> Iterator[Requirement]:
        """Yield the requirements of a candidate's GPU code on every GPU of every host, and of its PTX on the drivers.

        `code` is the GPU code, as a build; `place` is the line of the matrix to cite. If the targets that a PyTorch build is
        compiled for are unknown, no GPU is allowed with it unless the spec names the build; unknown code of anything else has
        no requirements.
        """
        component = candidate.key.component
        targets = code.sass if code.accelerator == CUDA else code.gfx
        if targets is None and (component != "pytorch" or self._is_requested_by_name(code)):
            return
        served = frozenset() if targets is None else self._served(code)
        predicate: Predicate = Unmeasured() if targets is None else CompiledFor((*targets, *(code.ptx or ())))
        for key in self.gpus:
            if component in CUDA_LIBRARIES and key.scope in self._jetsons:
                continue
            if component == CUDA:
                device = key.name.partition(":")[2]
                predicate = KnowsTarget(f"gpu {device}", is_known=device in served)
            allowed = served.union(row.gpu for row in self._seen(key, code))
            yield Requirement(key, Labelled(allowed), candidate.entails(predicate, Relation(component, "gpu"), place))
        if code.accelerator == CUDA and targets is not None:
            if component in FRAMEWORKS:
                yield from self._on_boards(candidate.entails(predicate, Relation(component, "gpu"), place), served)
            yield from self._ptx(candidate, code, place)

    def expected(self, candidate: Candidate, code: Build, place: Place) -> Iterator[Requirement]:
        """Yield the requirement of documented GPUs for each GPU that was only seen to run a framework's code, `code`."""
        for key in self.gpus if self._seen_to_run else ():
            served = self._served(code)
            for row in self._seen(key, code):
                if row.gpu not in served:
                    documented = Versions(tuple(sorted(map(Version.parse, served))))
                    predicate = NeedsComponent("gpu", (documented,), row.because)
                    yield Requirement(key, Labelled(served), candidate.entails(predicate, Row(EXPECTATION, row.name), place))

    @property
    def has_undocumented(self) -> bool:
        """Whether a host has a GPU that was seen to run more code than is documented."""
        return bool(self._seen_to_run)

    def undocumented(self, wheel: GpuWheel) -> tuple[SeenToRun, ...]:
        """Return the rows about GPUs of the hosts that were seen to run code like a wheel's, without NVIDIA's promise."""
        return self.undocumented_code(self._build_of(wheel))

    def undocumented_code(self, code: Build) -> tuple[SeenToRun, ...]:
        """Return the rows about GPUs of the hosts that were seen to run code like a build's, without NVIDIA's promise."""
        found = (row for key in self.gpus for row in self._seen(key, code))
        return tuple(row for row in dict.fromkeys(found) if row.gpu not in self._served(code))

    def _seen(self, key: Key, code: Build) -> tuple[SeenToRun, ...]:
        """Return the rows that say that a host's GPU, `key`, was seen to run machine code like that of a build."""
        rows = self._seen_to_run.get(key.scope, ())
        targets = {Target.parse(target) for target in code.sass or ()} if rows else set()
        plain = {target.capability for target in targets if not target.suffix}
        device = key.name.partition(":")[2]
        return tuple(row for row in rows if row.gpu == device and not plain.isdisjoint(map(capability, row.runs)))

    def code_of(self, candidate: Candidate) -> Build | None:
        """Return the GPU code that decides on which GPUs a candidate runs, as a build; None for a candidate without any.

        Only frameworks count. If the spec requires CUDA or its libraries without a framework, libraries count, too, and CUDA
        releases with the targets that they compile for.
        """
        build, component = build_of(candidate), candidate.key.component
        if component in FRAMEWORKS:
            return build if build is not None and build.accelerator in {CUDA, "rocm"} else None
        if not self._is_toolkit_alone or candidate.key.is_package:
            return None
        if component == CUDA:
            return toolkit_code(self._matrix, candidate.version)
        if component in CUDA_LIBRARIES and build is not None and build.sass is not None:
            return replace(build, accelerator=CUDA)
        return None

    def of_wheel(self, candidate: Candidate, wheel: GpuWheel, place: Place) -> Iterator[Requirement]:
        """Yield the requirements of a distribution's wheel on every GPU of every host, and of its PTX on the drivers.

        A wheel without GPU code has no requirements, unless it contains a GPU compiler, which must support every GPU. A wheel
        whose GPU code is only for another vendor's GPUs allows no GPU of the hosts. `place` is the line of the matrix to cite.
        """
        name = candidate.key.project
        build = self._build_of(wheel)
        targets = (*(build.gfx or ()), *(build.sass or ()), *(build.ptx or ()))
        if targets:
            ground = candidate.entails(CompiledFor(targets), Relation(name, "gpu"), place)
            served = self._served(build)
            for key in self.gpus:
                yield Requirement(key, Labelled(served.union(row.gpu for row in self._seen(key, build))), ground)
            yield from self._on_boards(ground, served)
            if build.accelerator == "cuda":
                yield from self._ptx(candidate, build, place)
        elif self.is_for_others(wheel):
            ground = candidate.entails(LinksToRocm(_of_rocm(wheel.links)), Relation(name, "gpu"), place)
            yield from (Requirement(key, Labelled(frozenset()), ground) for key in self.gpus)
        elif wheel.compiler and build.accelerator == "cuda":
            known = self._known_to_compiler(wheel.compiler)
            if known is not None:
                oldest, newest = (end(known, key=capability, default="") for end in (min, max))
                bundled = BundlesCompiler(wheel.compiler, oldest, newest)
                ground = candidate.entails(bundled, Relation(name, "gpu", "compiler"), place)
                yield from (Requirement(key, Labelled(known), ground) for key in self.gpus)

    def of_unmeasured(self, candidate: Candidate, uploaded: str) -> Iterator[Requirement]:
        """Yield the requirements on GPUs of a wheel that nobody measured, uploaded on the day `uploaded` ("" if unknown).

        It has no machine code for a GPU that no CUDA compiled for at that time. With `ptx-jit` it may have PTX for any GPU.
        """
        if "ptx-jit" in self._request.allowed or not self.older_than(uploaded):
            return
        relation = Relation(candidate.key.project, "gpu")
        firsts = {device: first_compiler(self._matrix, device) for device in self._known_devices()}
        served = frozenset(one for one, first in firsts.items() if first is None or not is_before(uploaded, first.released))
        for key, first in self._first_compilers.items():
            if first is not None and is_before(uploaded, first.released):
                place = self._matrix.place_of(f"nvcc=={first.cuda}")
                yield Requirement(key, Labelled(served), candidate.entails(first, relation, place))

    def older_than(self, uploaded: str) -> OlderThanCompiler | None:
        """Return the first CUDA that compiles for a GPU of the hosts, if a wheel of the day `uploaded` is older than that CUDA.

        Of several such GPUs the newest. None if it is older than none, and for an unknown day ("").
        """
        found = [one for one in self._first_compilers.values() if one is not None and is_before(uploaded, one.released)]
        return max(found, key=lambda one: one.released, default=None)

    @cached_property
    def _first_compilers(self) -> dict[Key, OlderThanCompiler | None]:
        """The first CUDA that compiles machine code which runs on each GPU of NVIDIA's, or was seen to; None if unknown."""
        found: dict[Key, OlderThanCompiler | None] = {}
        for key in self.gpus:
            device = key.name.partition(":")[2]
            if device and not device.startswith("gfx"):
                seen = (runs for row in self._seen_to_run.get(key.scope, ()) if row.gpu == device for runs in row.runs)
                found[key] = first_compiler(self._matrix, device, tuple(seen))
        return found

    def _on_boards(self, ground: Ground, served: frozenset[str]) -> Iterator[Requirement]:
        """Yield the requirement of a Jetson Linux for a served board on each host that states its own, and no GPU.

        What serves some of the boards that its Jetson Linux runs on may run; what serves none cannot.
        """
        if self._boards:
            test = NotOfOtherBoards(tuple(releases for releases, found in all_boards(self._matrix) if served.isdisjoint(found)))
            yield from (Requirement(Key("jetson", label), test, ground) for label in self._boards)

    @property
    def are_known(self) -> bool:
        """Whether a GPU of some host is known, or the boards of which it is one."""
        return bool(self.gpus or self._boards)

    def is_served_by(self, wheel: GpuWheel) -> bool:
        """Return whether a wheel has code for every GPU that the hosts state, or has no measured GPU code at all."""
        build = self._build_of(wheel)
        if not self.is_for_others(wheel) and not (build.gfx or build.sass or build.ptx):
            return True
        seen = (row.gpu for key in self.gpus for row in self._seen(key, build))
        return self._served(build).union(seen).issuperset(self._all_devices())

    def is_served_by_gfx(self, targets: tuple[str, ...]) -> bool:
        """Return whether code for some gfx targets runs on every GPU that the hosts state."""
        return self._served(Build(name="library", accelerator="rocm", gfx=targets)).issuperset(self._all_devices())

    def unserved_by(self, code: DeclaredCode, *, is_compiled: bool = False) -> tuple[str, ...]:
        """Return the GPUs of NVIDIA's, of those that the hosts state, on which no code of some targets runs.

        With `is_compiled`, PTX counts even if the spec does not allow it.
        """
        build = Build(name="declared", accelerator=CUDA, sass=code.sass, ptx=code.ptx)
        seen = {row.gpu for key in self.gpus for row in self._seen(key, build)}
        compiles_ptx = is_compiled or "ptx-jit" in self._request.allowed
        served = _running(code.sass, code.ptx, self._known_devices(), compiles_ptx)
        wanted = (one for one in self._all_devices() if not one.startswith("gfx"))
        return tuple(one for one in wanted if one not in served and one not in seen)

    def is_for_others(self, wheel: GpuWheel) -> bool:
        """Return whether a wheel has GPU code for the GPUs of another vendor than the accelerator's, and for no others.

        A wheel that links to libraries of ROCm has code for AMD's GPUs, too, even if that code is packed and was not measured,
        or is compiled by those libraries.
        """
        cuda, rocm = bool(wheel.sass or wheel.ptx), bool(wheel.gfx)
        if self._request.accelerator == "rocm":
            return cuda and not rocm and not _of_rocm((*wheel.links, *wheel.opens))
        return not cuda and (rocm or (bool(_of_rocm(wheel.links)) and not wheel.runtime and not wheel.compiler))

    def _build_of(self, wheel: GpuWheel) -> Build:
        """Return a wheel's GPU code as a build: the code for the accelerator, or if the wheel has none, for another vendor."""
        if (self._request.accelerator == "rocm") != self.is_for_others(wheel):
            return Build(name=wheel.distribution, accelerator="rocm", gfx=wheel.gfx)
        return Build(
            name=wheel.distribution,
            accelerator="cuda",
            sass=wheel.sass,
            ptx=wheel.ptx,
            requires=self._cuda_of_ptx(wheel.ptx_isa),
        )

    def _cuda_of_ptx(self, ptx_isa: str) -> tuple[Need, ...]:
        """Return the need for the series of the oldest CUDA release with a PTX ISA version.

        () when the version or its CUDA release is unknown.
        """
        cuda = self._matrix.components.get("cuda")
        able = [one.version for one in (cuda.releases if cuda else ()) if ptx_isa and one.ptx_isa == ptx_isa]
        return (Need(component="cuda", range=Range.parse(f"=={dotted(min(able).release[:2])}.*")),) if able else ()

    def _known_to_compiler(self, cuda: str) -> frozenset[str] | None:
        """Return the GPUs that the compiler of a CUDA release can compile for; None when the matrix does not list them."""
        nvcc = self._matrix.components.get("nvcc")
        series = numbers_of(cuda)[:2]
        releases = [one for one in (nvcc.releases if nvcc else ()) if one.version.release[:2] == series]
        targets = {target for one in releases for build in one.builds for target in (*(build.sass or ()), *(build.ptx or ()))}
        if not targets:
            return None
        capabilities = {Target.parse(target).capability for target in targets}
        return frozenset(device for device in self._known_devices() if capability(device) in capabilities)

    def overrides(self, build: Build) -> tuple[GfxOverride, ...]:
        """Return the gfx overrides that let an AMD build run on all hosts' GPUs; () if none is needed or none suffices."""
        if build.accelerator != "rocm" or build.gfx is None:
            return ()
        working = [row for row in self._matrix.overrides if _works_with(row, build)]
        return override_for(build.gfx, self._all_devices(), working) or ()

    def _all_devices(self) -> list[str]:
        return list(dict.fromkeys(device for devices in self._devices.values() for device in devices))

    def _served(self, build: Build) -> frozenset[str]:
        """Return the devices that a build runs on: natively, by PTX if the spec allows it, or by an AMD override."""
        if build.accelerator == "rocm":
            targets = build.gfx or ()
            known = {*self._all_devices(), *(gpu.gfx for gpu in self._matrix.gpus if gpu.gfx)}
            overridden = self._all_devices() if self.overrides(build) else []
            return frozenset({device for device in known if runs_on(targets, device)}.union(overridden))
        return _running(build.sass or (), build.ptx or (), self._known_devices(), "ptx-jit" in self._request.allowed)

    def _known_devices(self) -> frozenset[str]:
        return self._capabilities.union(device for device in self._all_devices() if not device.startswith("gfx"))

    def _ptx(self, candidate: Candidate, build: Build, place: Place) -> Iterator[Requirement]:
        """Yield the requirement of native support of a build's CUDA on each driver whose host runs the build by PTX.

        PTX is outside minor-version compatibility. Source: CUDA Compatibility guide, "Minor Version Compatibility", limitation
        on PTX.
        """
        cuda = next((need.range for need in build.requires if need.component == "cuda"), None)
        if "ptx-jit" not in self._request.allowed or cuda is None or not cuda.clauses or self._request.system != "linux":
            return
        for label, devices in self._devices.items():
            through_ptx = sorted({device for device in devices if _how(build, device) == "ptx"})
            if not through_ptx or label in self._jetsons:  # the driver of a Jetson is a part of Jetson Linux
                continue
            predicate = NeedsNativeDriver(tuple(through_ptx), cuda)
            ground = candidate.entails(predicate, Relation(candidate.key.shown_name, "driver for PTX"), place)
            yield Requirement(Key("driver", label), NativeDriver(self._matrix, cuda.clauses[0].version), ground)

    def _is_requested_by_name(self, build: Build) -> bool:
        requires = self._request.spec.requires
        return f"+{build.name}" in requires.get("pytorch", "") or requires.get("pytorch_build") is not None


def _of_rocm(sonames: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of some libraries that belong to ROCm."""
    return tuple(name for name in sonames if name.startswith(ROCM_LIBRARIES))


def _works_with(row: GfxOverride, build: Build) -> bool:
    """Return whether an override works with the ROCm release that a build is made for."""
    runtime = next((need.range for need in build.requires if need.component == "rocm"), None)
    if runtime is None or not runtime.clauses:
        return not row.when
    return all(need.allows(runtime.clauses[0].version) for need in row.when)


@lru_cache(maxsize=4096)
def _running(sass: tuple[str, ...], ptx: tuple[str, ...], devices: frozenset[str], compiles_ptx: bool) -> frozenset[str]:  # noqa: FBT001 - a key of the cache
    """Return the devices that run code natively or, if PTX is compiled, by its PTX: most builds have code like others."""
    allowed = {"native", "ptx"} if compiles_ptx else {"native"}
    return frozenset(device for device in devices if coverage(sass, ptx, capability(device)) in allowed)


def _how(build: Build, device: str) -> str:
    """Return how a CUDA build runs on a device, as `coverage` does; `none` for an AMD device."""
    if device.startswith("gfx"):
        return "none"
    return coverage(build.sass or (), build.ptx or (), capability(device))


@once_per_matrix
def _toolkits(matrix: Matrix) -> dict[tuple[int, ...], Build]:
    """Return the targets of each nvcc release, as a build, by the numbers of the release.

    The numbers of a series, such as (12, 6), have the targets of its newest release.
    """
    nvcc = matrix.components.get("nvcc")
    found: dict[tuple[int, ...], Build] = {}
    for release in sorted(nvcc.releases if nvcc else (), key=lambda one: one.version):
        for build in release.builds:
            if build.sass is not None:
                series = release.version.release[:2]
                need = Need(component=CUDA, range=Range.parse(f"=={dotted(series)}.*"))
                code = Build(name="toolkit", accelerator=CUDA, sass=build.sass, ptx=build.ptx or (), requires=(need,))
                found[release.version.release] = found[series] = code
    return found


def first_compiler(matrix: Matrix, device: str, seen: tuple[str, ...] = ()) -> OlderThanCompiler | None:
    """Return the oldest CUDA that compiles machine code for a compute capability, or for one of `seen`, whose code it runs.

    None if the matrix has no such CUDA, or not the day of its release.
    """
    wanted = [capability(device), *map(capability, seen)]
    for cuda, released, targets in _compilers(matrix):
        if any(runs_natively(target, one) for target in targets for one in wanted):
            return OlderThanCompiler(device, cuda, released) if released else None
    return None


@once_per_matrix
def _compilers(matrix: Matrix) -> list[tuple[str, str, tuple[Target, ...]]]:
    """Return each nvcc, the oldest first: its version, the day of its release, and the targets that no older one knows."""
    nvcc = matrix.components.get("nvcc")
    known: set[str] = set()
    found = []
    for release in sorted(nvcc.releases if nvcc else (), key=lambda one: one.version):
        new = [target for build in release.builds for target in build.sass or () if target not in known]
        known.update(new)
        if new:
            found.append((str(release.version), release.released, tuple(map(Target.parse, new))))
    return found


def is_before(day: str, other: str) -> bool:
    """Return whether a day is before another day or month, both in ISO notation; False for an unknown day ("")."""
    return bool(day) and day[: len(other)] < other


def toolkit_code(matrix: Matrix, cuda: Version) -> Build | None:
    """Return the targets that a CUDA release compiles for, as a build; None when the matrix does not list them."""
    known = _toolkits(matrix)
    return known.get(cuda.release) or known.get(cuda.release[:2])
