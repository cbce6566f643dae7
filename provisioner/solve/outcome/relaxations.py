"""Every relaxation an answer uses: what it would not hold without, named with the fact and where it was read."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from provisioner.solve.outcome.gate_answer import gate_relaxations
from provisioner.solve.outcome.package_relaxations import cpu_only, file_relaxations, overridden
from provisioner.solve.python.own_cuda import mixed_cuda
from provisioner.solve.requirement import SHARED_FILE, TORCH, Key
from provisioner.solve.rules.coverage import Target as Compiled
from provisioner.solve.rules.coverage import capability, compiles_for, coverage
from provisioner.solve.rules.devices import FRAMEWORKS
from provisioner.solve.rules.drivers import RunsCuda
from provisioner.solve.rules.facts import FACTS, stated
from provisioner.solve.rules.kernels import KernelSupport
from provisioner.solve.rules.policy import DATED, avoided
from provisioner.solve.rules.shared_files import shared_file_relaxations
from provisioner.solve.stack import Relaxation
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.matrix.model import Build, Citation, PatchedKernels
    from provisioner.solve.requirement import Candidate
    from provisioner.solve.search.universe import Universe

ORDER = (
    "minor-version", "forward-compat", "ptx-jit", "prerelease", "end-of-life", "patched-kernel", "image-gate", "sdist",
    "mixed-cuda", "cpu-only", "shared-files", "build", "direct-url", "compiled-from-source", "override", "avoided",
)  # fmt: skip
"""The order in which they are told, from what the whole stack rests on to single packages."""


def relaxations(
    universe: Universe, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> tuple[Relaxation, ...]:
    """Everything about a chosen stack that a stricter policy would refuse, each thing once; `beside` as in `answer`."""
    found = [
        *_driver_ways(universe, pins),
        *_through_ptx(universe, pins),
        *_standing(universe, pins),
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
    return tuple(dict.fromkeys(sorted(found, key=lambda one: (ORDER.index(one.name), one.component, one.text, one.where))))


def _driver_ways(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
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
            cuda = f"cuda {subject.label}{f' of {slot}' if slot else ''}"
            if subject.key.is_package:
                cuda = f"the CUDA that {subject.key.name} {subject.label} brings"
            knows = f"driver {driver.label} knows CUDA {native} itself" if native is not None else f"driver {driver.label}"
            ways = {
                "minor-version": f"{knows}; {cuda} runs on it by minor-version compatibility",
                "forward-compat": f"{knows}; {cuda} runs on it by the image's cuda-compat package",
            }
            if basis in ways:
                yield Relaxation(name=basis, component=subject.key.component, text=ways[basis], where=needed.origin.where)


def _through_ptx(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build: Build | None = candidate.subject[1] if candidate is not None else None
        if candidate is None or build is None or build.accelerator != "cuda":
            continue
        devices = dict.fromkeys(one.label for key, one in pins.items() if key.component == "gpu")
        for device in devices:
            if not device.startswith("gfx") and coverage(build.sass or (), build.ptx or (), capability(device)) == "ptx":
                code = _newest_ptx(build, device)
                text = f"gpu {device} runs {name} {candidate.label} through its {code} PTX, which the driver compiles at start"
                yield Relaxation(name="ptx-jit", component=name, text=text, where=_where(universe, candidate))


def _newest_ptx(build: Build, device: str) -> str:
    """The PTX the driver compiles for a device: the newest that serves it."""
    serving = [text for text in build.ptx or () if compiles_for(Compiled.parse(text), capability(device))]
    return max(serving, key=lambda text: Compiled.parse(text).capability)


def _standing(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Prereleases, and what is past its end of life."""
    standing = universe.problem.needs.policy.standing
    for key, candidate in pins.items():
        if key.is_package or key.component in {"gpu", "platform", "accelerator", "policy", SHARED_FILE}:
            continue
        for fact in (standing.prerelease(candidate), standing.ended(candidate)):
            if fact is not None:
                yield Relaxation(name=fact.word, component=key.component, text=fact.text, where=fact.where)


def _patched(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Drivers that build on their kernel only with patches; on Windows nothing is built on the kernel of WSL."""
    matrix = universe.problem.matrix
    hosts = {target.label: target.host for target in universe.problem.request.hosts}
    for key, driver in pins.items():
        host = hosts.get(key.world)
        if key.name != "driver" or (host is not None and host.virtualization in {"wsl1", "wsl2"}):
            continue
        kernel = pins.get(Key("kernel", key.world))
        label = kernel.label if kernel is not None else (stated(host, "kernel") if host is not None else None)
        carriers = KernelSupport(matrix).carriers(driver.version, Version.parse(label)) if label else ()
        if carriers:
            who = " or ".join(dict.fromkeys(row.by for row in carriers))
            text = f"driver {driver.label} builds on kernel {label} only with the patches of {who}"
            yield Relaxation(name="patched-kernel", component="driver", text=text, where=_cited(matrix.citations, carriers))


def _cited(citations: Mapping[str, Citation], rows: tuple[PatchedKernels, ...]) -> str:
    keys = dict.fromkeys(key for row in rows for key in row.source)
    return "; ".join(str(citations[key]) for key in keys if key in citations)


def _packages(pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Prereleases and source distributions among the packages."""
    for key, candidate in pins.items():
        if not key.is_package or key == TORCH or "[" in key.name or key.is_seat:
            continue
        file = candidate.subject.file
        where = f"index {file.index}"
        if candidate.pep440.is_prerelease:
            text = f"{key.name} {candidate.label} is a prerelease"
            yield Relaxation(name="prerelease", component=key.name, text=text, where=where)
        if not file.filename.endswith(".whl"):
            text = f"{key.name} {candidate.label} is built from a source distribution, {file.filename}"
            yield Relaxation(name="sdist", component=key.name, text=text, where=where)


def undated(universe: Universe, pins: Mapping[Key, Candidate]) -> tuple[str, ...]:
    """What nobody says about the answer and a policy asks: how old a release is, and what kind of branch a driver is of."""
    policy = universe.problem.needs.policy
    found: list[str] = []
    for key, candidate in pins.items() if "recent" in policy.words else ():
        is_released = key.component in DATED or not universe.problem.is_virtual(key.component)
        if key.is_package:
            found.extend(_undated_file(key, candidate))
        elif is_released and policy.standing.is_undated(candidate):
            found.append(f"{key.component}: no source says when {candidate.label} was released, so it may be of this week")
        if key.component == "driver" and not policy.standing.is_designated(candidate):
            branch = candidate.label.partition(".")[0]
            found.append(f"driver: no source says whether branch {branch} is a production branch or a feature branch")
    return tuple(dict.fromkeys(found))


def _undated_file(key: Key, candidate: Candidate) -> Iterator[str]:
    if key == TORCH or "[" in key.name or key.is_seat:
        return
    if candidate.subject.file.upload_time is None:
        index = candidate.subject.file.index
        yield f"{key.name}: index {index} gives no upload time of {candidate.label}, so it may be of this week"


def _compiled(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        if candidate is not None and candidate.subject[1] is not None and candidate.subject[1].compiled:
            text = f"{name} {candidate.label} is compiled from source: no binary is published"
            yield Relaxation(name="compiled-from-source", component=name, text=text, where=_where(universe, candidate))


def _avoided(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """What the spec avoids and is chosen all the same: components are decided in their order, so others come before it."""
    request = universe.problem.request
    for name, candidate in avoided(request, pins):
        found = candidate.key.name if candidate.key.is_package else candidate.key.component
        has = {target.label: stated(target.host, found) for target in request.hosts} if found in FACTS else {}
        text = (
            f"the host has {found} {candidate.label}, and you avoid {name} {request.spec.policy.avoid[name]}"
            if has.get(candidate.key.world) == candidate.label
            else f"{found} {candidate.label} is chosen although you avoid {name} {request.spec.policy.avoid[name]}: "
            "no other was found to go with what is decided before it"
        )
        yield Relaxation(name="avoided", component=found, text=text, where=request.place(f"policy.avoid.{name}"))


def _where(universe: Universe, candidate: Candidate) -> str:
    name, version = candidate.key.component, str(candidate.version)
    positions = universe.problem.matrix.positions
    return positions.get(f"{name}=={version}") or positions.get(f"{name}=={version.partition('+')[0]}", f"matrices/{name}.yaml")
