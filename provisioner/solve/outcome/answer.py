"""From chosen candidates to the stack people and locks see."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.solve.outcome.environment import environment
from provisioner.solve.outcome.extras import unknown_extras
from provisioner.solve.outcome.held_back import held_back
from provisioner.solve.outcome.package_relaxations import built_elsewhere
from provisioner.solve.outcome.relaxations import relaxations, undated
from provisioner.solve.outcome.require_cuda import require_cuda
from provisioner.solve.outcome.unverified import unverified
from provisioner.solve.outcome.withdrawn import withdrawn
from provisioner.solve.python.beside import needs_beside
from provisioner.solve.python.own_libraries import is_told_twice
from provisioner.solve.requirement import SHARED_FILE, Key, Labelled, OfSystem, OneOf, Within
from provisioner.solve.rules.devices import FRAMEWORKS
from provisioner.solve.rules.drivers import NativeDriver, RunsCuda
from provisioner.solve.rules.facts import shown
from provisioner.solve.rules.policy import POLICY
from provisioner.solve.search.least import moves
from provisioner.solve.stack import BaseImage, PackagePin, Pin, Reason, Stack
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import Build, ImageFacts
    from provisioner.solve.problem import Problem
    from provisioner.solve.python.packages import PackageWorld
    from provisioner.solve.requirement import Candidate, Requirement
    from provisioner.solve.search.universe import Universe

TRIED = "python tried"
"""The group that fixes the Python of one attempt: how the search went, not why the answer is what it is."""

HIDDEN = frozenset({"accelerator", "platform", POLICY, SHARED_FILE})
BASES = ("native", "minor-version", "forward-compat")


def answer(
    universe: Universe, pins: Mapping[Key, Candidate], *, beside: Mapping[Key, Candidate] = MappingProxyType({})
) -> Stack:
    """Build the stack of a verified assignment; `beside` are distributions that were chosen before it and stay with it."""
    problem = universe.problem
    pins = _in_order(problem, pins)
    image = _image(pins)
    unknown = {"glibc"} if image is not None and not image.glibc else set()
    system = {key: candidate for key, candidate in pins.items() if not key.is_package and key.component not in HIDDEN | unknown}
    wanted = [requirement for candidate in pins.values() for requirement in universe.requirements(candidate)]
    wanted += needs_beside(problem, beside)
    rules = [requirement for requirement in wanted if requirement.key in system and not is_told_twice(requirement, system)]
    build = _framework_build(pins)
    drivers = sorted((one for one in rules if isinstance(one.test, RunsCuda)), key=_floor, reverse=True)
    arch_list = _arch_list(build)
    return Stack(
        platform=problem.request.platform,
        accelerator=problem.request.accelerator,
        components=_components(universe, system),
        pins=tuple(_pins(universe, system, rules)),
        basis=_basis(drivers, pins),
        host_requirements=_host_requirements(rules, problem),
        require_cuda=require_cuda(problem, {**pins, **beside}),
        arch_list=arch_list,
        environment=environment(universe, pins),
        unverified=(
            *problem.unverified,
            *unverified(universe, pins),
            *undated(universe, pins),
            *built_elsewhere(universe, pins),
        ),
        relaxations=relaxations(universe, pins, beside),
        held_back=tuple(held_back(universe, pins)),
        image=image,
        packages=tuple(_packages(universe.packages, pins)) if universe.packages else (),
        runs=problem.request.runs,
        warnings=(
            *withdrawn(universe, pins),
            *unknown_extras(universe, pins),
            *(universe.packages.variants.left_out if universe.packages else ()),
        ),
        moves=tuple(sorted(moves(universe, pins), key=lambda move: (move.name not in problem.request.upgraded, move.name))),
    )


def _in_order(problem: Problem, pins: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    """The choices in an order of their own, so that nothing tells which search found them, or how."""
    given = {key: index for index, key in enumerate(problem.domains)}
    keys = sorted(pins, key=lambda key: (key.is_package, problem.order.get(key, 0), given.get(key, 0), key))
    return {key: pins[key] for key in keys}


def _framework_build(pins: Mapping[Key, Candidate]) -> Build | None:
    """The build whose compiled targets are the stack's: PyTorch's, else that of the first framework there is."""
    candidates = (pins.get(Key(name)) for name in FRAMEWORKS)
    return next((one.subject[1] for one in candidates if one is not None), None)


def _arch_list(build: Build | None) -> tuple[str, ...]:
    if build is None or build.accelerator not in {"cuda", "rocm"}:
        return ()
    return (*(build.sass or ()), *(build.ptx or ())) if build.accelerator == "cuda" else build.gfx or ()


def _floor(requirement: Requirement) -> Version:
    test = requirement.test
    return test.floor or Version.parse("0") if isinstance(test, RunsCuda) else Version.parse("0")


def _components(universe: Universe, system: Mapping[Key, Candidate]) -> dict[str, str]:
    """One text for each component, in the matrix's order; hosts that differ are listed side by side.

    Of several CUDA runtimes PyTorch's is shown where there is one: the others are their frameworks' own business.
    """
    values: dict[str, list[str]] = {}
    has_pytorch = any(key.name == "pytorch" for key in system)
    slots = {key.component for key in system if key.slot}
    for key, candidate in system.items():
        has_twin = Key(key.component) in system if key.slot else key.component in slots
        if has_twin and bool(key.slot) == has_pytorch:
            continue
        if key.name == "pytorch":
            release, build = candidate.subject
            values["pytorch"] = [str(release.version)]
            values["pytorch_build"] = [build.name]
        else:
            values.setdefault(key.component, []).append(candidate.label)
    request = universe.problem.request
    values["platform"] = [request.platform]
    decided = set(values)
    for target in request.hosts:
        for name, text in shown(target.host, request):
            if name not in decided and text not in values.setdefault(name, []):
                values[name].append(text)
    rank = {name: index for index, name in enumerate(universe.problem.matrix.order)}
    names = sorted(values, key=lambda name: (rank.get(name.partition("_build")[0], len(rank)), name))
    return {name: ", ".join(dict.fromkeys(values[name])) for name in names}


def _pins(universe: Universe, system: Mapping[Key, Candidate], rules: list[Requirement]) -> Iterator[Pin]:
    by_key: dict[Key, list[Requirement]] = {}
    bounds = (one for candidate in system.values() for one in universe.bounds.about(candidate))
    for one in (*universe.roots, *bounds, *rules):
        if one.origin.group != TRIED:
            by_key.setdefault(one.key, []).append(one)
    for key, candidate in sorted(system.items(), key=lambda item: (universe.problem.order.get(item[0], 0), item[0])):
        # One line a request: the same request narrowed to what was tried says nothing new.
        origins = {
            (one.origin.group, one.origin.where) if one.origin.kind == "request" else one.origin: one.origin
            for one in by_key.get(key, ())
        }
        reasons = tuple(Reason(component=o.component, kind=o.kind, text=o.text, where=o.where) for o in origins.values())
        version = candidate.subject[0].version if candidate.subject else candidate.version
        build = candidate.subject[1].name if key.name in FRAMEWORKS and candidate.subject[1] is not None else ""
        yield Pin(component=key.component, version=version, build=build, host=key.world, reasons=reasons)


def _basis(drivers: list[Requirement], pins: Mapping[Key, Candidate]) -> str:
    """How the driver requirement is met: for several hosts, by the least native of them."""
    found = []
    for requirement in drivers:
        version = pins[requirement.key].version
        if isinstance(requirement.test, RunsCuda):
            found.append(requirement.test.basis(version))
    return max(found, key=BASES.index, default="")


def _host_requirements(rules: list[Requirement], problem: Problem) -> dict[str, str]:
    """The ranges a host must meet to run this stack: what the image's own parts need, not one machine's numbers.

    What binds only some of the hosts, such as the newer driver that Blackwell needs, is no range for all of them: it stands
    in the stack's NVIDIA_REQUIRE_CUDA, GPU by GPU.
    """
    components = problem.matrix.components
    found: dict[str, dict[str, set[str]]] = {}
    for requirement in rules:
        component, subject = requirement.key.component, requirement.origin.component
        is_of_host = subject == "image" or (subject in components and components[subject].virtual)
        if is_of_host or component not in components or not components[component].virtual:
            continue
        if component == "driver":
            text = _driver_range(requirement)
        elif component == "gpu":
            text = ", ".join(sorted(requirement.test.labels, key=_device)) if isinstance(requirement.test, Labelled) else ""
        elif requirement.key.world and isinstance(requirement.test, Within | OneOf | OfSystem):
            text = str(requirement.test)
        else:
            continue
        if text and text != str(Range()):
            found.setdefault(component, {}).setdefault(text, set()).add(requirement.key.world)
    ranges = {component: _tightest(_of_all(texts)) for component, texts in sorted(found.items())}
    return {component: text for component, text in ranges.items() if text}


def _of_all(worlds: Mapping[str, set[str]]) -> list[str]:
    """The ranges that bind every host which any of them binds."""
    bound = set().union(*worlds.values())
    return [text for text, some in worlds.items() if some == bound]


def _device(text: str) -> tuple[Version, str]:
    return (Version.parse("0"), text) if text.startswith("gfx") else (Version.parse(text), "")


def _tightest(texts: list[str]) -> str:
    """Several ranges as one: of plain lower bounds only the highest says anything."""
    floors = [text for text in texts if text.startswith(">=") and "," not in text]
    highest = max(floors, key=lambda text: Version.parse(text.removeprefix(">=")), default="")
    return ",".join(text for text in texts if text not in floors or text == highest)


def _driver_range(requirement: Requirement) -> str:
    test = requirement.test
    if isinstance(test, RunsCuda | NativeDriver):
        return f">={test.floor}" if test.floor is not None else str(test)
    return str(test)


def _image(pins: Mapping[Key, Candidate]) -> BaseImage | None:
    candidate = next((one for key, one in pins.items() if key.name == "image"), None)
    if candidate is None:
        return None
    facts: ImageFacts = candidate.subject[2]
    reference, _, digest = facts.reference.partition("@")
    return BaseImage(
        reference=reference,
        digest=digest,
        glibc=facts.glibc,
        python=facts.python,
        apt_python=facts.apt_python,
        require_cuda=facts.require_cuda,
    )


def _packages(world: PackageWorld, pins: Mapping[Key, Candidate]) -> Iterator[PackagePin]:
    needs: dict[str, dict[str, str]] = {}
    files: dict[str, PackageRelease] = {}
    for key, candidate in pins.items():
        if not key.is_package:
            continue
        release = world.release_of(candidate)
        assert release.file is not None
        files[release.name] = release
        for needed in world.applicable(candidate):
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
