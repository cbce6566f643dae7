"""Examine a machine: put the opinion of the resolver and what was seen of the machine into layers, with remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.accelerators import ON_GPUS
from provisioner.components import ABSENT, COMPONENTS
from provisioner.doctor.environment import candidates_of, differences_from, requires_of, unmet_requirements
from provisioner.doctor.faults import machine_faults, without_followers
from provisioner.doctor.judge import Judgement, fact_to_doubt, judge, judge_lock, nearest_fix, spec_asking
from provisioner.doctor.model import Case, Examination, Layer
from provisioner.doctor.readings import found_in, wanted_in
from provisioner.doctor.remedies import RemedyFinder
from provisioner.grounds.doubt import MissingToolkit, Unstated, UnstatedGpus
from provisioner.grounds.fault import (
    Contradicts,
    Doubted,
    NoContainerToolkit,
    NotServed,
    Reported,
    Seen,
    UnmetRequirements,
    Unseen,
    Unsettled,
)
from provisioner.grounds.fault import Unlisted as UnlistedFault
from provisioner.grounds.finding import NewerGlibc, NotInstallable, UnknownGlibc, UnlistedRelease, Unverified
from provisioner.host.facts import stated
from provisioner.host.remark import DriverMismatch
from provisioner.layers import LAYERS, has_layer, layer_of
from provisioner.platforms import DEFAULT_PLATFORM, PLATFORMS
from provisioner.request import Request
from provisioner.resolver.rules.facts import has_running_driver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.doctor.model import LayerVerdict, Patient, Question
    from provisioner.grounds.conflict import Conflict
    from provisioner.grounds.fault import Fault, Part
    from provisioner.host.model import Host
    from provisioner.host.remark import Remark
    from provisioner.layers import LayerName
    from provisioner.lock.format.model import LockedStack
    from provisioner.matrix.model import Matrix
    from provisioner.spec.model import Spec

_ALLOWED_BY_LOCKS = ("minor-version", "forward-compat", "ptx-jit", "patched-kernel", "end-of-life")
"""What a policy may allow a driver, kernel or GPU to do; a lock records which of them its stack uses."""


def examine(matrix: Matrix, patient: Patient, question: Question) -> Examination:
    """Return the layers of a machine, each with what was found and is wanted, its verdict, and remedies.

    The verdicts are those of the resolver, which judges the lock, the spec or what is installed as it judges any problem; what
    no rule is about is added from what was seen of the machine.
    """
    request, faults = _request(matrix, patient, question)
    case = Case(matrix=matrix, patient=patient, question=question, request=request)
    if patient.target.host.platform not in {None, *PLATFORMS}:
        return _unserved(case)
    judgements = tuple(_judgements(case))
    found = [fault for judgement in judgements for fault in _faults_of(judgement)]
    found.extend(machine_faults(patient, request))
    found.extend(faults)
    found.extend(_of_environment(patient, question, request))
    found = _once(found, patient)
    finder = RemedyFinder(replace(case, request=judgements[0].mended))
    layers: list[Layer] = []
    for row in LAYERS:
        own = tuple(fault for fault in found if fault.layer == row.name)
        wanted = wanted_in(row, case, judgements)
        seen = found_in(row, case)
        # A lock, or an environment, without framework and libraries of CUDA asks nothing of these layers.
        is_empty = row.name in {"framework", "libraries"} and not (seen or wanted)
        is_asked = _is_asked(row.name, case) and not is_empty
        is_shown = row.name == "kernel" and has_running_driver(patient.target.host)  # a driver that runs proves its kernel
        is_known = is_shown or (bool(seen) and not _unknown(row.name, seen, wanted))
        layers.append(
            Layer(
                name=row.name,
                found=seen,
                wanted=wanted,
                verdict=_verdict(own, is_asked=is_asked, is_found=is_known, is_strict=question.is_strict),
                faults=own,
                remedies=finder.remedies(own),
            )
        )
    return Examination(
        layers=tuple(_with_causes(layers)),
        accelerator=request.accelerator,
        runs=request.runs,
        assumes=tuple(dict.fromkeys(one for judgement in judgements if judgement.stack for one in judgement.stack.assumes)),
        remarks=_untold(patient, layers),
    )


def _unserved(case: Case) -> Examination:
    """Return the layers of a machine of a system that nothing can be locked for: what was found, and where to go from there."""
    fault = NotServed(layer="system", platform=case.patient.target.host.platform or "")
    remedies = RemedyFinder(case).remedies((fault,))
    return Examination(
        layers=tuple(
            Layer(name=row.name, found=found_in(row, case), verdict="no", faults=(fault,), remedies=remedies)
            if row.name == fault.layer
            else Layer(name=row.name, found=found_in(row, case))
            for row in LAYERS
        ),
        accelerator=case.request.accelerator,
        runs=case.request.runs,
    )


def _untold(patient: Patient, layers: Iterable[Layer]) -> tuple[Remark, ...]:
    """Return the remarks of the inspection that are no fault of any layer."""
    told = [fault.remark for layer in layers for fault in layer.faults if isinstance(fault, Seen | Unseen)]
    return tuple(one for one in patient.remarks if one not in told and not isinstance(one, DriverMismatch))


def _request(matrix: Matrix, patient: Patient, question: Question) -> tuple[Request, list[Fault]]:
    """Return the request for what shall run on the machine, and faults of what is installed and cannot be requested."""
    target = without_followers(patient)
    platform = question.lock.stack.platform if question.lock is not None else platform_of(target.host)
    faults: list[Fault] = []
    if question.lock is not None:
        spec = question.spec if question.spec is not None else spec_of(question.lock.stack)
        own = spec_of(question.lock.stack)
        spec = replace(spec, accelerator=own.accelerator, runs=own.runs)
    elif question.spec is not None:
        spec = question.spec
    else:
        runs = "container" if patient.environment is None and _has_toolkit(patient) else "host"
        spec = spec_asking(name="this-machine", runs=runs)
        accelerator = Request(spec=spec, hosts=(target,), platform=platform).accelerator
        if target.host.gpus is None and accelerator in ON_GPUS:  # the question is about GPUs, whatever the packages use
            spec = replace(spec, accelerator=accelerator)
        if patient.environment is not None:
            requires, faults = requires_of(patient.environment, matrix, host=target.host, accelerator=accelerator)
            spec = replace(spec, requires=requires)
    request = Request(spec=spec, hosts=(target,), platform=platform, has_strict_option=question.is_strict)
    return request, faults


def platform_of(host: Host) -> str:
    """Return the platform of a host, which its facts showed when it was read; a Mac of which none shows it is Apple's."""
    return host.platform or ("macos/arm64" if host.os is not None and host.os.id == "macos" else DEFAULT_PLATFORM)


def spec_of(stack: LockedStack) -> Spec:
    """Return a spec that asks for nothing but what a locked stack is: its accelerator, place, image and relaxations."""
    names = {recorded.partition(" (")[0] for recorded in stack.relaxations}
    return spec_asking(
        name="lock",
        accelerator=stack.accelerator,
        runs=stack.runs,
        image={"base": stack.image.reference} if stack.image is not None else {},
        policy={"allow": tuple(dict.fromkeys(("minor-version", *(name for name in _ALLOWED_BY_LOCKS if name in names))))},
    )


def _has_toolkit(patient: Patient) -> bool:
    return patient.target.host.container_toolkit not in {None, ABSENT}


def _judgements(case: Case) -> Iterator[Judgement]:
    """Yield the opinions of the resolver: on what shall run, and, if nothing is asked, on containers as well."""
    matrix, patient, question, request = case.matrix, case.patient, case.question, case.request
    if question.lock is not None:
        yield judge_lock(matrix, request, question.lock, file=question.lock_file)
        return
    beside = candidates_of(patient.environment) if patient.environment is not None and question.spec is None else None
    judgement = judge(matrix, request, beside=beside)
    yield judgement
    if question.spec is None and request.accelerator == "cuda" and not judgement.conflicts:
        # Nothing asks for CUDA yet, and the machine may be unable to run any.
        spec = spec_asking(name="any-cuda", runs=request.spec.runs, accelerator="cuda", requires={"cuda": "*"})
        any_cuda = judge(matrix, replace(request, spec=spec))
        if any_cuda.conflicts:
            yield any_cuda
    if question.spec is None and request.runs == "host" and _has_toolkit(patient) and request.accelerator in ON_GPUS:
        spec = spec_asking(name="containers", runs="container", accelerator=request.accelerator)
        yield judge(matrix, replace(request, spec=spec))


def _faults_of(judgement: Judgement) -> Iterator[Fault]:
    """Yield the conflicts and doubts of a judgement as faults of layers."""
    for conflict in judgement.conflicts:
        yield Contradicts(layer=layer_to_mend(conflict), conflict=conflict)
    doubts = judgement.stack.doubts if judgement.stack is not None else ()
    yield from (Doubted(layer=layer_of(doubt.component), doubt=doubt) for doubt in doubts)
    for finding in judgement.findings:
        match finding:
            case Unverified(doubt=doubt):
                yield Doubted(layer=layer_of(doubt.component), doubt=doubt)
            case UnlistedRelease(subject=subject):
                yield UnlistedFault(layer=layer_of(subject.name), subject=subject)
            case NewerGlibc() | NotInstallable():
                yield Reported(layer="system" if isinstance(finding, NewerGlibc) else "packages", finding=finding)
            case UnknownGlibc():
                yield Unsettled(layer="system", finding=finding)


def layer_to_mend(conflict: Conflict) -> LayerName:
    """Return the layer of the nearest fix of a conflict.

    Without one, and where it changes a line of the spec that is of no layer, that of the fact that is the least work to change.
    """
    fix = nearest_fix(conflict)
    edits = sorted(fix.edits, key=lambda edit: not edit.host_label) if fix is not None else []
    named = next((edit.component for edit in edits if has_layer(edit.component)), "")
    return layer_of(named or fact_to_doubt(conflict) or "packages")


def _of_environment(patient: Patient, question: Question, request: Request) -> Iterator[Fault]:
    """Yield how the environment differs from a lock of the host, or which requirements of its own it does not meet."""
    environment = patient.environment
    if environment is None or request.runs != "host":
        return
    if question.lock is not None:
        yield from differences_from(question.lock, environment)
    elif question.spec is None and (unmet := tuple(unmet_requirements(environment, request.platform))):
        yield UnmetRequirements(layer="packages", differences=unmet)


def _once(faults: Sequence[Fault], patient: Patient) -> list[Fault]:
    """Return faults without doubts that another fault settles, and without equal ones.

    Where no driver is to be installed, what its installation needs is not asked: in WSL, and beside a driver that runs.
    """
    host = patient.target.host
    lacks_toolkit = any(isinstance(fault, NoContainerToolkit) for fault in faults)
    are_gpus_unknown = any(isinstance(fault, Unseen) and fault.layer == "gpu" for fault in faults)
    kept: list[Fault] = []
    for fault in faults:
        if isinstance(fault, Doubted):
            doubt = fault.doubt
            is_of_driver = doubt.component in COMPONENTS and COMPONENTS[doubt.component].is_shown_by_driver
            if isinstance(doubt, MissingToolkit) and lacks_toolkit:
                continue
            if is_of_driver and (host.virtualization == "wsl2" or has_running_driver(host)):
                continue
            if isinstance(doubt, Unstated | UnstatedGpus) and _states(host, doubt.component):
                continue  # a fact that was left out to look for the next conflict
            if doubt.component == "gpu" and are_gpus_unknown:
                continue
        if fault not in kept:
            kept.append(fault)
    return kept


def _states(host: Host, component: str) -> bool:
    return host.gpus is not None if component == "gpu" else stated(host, component) is not None


def _is_asked(name: LayerName, case: Case) -> bool:
    """Return whether anything depends on a layer: the GPUs, what shall run, or what is installed."""
    patient, question, request = case.patient, case.question, case.request
    is_question = question.lock is not None or question.spec is not None
    on_gpus = request.accelerator in ON_GPUS and (is_question or patient.target.host.gpus != ())
    has_content = is_question or patient.environment is not None
    match name:
        case "gpu" | "driver" | "cuda":
            return on_gpus
        case "kernel":
            return on_gpus and request.system == "linux"
        case "container":
            return on_gpus and request.accelerator == "cuda" and (request.runs == "container" or _has_toolkit(patient))
        case "system":
            return has_content and request.runs == "host"
        case "python" | "packages":
            return has_content
        case "framework" | "libraries":
            return bool(request.spec.requires) or question.lock is not None
    return False


def _unknown(name: LayerName, seen: Sequence[Part], wanted: Sequence[Part]) -> set[str]:
    """Return the components that are wanted in a layer and of which nothing was found, so that the layer is no yes.

    What a wheel brings of CUDA's libraries is found under the name of its distribution, and is compared with the lock.
    """
    if name in {"libraries", "framework", "packages"}:
        return set()
    return {part.name for part in wanted} - {part.name for part in seen}


def _verdict(faults: Iterable[Fault], *, is_asked: bool, is_found: bool, is_strict: bool) -> LayerVerdict:
    verdicts = {fault.verdict for fault in faults}
    if "no" in verdicts:
        return "no"
    if "unverified" in verdicts:
        return "unverified"
    if not is_asked:
        return "not-needed"
    if is_found:
        return "yes"
    return "unverified" if is_strict else "assumed"


def _with_causes(layers: Sequence[Layer]) -> Iterator[Layer]:
    """Yield the layers, in which those that need a broken one, directly or through others, say which is to be mended first."""
    needs = {row.name: row.needs for row in LAYERS}
    causes: dict[str, str] = {}
    order = [row.name for row in LAYERS]
    for layer in layers:
        below = [causes.get(name, "") for name in needs[layer.name]]
        cause = min(filter(None, below), key=order.index, default="")  # type: ignore[arg-type]
        causes[layer.name] = cause or (layer.name if layer.is_broken else "")
        if cause and layer.verdict != "not-needed":
            yield replace(layer, verdict="no", follows=cause)
        else:
            yield layer
