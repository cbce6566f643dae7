"""A stack as lines of an answer, as rows of a table, and as one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provisioner.cli.display import Line, verdict_line
from provisioner.grounds.relaxation import CpuOnly, FrameworkOnCpu
from provisioner.grounds.requirement import Entails, HostFact, HostGpu
from provisioner.words.choice import installed_for_gpu_words
from provisioner.words.ground import say_with_source
from provisioner.words.notation import counted, listed, source_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.grounds.requirement import Ground
    from provisioner.resolver.stack import Pin, Stack
    from provisioner.spec.model import Spec

DRIVERS = ("driver", "amdgpu", "webdriver")
SUMMARIZED = ("tensorflow", "jax", "cuda", "rocm", *DRIVERS, "python")
_NAMED = ("pytorch", "tensorflow", "jax", "cuda", "rocm", "python")
"""Components that an answer names even if the spec does not."""

_MOST_MACHINES = 3
_MOST_PACKAGES = 6
_WAYS = {"minor-version": "minor-version compatibility", "forward-compat": "the image's cuda-compat package"}


def answer_lines(stack: Stack, spec: Spec, *, heading: str = "") -> list[Line]:
    """Return a line on the machines that the stack runs on and how CUDA runs there, and one on the versions of main components.

    Further lines tell what is added to what the spec names: packages of the image's distribution, the image that is shipped in
    place of the one with compilers, and extras for GPUs.
    `heading` is the target or platform, to distinguish several answers; "" for none.
    """
    verb = "runs on" if stack.verdict == "yes" else "should run on"
    doubts = f"; {counted(len(stack.doubts), 'point')} unverified" if stack.doubts else ""
    cuda = stack.components.get("cuda", "")  # "" when only packages bring CUDA
    way = f"  (CUDA{f' {cuda}' if cuda else ''} through {_WAYS[stack.basis]})" if stack.basis in _WAYS else ""
    where = f"{_machines(stack)}{_on_the_cpu(stack)}"
    first = verdict_line(stack.verdict, f"{f'{heading}: ' if heading else ''}{verb} {where}{doubts}{way}")
    named = " · ".join(_named(stack, spec))
    further = (named, _system_packages(stack), _shipped_image(stack), *map(installed_for_gpu_words, stack.installed_for_gpu))
    return [first, *(Line(text, indent=2) for text in further if text)]


def _system_packages(stack: Stack) -> str:
    """Return the packages of the base image's distribution that the image adds, by what needs them; "" for none."""
    by: dict[str, list[str]] = {}
    for package in stack.system_packages:
        whom = listed(list(dict.fromkeys(_whom(reason) for reason in package.reasons)))
        by.setdefault(whom, []).append(package.name)
    return f"image adds {'; '.join(f'{listed(names)} for {whom}' for whom, names in by.items())}" if by else ""


def _shipped_image(stack: Stack) -> str:
    """Return which image is shipped where another one builds; "" where the base image is.

    As in `render.base_image.shipped_base`, the compilers are left behind only where the lock has something to build.
    """
    runtime = stack.image.runtime if stack.image is not None else None
    if stack.image is None or runtime is None or all(one.file.filename.endswith(".whl") for one in stack.packages):
        return ""
    return f"image builds on {stack.image.reference} and ships {runtime.reference}"


def _whom(reason: Ground) -> str:
    return reason.component if isinstance(reason, Entails) else "you"


def _machines(stack: Stack) -> str:
    """Return the GPUs and driver of each kind of machine; for machines that state neither, the requirements on them."""
    pins: dict[str, list[Pin]] = {}
    for pin in stack.pins:
        if pin.component in {"gpu", *DRIVERS}:
            pins.setdefault(pin.host, []).append(pin)
    found = list(dict.fromkeys(_machine(stack, pins[host]) for host in sorted(pins)))
    if len(found) > _MOST_MACHINES:
        return f"{', '.join(found[: _MOST_MACHINES - 1])} and {len(found) - _MOST_MACHINES + 1} more kinds of machines"
    place = listed(found) or stack.platform
    return f"{place}, on the CPU alone" if stack.accelerator == "cpu" else place


def _on_the_cpu(stack: Stack) -> str:
    """Return which of what the spec names computes on the CPU although the target has GPUs, "" for nothing."""
    found = [
        one.subject.name
        for one in stack.relaxations
        if isinstance(one, FrameworkOnCpu) or (isinstance(one, CpuOnly) and not one.needed_by)
    ]
    return f", {listed(found)} on the CPU alone" if found and stack.accelerator != "cpu" else ""


def _machine(stack: Stack, pins: Sequence[Pin]) -> str:
    gpus = [reason for pin in pins for reason in pin.reasons if isinstance(reason, HostGpu)]
    subject = " + ".join(dict.fromkeys(gpu.product or f"gpu {gpu.device}" for gpu in gpus)) or stack.platform
    for pin in pins:
        if pin.component not in DRIVERS:
            continue
        is_there = any(
            isinstance(one, HostFact) or (isinstance(one, Entails) and one.component == "jetson") for one in pin.reasons
        )
        if is_there:  # the driver of a Jetson comes with its Jetson Linux
            return f"{subject} with {pin.component} {pin.version}"
        if gpus:
            return f"{subject} once {pin.component} {pin.version} is installed"
        if wanted := stack.host_requirements.get(pin.component):
            return f"{subject} with {pin.component} {wanted}"
    return subject


def _named(stack: Stack, spec: Spec) -> Iterator[str]:
    """Yield the versions of packages and components that the spec or `_NAMED` names, and the number of packages."""
    components = {name: value for name, value in stack.components.items() if name not in {"pytorch_build", "platform"}}
    if "pytorch" in components and (build := stack.components.get("pytorch_build")):
        components["pytorch"] = f"{components['pytorch']}+{build}"
    versions = {package.name: package.version for package in stack.packages}
    names = [canonicalize_name(Requirement(text).name) for text in spec.packages]
    shown = [name for name in dict.fromkeys(names) if name in versions and name not in {"torch", *components}]
    yield from (f"{name} {versions[name]}" for name in shown[:_MOST_PACKAGES])
    for name in dict.fromkeys((*_NAMED, *spec.requires)):
        if name in components and name not in DRIVERS:
            yield f"{name} {components[name]}"
    if versions:
        yield counted(len(versions), "package")


def stack_rows(stack: Stack) -> list[tuple[str, str, str]]:
    """Return the name, version and main reason of each component.

    The main reason is the first that exists of: the requirement that prevents a newer version, a fact of a host, a request of
    the spec, the first rule.
    """
    reasons: dict[str, Ground] = {}
    held_by = {one.component: one.by for one in stack.held_back}
    for pin in stack.pins:
        for reason in pin.reasons:
            kept = reasons.get(pin.component)
            by = held_by.get(pin.component)
            if kept is None or _weight(reason, by) > _weight(kept, by):
                reasons[pin.component] = reason
    return [
        (name, value, _because(reasons[name]) if name in reasons else "") for name, value in stack.components.items() if value
    ]


def _because(reason: Ground) -> str:
    """Return a reason with its source; for a fact of a host only the source, because the table row has its value already."""
    if isinstance(reason, HostFact | HostGpu):
        return f"stated in {source_words(reason.source)}"
    return say_with_source(reason)


def _weight(reason: Ground, held_by: Ground | None) -> tuple[bool, int]:
    is_holding = held_by is not None and held_by.source is not None and reason.source == held_by.source
    return is_holding, ("rule", "request", "fact").index(reason.kind)


def package_rows(stack: Stack) -> list[tuple[str, str, str]]:
    """Return a table row per distribution: name, version, and the first package that requires it, with its requirement.

    The last column is "" if no package requires it.
    """
    needed: dict[str, list[str]] = {}
    for package in stack.packages:
        for text in package.requires:
            needed.setdefault(canonicalize_name(Requirement(text).name), []).append(f"{package.name} needs {text}")
    rows = []
    for package in stack.packages:
        by = needed.get(package.name, [])
        more = f" and {len(by) - 1} more" if len(by) > 1 else ""
        rows.append((package.name, package.version, f"{by[0]}{more}" if by else ""))
    return rows


def summary(stack: Stack, *, verdict: str = "") -> str:
    """Return `choices` of a stack with its verdict, or with `verdict` if that is given."""
    return f"{choices(stack)}, verdict {verdict or stack.verdict}"


def choices(stack: Stack) -> str:
    """Return the versions of the main components, the number of packages, and how CUDA runs, as one line."""
    framework = stack.components.get("pytorch")
    build = stack.components.get("pytorch_build")
    parts = [f"pytorch {framework}+{build}"] if framework else []
    parts.extend(f"{name} {stack.components[name]}" for name in SUMMARIZED if name in stack.components)
    if stack.packages:
        parts.append(counted(len(stack.packages), "package"))
    basis = f", basis {stack.basis}" if stack.basis else ""
    return f"{', '.join(parts)}{basis}"
