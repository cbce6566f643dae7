"""From chosen candidates to the stack people and locks see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from provisioner.solve.gate import require_cuda
from provisioner.solve.kernels import KernelSupport
from provisioner.solve.needs import NativeDriver, RunsCuda
from provisioner.solve.requirement import Labelled, Within
from provisioner.solve.stack import BaseImage, PackagePin, Pin, Reason, Stack
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.index.model import PackageRelease
    from provisioner.matrix.model import ImageFacts
    from provisioner.solve.packages import PackageWorld
    from provisioner.solve.requirement import Candidate, Key, Requirement
    from provisioner.solve.target import TargetHost
    from provisioner.solve.universe import Universe

TRIED = "python tried"
"""The group that fixes the Python of one attempt: how the search went, not why the answer is what it is."""

HIDDEN = frozenset({"accelerator", "platform"})
BASES = ("native", "minor-version", "forward-compat")


def answer(universe: Universe, pins: Mapping[Key, Candidate]) -> Stack:
    """Build the stack of a verified assignment."""
    problem = universe.problem
    image = _image(pins)
    unknown = {"glibc"} if image is not None and not image.glibc else set()
    system = {key: candidate for key, candidate in pins.items() if not key.is_package and key.component not in HIDDEN | unknown}
    wanted = [requirement for candidate in pins.values() for requirement in universe.requirements(candidate)]
    rules = [requirement for requirement in wanted if requirement.key in system]
    framework = next((candidate for key, candidate in pins.items() if key.name == "pytorch"), None)
    build = framework.subject[1] if framework else None
    drivers = [one for one in rules if isinstance(one.test, RunsCuda)]
    is_cuda = bool(drivers)
    arch_list = (*(build.sass or ()), *(build.ptx or ())) if build is not None and build.accelerator == "cuda" else ()
    return Stack(
        platform=problem.wish.platform,
        accelerator=problem.wish.accelerator,
        components=_components(universe, system),
        pins=tuple(_pins(universe, system, rules)),
        basis=_basis(drivers, pins),
        host_requirements=_host_requirements(rules, runs=problem.wish.runs),
        require_cuda=require_cuda([one.test for one in drivers if isinstance(one.test, RunsCuda)], arch_list)
        if is_cuda
        else "",
        arch_list=arch_list,
        unverified=(*problem.unverified, *_unmeasured(framework, universe), *_undocumented(universe)),
        image=image,
        packages=tuple(_packages(universe.packages, pins)) if universe.packages else (),
        runs=problem.wish.runs,
    )


def _components(universe: Universe, system: Mapping[Key, Candidate]) -> dict[str, str]:
    """One text for each component, in the matrix's order; hosts that differ are listed side by side."""
    values: dict[str, list[str]] = {}
    for key, candidate in system.items():
        if key.name == "pytorch":
            release, build = candidate.subject
            values["pytorch"] = [str(release.version)]
            values["pytorch_build"] = [build.name]
        else:
            values.setdefault(key.component, []).append(candidate.label)
    values["platform"] = [universe.problem.wish.platform]
    decided = set(values)
    for target in universe.problem.wish.hosts:
        for name, text in _stated(target):
            if name not in decided and text not in values.setdefault(name, []):
                values[name].append(text)
    rank = {name: index for index, name in enumerate(universe.problem.matrix.order)}
    names = sorted(values, key=lambda name: (rank.get(name.partition("_build")[0], len(rank)), name))
    return {name: ", ".join(dict.fromkeys(values[name])) for name in names}


def _stated(target: TargetHost) -> Iterator[tuple[str, str]]:
    """Facts of a host that no rule chose but that belong to the stack it was solved for."""
    host = target.host
    facts = {
        "kernel": host.kernel,
        "container_toolkit": host.container_toolkit,
        "kernel_headers": host.kernel_headers,
        "kernel_gcc": host.kernel_gcc,
        "gcc": host.gcc,
        "nvcc": host.nvcc,
        "python_arch": host.python_arch,
        "userspace_driver": host.userspace_driver,
        "fabric_manager": host.fabric_manager,
    }
    yield from ((name, value) for name, value in facts.items() if value is not None)


def _pins(universe: Universe, system: Mapping[Key, Candidate], rules: list[Requirement]) -> Iterator[Pin]:
    for key, candidate in sorted(system.items(), key=lambda item: (universe.problem.order.get(item[0], 0), item[0])):
        wanted = (one for one in (*universe.roots, *rules) if one.key == key and one.origin.group != TRIED)
        # One line a request: the same request narrowed to what was tried says nothing new.
        origins = {
            (one.origin.group, one.origin.where) if one.origin.kind == "request" else one.origin: one.origin for one in wanted
        }
        reasons = tuple(Reason(component=o.component, kind=o.kind, text=o.text, where=o.where) for o in origins.values())
        version = candidate.subject[0].version if candidate.subject else candidate.version
        build = candidate.subject[1].name if key.name == "pytorch" else ""
        yield Pin(component=key.component, version=version, build=build, host=key.world, reasons=reasons)


def _basis(drivers: list[Requirement], pins: Mapping[Key, Candidate]) -> str:
    """How the driver requirement is met: for several hosts, by the least native of them."""
    found = []
    for requirement in drivers:
        version = pins[requirement.key].version
        if isinstance(requirement.test, RunsCuda):
            found.append(requirement.test.basis(version))
    return max(found, key=BASES.index, default="")


def _host_requirements(rules: list[Requirement], *, runs: str) -> dict[str, str]:
    """The ranges a host must meet to run this stack: what the image's own parts need, not one machine's numbers."""
    found: dict[str, dict[str, None]] = {}
    for requirement in rules:
        component, subject = requirement.key.component, requirement.origin.component
        if subject in {"driver", "driver_module", "kernel", "image"}:
            continue
        if component == "driver":
            text = _driver_range(requirement)
        elif component == "gpu" and isinstance(requirement.test, Labelled):
            text = ", ".join(sorted(requirement.test.labels, key=Version.parse))
        elif component == "glibc" and runs == "host" and isinstance(requirement.test, Within):
            text = str(requirement.test)
        else:
            continue
        found.setdefault(component, {})[text] = None
    return {component: _tightest(list(texts)) for component, texts in sorted(found.items())}


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


def _unmeasured(framework: Candidate | None, universe: Universe) -> tuple[str, ...]:
    if framework is None or framework.subject[1].sass is not None or framework.subject[1].accelerator != "cuda":
        return ()
    if not any(key.component == "gpu" for key in universe.problem.domains):
        return ()
    return (f"gpu: nobody has measured which GPUs pytorch {framework.label} is compiled for",)


def _undocumented(universe: Universe) -> tuple[str, ...]:
    """Hosts whose stated driver is not documented to build on their stated kernel, which they run all the same."""
    if universe.problem.wish.accelerator != "cuda":
        return ()
    kernels = KernelSupport(universe.problem.matrix)
    found = []
    for target in universe.problem.wish.hosts:
        driver, kernel = target.host.driver, target.host.kernel
        if driver is None or driver.version is None or kernel is None:
            continue
        need = kernels.of(Version.parse(driver.version))
        if need is None:
            found.append(f"kernel: no kernel is documented for driver {driver.version} of {target.label}")
        elif not need.allows(Version.parse(kernel)):
            found.append(f"kernel: driver {driver.version} is documented on kernel {need}; {target.label} states {kernel}")
    return tuple(found)


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
