"""What an answer rests on that nobody stated or measured: said in words, so that an unknown is never a silent yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from provisioner.grounds.doubt import (
    AssumedDriver,
    AssumedMacosBuild,
    BroughtFramework,
    FromSource,
    NamelessForward,
    OtherMinorNvcc,
    Undecided,
    UndocumentedKernel,
    UnmeasuredTargets,
    UnreadLine,
    Unstated,
    UnsuitableFlavour,
    UnsupportedGpu,
    UnsupportedOverride,
)
from provisioner.grounds.requirement import Constrains, Row, Subject
from provisioner.host.parse import parse_wsl
from provisioner.resolver.choices.markers import holds_for
from provisioner.resolver.outcome.environment import overrides
from provisioner.resolver.outcome.gate_answer import gate_doubts
from provisioner.resolver.requirement import PACKAGE, PYTORCH, SLOTS, Key, Matching, build_of
from provisioner.resolver.rules.carriers import unlisted_bundles
from provisioner.resolver.rules.devices import FRAMEWORKS
from provisioner.resolver.rules.drivers import RunsCuda
from provisioner.resolver.rules.facts import (
    DRIVER_KINDS,
    NOT_WSL,
    WSL,
    has_driver_of_some_version,
    profile_key,
    stated,
    virtualizations,
)
from provisioner.resolver.rules.guards import Verdict
from provisioner.resolver.rules.kernels import KernelSupport
from provisioner.resolver.rules.needs import NOBODY
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.grounds.doubt import Doubt
    from provisioner.matrix.need import Need
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.rules.needs import Open
    from provisioner.resolver.search.universe import Universe

ACCELERATED = ("cuda", "rocm")


def doubts(universe: Universe, pins: Mapping[Key, Candidate]) -> tuple[Doubt, ...]:
    """Return everything that remains to be verified about a chosen stack, each thing once."""
    found: list[Doubt] = [
        *_unmeasured(universe, pins),
        *_compiled(pins),
        *unlisted_bundles(universe.problem.matrix, pins.values()),
        *_overridden(universe, pins),
        *_unsupported(universe, pins),
        *_undocumented(universe),
        *_another_minor(pins),
        *_macos_builds(universe, pins),
        *_brought_along(universe, pins),
        *_driver_versions(universe, pins),
        *_flavours(universe, pins),
        *_forwarded(universe, pins),
        *gate_doubts(universe, pins),
        *_unstated(universe, pins),
        *_limited(universe, pins),
        *_by_python(universe, pins),
    ]
    return tuple(dict.fromkeys(found))


def _by_python(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Lines about a framework that apply with some of the Pythons only, where no packages were solved to look at them."""
    problem = universe.problem
    if universe.packages is not None:
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


def _unmeasured(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    if not any(key.component == "gpu" for key in universe.problem.domains):
        return
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is None or build is None or build.accelerator not in ACCELERATED:
            continue
        if (build.sass if build.accelerator == "cuda" else build.gfx) is None:
            yield UnmeasuredTargets(subject=Subject(name, candidate.label))


def _compiled(pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = build_of(candidate)
        if candidate is not None and build is not None and build.is_compiled:
            part = "pytorch_build" if name == "pytorch" else name
            yield FromSource(part=part, subject=Subject(name, candidate.label))


def _overridden(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    devices = {candidate.label for key, candidate in pins.items() if key.component == "gpu"}
    for row in overrides(universe, pins):
        yield UnsupportedOverride(
            devices=tuple(gfx for gfx in row.gfx if gfx in devices),
            runs_as=row.runs_as,
            settings=tuple(row.variables),
            because=row.because,
        )


def _unsupported(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """AMD's list of supported GPUs is one thing, what wheels are compiled for another (matrices/rocm/rocm.yaml)."""
    rocm = pins.get(Key("rocm"))
    build = build_of(rocm)
    supported = build.gfx if build is not None else None
    if rocm is None or supported is None or any(overrides(universe, pins)):
        return
    for candidate in dict.fromkeys(one.label for key, one in pins.items() if key.component == "gpu"):
        if candidate not in supported:
            yield UnsupportedGpu(device=candidate, rocm=rocm.label)


def _undocumented(universe: Universe) -> Iterator[Doubt]:
    """Hosts whose stated driver is not documented to build on their stated kernel, which they run all the same."""
    request = universe.problem.request
    if request.accelerator != "cuda" or request.system != "linux":
        return
    kernels = KernelSupport(universe.problem.matrix)
    for target in request.hosts:
        driver, kernel = stated(target.host, "driver"), target.host.kernel
        if driver is None or kernel is None or virtualizations(target.host) <= WSL:
            continue
        need = kernels.of(Version.parse(driver))
        if "patched-kernel" in request.allowed and kernels.carriers(Version.parse(driver), Version.parse(kernel)):
            continue  # named among the relaxations
        if need is None or not need.allows(Version.parse(kernel)):
            yield UndocumentedKernel(host=target.label, driver=driver, kernel=kernel, documented=need)


def _another_minor(pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """torch.utils.cpp_extension compiles with an nvcc of another minor release than PyTorch's CUDA, but warns."""
    cuda = pins.get(Key("cuda"))
    for key, nvcc in pins.items():
        if key.component == "nvcc" and cuda is not None and nvcc.version.release[:2] != cuda.version.release[:2]:
            yield OtherMinorNvcc(nvcc=nvcc.label, cuda=cuda.label, host=key.scope)


def _macos_builds(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    for target in universe.problem.request.hosts:
        candidate = pins.get(Key("macos", target.label))
        value = stated(target.host, "macos")
        if candidate is not None and value is not None and "+" in candidate.label and "+" not in value:
            yield AssumedMacosBuild(host=target.label, build=candidate.label.partition("+")[2])


def _brought_along(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """A framework that only a package brings is the index's default, which is seldom the accelerated one."""
    problem = universe.problem
    if problem.request.accelerator not in ACCELERATED:
        return
    for name in SLOTS:
        chosen = next((one for key, one in pins.items() if key.is_package and key.name == name), None)
        if chosen is None or name in problem.components:
            continue
        component = problem.matrix.components.get(name)
        if component is not None and component.releases:
            yield BroughtFramework(framework=name, version=chosen.label)


def _unstated(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Facts that rules of the chosen stack need and a host does not state: each fact of a host once.

    The law: whatever the facts turn out to be that hosts leave out, a stack with the verdict `yes` works on them. What the
    solver chose, such as a driver to be installed, is part of the answer and no unknown; and a host whose own facts exclude
    each other, such as a libcuda of another release than its driver, runs no stack at all and is nothing a stack could be
    held against. tests/property/test_three_valued.py holds both halves of it.
    """
    problem = universe.problem
    named = {(one.component, one.of_host) for one in problem.doubts if one.of_host}
    found = [one for key, candidate in pins.items() if not key.is_package for one in problem.needs.unstated(candidate)]
    # What is needed comes first: where the fact a rule needs is unstated itself, naming that one is enough.
    for one in sorted(found, key=lambda one: bool(one.guards)):
        fact, host = one.doubt.fact, one.doubt.host
        if not {(fact, host), (one.need, host)} & named and _matters(one, universe, pins):
            named.add((fact, host))
            yield one.doubt


def _matters(one: Open, universe: Universe, pins: Mapping[Key, Candidate]) -> bool:
    """Whether the answer could be wrong: a rule's open guards may hold for what was chosen, and what it needs is not met."""
    if not _may_hold(one.guards, one.doubt.host, universe, pins):
        return False
    if one.requirement is None:
        return True
    pinned = pins.get(one.requirement.key)
    return not universe.allowed(one.requirement) if pinned is None else not universe.accepts(one.requirement, pinned)


def _may_hold(open_guards: Iterable[Need], label: str, universe: Universe, pins: Mapping[Key, Candidate]) -> bool:
    """Whether guards that unstated facts of a host leave open may hold, given what was chosen for it."""
    guards = universe.problem.needs.guards
    for guard in open_guards:
        name = "kernel" if guard.component == "virtualization" else guard.component
        chosen = pins.get(Key(name, label))
        if chosen is None:
            continue
        if guard.component == "virtualization":
            if parse_wsl(chosen.label) is None and not any(str(value) in NOT_WSL for value in guard.one_of):
                return False
        elif not guards.allows(guard, chosen.label):
            return False
    return True


def _limited(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Limits that would refuse a chosen distribution if a host stated a fact of their guards."""
    problem, framework = universe.problem, pins.get(PYTORCH)
    for row in problem.matrix.limits:
        chosen = pins.get(Key(row.distribution, PACKAGE))
        if framework is None or chosen is None or row.when.component != PYTORCH.name or not row.when.allows(framework.version):
            continue
        if SpecifierSet(row.specifier).contains(chosen.pep440, prereleases=True):
            continue
        for target in problem.request.hosts or (NOBODY,):
            undecided = problem.needs.guards.open(row.guards, target)
            if undecided and _may_hold(undecided, target.label, universe, pins):
                fact = undecided[0].component
                reason = Undecided(table="limit", name=row.name, because=row.because)
                yield Unstated(fact=fact, host=target.label, profile_key=profile_key(fact, target.host), reason=reason)


def _driver_versions(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """A driver that is there but not said which: what was chosen for it need not be what runs."""
    for target in universe.problem.request.hosts:
        for name in DRIVER_KINDS:
            chosen = pins.get(Key(name, target.label))
            if chosen is not None and has_driver_of_some_version(target.host, name):
                key = profile_key("driver_version")
                yield AssumedDriver(driver=name, host=target.label, version=chosen.label, profile_key=key)


def _forwarded(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Forward compatibility where nobody said which GPUs a host has: it serves data-centre GPUs only."""
    needs = universe.problem.needs
    unnamed = [one for one in universe.problem.request.hosts if needs.guards.is_data_centre(one) is Verdict.UNKNOWN]
    wanted = [one for candidate in pins.values() if not candidate.key.is_package for one in universe.requirements(candidate)]
    tests = [(one.key, one.test) for one in wanted if isinstance(one.test, RunsCuda)]
    for target in unnamed:
        key = Key("driver", target.label)
        if any(test.basis(pins[key].version) == "forward-compat" for of, test in tests if of == key):
            yield NamelessForward(host=target.label, profile_key=profile_key("gpu_kind"))


def _flavours(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Doubt]:
    """Which flavour of NVIDIA's kernel module runs, where a driver does and not every flavour would work.

    A driver still to be installed is installed with the flavour that was chosen; one that runs has one already. A flavour
    that the driver's release does not have at all, as an unguarded rule says, cannot be what runs.
    """
    rules = universe.problem.matrix.rules
    never = {Row("rule", rule.name) for rule in rules if rule.when.component == "driver" and not rule.guards}
    for target in universe.problem.request.hosts:
        driver = pins.get(Key("driver", target.label))
        if driver is None or target.host.driver is None or target.host.driver.module is not None:
            continue
        of_host = {key: one for key, one in pins.items() if key.scope == target.label and key.component != "driver_module"}
        for flavour in universe.candidates(Key("driver_module", target.label)):
            tested = {**of_host, flavour.key: flavour}
            wanted = (*universe.requirements(driver), *universe.requirements(flavour))
            broken = [one for one in wanted if one.key in tested and not universe.accepts(one, tested[one.key])]
            if broken and not any(one.ground.group in never for one in broken):
                key = profile_key("driver_module")
                yield UnsuitableFlavour(host=target.label, flavour=flavour.label, ground=broken[0].ground, profile_key=key)
                break
