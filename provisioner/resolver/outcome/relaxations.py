"""The relaxations of an answer: facts because of which a stricter policy would refuse it, with their sources.

Also here are doubts about unstated facts that a policy depends on, such as the date of a release.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.accelerators import ON_GPUS
from provisioner.components import CUDA_LIBRARIES, FRAMEWORKS
from provisioner.grounds.doubt import BuiltMetadata, PackedMetadata, UndatedFile, UndatedRelease, UndesignatedBranch
from provisioner.grounds.predicate import Ended, IsPrerelease
from provisioner.grounds.relaxation import (
    ORDER,
    Avoided,
    BuiltHere,
    CpuOnly,
    DirectUrl,
    DriverWay,
    FrameworkOnCpu,
    FromSdist,
    FromSource,
    Lifecycle,
    Overridden,
    PatchedDriver,
    ThroughPtx,
)
from provisioner.grounds.requirement import Subject
from provisioner.grounds.source import Documents, Index, Metadata
from provisioner.host.facts import stated
from provisioner.index.direct_reference import shown_url
from provisioner.resolver.choices.frameworks import install_for
from provisioner.resolver.outcome.accelerated import is_accelerated, on_cpu_alone
from provisioner.resolver.outcome.image_gate import gate_relaxations
from provisioner.resolver.python.bundled import mixed_cuda
from provisioner.resolver.python.discovered import DirectUrlMutex
from provisioner.resolver.requirement import PACKAGE, SHARED_FILE, Candidate, FileCandidate, Key, build_of, release_of
from provisioner.resolver.rules.coverage import Target as Compiled
from provisioner.resolver.rules.coverage import capability, compiles_for, coverage
from provisioner.resolver.rules.drivers import RunsCuda, kernel_support
from provisioner.resolver.rules.facts import FACTS, is_stated_as
from provisioner.resolver.rules.needs import place_of
from provisioner.resolver.rules.policy import DATED, avoided
from provisioner.resolver.rules.shared_files import shared_file_relaxations
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from packaging.requirements import Requirement as Pep508

    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.relaxation import Relaxation
    from provisioner.index.model import IndexFile
    from provisioner.matrix.model import Build, Citation, Distribution, PatchedKernels
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.instance import ProblemInstance


def relaxations(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> tuple[Relaxation, ...]:
    """Return the relaxations of an answer, sorted, without duplicates.

    `beside` are distributions that were chosen earlier, when only the components were solved again.
    """
    found = [
        *_driver_ways(instance, pins),
        *_through_ptx(instance, pins),
        *_lifecycle(instance, pins),
        *_patched(instance, pins),
        *gate_relaxations(instance, pins),
        *_packages(pins),
        *shared_file_relaxations(instance.problem.matrix, pins),
        *mixed_cuda(instance.problem.matrix, {**pins, **beside}),
        *cpu_only(instance, pins),
        *_frameworks_on_cpu(instance, pins),
        *file_relaxations(instance, pins),
        *_compiled(instance, pins),
        *overridden(instance, pins),
        *_avoided(instance, pins),
    ]
    return tuple(dict.fromkeys(sorted(found, key=lambda one: (ORDER.index(one.name), one.component, repr(one)))))


def _driver_ways(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[DriverWay]:
    """Yield the chosen CUDA releases that a host's driver runs only through minor-version or forward compatibility.

    Source: CUDA Compatibility guide, "Minor Version Compatibility" and "Forward Compatibility".
    """
    for subject in pins.values():
        for needed in instance.requirements(subject):
            driver = pins.get(needed.key)
            if not isinstance(needed.test, RunsCuda) or driver is None:
                continue
            basis = needed.test.basis(driver.version)
            native = instance.problem.matrix.native_cuda(driver.version)
            slot = subject.key.name.partition(":")[2]
            if basis in {"minor-version", "forward-compat"}:
                yield DriverWay(
                    component=subject.key.component,
                    way=basis,
                    driver=driver.label,
                    native="" if native is None else str(native),
                    cuda=subject.label,
                    slot=slot,
                    distribution=subject.subject if subject.key.is_package else None,
                    source=needed.ground.source,
                )


def _through_ptx(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[ThroughPtx]:
    for name in (*FRAMEWORKS, "cuda", *CUDA_LIBRARIES):
        candidate = pins.get(Key(name))
        build = instance.problem.needs.devices.code_of(candidate) if candidate is not None else None
        if candidate is None or build is None or build.accelerator != "cuda":
            continue
        devices = dict.fromkeys(one.label for key, one in pins.items() if key.component == "gpu")
        for device in devices:
            if not device.startswith("gfx") and coverage(build.sass or (), build.ptx or (), capability(device)) == "ptx":
                yield ThroughPtx(
                    component=name,
                    device=device,
                    subject=candidate.subject,
                    ptx=_newest_ptx(build, device),
                    source=place_of(instance.problem.matrix, candidate),
                )


def _newest_ptx(build: Build, device: str) -> str:
    """Return the PTX target that the driver compiles for a device: the newest one that serves it."""
    serving = [text for text in build.ptx or () if compiles_for(Compiled.parse(text), capability(device))]
    return max(serving, key=lambda text: Compiled.parse(text).capability)


def _lifecycle(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Lifecycle]:
    """Yield the chosen components that are pre-releases or past their end of life."""
    status = instance.problem.needs.policy.support_status
    for key, candidate in pins.items():
        if key.is_package or key.component in {"gpu", "platform", "accelerator", "policy", SHARED_FILE}:
            continue
        for fact in (status.prerelease(candidate), status.ended(candidate)):
            if fact is not None and isinstance(fact.predicate, Ended | IsPrerelease):
                yield Lifecycle(
                    component=key.component, subject=candidate.subject, predicate=fact.predicate, source=fact.source
                )


def _patched(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[PatchedDriver]:
    """Yield the drivers whose module builds on the host's kernel only with patches; hosts in WSL build no module."""
    matrix = instance.problem.matrix
    hosts = instance.problem.request.host_by_label
    for key, driver in pins.items():
        host = hosts.get(key.scope)
        if key.name != "driver" or (host is not None and host.virtualization in {"wsl1", "wsl2"}):
            continue
        kernel = pins.get(Key("kernel", key.scope))
        label = kernel.label if kernel is not None else (stated(host, "kernel") if host is not None else None)
        patches = kernel_support(matrix).patches(driver.version, Version.parse(label)) if label else ()
        if patches:
            who = tuple(dict.fromkeys(row.by for row in patches))
            source = _cited(matrix.citations, patches)
            yield PatchedDriver(component="driver", driver=driver.label, kernel=str(label), carriers=who, source=source)


def _cited(citations: Mapping[str, Citation], rows: tuple[PatchedKernels, ...]) -> Documents:
    keys = dict.fromkeys(key for row in rows for key in row.source)
    return Documents(tuple(str(citations[key]) for key in keys if key in citations))


def _packages(pins: Mapping[Key, Candidate]) -> Iterator[Lifecycle | FromSdist]:
    """Yield the chosen distributions that are pre-releases or source distributions."""
    for key, candidate in pins.items():
        if (file := _file_of(candidate)) is None:
            continue
        subject, source = candidate.subject, Index(file.index)
        if candidate.pep440.is_prerelease:
            yield Lifecycle(component=key.name, subject=subject, predicate=IsPrerelease(), source=source)
        if not file.filename.endswith(".whl"):
            yield FromSdist(component=key.name, subject=subject, filename=file.filename, source=source)


def _file_of(candidate: Candidate) -> IndexFile | None:
    """Return the file of a distribution; None for any other candidate.

    None for a distribution with extras, too: the plain distribution has the file.
    """
    return candidate.release.file if isinstance(candidate, FileCandidate) and "[" not in candidate.key.name else None


def undated(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> tuple[Doubt, ...]:
    """Return the doubts of an answer for a policy that forbids `recent`; () for any other policy.

    They are about releases and files without a date, and driver branches without a designation.
    """
    policy = instance.problem.needs.policy
    found: list[Doubt] = []
    for key, candidate in pins.items() if "recent" in policy.words else ():
        is_released = key.component in DATED or not instance.problem.is_virtual(key.component)
        if key.is_package:
            if (file := _file_of(candidate)) is not None and file.upload_time is None:
                found.append(UndatedFile(name=key.name, label=candidate.label, index=file.index))
        elif is_released and policy.support_status.is_undated(candidate):
            found.append(UndatedRelease(name=key.component, label=candidate.label))
        if key.component == "driver" and not policy.support_status.is_designated(candidate):
            found.append(UndesignatedBranch(branch=candidate.label.partition(".")[0]))
    return tuple(dict.fromkeys(found))


def _compiled(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[FromSource]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is not None and build is not None and build.compiled:
            place = place_of(instance.problem.matrix, candidate)
            yield FromSource(component=name, subject=candidate.subject, source=place)


def _avoided(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Avoided]:
    """Yield the chosen candidates that `policy.avoid` of the spec names; earlier choices may leave no other candidate."""
    request = instance.problem.request
    for name, candidate in avoided(request, pins):
        found = candidate.key.shown_name
        has = {target.label: stated(target.host, found) for target in request.hosts} if found in FACTS else {}
        yield Avoided(
            component=found,
            subject=candidate.subject,
            avoided=name,
            range=request.spec.policy.avoid[name],
            is_stated=is_stated_as(has.get(candidate.key.scope), candidate.label),
            source=request.place(f"policy.avoid.{name}"),
        )


def overridden(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Overridden]:
    """Yield every requirement in metadata that the answer does not meet because an override of the spec replaces it."""
    finder, overrides = instance.finder, instance.problem.overrides
    if finder is None or not overrides:
        return
    versions = {finder.release_of(one).name: str(finder.release_of(one).version) for key, one in pins.items() if key.is_package}
    for key, candidate in pins.items():
        if not key.is_package:
            continue
        release = finder.release_of(candidate)
        for needed in finder.applicable(candidate):
            name = canonicalize_name(needed.name)
            for override, ground in overrides.of(name):
                if not _is_met(needed, versions.get(name)):
                    yield Overridden(
                        component=name,
                        subject=Subject(release.name, str(release.version)),
                        requirement=str(needed).partition(";")[0].strip(),
                        distribution=name,
                        has=versions.get(name, ""),
                        override=str(override),
                        source=ground.source,
                    )


def _is_met(needed: Pep508, version: str | None) -> bool:
    return version is not None and needed.specifier.contains(PackageVersion(version), prereleases=True)


def file_relaxations(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[DirectUrl | BuiltHere]:
    """Yield the direct URLs that only metadata names, and the files whose requirements were found by building them."""
    for candidate in pins.values():
        if isinstance(candidate, DirectUrlMutex):
            holder = candidate.holder.subject
            source = Metadata(holder.name, holder.label)
            name, url = candidate.name, shown_url(candidate.url)
            yield DirectUrl(component=name, distribution=name, url=url, holder=holder, source=source)
    for name, file in _built(instance, pins):
        yield BuiltHere(component=name, filename=file.filename, source=Index(file.index))


def undecided_metadata(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> tuple[BuiltMetadata | PackedMetadata, ...]:
    """Return a doubt for each source distribution whose requirements were found by building it, or may change in a build."""
    built = (BuiltMetadata(name=name, filename=file.filename) for name, file in _built(instance, pins))
    finder = instance.finder
    files = ((key.name, _file_of(candidate)) for key, candidate in pins.items())
    packed = (
        PackedMetadata(name=name, filename=file.filename)
        for name, file in files
        if file is not None and finder is not None and finder.is_packed(file)
    )
    return (*built, *packed)


def _built(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[tuple[str, IndexFile]]:
    for key, candidate in pins.items():
        file = _file_of(candidate)
        if file is not None and instance.finder is not None and instance.finder.is_built(file):
            yield key.name, file


def cpu_only(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[CpuOnly]:
    """Yield the chosen distributions that run on the CPU although the accelerator is one for GPUs.

    These are wheels without GPU code of distributions that have some in other wheels or have a GPU variant (`gpu_twin`), and,
    of those with a GPU variant that were not measured, the ones that the spec does not name or beside which nothing computes
    on a GPU.
    """
    problem = instance.problem
    if problem.request.accelerator not in ON_GPUS:
        return
    known = {row.name: row for row in problem.matrix.distributions} if problem.request.accelerator == "cuda" else {}
    named = {key.distribution for key in instance.named} if is_accelerated(problem, pins) else set()
    read = {one.key.project: one for one in on_cpu_alone(problem, pins)}
    for name, row in known.items():
        chosen = pins.get(Key(name, PACKAGE)) if row.gpu_twin else None
        if chosen is not None and name not in named and name not in read:
            yield _cpu_only(instance, pins, chosen, row)
    for name, chosen in read.items():
        yield _cpu_only(instance, pins, chosen, known.get(name))


def _cpu_only(instance: ProblemInstance, pins: Mapping[Key, Candidate], chosen: Candidate, row: Distribution | None) -> CpuOnly:
    name = chosen.key.project
    others = (one for one in pins.values() if one is not chosen)
    requiring = {one.key.distribution for one in others if any(need.key == chosen.key for need in instance.requirements(one))}
    is_named = any(key.distribution == name for key in instance.named)
    return CpuOnly(
        component=name,
        subject=chosen.subject,
        gpu_twin=row.gpu_twin if row is not None else "",
        gpu_wheels=row.gpu_wheels if row is not None else "",
        is_compiled=chosen.is_source,
        needed_by="" if is_named else min(requiring, default=""),
        source=instance.problem.matrix.place_of(f"distribution:{name}"),
    )


def _frameworks_on_cpu(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[FrameworkOnCpu]:
    """Yield the chosen frameworks that compute on the CPU although the accelerator of the target is another one."""
    problem = instance.problem
    accelerator = problem.request.accelerator
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is not None and build is not None and build.accelerator == "cpu" and accelerator != "cpu":
            yield FrameworkOnCpu(
                component=name,
                subject=candidate.subject,
                accelerator=accelerator,
                install=install_for(problem.matrix, problem.request, name, of=release_of(candidate)),
                source=place_of(problem.matrix, candidate),
            )
