"""What was found in each layer, and what is wanted there, as parts: a component or distribution with its value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.accelerators import RUNTIMES
from provisioner.components import ABSENT, COMPONENTS, FOLLOWERS
from provisioner.doctor.environment import layer_of_distribution, locked_version
from provisioner.doctor.judge import nearest_fix
from provisioner.grounds.edit import SetFact
from provisioner.grounds.fault import Part
from provisioner.host.facts import stated
from provisioner.layers import LAYERS, layer_of
from provisioner.names import COMPONENT_OF_DISTRIBUTION
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.doctor.judge import Judgement
    from provisioner.doctor.model import Case, Patient, Question
    from provisioner.host.model import Host
    from provisioner.layers import LayerRow
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request
    from provisioner.resolver.stack import Stack

_HIDDEN = frozenset({"pytorch_build", "platform", "image", "glibc"})
_UNINTERESTING = {
    "loaded_modules": "free",
    "virtualization": "none",
    "nvswitch": ABSENT,
    "mig": "disabled",
    "fabric_manager": ABSENT,
}
"""Values that say that there is nothing to say."""

_ALWAYS = frozenset({"driver", "webdriver", "amdgpu", "driver_module", "kernel", "os", "macos", "glibc"})
PACKAGES = "packages"


def found_in(row: LayerRow, case: Case) -> tuple[Part, ...]:
    """Return what the machine has in a layer; for what it does not have itself, what the image or the environment has."""
    return tuple(_found(row, case))


def _found(row: LayerRow, case: Case) -> Iterator[Part]:
    patient, question, request = case.patient, case.question, case.request
    host = patient.target.host
    if row.name == "gpu":
        for gpu in host.gpus or ():
            yield Part(name="gpu", value=gpu.target or "", title=gpu.name or "", count=gpu.count)
        if host.gpus == ():
            yield Part(name="gpu", value=ABSENT)
    yield from _facts(row, host)
    match row.name:
        case "cuda":
            yield from _level(case.matrix, host, request)
        case "container" if patient.condition is not None and request.accelerator == "cuda":
            yield from (Part(name="engine", value=name) for name in patient.condition.engines or ())
        case "libraries":
            yield from (
                Part(name=name, value=value) for name, value in (host.libraries.versions if host.libraries else {}).items()
            )
    if question.lock is not None and request.runs == "container":
        yield from _in_image(row, question)
    elif patient.environment is not None and request.runs == "host":
        yield from _installed(row, patient)


def _facts(row: LayerRow, host: Host) -> Iterator[Part]:
    driver = stated(host, "driver")
    for name in row.components:
        value = stated(host, name)
        if (name == "driver_module" and driver is None) or name == "host_gcc":  # which is the GCC of the system
            continue
        if value is None or value == _UNINTERESTING.get(name):
            continue
        leader = COMPONENTS[name].installed_with
        if name in FOLLOWERS.get(leader, ()) and value == stated(host, leader):
            continue
        yield Part(name=name, value=value)


def _level(matrix: Matrix, host: Host, request: Request) -> Iterator[Part]:
    """Yield the newest CUDA that the driver runs natively, or the ROCm that is installed."""
    driver = stated(host, "driver")
    if driver is not None and request.accelerator == "cuda":
        level = matrix.native_cuda(Version.parse(driver))
        if level is not None:
            yield Part(name="cuda", value=str(level), origin="driver")
    if request.accelerator == "rocm" and host.libraries is not None and host.libraries.rocm:
        yield Part(name="rocm", value=host.libraries.rocm)


def _in_image(row: LayerRow, question: Question) -> Iterator[Part]:
    """Yield what the image of a lock has, which the lock says and nobody looked at."""
    assert question.lock is not None, "only a lock has a locked stack"
    if row.name in {"cuda", "gpu", "kernel", "driver", "system"}:
        return
    for name, value in _components(question).items():
        if layer_of(name) == row.name:
            yield Part(name=name, value=value, origin="image")
    if row.name == PACKAGES:
        yield Part(name=PACKAGES, value=str(len(question.lock.packages)), origin="image")


def _components(question: Question) -> Mapping[str, str]:
    """Return the components of a lock that an image or an installer has, PyTorch with its build."""
    assert question.lock is not None, "only a lock has locked components"
    found = {name: value for name, value in question.lock.stack.components.items() if name not in _HIDDEN}
    if "pytorch" in found:
        found["pytorch"] = locked_version(question.lock, "torch", found["pytorch"])
    return found


def _installed(row: LayerRow, patient: Patient) -> Iterator[Part]:
    environment = patient.environment
    assert environment is not None, "what is installed is in an environment"
    if row.name == "python" and environment.python:
        yield Part(name="python", value=environment.python, origin="environment")
    if row.name in {"libraries", "framework"}:
        for name, one in environment.distributions.items():
            if layer_of_distribution(name) == row.name:
                build = environment.torch.build if name == "torch" and environment.torch and "+" not in one.version else ""
                value = f"{one.version}+{build}" if build else one.version
                yield Part(name=COMPONENT_OF_DISTRIBUTION.get(name, name), value=value, origin="environment")
    if row.name == PACKAGES:
        yield Part(name=PACKAGES, value=str(len(environment.distributions)), origin="environment")


def wanted_in(row: LayerRow, case: Case, judgements: Sequence[Judgement]) -> tuple[Part, ...]:
    """Return what is wanted in a layer: by the lock, by the answer to the request, and by the nearest fixes of conflicts."""
    found: dict[str, Part] = {}
    question, request = case.question, case.request
    if question.lock is not None:
        ranges = question.lock.stack.host_requirements
        found.update({name: Part(name=name, value=value) for name, value in ranges.items() if layer_of(name) == row.name})
        found.update({part.name: part for part in _wanted_of_lock(row, question, request)})
    for judgement in judgements:
        if judgement.stack is not None:
            stack = judgement.stack
            chosen = _chosen(stack, is_asked=question.spec is not None)
            ranges = {**stack.host_requirements, **chosen}
            for name, value in ranges.items():
                if layer_of(name) == row.name:
                    found.setdefault(name, Part(name=name, value=value, title=stack.basis if name == "cuda" else ""))
    for judgement in judgements:
        for conflict in judgement.conflicts:
            fix = nearest_fix(conflict)
            for edit in fix.edits if fix is not None else ():
                if edit.component in row.components and (isinstance(edit, SetFact) or edit.component not in found):
                    value = edit.change.removeprefix("==") if "," not in edit.change else edit.change
                    found[edit.component] = Part(name=edit.component, value=value)
    return tuple(found.values())


def _chosen(stack: Stack, *, is_asked: bool) -> dict[str, str]:
    """Return the runtime of an answer, and, if a spec asked for it, what an installer would bring."""
    named = [name for row in LAYERS if is_asked and row.name in {"libraries", "python", "framework"} for name in row.components]
    found = {name: stack.components[name] for name in (*RUNTIMES, *named) if name in stack.components and name not in _HIDDEN}
    if "pytorch" in found:
        found["pytorch"] = f"{found['pytorch']}+{stack.components.get('pytorch_build', '')}".rstrip("+")
    return found


def _wanted_of_lock(row: LayerRow, question: Question, request: Request) -> Iterator[Part]:
    lock = question.lock
    assert lock is not None, "only a lock wants what is locked"
    for name, value in _components(question).items():
        if layer_of(name) == row.name:
            yield Part(name=name, value=value, title=lock.stack.basis if name == "cuda" else "")
    if row.name == "container" and request.runs == "container" and request.accelerator == "cuda":
        yield Part(name="container_toolkit", value="")
    if row.name == PACKAGES:
        yield Part(name=PACKAGES, value=str(len(lock.packages)))
