"""Plan how hosts get from today's stack to a wanted one: choose the stack, order the changes, explain excluded hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import DRIVERS
from provisioner.errors import ProvisionError
from provisioner.grounds.requirement import PlanHas
from provisioner.grounds.step import BrokenToday, DependsOnGpus, KeepsEndedDriver, LockDoesNotRun, UnlistedLock
from provisioner.plan.changes import ChangeSearch
from provisioner.plan.exclusion import ExclusionExplainer, accelerator_conflict
from provisioner.plan.machine import changeable_components, changed_host, machines_of
from provisioner.plan.model import HostPlan, Plan, PlanRequest
from provisioner.plan.stack_choice import ChosenStack, StackChoice
from provisioner.plan.state import Software, StateChecker
from provisioner.plan.steps import StepBuilder, find_out_steps, missing_facts
from provisioner.plan.upgrade_path import PathFinder
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.requirement import Key, Labelled, Requirement
from provisioner.resolver.rules.facts import FACTS
from provisioner.resolver.rules.host_packages import knows_gpus
from provisioner.resolver.rules.lifecycle import has_ended, policy_day
from provisioner.resolver.search.instance import ProblemInstance, violations
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.grounds.step import PlanNote
    from provisioner.matrix.model import Matrix
    from provisioner.plan.machine import Facts, Machine
    from provisioner.resolver.stack import Stack


class UnlistedReleaseError(ProvisionError):
    """Raised when a wanted lock holds a release that the matrix does not list, so that no verdict is possible."""

    code = "unlisted-release"
    exit_code = 3


def make_plan(matrix: Matrix, request: PlanRequest) -> Plan:
    """Return the changes that every host needs to run one wanted stack, that of a spec or of a lock.

    Raises `UnlistedReleaseError` or `UnknownGpuError` for a release of the lock, or a GPU, that the matrix does not list, and
    the errors of `resolver.problem.join` for a spec that contradicts the matrix.
    """
    unlisted = request.wanted.unlisted(matrix)
    if unlisted:
        raise UnlistedReleaseError(
            f"the wanted lock has {', '.join(unlisted)}, which the matrix does not list for what the spec asks",
            hints=("name the spec that this lock was solved from, and the matrix with --matrix if it is another",),
        )
    return _Planner(matrix, request).plan()


class _Planner:
    def __init__(self, matrix: Matrix, request: PlanRequest) -> None:
        self._matrix = matrix
        self._request = request
        self._unlisted = request.current.unlisted(matrix)
        self._today = policy_day(matrix, request.wanted.spec.policy.exclude_newer)
        self._checker = StateChecker(matrix)
        self._search = ChangeSearch(self._checker, today=self._today)
        self._machines = machines_of(request.hosts, request.counts)
        self._free: dict[str, tuple[str, ...]] = {
            one.label: changeable_components(one, request.wanted.accelerator, keep=request.keep, may_change=request.may_change)
            for one in self._machines
        }
        self._running: list[Software] = []
        found = {one.label: accelerator_conflict(one, request.wanted) for one in self._machines}
        self._other_accelerator = {label: conflict for label, conflict in found.items() if conflict is not None}

    def plan(self) -> Plan:
        """Return the plan of all machines, in the order in which they are listed."""
        chosen = self._choose([one for one in self._machines if one.label not in self._other_accelerator])
        explainer = ExclusionExplainer(self._matrix, self._search, self._request, today=self._today)
        platform = self._request.wanted.platform
        plans, stack = [], None
        for machine in self._machines:
            facts = chosen.facts.get(machine.label)
            if facts is None or chosen.software is None:
                conflict = self._other_accelerator.get(machine.label)
                conflict = conflict or explainer.conflict(machine, chosen, self._free[machine.label])
                exclusion = explainer.explain(machine, conflict)
                own = HostPlan(
                    hosts=machine.names, count=machine.count, platform=platform, profile=machine.host, exclusion=exclusion
                )
                plans.append(own)
            else:
                confirmed = confirm(self._checker, chosen.software, machine, facts=facts)
                stack = stack or confirmed
                plans.append(self._host_plan(machine, chosen.software, facts, confirmed))
        return Plan(platform=platform, wanted=_shared(stack), hosts=tuple(plans))

    def _choose(self, machines: Sequence[Machine]) -> ChosenStack:
        """Return the one stack for all machines: that of today's lock, unless another one needs cheaper changes."""
        if not machines:
            return ChosenStack(software=None, facts={})
        wanted, current = self._request.wanted, self._request.current
        choice = StackChoice(self._matrix, wanted, self._search, free=self._free)
        unchanged = replace(wanted, locked=current.locked, locked_in=current.locked_in)
        if not current.locked or wanted.locked or current.accelerator != wanted.accelerator or unchanged.unlisted(self._matrix):
            return choice.choose(machines)
        with_current = StackChoice(self._matrix, unchanged, self._search, free=self._free).choose(machines)
        cost = choice.total(machines, with_current.facts)
        if not any(cost):
            return with_current
        found = choice.choose(machines)
        is_as_cheap = with_current.software is not None and cost <= choice.total(machines, found.facts)
        return with_current if is_as_cheap else found

    def _host_plan(self, machine: Machine, new: Software, facts: Facts, stack: Stack) -> HostPlan:
        old = self._running_software(machine)
        lacking = missing_facts(machine, facts, stack.doubts, has_gpus=knows_gpus(self._matrix, machine.host))
        finder = PathFinder(self._checker, machine, old=old, new=new, free=self._free[machine.label])
        builder = StepBuilder(self._matrix, self._checker, finder, machine, today=self._today)
        path = finder.find_path(facts, has_software=_differs(old, new))
        is_open = "gpu" in lacking and bool(set(DRIVERS) & set(lacking))
        notes: list[PlanNote] = list(self._notes(machine, facts, old, finder))
        if is_open:
            notes.insert(0, DependsOnGpus())
        steps = () if is_open else builder.build(path, facts, old=old, new=new)
        return HostPlan(
            hosts=machine.names,
            count=machine.count,
            platform=self._request.wanted.platform,
            profile=machine.host,
            steps=(*find_out_steps(machine, lacking), *steps),
            doubts=tuple(stack.doubts),
            assumes=tuple(stack.assumes),
            notes=tuple(notes),
        )

    def _running_software(self, machine: Machine) -> Software:
        """Return the software of today's lock that runs on the machine as it is; software without pins if there is none."""
        current = self._request.current
        if not current.locked or self._unlisted:
            return Software(stack_spec=current)
        for known in self._running:
            if not self._checker.unmet(machine, machine.facts, known):
                return known
        pins = decide(ProblemInstance(current.problem(self._matrix, (machine.target,))))
        if pins is None:
            return Software(stack_spec=current)
        found = Software(stack_spec=current, pins={key: one for key, one in pins.items() if not key.scope})
        self._running.append(found)
        return found

    def _notes(self, machine: Machine, facts: Mapping[str, str], old: Software, finder: PathFinder) -> Iterator[PlanNote]:
        if self._unlisted:
            yield UnlistedLock(self._unlisted)
        elif self._request.current.locked and not old.is_known:
            yield LockDoesNotRun()
        if any(name in machine.facts for name in DRIVERS):
            yield from map(BrokenToday, finder.broken)
        driver = facts.get("driver", "")
        branch = self._matrix.branch_of(driver) if driver == machine.facts.get("driver") else None
        if branch is not None and has_ended(branch.end_of_life, self._today):
            yield KeepsEndedDriver(driver=driver, branch=branch.branch, end=branch.end_of_life)


def confirm(checker: StateChecker, software: Software, machine: Machine, *, facts: Mapping[str, str]) -> Stack:
    """Return the stack of a machine at the end of its plan, when it has `facts`.

    The choices of the planner are checked as every answer of the resolver is. If they fail, the machine is solved again with
    the software fixed, and the resolver chooses the components that the machine's profile does not state.
    """
    target = replace(machine.target, host=changed_host(machine, facts))
    problem = software.stack_spec.problem(checker.matrix, (target,))
    instance = ProblemInstance(problem)
    chosen = dict(software.pins)
    for key in problem.domains:
        found = checker.host_candidate(instance, key, facts) if key.scope else None
        if found is not None:
            chosen[key] = found
    if not violations(instance, chosen):
        return answer(instance, chosen)
    labels = ((key, one.label) for key, one in software.pins.items() if key in problem.domains)
    fixed = (Requirement(key, Labelled(frozenset({label})), PlanHas()) for key, label in labels)
    instance = ProblemInstance(problem.with_roots(*fixed))
    pins = decide(instance)
    assert pins is not None, "the solver refuses the end of a plan"
    return answer(instance, pins)


def _shared(stack: Stack | None) -> Stack | None:
    """Return a stack without the components of a single host, which leaves what an image or an installer provides."""
    if stack is None:
        return None
    of_hosts = {*FACTS, "gpu"} - ({"glibc"} if stack.runs == "container" else set())
    components = {name: value for name, value in stack.components.items() if name not in of_hosts}
    return replace(stack, components=components, basis="", doubts=())


def _differs(old: Software, new: Software) -> bool:
    """Return whether the new software has any candidate that the old software lacks; True if the old one is unknown."""
    if not old.is_known:
        return True
    labels = {key: one.label for key, one in old.pins.items()}
    return any(labels.get(key) != one.label for key, one in new.pins.items() if key != Key("accelerator"))
