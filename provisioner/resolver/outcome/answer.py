"""Build the stack of an answer from the chosen candidates (`pins`): one for each key, a component or distribution to choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.accelerators import ON_GPUS
from provisioner.components import FRAMEWORKS
from provisioner.grounds.doubt import UnstatedGpus
from provisioner.grounds.requirement import PYTHON_ATTEMPT
from provisioner.host.facts import stated
from provisioner.resolver.choices.candidates import accelerator_of
from provisioner.resolver.outcome.accelerated import is_about_gpus
from provisioner.resolver.outcome.cautions import lowered_targets, newer_on_index, unknown_extras, yanked
from provisioner.resolver.outcome.environment import environment
from provisioner.resolver.outcome.evidence import shown_by_drivers_of, unread_facts
from provisioner.resolver.outcome.held_back import held_back
from provisioner.resolver.outcome.host_setup import host_setups
from provisioner.resolver.outcome.installed_for_gpu import installed_for_gpu
from provisioner.resolver.outcome.kernels import missing_kernels
from provisioner.resolver.outcome.libraries import without_libraries
from provisioner.resolver.outcome.relaxations import relaxations, undated, undecided_metadata
from provisioner.resolver.outcome.require_cuda import require_cuda
from provisioner.resolver.outcome.system_packages import compiles_with, system_packages
from provisioner.resolver.outcome.unverified import Weighed, doubts, weighed
from provisioner.resolver.python.bundled import is_reported_for_component
from provisioner.resolver.requirement import (
    SHARED_FILE,
    ImageCandidate,
    Key,
    Labelled,
    OfSystem,
    OneOf,
    ReleaseCandidate,
    Unless,
    Within,
    build_of,
)
from provisioner.resolver.rules.drivers import NativeDriver, RunsCuda
from provisioner.resolver.rules.facts import FACTS, is_settled_by_driver, is_stated_as, shown
from provisioner.resolver.rules.policy import POLICY
from provisioner.resolver.search.least_change import moves
from provisioner.resolver.stack import BaseImage, ManagedPython, PackagePin, Pin, RuntimeImage, Stack
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.grounds.doubt import Doubt
    from provisioner.host.model import Host
    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build, ImageFacts
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.finder import PackageFinder
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

HIDDEN = frozenset({"accelerator", "platform", POLICY, SHARED_FILE})
BASES = ("native", "minor-version", "forward-compat")


def answer(
    instance: ProblemInstance,
    pins: Mapping[Key, Candidate],
    *,
    beside: Mapping[Key, Candidate] | None = None,
    host_needs: Sequence[Requirement] = (),
) -> Stack:
    """Return the stack of `pins`, a verified assignment of candidates to keys; `instance` is the solved problem.

    `beside` are distributions that were chosen earlier, when only the components were solved again; None without a lock.
    `host_needs` are what these need of hosts (`host_requirements_of`). If
    there are packages or a lock, the environment holds no other distributions than those of the answer.
    """
    problem = instance.problem
    is_whole, beside = instance.finder is not None or beside is not None, beside or {}
    pins = _in_order(problem, pins)
    image = _image(problem, pins, beside)
    unknown = {"glibc"} if image is not None and not image.glibc else set()
    required = problem.request.spec.requires
    hosts = problem.request.host_by_label
    system = {
        key: candidate
        for key, candidate in pins.items()
        if not key.is_package
        and key.component not in HIDDEN | unknown
        and (key.component in required or key.scope not in hosts or not is_settled_by_driver(key.component, hosts[key.scope]))
    }
    wanted = [requirement for candidate in pins.values() for requirement in instance.requirements(candidate)]
    wanted += host_needs
    rules = [
        requirement
        for requirement in wanted
        if requirement.key in system and not is_reported_for_component(requirement, system)
    ]
    build = _framework_build(pins)
    drivers = sorted((one for one in rules if isinstance(one.test, RunsCuda)), key=_floor, reverse=True)
    arch_list = _arch_list(build)
    found = _weighed(instance, pins, beside, is_whole=is_whole)
    return Stack(
        platform=problem.request.platform,
        accelerator=accelerator_of(problem.matrix, problem.request, (key.name for key in pins)),
        components=_components(instance, system),
        pins=tuple(_pins(instance, system, rules)),
        basis=_basis(drivers, pins),
        host_requirements=_host_requirements([*rules, *(root for root in problem.roots if root.ground.is_request)], problem),
        gpus={one.ground: _devices(one) for one in rules if one.key.component == "gpu" and isinstance(one.test, Labelled)},
        require_cuda=require_cuda(problem, {**pins, **beside}),
        arch_list=arch_list,
        environment=environment(instance, pins),
        doubts=found.doubts,
        assumes=found.assumes,
        accepts=found.accepts,
        relaxations=relaxations(instance, pins, beside),
        held_back=tuple(held_back(instance, pins)),
        shown=tuple(shown_by_drivers_of(problem.request)),
        unread=tuple(unread_facts(problem.matrix, problem.request)),
        installed_for_gpu=tuple(installed_for_gpu(problem, pins)),
        image=image,
        system_packages=system_packages(problem, {**pins, **beside}),
        packages=tuple(_packages(instance.finder, pins)) if instance.finder else (),
        host_setups=host_setups(problem, pins),
        runs=problem.request.runs,
        warnings=(
            *lowered_targets(pins),
            *missing_kernels(instance, pins),
            *without_libraries(instance, pins),
            *yanked(instance, pins),
            *unknown_extras(instance, pins),
            *(instance.finder.variant_indexes.left_out if instance.finder else ()),
            *newer_on_index(instance, pins),
        ),
        moves=tuple(sorted(moves(instance, pins), key=lambda move: (move.name not in problem.request.upgraded, move.name))),
    )


def doubts_of(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> tuple[Doubt, ...]:
    """Return the doubts that make an answer unverified; () when the answer is verified."""
    return _weighed(instance, _in_order(instance.problem, pins), {}, is_whole=instance.finder is not None).doubts


def _weighed(
    instance: ProblemInstance, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate], *, is_whole: bool
) -> Weighed:
    is_free_of_gpus = not is_about_gpus(instance, pins, beside)
    every = (
        *(one for one in instance.problem.doubts if not (is_free_of_gpus and isinstance(one, UnstatedGpus))),
        *doubts(instance, pins, beside, is_whole=is_whole),
        *undated(instance, pins),
        *undecided_metadata(instance, pins),
    )
    return weighed(every, instance.problem.request)


def _in_order(problem: Problem, pins: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    """Return the chosen candidates in a fixed order: components in the matrix's order, then distributions."""
    given = {key: index for index, key in enumerate(problem.domains)}
    keys = sorted(pins, key=lambda key: (key.is_package, problem.order.get(key, 0), given.get(key, 0), key))
    return {key: pins[key] for key in keys}


def _framework_build(pins: Mapping[Key, Candidate]) -> Build | None:
    """Return the build whose compiled targets the stack shows: PyTorch's, otherwise the first chosen framework's.

    None when no framework is chosen.
    """
    candidates = (pins.get(Key(name)) for name in FRAMEWORKS)
    return next((build_of(one) for one in candidates if one is not None), None)


def _arch_list(build: Build | None) -> tuple[str, ...]:
    if build is None or build.accelerator not in ON_GPUS:
        return ()
    return (*(build.sass or ()), *(build.ptx or ())) if build.accelerator == "cuda" else build.gfx or ()


def _floor(requirement: Requirement) -> Version:
    test = requirement.test
    return test.floor or Version.parse("0") if isinstance(test, RunsCuda) else Version.parse("0")


def _components(instance: ProblemInstance, system: Mapping[Key, Candidate]) -> dict[str, str]:
    """Return the text of each component, in the matrix's order; values that differ between hosts are joined by commas.

    Frameworks may have CUDA runtimes of their own. With PyTorch in the stack only PyTorch's is shown, because each of the
    others is used by its framework alone.
    """
    values: dict[str, list[str]] = {}
    hosts = instance.problem.request.host_by_label
    has_pytorch = any(key.name == "pytorch" for key in system)
    slots = {key.component for key in system if key.slot}
    for key, candidate in system.items():
        is_several = Key(key.component) in system if key.slot else key.component in slots
        if is_several and bool(key.slot) == has_pytorch:
            continue
        if key.name == "pytorch" and isinstance(candidate, ReleaseCandidate) and candidate.build is not None:
            values["pytorch"] = [str(candidate.release.version)]
            values["pytorch_build"] = [candidate.build.name]
        else:
            values.setdefault(key.component, []).append(_shown_label(candidate, hosts.get(key.scope)))
    request = instance.problem.request
    values["platform"] = [request.platform]
    decided = set(values)
    for target in request.hosts:
        for name, text in shown(target.host, request):
            if name not in decided and text not in values.setdefault(name, []):
                values[name].append(text)
    rank = {name: index for index, name in enumerate(instance.problem.matrix.order)}
    names = sorted(values, key=lambda name: (rank.get(name.partition("_build")[0], len(rank)), name))
    return {name: ", ".join(dict.fromkeys(values[name])) for name in names}


def _shown_label(candidate: Candidate, host: Host | None) -> str:
    """Return the text of a chosen candidate; if its host states only a series that it belongs to, that series (`580`)."""
    value = stated(host, candidate.key.component) if host is not None and candidate.key.component in FACTS else None
    is_series = value is not None and "+" not in candidate.label and is_stated_as(value, candidate.label)
    return str(value) if is_series else candidate.label


def _pins(instance: ProblemInstance, system: Mapping[Key, Candidate], rules: list[Requirement]) -> Iterator[Pin]:
    hosts = instance.problem.request.host_by_label
    by_key: dict[Key, list[Requirement]] = {}
    bounds = (one for candidate in system.values() for one in instance.bounds.about(candidate))
    for one in (*instance.roots, *bounds, *rules):
        if one.ground.group != PYTHON_ATTEMPT:
            by_key.setdefault(one.key, []).append(one)
    for key, candidate in sorted(system.items(), key=lambda item: (instance.problem.order.get(item[0], 0), item[0])):
        # One reason for each request: its ground is repeated for every Python that is tried.
        reasons = {
            (one.ground.group, one.ground.source) if one.ground.is_request else one.ground: one.ground
            for one in by_key.get(key, ())
        }
        version = candidate.release.version if isinstance(candidate, ReleaseCandidate) else candidate.version
        if key.scope in hosts and version.release and (text := _shown_label(candidate, hosts[key.scope])) != version.text:
            version = Version.parse(text)
        build = build_of(candidate) if key.name in FRAMEWORKS else None
        name = build.name if build is not None else ""
        yield Pin(component=key.component, version=version, build=name, host=key.scope, reasons=tuple(reasons.values()))


def _basis(drivers: list[Requirement], pins: Mapping[Key, Candidate]) -> str:
    """Return how the driver meets the CUDA requirement, one of `BASES`; if this differs between hosts, the last of these.

    "" when no chosen component requires CUDA of a driver.
    """
    found = []
    for requirement in drivers:
        version = pins[requirement.key].version
        if isinstance(requirement.test, RunsCuda):
            found.append(requirement.test.basis(version))
    return max(found, key=BASES.index, default="")


def _host_requirements(rules: list[Requirement], problem: Problem) -> dict[str, str]:
    """Return the ranges that a host must meet to run the stack, by component, such as `driver`.

    They are the requirements of the stack's components and of the spec, not those of a host's own facts. A range that applies
    to only some of the hosts, such as the newer driver that Blackwell needs, is left out: the stack's NVIDIA_REQUIRE_CUDA
    states it for each GPU.
    """
    components = problem.matrix.components
    found: dict[str, dict[str, set[str]]] = {}
    for requirement in rules:
        component, subject = requirement.key.component, requirement.ground.component
        is_of_host = subject == "image" or (subject in components and components[subject].virtual)
        is_of_host = is_of_host and not requirement.ground.is_request
        if is_of_host or component not in components or not components[component].virtual:
            continue
        if component == "driver":
            text = _driver_range(requirement)
        elif component == "gpu":
            text = ", ".join(_devices(requirement))
        elif requirement.key.scope and isinstance(requirement.test, Within | OneOf | OfSystem):
            text = str(requirement.test)
        else:
            continue
        if text and text != str(Range()):
            found.setdefault(component, {}).setdefault(text, set()).add(requirement.key.scope)
    ranges = {
        component: _in_all(_of_all(texts)) if component == "gpu" else _tightest(_of_all(texts))
        for component, texts in sorted(found.items())
    }
    return {component: text for component, text in ranges.items() if text}


def _of_all(scopes: Mapping[str, set[str]]) -> list[str]:
    """Return the ranges that apply to every host; `scopes` maps each range to the hosts it applies to."""
    bound = set().union(*scopes.values())
    return [text for text, some in scopes.items() if some == bound]


def _devices(requirement: Requirement) -> tuple[str, ...]:
    """Return the GPUs that a requirement allows, in ascending order; () when it does not list them."""
    return tuple(sorted(requirement.test.labels, key=_device)) if isinstance(requirement.test, Labelled) else ()


def _device(text: str) -> tuple[Version, str]:
    return (Version.parse("0"), text) if text.startswith("gfx") else (Version.parse(text), "")


def _in_all(lists: list[str]) -> str:
    """Return the GPUs that are in all of several lists, in the order of the first."""
    first, *others = (text.split(", ") for text in lists or [""])
    return ", ".join(one for one in first if all(one in other for other in others))


def _tightest(texts: list[str]) -> str:
    """Return several ranges as one, joined by commas; of plain lower bounds (`>=525`) only the highest is included."""
    floors = [text for text in texts if text.startswith(">=") and "," not in text]
    highest = max(floors, key=lambda text: Version.parse(text.removeprefix(">=")), default="")
    return ",".join(text for text in texts if text not in floors or text == highest)


def _driver_range(requirement: Requirement) -> str:
    """Return the range of drivers that a requirement allows; of a rule on some drivers, such as a branch, that of the rule.

    The text of a requirement is read by others: a range has no words in it, so drivers of other branches are held to it, too.
    """
    test = requirement.test.test if isinstance(requirement.test, Unless) else requirement.test
    if not isinstance(test, RunsCuda | NativeDriver):
        return str(test)
    return f">={test.floor}" if test.floor is not None else ""


def _image(problem: Problem, pins: Mapping[Key, Candidate], beside: Mapping[Key, Candidate]) -> BaseImage | None:
    candidate = next((one for key, one in pins.items() if key.name == "image"), None)
    if not isinstance(candidate, ImageCandidate):
        return None
    facts = candidate.image
    reference, _, digest = facts.reference.partition("@")
    return BaseImage(
        reference=reference,
        digest=digest,
        glibc=facts.glibc,
        python=facts.python,
        apt_python=facts.apt_python,
        require_cuda=facts.require_cuda,
        managed_python=_managed_python(problem, pins, facts),
        runtime=_runtime_image(problem, {**pins, **beside}, facts),
        snapshot=problem.request.spec.image.snapshot_time,
    )


def _runtime_image(problem: Problem, pins: Mapping[Key, Candidate], image: ImageFacts) -> RuntimeImage | None:
    """Return the image to ship in place of one with compilers, which `build` in the spec is for.

    None when the spec asks for the compilers by the name of the image or by `nvcc`, when a chosen distribution compiles CUDA
    code when it runs, and when the matrix has no image with the same distribution and libraries, and without compilers.
    """
    spec = problem.request.spec
    is_for_build = spec.build is not None and spec.image.base == "auto" and "nvcc" not in spec.requires
    if image.kind != "cuda-devel" or not is_for_build or compiles_with(problem, pins, image.kind):
        return None
    found = (one for one in problem.matrix.images if one.kind == "cuda-runtime" and _contents(one) == _contents(image))
    sibling = next((one for one in found if problem.request.platform in (one.platforms or (problem.request.platform,))), None)
    return None if sibling is None else RuntimeImage(reference=sibling.reference)


def _contents(image: ImageFacts) -> tuple[str, ...]:
    return (
        *(image.distribution, image.glibc, image.python, image.apt_python),
        *(image.cuda, image.cudnn, image.require_cuda),
    )


def _managed_python(problem: Problem, pins: Mapping[Key, Candidate], image: ImageFacts) -> ManagedPython | None:
    """Return the Python to install in a base image.

    None when the image contains the chosen Python, when the image's Linux distribution packages that Python or none, and when
    the matrix has no archive of it for the platform.
    """
    python = pins.get(Key("python"))
    if python is None or not image.apt_python or python.label in {image.python, image.apt_python}:
        return None
    build = problem.matrix.python_build(python.label, problem.request.platform)
    return None if build is None else ManagedPython(version=str(build.version), url=build.url, sha256=build.sha256)


def _packages(finder: PackageFinder, pins: Mapping[Key, Candidate]) -> Iterator[PackagePin]:
    needs: dict[str, dict[str, str]] = {}
    files: dict[str, PackageRelease] = {}
    for key, candidate in pins.items():
        if not key.is_package:
            continue
        release = finder.release_of(candidate)
        assert release.file is not None
        files[release.name] = release
        for needed in finder.applicable(candidate):
            text = f"{needed.name}{'[' + ','.join(sorted(needed.extras)) + ']' if needed.extras else ''}{needed.specifier}"
            needs.setdefault(release.name, {})[text] = canonicalize_name(needed.name)
    for name, release in sorted(files.items()):
        assert release.file is not None
        required = needs.get(name, {})
        yield PackagePin(
            name=name,
            version=str(release.version),
            file=release.file,
            requires=tuple(sorted(required)),
            dependencies=tuple(sorted(set(required.values()) & files.keys())),
        )
