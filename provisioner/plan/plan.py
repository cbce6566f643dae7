"""The entry: machines and two aims in, a plan out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import DRIVERS
from provisioner.errors import ProvisionError
from provisioner.grounds.requirement import PlanHas
from provisioner.plan.fallen import Fallen
from provisioner.plan.judge import Judge, Software
from provisioner.plan.machine import changed_host, machines_of, movable
from provisioner.plan.model import HostPlan, Plan, Question
from provisioner.plan.route import Router
from provisioner.plan.steps import Steps
from provisioner.plan.stranger import stranger
from provisioner.plan.target import Search
from provisioner.plan.unknown import find_out, missing
from provisioner.plan.wanted import Choice, Wanted
from provisioner.plan.words import knows_gpus
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.requirement import Key, Labelled, Requirement
from provisioner.resolver.rules.facts import FACTS
from provisioner.resolver.rules.lifecycle import has_ended, policy_day
from provisioner.resolver.search.instance import ProblemInstance, violations
from provisioner.resolver.search.resolve import decide
from provisioner.words.ground import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provisioner.matrix.model import Matrix
    from provisioner.plan.machine import Facts, Machine
    from provisioner.resolver.stack import Stack


class UnlistedReleaseError(ProvisionError):
    """A wanted lock holds a release that nobody wrote a rule about, so that no verdict is possible."""

    code = "unlisted-release"
    exit_code = 3


def make_plan(matrix: Matrix, question: Question) -> Plan:
    """Plan the way of every host to the one stack that is wanted.

    Raises `UnlistedReleaseError` for a wanted lock with a release that the matrix does not list, `UnknownGpuError` for a GPU
    nobody knows, and what the spec of an aim raises when it is joined with the matrix.
    """
    unlisted = question.wanted.unlisted(matrix)
    if unlisted:
        raise UnlistedReleaseError(
            f"the wanted lock has {', '.join(unlisted)}, which the matrix does not list for what the spec asks",
            hints=("name the spec that this lock was solved from, and the matrix with --matrix if it is another",),
        )
    return _Planner(matrix, question).plan()


class _Planner:
    def __init__(self, matrix: Matrix, question: Question) -> None:
        self._matrix = matrix
        self._question = question
        self._unlisted = question.today.unlisted(matrix)
        self._today = policy_day(matrix, question.wanted.spec.policy.exclude_newer)
        self._judge = Judge(matrix)
        self._search = Search(self._judge, today=self._today)
        self._machines = machines_of(question.hosts, question.counts)
        self._free: dict[str, tuple[str, ...]] = {
            one.label: movable(one, question.wanted.accelerator, keep=question.keep, may_change=question.may_change)
            for one in self._machines
        }
        self._running: list[Software] = []
        found = {one.label: stranger(one, question.wanted) for one in self._machines}
        self._strangers = {label: conflict for label, conflict in found.items() if conflict is not None}

    def plan(self) -> Plan:
        """The plan of all machines, in the order in which they are listed."""
        wanted = self._wanted([one for one in self._machines if one.label not in self._strangers])
        fallen = Fallen(self._matrix, self._search, self._question, today=self._today)
        plans, stack = [], None
        for machine in self._machines:
            facts = wanted.facts.get(machine.label)
            if facts is None or wanted.software is None:
                conflict = self._strangers.get(machine.label)
                out = fallen.out(machine, conflict or fallen.conflict(machine, wanted, self._free[machine.label]))
                plans.append(self._entry(machine, HostPlan(hosts=(), count=0, platform="", falls_out=out)))
                continue
            confirmed = confirm(self._judge, wanted.software, machine, facts=facts)
            stack = stack or confirmed
            plans.append(self._entry(machine, self._host_plan(machine, wanted.software, facts, confirmed)))
        return Plan(platform=self._question.wanted.platform, wanted=_shared(stack), hosts=tuple(plans))

    def _wanted(self, machines: Sequence[Machine]) -> Wanted:
        """The stack that is wanted: today's own where that is as good, for what need not move does not move."""
        if not machines:
            return Wanted(software=None, facts={})
        aim, today = self._question.wanted, self._question.today
        choice = Choice(self._matrix, aim, self._search, free=self._free)
        kept = replace(aim, fixed=today.fixed, fixed_by=today.fixed_by)
        if not today.fixed or aim.fixed or today.accelerator != aim.accelerator or kept.unlisted(self._matrix):
            return choice.choose(machines)
        still = Choice(self._matrix, kept, self._search, free=self._free).choose(machines)
        dear = choice.total(machines, still.facts)
        if not any(dear):
            return still
        wanted = choice.choose(machines)
        is_as_good = still.software is not None and dear <= choice.total(machines, wanted.facts)
        return still if is_as_good else wanted

    def _entry(self, machine: Machine, plan: HostPlan) -> HostPlan:
        return replace(plan, hosts=machine.names, count=machine.count, platform=self._question.wanted.platform)

    def _host_plan(self, machine: Machine, new: Software, facts: Facts, stack: Stack) -> HostPlan:
        old = self._old(machine)
        lacking = missing(machine, facts, stack.doubts, has_gpus=knows_gpus(self._matrix, machine))
        router = Router(self._judge, machine, old=old, new=new, free=self._free[machine.label])
        is_open = bool({"gpu"} & set(lacking)) and bool(set(DRIVERS) & set(lacking))
        steps = Steps(self._matrix, self._judge, router, machine, today=self._today)
        legs = router.way(facts, has_software=_differs(old, new))
        found = () if is_open else steps.of(legs, facts, old=old, new=new)
        asked = find_out(machine, lacking)
        notes = self._notes(machine, facts, old, router)
        if is_open:
            notes.insert(0, "neither driver nor GPUs are stated: what is to be done depends on them")
        return HostPlan(hosts=(), count=0, platform="", steps=(*asked, *found), doubts=tuple(stack.doubts), notes=tuple(notes))

    def _old(self, machine: Machine) -> Software:
        """What runs on a machine today: what the lock has, where that runs there at all; else nothing that must go on."""
        aim = self._question.today
        if not aim.fixed or self._unlisted:
            return Software(aim=aim)
        for known in self._running:
            if not self._judge.unmet(machine, machine.facts, known):
                return known
        pins = decide(ProblemInstance(aim.problem(self._matrix, (machine.target,))))
        if pins is None:
            return Software(aim=aim)
        found = Software(aim=aim, pins={key: one for key, one in pins.items() if not key.scope})
        self._running.append(found)
        return found

    def _notes(self, machine: Machine, facts: Mapping[str, str], old: Software, router: Router) -> list[str]:
        notes = []
        if self._unlisted:
            notes.append(
                f"the matrix does not list {', '.join(self._unlisted)} of today's lock, so its steps are not held to it"
            )
        elif self._question.today.fixed and not old.is_known:
            notes.append("the stack of today's lock does not run on this host as it is, so nothing has to go on running")
        if any(name in machine.facts for name in DRIVERS):
            notes += [f"broken today, before any step: {say(ground)}" for ground in router.broken]
        driver = facts.get("driver", "")
        branch = self._matrix.branch_of(driver) if driver == machine.facts.get("driver") else None
        if branch is not None and has_ended(branch.end_of_life, self._today):
            notes.append(f"driver {driver} stays, of branch {branch.branch}, which ended {branch.end_of_life}")
        return notes


def confirm(judge: Judge, software: Software, machine: Machine, *, facts: Mapping[str, str]) -> Stack:
    """The stack at the end of a plan, joined anew with the machine as it will then state itself.

    Nothing of the planner's working is trusted: what it chose passes the check that every answer of the solver passes, and
    what a machine leaves open is solved with all the rest fixed.
    """
    target = replace(machine.target, host=changed_host(machine, facts))
    problem = software.aim.problem(judge.matrix, (target,))
    instance = ProblemInstance(problem)
    chosen = dict(software.pins)
    for key in problem.domains:
        found = judge.fact(instance, key, facts) if key.scope else None
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
    """The part of a stack that all hosts have: what an image or an installer brings."""
    if stack is None:
        return None
    of_hosts = {*FACTS, "gpu"} - ({"glibc"} if stack.runs == "container" else set())
    components = {name: value for name, value in stack.components.items() if name not in of_hosts}
    return replace(stack, components=components, basis="", doubts=())


def _differs(old: Software, new: Software) -> bool:
    """Whether the software changes at all: any choice of the one that is not in the other."""
    if not old.is_known:
        return True
    labels = {key: one.label for key, one in old.pins.items()}
    return any(labels.get(key) != one.label for key, one in new.pins.items() if key != Key("accelerator"))
