"""Every relaxation an answer uses: what it would not hold without, named with the fact and where it was read."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from provisioner.grounds.doubt import UndatedFile, UndatedRelease, UndesignatedBranch
from provisioner.grounds.predicate import Ended, IsPrerelease
from provisioner.grounds.relaxation import (
    ORDER,
    Avoided,
    DriverWay,
    FromSdist,
    FromSource,
    Lifecycle,
    PatchedDriver,
    ThroughPtx,
)
from provisioner.grounds.requirement import Subject
from provisioner.grounds.source import Documents, Index
from provisioner.resolver.outcome.gate_answer import gate_relaxations
from provisioner.resolver.outcome.package_relaxations import cpu_only, file_relaxations, overridden
from provisioner.resolver.python.own_cuda import mixed_cuda
from provisioner.resolver.requirement import SHARED_FILE, FileCandidate, Key, build_of
from provisioner.resolver.rules.coverage import Target as Compiled
from provisioner.resolver.rules.coverage import capability, compiles_for, coverage
from provisioner.resolver.rules.devices import FRAMEWORKS
from provisioner.resolver.rules.drivers import RunsCuda
from provisioner.resolver.rules.facts import FACTS, stated
from provisioner.resolver.rules.kernels import KernelSupport
from provisioner.resolver.rules.needs import place_of
from provisioner.resolver.rules.policy import DATED, avoided
from provisioner.resolver.rules.shared_files import shared_file_relaxations
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.relaxation import Relaxation
    from provisioner.matrix.model import Build, Citation, PatchedKernels
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.universe import Universe


def relaxations(
    universe: Universe, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> tuple[Relaxation, ...]:
    """Everything about a chosen stack that a stricter policy would refuse, each thing once; `beside` as in `answer`."""
    found = [
        *_driver_ways(universe, pins),
        *_through_ptx(universe, pins),
        *_lifecycle(universe, pins),
        *_patched(universe, pins),
        *gate_relaxations(universe, pins),
        *_packages(pins),
        *shared_file_relaxations(universe.problem.matrix, pins),
        *mixed_cuda(universe.problem.matrix, {**pins, **beside}),
        *cpu_only(universe, pins),
        *file_relaxations(universe, pins),
        *_compiled(universe, pins),
        *overridden(universe, pins),
        *_avoided(universe, pins),
    ]
    return tuple(dict.fromkeys(sorted(found, key=_rank)))


def _rank(one: Relaxation) -> tuple[int, str, str]:
    return ORDER.index(one.name), one.component, repr(one)


def _driver_ways(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[DriverWay]:
    """CUDA releases that a driver does not know by itself.

    Source: CUDA Compatibility guide, "Minor Version Compatibility" and "Forward Compatibility".
    """
    for subject in pins.values():
        for needed in universe.requirements(subject):
            driver = pins.get(needed.key)
            if not isinstance(needed.test, RunsCuda) or driver is None:
                continue
            basis = needed.test.basis(driver.version)
            native = universe.problem.matrix.native_cuda(driver.version)
            slot = subject.key.name.partition(":")[2]
            if basis in {"minor-version", "forward-compat"}:
                yield DriverWay(
                    component=subject.key.component,
                    way=basis,
                    driver=driver.label,
                    native="" if native is None else str(native),
                    cuda=subject.label,
                    slot=slot,
                    distribution=Subject(subject.key.name, subject.label) if subject.key.is_package else None,
                    source=needed.ground.source,
                )


def _through_ptx(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[ThroughPtx]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is None or build is None or build.accelerator != "cuda":
            continue
        devices = dict.fromkeys(one.label for key, one in pins.items() if key.component == "gpu")
        for device in devices:
            if not device.startswith("gfx") and coverage(build.sass or (), build.ptx or (), capability(device)) == "ptx":
                yield ThroughPtx(
                    component=name,
                    device=device,
                    subject=Subject(name, candidate.label),
                    ptx=_newest_ptx(build, device),
                    source=place_of(universe.problem.matrix, candidate),
                )


def _newest_ptx(build: Build, device: str) -> str:
    """The PTX the driver compiles for a device: the newest that serves it."""
    serving = [text for text in build.ptx or () if compiles_for(Compiled.parse(text), capability(device))]
    return max(serving, key=lambda text: Compiled.parse(text).capability)


def _lifecycle(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Lifecycle]:
    """Prereleases, and what is past its end of life."""
    standing = universe.problem.needs.policy.standing
    for key, candidate in pins.items():
        if key.is_package or key.component in {"gpu", "platform", "accelerator", "policy", SHARED_FILE}:
            continue
        for fact in (standing.prerelease(candidate), standing.ended(candidate)):
            if fact is not None and isinstance(fact.predicate, Ended | IsPrerelease):
                subject = Subject(key.component, candidate.label)
                yield Lifecycle(component=key.component, subject=subject, predicate=fact.predicate, source=fact.source)


def _patched(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[PatchedDriver]:
    """Drivers that build on their kernel only with patches; on Windows nothing is built on the kernel of WSL."""
    matrix = universe.problem.matrix
    hosts = {target.label: target.host for target in universe.problem.request.hosts}
    for key, driver in pins.items():
        host = hosts.get(key.scope)
        if key.name != "driver" or (host is not None and host.virtualization in {"wsl1", "wsl2"}):
            continue
        kernel = pins.get(Key("kernel", key.scope))
        label = kernel.label if kernel is not None else (stated(host, "kernel") if host is not None else None)
        carriers = KernelSupport(matrix).carriers(driver.version, Version.parse(label)) if label else ()
        if carriers:
            who = tuple(dict.fromkeys(row.by for row in carriers))
            source = _cited(matrix.citations, carriers)
            yield PatchedDriver(component="driver", driver=driver.label, kernel=str(label), carriers=who, source=source)


def _cited(citations: Mapping[str, Citation], rows: tuple[PatchedKernels, ...]) -> Documents:
    keys = dict.fromkeys(key for row in rows for key in row.sources)
    return Documents(tuple(str(citations[key]) for key in keys if key in citations))


def _packages(pins: Mapping[Key, Candidate]) -> Iterator[Lifecycle | FromSdist]:
    """Yield prereleases and source distributions among the packages."""
    for key, candidate in pins.items():
        file = candidate.release.file if isinstance(candidate, FileCandidate) and "[" not in key.name else None
        if file is None:
            continue
        subject, source = Subject(key.name, candidate.label), Index(file.index)
        if candidate.pep440.is_prerelease:
            yield Lifecycle(component=key.name, subject=subject, predicate=IsPrerelease(), source=source)
        if not file.filename.endswith(".whl"):
            yield FromSdist(component=key.name, subject=subject, filename=file.filename, source=source)


def undated(universe: Universe, pins: Mapping[Key, Candidate]) -> tuple[Doubt, ...]:
    """Return what no source says of the answer and a policy asks: how old a release is, and of what kind a driver branch is."""
    policy = universe.problem.needs.policy
    found: list[Doubt] = []
    for key, candidate in pins.items() if "recent" in policy.words else ():
        is_released = key.component in DATED or not universe.problem.is_virtual(key.component)
        if key.is_package:
            found.extend(_undated_file(key, candidate))
        elif is_released and policy.standing.is_undated(candidate):
            found.append(UndatedRelease(name=key.component, label=candidate.label))
        if key.component == "driver" and not policy.standing.is_designated(candidate):
            found.append(UndesignatedBranch(branch=candidate.label.partition(".")[0]))
    return tuple(dict.fromkeys(found))


def _undated_file(key: Key, candidate: Candidate) -> Iterator[UndatedFile]:
    file = candidate.release.file if isinstance(candidate, FileCandidate) and "[" not in key.name else None
    if file is not None and file.upload_time is None:
        yield UndatedFile(name=key.name, label=candidate.label, index=file.index)


def _compiled(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[FromSource]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is not None and build is not None and build.is_compiled:
            place = place_of(universe.problem.matrix, candidate)
            yield FromSource(component=name, subject=Subject(name, candidate.label), source=place)


def _avoided(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Avoided]:
    """What the spec avoids and is chosen all the same: components are decided in their order, so others come before it."""
    request = universe.problem.request
    for name, candidate in avoided(request, pins):
        found = candidate.key.name if candidate.key.is_package else candidate.key.component
        has = {target.label: stated(target.host, found) for target in request.hosts} if found in FACTS else {}
        yield Avoided(
            component=found,
            subject=Subject(found, candidate.label),
            avoided=name,
            range=request.spec.policy.avoid[name],
            is_stated=has.get(candidate.key.scope) == candidate.label,
            source=request.place(f"policy.avoid.{name}"),
        )
