"""Hosts that cannot follow: what stands in their way, and the last stack that serves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.components import LEADS
from provisioner.grounds.conflict import Conflict, member_of
from provisioner.plan.machine import CHANGEABLE, changed_host, movable, open_host
from provisioner.plan.model import FallsOut
from provisioner.plan.stranger import own_accelerator
from provisioner.plan.wanted import Choice, lead_requirement, leads_of
from provisioner.plan.words import life_of
from provisioner.resolver.explain.conflict import explain_conflict
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.plan.judge import Aim, Software
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.model import Question
    from provisioner.plan.target import Search
    from provisioner.plan.wanted import Wanted
    from provisioner.resolver.stack import Stack


MOVED = tuple(name for name in CHANGEABLE if name != "driver_module")
"""What the last stack of a machine may move on it; a flavour of modules comes with its driver."""


class Fallen:
    """Explains machines that fall out; alike machines share what was found."""

    def __init__(self, matrix: Matrix, search: Search, question: Question, *, today: date | None) -> None:
        self._matrix = matrix
        self._search = search
        self._question = question
        self._today = today
        self._conflicts: dict[Host, Conflict] = {}

    def out(self, machine: Machine, conflict: Conflict) -> FallsOut:
        """Why a machine cannot follow, and what it can have."""
        last = self._last(machine)
        if last is None:
            return FallsOut(conflict=conflict, text="no stack of this spec serves it, whatever is changed on it")
        stack, facts, is_beyond = last
        text = self._said(machine, facts)
        if is_beyond:
            text = f"beyond what the spec asks for: {text}"
        branch = self._matrix.branch_of(facts.get("driver", ""))
        return FallsOut(conflict=conflict, last=stack, text=text, until=branch.end_of_life if branch is not None else "")

    def conflict(self, machine: Machine, wanted: Wanted, free: Sequence[str]) -> Conflict:
        """The minimal conflict of a machine on which everything may change that is allowed to."""
        opened = open_host(machine, free)
        found = self._conflicts.get(opened)
        if found is None:
            found = self._conflicts[opened] = self._explained(machine, wanted.software, opened)
            return found
        # Facts are the same, but each machine states them at a place of its own.
        members = tuple(
            replace(one, sources=(machine.target.place(one.component),)) if one.kind == "fact" else one for one in found.members
        )
        return replace(found, members=members)

    def _explained(self, machine: Machine, software: Software | None, opened: Host) -> Conflict:
        aim = self._question.wanted
        leads = leads_of(software) if software is not None else ()
        for host in (opened, machine.host):
            problem = aim.problem(self._matrix, (replace(machine.target, host=host),))
            if decide(ProblemInstance(problem)) is None:
                return explain_conflict(ProblemInstance(problem))
            led = ProblemInstance(problem.with_roots(*(lead_requirement(one) for one in leads)))
            if decide(led) is None:
                return explain_conflict(led)
        assert software is not None, "a machine that has a stack falls out only where another one was chosen"
        unmet = self._search.judge.unmet(machine, machine.facts, software)
        return Conflict(members=tuple(member_of(ground) for ground in dict.fromkeys(one.ground for one in unmet)))

    def _last(self, machine: Machine) -> tuple[Stack, Facts, bool] | None:
        """The policy's best stack that this machine can ever have, for its own GPUs, and whether it is beyond the spec."""
        question = self._question
        own = own_accelerator(machine, question.base)
        base = replace(question.base, accelerator=own)
        free = movable(machine, own, keep=question.keep, may_change=question.may_change)
        for aim in (base, *self._beyond(base)):
            wanted = Choice(self._matrix, aim, self._search, free={machine.label: free}).newest(machine)
            facts = wanted.facts[machine.label]
            if wanted.software is not None and facts is not None:
                target = replace(machine.target, host=changed_host(machine, facts))
                instance = ProblemInstance(aim.problem(self._matrix, (target,)))
                pins = decide(instance)
                assert pins is not None, "a machine that was found to have a stack has one"
                return answer(instance, pins), facts, aim is not base
        return None

    def _beyond(self, base: Aim) -> tuple[Aim, ...]:
        """The same spec with any release of what it is built around, and nothing else asked for."""
        named = {name: "*" for name in LEADS if name in base.spec.requires}
        if not named:
            return ()
        spec = replace(base.spec, requires=named, packages=())
        return (replace(base, spec=spec, fixed={}),)

    def _said(self, machine: Machine, facts: Facts) -> str:
        """What the last stack means for the machine: what has to move for it, and until when its driver is supported."""
        driver = facts.get("driver", "")
        branch = self._matrix.branch_of(driver)
        life = f", branch {branch.branch} {life_of(branch, self._today)}" if branch is not None and branch.end_of_life else ""
        moved = [name for name in MOVED if name in facts and facts[name] != machine.facts.get(name)]
        if moved:
            named = (f"{name} {facts[name]} in place of {machine.facts.get(name, 'what is there')}" for name in moved)
            return f"with {' and '.join(named)}{life}"
        return f"with driver {driver} as it is{life}" if driver else "as it is"
