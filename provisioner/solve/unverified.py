"""What an answer rests on that nobody stated or measured: said in words, so that an unknown is never a silent yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.devices import FRAMEWORKS
from provisioner.solve.environment import overrides
from provisioner.solve.facts import stated
from provisioner.solve.kernels import KernelSupport
from provisioner.solve.requirement import SLOTS, Key
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.solve.requirement import Candidate
    from provisioner.solve.universe import Universe

ACCELERATED = ("cuda", "rocm")


def unverified(universe: Universe, pins: Mapping[Key, Candidate]) -> tuple[str, ...]:
    """Everything that remains to be verified about a chosen stack, each thing once."""
    found = [
        *_unmeasured(universe, pins),
        *_compiled(pins),
        *_overridden(universe, pins),
        *_unsupported(universe, pins),
        *_undocumented(universe),
        *_another_minor(pins),
        *_macos_builds(universe, pins),
        *_brought_along(universe, pins),
        *_unstated(universe, pins),
    ]
    return tuple(dict.fromkeys(found))


def _unmeasured(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    if not any(key.component == "gpu" for key in universe.problem.domains):
        return
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        build = candidate.subject[1] if candidate is not None else None
        if candidate is None or build is None or build.accelerator not in ACCELERATED:
            continue
        if (build.sass if build.accelerator == "cuda" else build.gfx) is None:
            yield f"gpu: nobody has measured which GPUs {name} {candidate.label} is compiled for"


def _compiled(pins: Mapping[Key, Candidate]) -> Iterator[str]:
    for name in FRAMEWORKS:
        candidate = pins.get(Key(name))
        if candidate is not None and candidate.subject[1] is not None and candidate.subject[1].is_compiled:
            part = "pytorch_build" if name == "pytorch" else name
            yield f"{part}: {name} {candidate.label} is compiled from source: no binary is published"


def _overridden(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    devices = {candidate.label for key, candidate in pins.items() if key.component == "gpu"}
    for row in overrides(universe, pins):
        settings = " ".join(f"{name}={value}" for name, value in row.variables)
        passing = ", ".join(gfx for gfx in row.gfx if gfx in devices)
        yield f"gpu: {passing} runs code for {row.runs_as} with {settings}, which nobody supports: {row.because}"


def _unsupported(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """AMD's list of supported GPUs is one thing, what wheels are compiled for another (matrices/rocm/rocm.yaml)."""
    rocm = pins.get(Key("rocm"))
    supported = rocm.subject[1].gfx if rocm is not None and rocm.subject[1] is not None else None
    if rocm is None or supported is None or any(overrides(universe, pins)):
        return
    for candidate in dict.fromkeys(one.label for key, one in pins.items() if key.component == "gpu"):
        if candidate not in supported:
            yield f"gpu: {candidate} has code in the build, but AMD does not list it as supported by ROCm {rocm.label}"


def _undocumented(universe: Universe) -> Iterator[str]:
    """Hosts whose stated driver is not documented to build on their stated kernel, which they run all the same."""
    wish = universe.problem.wish
    if wish.accelerator != "cuda" or wish.system != "linux":
        return
    kernels = KernelSupport(universe.problem.matrix)
    for target in wish.hosts:
        driver, kernel = stated(target.host, "driver"), target.host.kernel
        if driver is None or kernel is None or target.host.virtualization in {"wsl1", "wsl2"}:
            continue
        need = kernels.of(Version.parse(driver))
        if need is None:
            yield f"kernel: no kernel is documented for driver {driver} of {target.label}"
        elif not need.allows(Version.parse(kernel)):
            yield f"kernel: driver {driver} is documented on kernel {need}; {target.label} states {kernel}"


def _another_minor(pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """torch.utils.cpp_extension compiles with an nvcc of another minor release than PyTorch's CUDA, but warns."""
    cuda = pins.get(Key("cuda"))
    for key, nvcc in pins.items():
        if key.component == "nvcc" and cuda is not None and nvcc.version.release[:2] != cuda.version.release[:2]:
            of = f" of {key.world}" if key.world else ""
            yield f"nvcc: {nvcc.label}{of} is not of CUDA {cuda.label}, the framework's; PyTorch warns of another minor release"


def _macos_builds(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    for target in universe.problem.wish.hosts:
        candidate = pins.get(Key("macos", target.label))
        value = stated(target.host, "macos")
        if candidate is not None and value is not None and "+" in candidate.label and "+" not in value:
            yield f"macos: {target.label} does not state its build; {candidate.label.partition('+')[2]} was assumed"


def _brought_along(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """A framework that only a package brings is the index's default, which is seldom the accelerated one."""
    problem = universe.problem
    if problem.wish.accelerator not in ACCELERATED:
        return
    for name in SLOTS:
        chosen = next((one for key, one in pins.items() if key.is_package and key.name == name), None)
        if chosen is None or name in problem.components:
            continue
        component = problem.matrix.components.get(name)
        if component is not None and component.releases:
            yield f"{name}: {name} {chosen.label} comes along with other packages, without its GPU build; name it to have that"


def _unstated(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[str]:
    """Facts that rules of the chosen stack need and a host does not state: each fact of a host once."""
    said: set[tuple[str, str]] = {
        (text.partition(":")[0], target.label)
        for text in universe.problem.unverified
        for target in universe.problem.wish.hosts
        if target.label in text
    }
    for key, candidate in pins.items():
        if key.is_package:
            continue
        for one in universe.problem.needs.unstated(candidate):
            if (one.component, one.label) in said:
                continue
            pinned = pins.get(one.requirement.key) if one.requirement is not None else None
            if one.requirement is not None and (pinned is None or universe.accepts(one.requirement, pinned)):
                continue
            said.add((one.component, one.label))
            yield one.text
