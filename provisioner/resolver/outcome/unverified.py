"""The doubts of an answer: facts on which it depends and which are neither stated nor measured.

They are reported because an unknown fact never counts as known to be good.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.accelerators import ON_GPUS
from provisioner.components import ABSENT, FRAMEWORKS
from provisioner.grounds.bound import Versions
from provisioner.grounds.doubt import (
    AssumedDriver,
    AssumedMacosBuild,
    BroughtFramework,
    DeclaredForOthers,
    FindsLibrary,
    FromSource,
    NamelessForward,
    OtherMinorNvcc,
    OwnFramework,
    SilentRows,
    StatedSeries,
    Undecided,
    UndocumentedKernel,
    Unexpected,
    UnlistedBranches,
    UnmeasuredTargets,
    UnmeasuredWheel,
    UnreadLine,
    Unstated,
    UnsupportedGpu,
    UnsupportedOverride,
)
from provisioner.grounds.predicate import Needs as NeedsComponent
from provisioner.grounds.requirement import Constrains, Entails, HostFact, Subject
from provisioner.host import parse
from provisioner.host.facts import stated
from provisioner.index.markers import holds_for
from provisioner.resolver.choices.frameworks import install_for
from provisioner.resolver.outcome.accelerated import is_accelerated, nothing_accelerated
from provisioner.resolver.outcome.environment import overrides
from provisioner.resolver.outcome.image_gate import gate_doubts
from provisioner.resolver.outcome.kernels import apart_gpus
from provisioner.resolver.outcome.libraries import (
    lacking_services,
    missing_libraries,
    shadowed_libraries,
    unreached_libraries,
    unrealised,
)
from provisioner.resolver.outcome.system_packages import system_doubts
from provisioner.resolver.python.wheels import GpuWheels, uploaded
from provisioner.resolver.requirement import PACKAGE, PYTORCH, SLOTS, ImageCandidate, Key, Matching, build_of, release_of
from provisioner.resolver.rules.bundled import unlisted_bundles
from provisioner.resolver.rules.drivers import RunsCuda, WorksWithCompat, kernel_support
from provisioner.resolver.rules.facts import (
    DRIVER_KINDS,
    FACTS,
    NOT_WSL,
    WSL,
    has_driver_of_some_version,
    is_jetson,
    profile_key,
    virtualizations,
)
from provisioner.resolver.rules.guards import Verdict
from provisioner.resolver.rules.needs import NO_HOST, bound_of
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.need import Need
    from provisioner.request import Request
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.rules.needs import OpenRequirement
    from provisioner.resolver.search.instance import ProblemInstance


def doubts(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate], *, is_whole: bool = False
) -> tuple[Doubt, ...]:
    """Return the doubts about an answer, without duplicates; `beside` are distributions of a lock, which were not searched.

    `is_whole` is True if nothing but the answer is installed, so that a part it does not contain is missing.
    """
    found: list[Doubt] = [
        *_unmeasured(instance, pins),
        *_silent(instance, pins),
        *_unmeasured_wheels(instance, {**pins, **beside}),
        *_declared_for_others(instance, {**pins, **beside}),
        *_own_frameworks(pins),
        *_undocumented_wheels(instance, {**pins, **beside}),
        *_where_seen(instance, {**pins, **beside}),
        *missing_libraries(instance, {**pins, **beside}),
        *unreached_libraries(instance, {**pins, **beside}),
        *shadowed_libraries(instance, {**pins, **beside}),
        *system_doubts(instance, {**pins, **beside}),
        *nothing_accelerated(instance.problem, {**pins, **beside}),
        *(unrealised(instance, {**pins, **beside}) if is_whole else ()),
        *lacking_services(instance.problem, {**pins, **beside}),
        *_compiled_from_source(pins),
        *unlisted_bundles(instance.problem.matrix, pins.values()),
        *_overridden(instance, pins),
        *_unsupported(instance, pins),
        *apart_gpus(instance, pins),
        *_undocumented(instance, pins),
        *_unexpected(instance, pins),
        *_another_minor(pins),
        *_macos_builds(instance, pins),
        *_stated_series(instance, pins),
        *_dependency_frameworks(instance, pins),
        *_found_libraries(instance, pins),
        *_driver_versions(instance, pins),
        *_forwarded(instance, pins),
        *_of_unlisted_branches(instance, pins),
        *gate_doubts(instance, pins),
        *_unstated(instance, pins),
        *_limited(instance, pins),
        *_by_python(instance, pins),
    ]
    return tuple(dict.fromkeys(found))


class Weighed(NamedTuple):
    """The doubts of an answer by their weight.

    `doubts` make the answer unverified, `assumes` are assumptions and do not, and `accepts` are those that `policy.accept`
    names.
    """

    doubts: tuple[Doubt, ...] = ()
    assumes: tuple[Doubt, ...] = ()
    accepts: tuple[Doubt, ...] = ()


def weighed(found: Iterable[Doubt], request: Request) -> Weighed:
    """Return doubts by their weight; if the request is strict, an assumption makes the answer unverified, too."""
    every, accepted = tuple(dict.fromkeys(found)), request.spec.policy.accept
    accepts = tuple(one for one in every if one.component in accepted)
    assumes = tuple(one for one in every if one not in accepts and one.is_assumption and not request.is_strict)
    return Weighed(tuple(one for one in every if one not in (*accepts, *assumes)), assumes, accepts)


def _by_python(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the lines of the spec that were not evaluated when a system stack was solved without packages.

    Such a line is about a framework and has a marker that holds for only some of the possible Pythons. It is yielded if its
    marker holds for the chosen Python and the answer does not meet it.
    """
    problem = instance.problem
    if instance.finder is not None:
        return
    for requirement, ground in (*problem.packages, *problem.constraints):
        name = problem.component_of(canonicalize_name(requirement.name))
        marker = requirement.marker
        if not name or marker is None or holds_for(marker, problem.request.platform, problem.pythons) is not None:
            continue
        python, chosen = pins.get(Key("python")), pins.get(Key(name))
        applies = python is None or holds_for(marker, problem.request.platform, [python.label])
        is_met = isinstance(ground, Constrains) if chosen is None else Matching(requirement.specifier).allows(chosen)
        if applies and not is_met:
            yield UnreadLine(part=name, ground=ground, python=python.label if python is not None else "")


def _unmeasured(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    if not any(key.component == "gpu" for key in instance.problem.domains):
        return
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is None or build is None or build.accelerator not in ON_GPUS:
            continue
        if (build.sass if build.accelerator == "cuda" else build.gfx) is None:
            yield UnmeasuredTargets(subject=candidate.subject)


def _silent(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the chosen releases about which a family has no row, if the other component of the family is part of the answer.

    A family is a pair of components for which rows must state what works together. A release that a host states is left out,
    because it runs there. The targets that frameworks are compiled for are doubts of their own, as are releases that the matrix
    does not list.
    """
    problem = instance.problem
    present = {key.component for key, one in pins.items() if not key.is_package and one.label != ABSENT}
    hosts = problem.request.host_by_label
    for key, candidate in pins.items():
        release = release_of(candidate)
        component = problem.matrix.components.get(key.component)
        if release is None or component is None or release not in component.releases:
            continue
        if key.scope in hosts and key.component in FACTS and stated(hosts[key.scope], key.component) is not None:
            continue
        for family in problem.needs.silence.about(key.component, release, build_of(candidate)):
            if family.object in present and not (key.component in FRAMEWORKS and family.object == "gpu"):
                yield SilentRows(subject=candidate.subject, object=family.object)


def _unmeasured_wheels(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    wheels = GpuWheels(instance.problem, "")
    for key, candidate in pins.items():
        if key.is_package and wheels.is_unmeasured(candidate):
            day, subject = uploaded(candidate), Subject(key.project, candidate.label)
            older_than = instance.problem.needs.devices.older_than(day)
            yield UnmeasuredWheel(subject=subject, uploaded=day if older_than is not None else "", older_than=older_than)


def _declared_for_others(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield each unread wheel whose recipe compiles it for none of the targets that a GPU of a host runs."""
    wheels = GpuWheels(instance.problem, "")
    for key, candidate in pins.items():
        code = wheels.declared_for_others(candidate) if key.is_package else None
        if code is not None:
            devices, targets = instance.problem.needs.devices, (*code.sass, *code.ptx)
            yield DeclaredForOthers(
                subject=Subject(key.project, candidate.label),
                targets=targets,
                gpus=devices.unserved_by(code),
                has_ptx=not devices.unserved_by(code, is_compiled=True),
            )


def _own_frameworks(pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield each chosen framework of which the base image has a release of its own."""
    image = pins.get(Key("image"))
    if not isinstance(image, ImageCandidate):
        return
    for name in FRAMEWORKS:
        chosen, brought = pins.get(Key(name)), image.image.brings.get(name)
        if chosen is not None and brought and chosen.label != ABSENT:
            yield OwnFramework(reference=image.image.reference, brought=brought, subject=chosen.subject)


def _undocumented_wheels(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield each wheel whose GPU code runs on a GPU of a host by observation, and not by NVIDIA's documentation."""
    wheels = GpuWheels(instance.problem, "")
    for key, candidate in pins.items() if instance.problem.needs.devices.has_undocumented else ():
        for one in wheels.undocumented(candidate) if key.is_package else ():
            subject, bound = Subject(key.project, candidate.label), Versions((Version.parse(one.gpu),))
            yield Unexpected(subject=subject, needs="gpu", bound=bound, chosen=one.gpu, because=one.because)


def _where_seen(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the unstated facts that decide whether a GPU was seen to run the code of a framework or wheel on such a host."""
    problem, wheels = instance.problem, GpuWheels(instance.problem, "")
    devices = problem.needs.devices
    for key, candidate in pins.items() if devices.has_undocumented else ():
        code = devices.code_of(candidate)
        rows = devices.undocumented_code(code) if code is not None else wheels.undocumented(candidate) if key.is_package else ()
        for row, target in product(rows, problem.request.hosts):
            for guard in problem.needs.guards.open(row.on, target):
                reason = Undecided(table="row", name=row.name, because=row.because)
                place = profile_key(guard.component, target.host)
                yield Unstated(fact=guard.component, host=target.label, profile_key=place, reason=reason)


def _compiled_from_source(pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is not None and build is not None and build.compiled:
            part = "pytorch_build" if name == "pytorch" else name
            yield FromSource(part=part, subject=candidate.subject)


def _overridden(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    devices = {candidate.label for key, candidate in pins.items() if key.component == "gpu"}
    for row in overrides(instance, pins):
        yield UnsupportedOverride(
            devices=tuple(gfx for gfx in row.gfx if gfx in devices),
            runs_as=row.runs_as,
            settings=tuple(sorted(row.set.items())),
            because=row.because,
        )


def _unsupported(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the GPUs that AMD does not list as supported by the ROCm they run on, unless overrides run them as another target.

    Wheels may be compiled for them nevertheless (matrices/rocm/rocm.yaml). Of a ROCm without a table of GPUs, that of the
    nearest release of its series is asked, such as 6.4.3 for 6.4.4.
    """
    if any(overrides(instance, pins)):
        return
    rows = instance.problem.matrix.components["rocm"].releases if "rocm" in instance.problem.matrix.components else ()
    for rocm, device in dict.fromkeys(_gpus_on_rocm(instance.problem, pins)):
        tables = {
            one.version: build.gfx
            for one in rows
            for build in one.builds
            if build.gfx is not None and one.version.release[:2] == rocm.release[:2]
        }
        asked = min(tables, key=lambda one: abs((*one.release, 0)[2] - (*rocm.release, 0)[2]), default=None)
        if asked is not None and device not in tables[asked]:
            yield UnsupportedGpu(device=device, rocm=str(asked))


def _gpus_on_rocm(problem: Problem, pins: Mapping[Key, Candidate]) -> Iterator[tuple[Version, str]]:
    """Yield each GPU of AMD's with the ROCm whose libraries compute on it.

    PyTorch's wheels contain that ROCm; all others load the one of the system, which is the host's outside of containers.
    """
    chosen, request = pins.get(Key("rocm")), problem.request
    is_of_system = request.runs == "host" and PYTORCH not in pins and is_accelerated(problem, pins)
    for key, gpu in pins.items():
        if key.component == "gpu" and request.accelerator == "rocm":
            host = request.host_by_label.get(key.scope)
            libraries = host.libraries if host is not None and is_of_system else None
            if libraries is not None and libraries.rocm is not None:
                yield Version.parse(libraries.rocm), gpu.label
            elif chosen is not None:
                yield chosen.version, gpu.label


def _undocumented(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the hosts whose driver is not documented for their Linux kernel version.

    Left out are hosts in WSL, and drivers with patches for the kernel if the policy allows `patched-kernel`.
    """
    problem, request = instance.problem, instance.problem.request
    if request.accelerator != "cuda" or request.system != "linux":
        return
    kernels = kernel_support(problem.matrix)
    for target in request.hosts:
        driver, kernel = stated(target.host, "driver"), target.host.kernel
        if driver is None or kernel is None or virtualizations(target.host) <= WSL or is_jetson(problem.matrix, target.host):
            continue
        chosen = pins.get(Key("driver", target.label))
        driver = chosen.label if chosen is not None else driver
        need = kernels.of(Version.parse(driver))
        if "patched-kernel" in request.allowed and kernels.patches(Version.parse(driver), Version.parse(kernel)):
            continue  # reported as a relaxation
        if need is None or not need.allows(Version.parse(kernel)):
            compared = kernel if need is not None else ""
            yield UndocumentedKernel(host=target.label, driver=driver, kernel=compared, documented=need)


def _unexpected(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield a doubt for each requirement that a chosen release is only expected to have and that the answer violates."""
    for candidate in pins.values():
        if candidate.key.is_package:
            continue
        for one in instance.problem.needs.expected(candidate):
            chosen = pins.get(one.key)
            if chosen is None or instance.accepts(one, chosen) or not isinstance(one.ground, Entails):
                continue
            predicate = one.ground.predicate
            if isinstance(predicate, NeedsComponent):
                (bound,) = predicate.bounds
                yield Unexpected(
                    subject=candidate.subject,
                    needs=predicate.component,
                    bound=bound,
                    chosen=chosen.label,
                    because=predicate.because,
                )


def _another_minor(pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield each nvcc whose minor release differs from PyTorch's CUDA: torch.utils.cpp_extension warns about it."""
    cuda = pins.get(Key("cuda"))
    for key, nvcc in pins.items():
        if key.component == "nvcc" and cuda is not None and nvcc.version.release[:2] != cuda.version.release[:2]:
            yield OtherMinorNvcc(nvcc=nvcc.label, cuda=cuda.label, host=key.scope)


def _stated_series(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield a doubt for each series that a host states (`nvcc 12.4`) if some release of it cannot replace the chosen one.

    A series is also yielded if the matrix lists no release of the component, such as Fabric Manager: any one may be installed.
    """
    problem = instance.problem
    for target in problem.request.hosts:
        for root in problem.roots:
            if root.key.scope != target.label or not isinstance(root.ground, HostFact):
                continue
            name, chosen = root.key.component, pins.get(root.key)
            value = stated(target.host, name)
            if chosen is None or value is None or "+" in chosen.label or chosen.label == value:
                continue
            others = [one for one in instance.candidates(root.key) if root.allows(one)]
            failing = tuple(one.label for one in others if not _may_replace(instance, pins, one))
            if failing or not problem.matrix.components[name].releases:
                yield StatedSeries(
                    name=name,
                    host=target.label,
                    series=value,
                    assumed=chosen.label,
                    failing=failing,
                    profile_key=profile_key("driver_version" if name in DRIVER_KINDS else name),
                )


def _may_replace(instance: ProblemInstance, pins: Mapping[Key, Candidate], one: Candidate) -> bool:
    """Return whether an answer remains valid if a candidate replaces the chosen one of its key."""
    others = (need for key, pin in pins.items() if key != one.key for need in instance.requirements(pin))
    is_required = any(need.key == one.key and not instance.accepts(need, one) for need in (*instance.roots, *others))
    return not is_required and all(
        need.key in pins and instance.accepts(need, pins[need.key]) for need in instance.requirements(one)
    )


def _macos_builds(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    for target in instance.problem.request.hosts:
        candidate = pins.get(Key("macos", target.label))
        value = stated(target.host, "macos")
        if candidate is not None and value is not None and "+" in candidate.label and "+" not in value:
            yield AssumedMacosBuild(host=target.label, build=candidate.label.partition("+")[2])


def _dependency_frameworks(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the frameworks that only a package requires: the default build on the index is seldom the accelerated one."""
    problem = instance.problem
    if problem.request.accelerator not in ON_GPUS:
        return
    for name in SLOTS:
        chosen = next((one for key, one in pins.items() if key.is_package and key.name == name), None)
        if chosen is None or name in problem.components:
            continue
        component = problem.matrix.components.get(name)
        if component is not None and component.releases:
            install = install_for(problem.matrix, problem.request, name)
            yield BroughtFramework(framework=name, version=chosen.label, install=install)


def _found_libraries(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[FindsLibrary]:
    """Yield the cuDNN that TensorFlow finds beside it although it is installed as it is named, and was not built for.

    It looks for CUDA where its own extra puts it, and PyTorch puts its own there. With a CUDA of the major release that it was
    built for it computes on the GPU, and then refuses an older cuDNN where it uses it.
    Sources: `cuda_rpath_flags("nvidia/cudnn/lib")` in TensorFlow's build files of cuDNN; tensorflow/tensorflow#60913, comment
    of 2025-02-04 ("Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0").
    """
    chosen = pins.get(Key("tensorflow"))
    release, build = release_of(chosen) if chosen is not None else None, build_of(chosen)
    if release is None or build is None or build.accelerator != "cpu" or instance.problem.request.accelerator != "cuda":
        return
    rules = (
        one for one in instance.problem.matrix.rules if one.when.component == "tensorflow" and one.when.allows(release.version)
    )
    needed = {need.component: need for rule in rules for need in rule.require}
    cuda, cudnn = (pins.get(Key(name)) for name in ("cuda", "cudnn"))
    if cuda is None or cudnn is None or not {"cuda", "cudnn"} <= needed.keys() or needed["cudnn"].allows(cudnn.version):
        return
    built_for = filter(needed["cuda"].allows, (one.version for one in instance.problem.matrix.components["cuda"].releases))
    if any(one.release[:1] == cuda.version.release[:1] for one in built_for):
        bound = bound_of(needed["cudnn"])
        yield FindsLibrary(framework="tensorflow", version=str(release.version), library=cudnn.subject, bound=bound)


def _unstated(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the facts that rules of the chosen stack need and a host does not state, each fact of a host once.

    They ensure that a stack with the verdict `yes` works whatever values the unstated facts have. A component that the solver
    chose, such as a driver to be installed, is part of the answer and not unknown. A host whose own facts exclude each other,
    such as a libcuda of another release than its driver, runs no stack and is no counter-example.
    tests/property/test_three_valued.py checks this, and that an unverified stack names the fact.
    """
    problem = instance.problem
    named = {(one.component, one.of_host) for one in problem.doubts if one.of_host}
    found = [one for key, candidate in pins.items() if not key.is_package for one in problem.needs.unstated(candidate)]
    # Doubts before assumptions, for a fact is named once; needed facts before facts of guards: where both are unstated, the
    # needed fact alone is named.
    for one in sorted(found, key=lambda one: (one.doubt.is_assumption, bool(one.guards))):
        fact, host = one.doubt.fact, one.doubt.host
        if not {(fact, host), (one.need, host)} & named and _matters(one, instance, pins):
            named.add((fact, host))
            yield one.doubt


def _matters(one: OpenRequirement, instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether an unstated fact could make the answer wrong.

    That is so if the undecided guards may hold for the chosen candidates, and the requirement is unknown or not known to be
    met.
    """
    if not _may_hold(one.guards, one.doubt.host, instance, pins):
        return False
    if one.requirement is None:
        return True
    pinned = pins.get(one.requirement.key)
    return not instance.allowed(one.requirement) if pinned is None else not instance.accepts(one.requirement, pinned)


def _may_hold(open_guards: Iterable[Need], label: str, instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> bool:
    """Return whether the undecided guards (conditions) of a rule may all hold for a host, given what is chosen for it."""
    guards = instance.problem.needs.guards
    for guard in open_guards:
        name = "kernel" if guard.component == "virtualization" else guard.component
        chosen = pins.get(Key(name, label))
        if chosen is None:
            continue
        if guard.component == "virtualization":
            if parse.wsl(chosen.label) is None and not any(str(value) in NOT_WSL for value in guard.one_of):
                return False
        elif not guards.allows(guard, chosen.label):
            return False
    return True


def _limited(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield the unstated facts that decide whether a limit of the matrix excludes a chosen distribution.

    A limit excludes versions of a distribution if certain releases of PyTorch are chosen, on hosts for which its guards hold.
    """
    problem, framework = instance.problem, pins.get(PYTORCH)
    for row in problem.matrix.limits:
        chosen = pins.get(Key(row.distribution, PACKAGE))
        if framework is None or chosen is None or row.when.component != PYTORCH.name or not row.when.allows(framework.version):
            continue
        if SpecifierSet(row.specifier).contains(chosen.pep440, prereleases=True):
            continue
        for target in problem.request.hosts or (NO_HOST,):
            undecided = problem.needs.guards.open(row.on, target)
            if undecided and _may_hold(undecided, target.label, instance, pins):
                fact = undecided[0].component
                reason = Undecided(table="limit", name=row.name, because=row.because)
                yield Unstated(fact=fact, host=target.label, profile_key=profile_key(fact, target.host), reason=reason)


def _driver_versions(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield a doubt for each host that states a driver without its version: that may differ from the chosen one."""
    for target in instance.problem.request.hosts:
        for name in DRIVER_KINDS:
            chosen = pins.get(Key(name, target.label))
            if chosen is not None and has_driver_of_some_version(target.host, name):
                key = profile_key("driver_version")
                yield AssumedDriver(driver=name, host=target.label, version=chosen.label, profile_key=key)


def _forwarded(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield a doubt for each host with GPUs of unknown kind whose containers load a cuda-compat, for data-centre GPUs only."""
    needs = instance.problem.needs
    unnamed = [one for one in instance.problem.request.hosts if needs.guards.is_data_centre(one) is Verdict.UNKNOWN]
    wanted = [one for candidate in pins.values() if not candidate.key.is_package for one in instance.requirements(candidate)]
    tests = [(one.key, one.test) for one in wanted if isinstance(one.test, RunsCuda | WorksWithCompat)]
    for target in unnamed:
        key = Key("driver", target.label)
        if any(test.basis(pins[key].version) == "forward-compat" for of, test in tests if of == key):
            yield NamelessForward(host=target.label, profile_key=profile_key("gpu_kind"))


def _of_unlisted_branches(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Yield a doubt for each host whose containers load a cuda-compat, and nobody knows whether this supports its driver."""
    problem = instance.problem
    for target in problem.request.hosts:
        driver = pins.get(Key("driver", target.label))
        if driver is None:
            continue
        test = problem.needs.cuda_compat.of_unknown_branches(pins.get(Key("image")), target, driver.version)
        if test is not None:
            bound = test.bound
            yield UnlistedBranches(host=target.label, driver=driver.label, cuda=bound.cuda, native=bound.native)
