"""Explain why hosts are excluded from a plan: the conflict, and the last stack that each of them can have.

The last stack of a host is the best one, by the policy, that it can ever run, with any changes that the plan may make to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from provisioner.accelerators import ACCELERATORS, GPU_ACCELERATORS
from provisioner.components import COMPONENTS, DRIVERS, LEADS
from provisioner.grounds.conflict import Conflict, member_of
from provisioner.grounds.requirement import AsksAccelerator, HostGpu, NoGpu, OnePlanOneStack, OtherDriver
from provisioner.grounds.step import ComponentChange, LastStackNeeds
from provisioner.plan.actions import support_of
from provisioner.plan.machine import CHANGEABLE, changeable_components, changed_host, open_host
from provisioner.plan.model import Exclusion
from provisioner.plan.stack_choice import StackChoice, lead_requirement, leads_of
from provisioner.request import Request
from provisioner.resolver.explain.conflict import explain_conflict
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from provisioner.grounds.requirement import Ground
    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.plan.changes import ChangeSearch
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.model import PlanRequest
    from provisioner.plan.stack_choice import ChosenStack
    from provisioner.plan.state import Software, StackSpec
    from provisioner.resolver.stack import Stack

ACCELERATOR_OF_DRIVER = {
    COMPONENTS[driver].driver_kind: row.name for row in GPU_ACCELERATORS for driver in row.drivers if driver in DRIVERS
}
"""The accelerator that each kind of GPU driver (`driver.kind` of a host profile) serves."""

_NAMED_CHANGES = tuple(name for name in CHANGEABLE if name != "driver_module")
"""Components whose change is reported with a last stack; kernel modules are left out, as they change with their driver."""


def accelerator_conflict(machine: Machine, wanted: StackSpec) -> Conflict | None:
    """Return the conflict of a machine without a GPU for the accelerator of the plan; None if it may have one.

    Such a machine states that it has no GPU, or has a GPU or driver of another vendor.
    """
    if ACCELERATORS[wanted.accelerator] not in GPU_ACCELERATORS:
        return None
    fact = _other_accelerator(machine, wanted.accelerator)
    if fact is None:
        return None
    request: Ground = OnePlanOneStack(accelerator=wanted.accelerator)
    if wanted.spec.accelerator is not None:
        request = AsksAccelerator(accelerator=wanted.accelerator, place=wanted.request(()).place("accelerator"))
    return Conflict(members=(member_of(request), member_of(fact)))


def own_accelerator(machine: Machine, stack_spec: StackSpec) -> str:
    """Return the spec's accelerator, else that of the machine's GPUs, or of its driver if it states no targets of GPUs."""
    request = Request(spec=stack_spec.spec, hosts=(machine.target,), platform=stack_spec.platform)
    gpus, driver = machine.host.gpus, machine.host.driver
    is_stated = gpus == () or any(gpu.target for gpu in gpus or ())
    if stack_spec.spec.accelerator is None and not is_stated and driver is not None:
        return ACCELERATOR_OF_DRIVER[driver.kind]
    return request.accelerator


def _other_accelerator(machine: Machine, accelerator: str) -> Ground | None:
    """Return the fact of a machine that rules out an accelerator, None if no fact does."""
    host, place, label = machine.host, machine.target.place, machine.label
    if host.gpus == ():
        return NoGpu(host="the host", place=place("gpus"))
    for index, gpu in enumerate(host.gpus or ()):
        if gpu.target and gpu.accelerator not in {None, accelerator}:
            return HostGpu(device=gpu.target, product=gpu.name or "", host=label, place=place(f"gpus.{index}"))
    kind = host.driver.kind if host.driver is not None else None
    if kind is not None and ACCELERATOR_OF_DRIVER[kind] != accelerator:
        component = next(row.name for row in COMPONENTS.values() if row.driver_kind == kind)
        return OtherDriver(name=component, driver=kind, place=place("driver"))
    return None


class _LastStack(NamedTuple):
    """The last stack of a machine, the facts that the machine then has, and whether the spec was relaxed for the stack."""

    stack: Stack
    facts: Facts
    is_beyond_spec: bool


class ExclusionExplainer:
    """Explains excluded machines; machines with equal facts, apart from those that may change, share one conflict."""

    def __init__(self, matrix: Matrix, search: ChangeSearch, request: PlanRequest, *, today: date | None) -> None:
        self._matrix = matrix
        self._search = search
        self._request = request
        self._today = today
        self._conflicts: dict[Host, Conflict] = {}

    def explain(self, machine: Machine, conflict: Conflict) -> Exclusion:
        """Return the exclusion of a machine for a conflict, with the last stack that serves the machine."""
        last = self._last_stack(machine)
        if last is None:
            return Exclusion(conflict=conflict)
        return Exclusion(conflict=conflict, last=last.stack, needs=self._needs(machine, last))

    def conflict(self, machine: Machine, chosen: ChosenStack, free: Sequence[str]) -> Conflict:
        """Return the minimal conflict of a machine on which all components in `free` may change.

        `chosen` is the stack that the plan chose for the other machines.
        """
        opened = open_host(machine, free)
        found = self._conflicts.get(opened)
        if found is None:
            found = self._conflicts[opened] = self._minimal_conflict(machine, chosen.software, opened)
            return found
        # The facts are the same, but each machine states them in a file and line of its own.
        members = tuple(
            replace(one, sources=(machine.target.place(one.component),)) if one.kind == "fact" else one for one in found.members
        )
        return replace(found, members=members)

    def _minimal_conflict(self, machine: Machine, software: Software | None, opened: Host) -> Conflict:
        wanted = self._request.wanted
        leads = leads_of(software) if software is not None else ()
        for host in (opened, machine.host):
            problem = wanted.problem(self._matrix, (replace(machine.target, host=host),))
            if decide(ProblemInstance(problem)) is None:
                return explain_conflict(ProblemInstance(problem))
            led = ProblemInstance(problem.with_roots(*(lead_requirement(one) for one in leads)))
            if decide(led) is None:
                return explain_conflict(led)
        assert software is not None, "a machine that has a stack is excluded only where another one was chosen"
        unmet = self._search.checker.unmet(machine, machine.facts, software)
        return Conflict(members=tuple(member_of(ground) for ground in dict.fromkeys(one.ground for one in unmet)))

    def _last_stack(self, machine: Machine) -> _LastStack | None:
        """Find the policy's best stack for the machine's own GPUs: by the spec, else by the relaxed spec.

        None if neither allows a stack.
        """
        request = self._request
        accelerator = own_accelerator(machine, request.base)
        base = replace(request.base, accelerator=accelerator)
        free = changeable_components(machine, accelerator, keep=request.keep, may_change=request.may_change)
        for stack_spec in (base, *_relaxed(base)):
            found = StackChoice(self._matrix, stack_spec, self._search, free={machine.label: free}).newest(machine)
            facts = found.facts[machine.label]
            if found.software is not None and facts is not None:
                target = replace(machine.target, host=changed_host(machine, facts))
                instance = ProblemInstance(stack_spec.problem(self._matrix, (target,)))
                pins = decide(instance)
                assert pins is not None, "a machine that was found to have a stack has one"
                return _LastStack(answer(instance, pins), facts, is_beyond_spec=stack_spec is not base)
        return None

    def _needs(self, machine: Machine, last: _LastStack) -> LastStackNeeds:
        """Return the changes that the last stack needs on the machine, and until when its driver is supported."""
        driver = last.facts.get("driver", "")
        branch = self._matrix.branch_of(driver)
        changes = (
            ComponentChange(name, machine.facts.get(name, ""), last.facts[name])
            for name in _NAMED_CHANGES
            if name in last.facts
        )
        return LastStackNeeds(
            changes=tuple(one for one in changes if one.before != one.after),
            driver=driver,
            support=support_of(branch, self._today) if branch is not None and branch.end_of_life else None,
            is_beyond_spec=last.is_beyond_spec,
        )


def _relaxed(base: StackSpec) -> tuple[StackSpec, ...]:
    """Return the spec with any release of its framework or runtime and without packages; () if it requires neither."""
    named = {name: "*" for name in LEADS if name in base.spec.requires}
    if not named:
        return ()
    return (replace(base, spec=replace(base.spec, requires=named, packages=()), locked={}),)
