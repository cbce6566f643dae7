"""The one stack a fleet is to have: most machines follow, fewest and cheapest changes, then the policy's preference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import RUNTIMES
from provisioner.components import LEADS
from provisioner.grounds.requirement import OthersGet
from provisioner.plan.judge import Software
from provisioner.plan.machine import PREPARED, open_host, without
from provisioner.plan.target import cost, subsets
from provisioner.resolver.requirement import Key, Labelled, Requirement
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.matrix.model import Matrix
    from provisioner.plan.judge import Aim
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.target import Search
    from provisioner.request import TargetHost
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate

    Leads = tuple[Candidate, ...]
    Labels = tuple[str, ...]
    Chance = tuple[Leads, TargetHost]

FEW = 20
"""Machines for which a bound is worked out one by one; of more, the stacks are all tried sooner than that is done."""


class Wanted(Struct, frozen=True, kw_only=True, eq=False):
    """The software that is wanted, and the facts of each machine that can follow; None for one that cannot."""

    software: Software | None
    facts: Mapping[str, Facts | None]


class Choice:
    """Chooses for one aim. `free` is what may be changed on each machine, by its label."""

    def __init__(self, matrix: Matrix, aim: Aim, search: Search, *, free: Mapping[str, Sequence[str]]) -> None:
        self._matrix = matrix
        self._aim = aim
        self._search = search
        self._free = free

    def choose(self, machines: Sequence[Machine]) -> Wanted:
        """Find the one stack for most machines that moves as little as possible on them.

        Each release and build of what the stack is built around is tried, in the policy's order; where nothing moves but what
        the spec itself asks of machines, nothing better can come.
        """
        still = self._still(machines)
        if still is not None:
            return still
        least = self._least(machines)
        is_sure = len(machines) > FEW
        best: tuple[tuple[int, ...], Wanted] | None = None
        count = sum(one.count for one in machines)
        for served, targets, leads in self._leads(machines):
            if best is not None and count - served > best[0][0]:
                break  # the next ones serve fewer machines still
            software = self._software(targets, leads)
            if software is None:
                continue
            facts = {one.label: self._search.cheapest(one, software, self._free[one.label]) for one in machines}
            total = self.total(machines, facts)
            if best is None or total < best[0]:
                best = total, Wanted(software=software, facts=facts)
            if not is_sure and best[0] > least:
                least, is_sure = max(least, self._bound(machines)), True
            if best[0] <= least:
                break
        return best[1] if best is not None else Wanted(software=None, facts=dict.fromkeys(one.label for one in machines))

    def _still(self, machines: Sequence[Machine]) -> Wanted | None:
        """The policy's best for all machines as they are, None where there is no such stack."""
        pins = decide(ProblemInstance(self._aim.problem(self._matrix, [one.target for one in machines])))
        if pins is None:
            return None
        software = self._shared(pins)
        facts = {one.label: self._search.cheapest(one, software, self._free[one.label]) for one in machines}
        return Wanted(software=software, facts=facts) if not any(self.total(machines, facts)) else None

    def newest(self, machine: Machine) -> Wanted:
        """The policy's best stack that a machine can have at all, and the cheapest changes for it."""
        software = self._software((self._opened(machine),), ())
        facts = self._search.cheapest(machine, software, self._free[machine.label]) if software is not None else None
        return Wanted(software=software if facts is not None else None, facts={machine.label: facts})

    def _least(self, machines: Sequence[Machine]) -> tuple[int, ...]:
        """What no stack can go below: what the spec asks of the machines, whatever runs on them."""
        nothing = Software(aim=self._aim)
        found = {one.label: self._search.cheapest(one, nothing, self._free[one.label]) for one in machines}
        return self.total(machines, found)

    def _bound(self, machines: Sequence[Machine]) -> tuple[int, ...]:
        """What no stack can go below: the cheapest changes with which each machine, for itself, has any stack at all."""
        found: dict[str, Facts | None] = {}
        for machine in machines:
            for moving in subsets(self._free[machine.label]):
                host = without(open_host(machine, moving), PREPARED)
                search = CompleteSearch(ProblemInstance(self._aim.problem(self._matrix, (replace(machine.target, host=host),))))
                try:
                    is_possible = search.find() is not None
                finally:
                    search.close()
                if is_possible:
                    found[machine.label] = {**machine.facts, **dict.fromkeys(moving, "")}
                    break
            else:
                found[machine.label] = None
        return self.total(machines, found)

    def total(self, machines: Sequence[Machine], facts: Mapping[str, Facts | None]) -> tuple[int, ...]:
        """What the plan of all machines costs, the most expensive kind of change first."""
        order = max((self._free[one.label] for one in machines), key=len, default=())
        rows = [cost(one, facts[one.label], order) for one in machines]
        return tuple(sum(row[index] for row in rows) for index in range(len(order) + 1))

    def _leads(self, machines: Sequence[Machine]) -> Iterator[tuple[int, tuple[TargetHost, ...], Leads]]:
        """What the stack may be built around, how many machines it could serve, and these: most machines first."""
        lead = next((name for name in LEADS if self._is_required(name)), None)
        if lead is None:
            yield sum(one.count for one in machines), tuple(self._opened(one) for one in machines), ()
            return
        allowed = {one.label: found for one, found in self._allowed(machines, Key(lead))}
        rank = self._rank(machines[0])
        rows = []
        for labels in dict.fromkeys(labels for found in allowed.values() for labels in found):
            followers = tuple(one for one in machines if labels in allowed[one.label])
            leads = allowed[followers[0].label][labels][0]
            targets = tuple(allowed[one.label][labels][1] for one in followers)
            place = tuple(rank.get((one.key, one.label), len(rank)) for one in leads)
            rows.append((-sum(one.count for one in followers), place, targets, leads))
        for weight, _, targets, leads in sorted(rows, key=lambda row: row[:2]):
            yield -weight, targets, leads

    def _allowed(self, machines: Sequence[Machine], lead: Key) -> Iterator[tuple[Machine, dict[Labels, Chance]]]:
        """What each machine could have, with the target that shows it: the machine with all open, or as it is.

        What runs as it is although nobody documents it is not among what may be installed.
        """
        for members in self._groups(machines):
            opened = self._opened(members[0])
            found = self._possible(opened, lead)
            for machine in members:
                is_open = opened.host == machine.host or self._search.judge.is_documented(machine, self._aim)
                as_it_is = {} if is_open else self._possible(machine.target, lead)
                yield machine, {**as_it_is, **found}

    def _is_required(self, name: str) -> bool:
        spec = self._aim.spec
        return name in spec.requires or name in self._aim.fixed or any(_is_about(text, name) for text in spec.packages)

    def _rank(self, machine: Machine) -> dict[tuple[Key, str], int]:
        """The policy's order of everything a stack may be built around."""
        domains = self._aim.problem(self._matrix, (machine.target,)).domains
        keys = (key for key in domains if not key.scope and key.component in LEADS)
        return {(key, one.label): index for key in keys for index, one in enumerate(domains[key])}

    def _groups(self, machines: Sequence[Machine]) -> Iterator[list[Machine]]:
        """Machines that are alike once everything that may change is left open."""
        found: dict[object, list[Machine]] = {}
        for machine in machines:
            found.setdefault(open_host(machine, self._free[machine.label]), []).append(machine)
        yield from found.values()

    def _possible(self, target: TargetHost, lead: Key) -> dict[Labels, Chance]:
        """The candidates of a key, each with every CUDA or ROCm, with which a target has any stack."""
        found: dict[Labels, Chance] = {}
        problem = self._aim.problem(self._matrix, (target,))
        instance = ProblemInstance(problem)
        asked = [one for one in instance.roots if one.key == lead]
        search = CompleteSearch(instance)
        try:
            for candidate in problem.domains[lead]:
                if all(one.allows(candidate) for one in asked):
                    for leads in _runtimes(search, problem, candidate):
                        found[tuple(one.label for one in leads)] = leads, target
        finally:
            search.close()
        return found

    def _opened(self, machine: Machine) -> TargetHost:
        """The machine with everything left open that may be changed."""
        return replace(machine.target, host=open_host(machine, self._free[machine.label]))

    def _software(self, targets: Sequence[TargetHost], leads: Leads) -> Software | None:
        """The policy's best stack for these targets together, built around `leads`; for fewer of them where there is none."""
        alike = {target.host: target for target in reversed(targets)}
        problem = self._aim.problem(self._matrix, [target for target in targets if alike[target.host] is target])
        pins = decide(ProblemInstance(problem.with_roots(*(lead_requirement(one) for one in leads))))
        if pins is not None:
            return self._shared(pins)
        return self._software(targets[:-1], leads) if len(targets) > 1 else None

    def _shared(self, pins: Mapping[Key, Candidate]) -> Software:
        return Software(aim=self._aim, pins={key: one for key, one in pins.items() if not key.scope})


def _runtimes(search: CompleteSearch, problem: Problem, lead: Candidate) -> Iterator[Leads]:
    """A lead with each CUDA or ROCm that a stack around it may have; alone where it has none, or is one itself."""
    name = lead.key.component
    keys = (Key(f"cuda:{name}"), *(Key(runtime) for runtime in RUNTIMES))
    runtime = next((key for key in keys if key in problem.domains and name not in RUNTIMES), None)
    pins = search.find(given=(lead,))
    left = list(problem.domains[runtime]) if runtime is not None else []
    while pins is not None:
        chosen = pins.get(runtime) if runtime is not None else None
        if chosen is None:
            yield (lead,)
            return
        yield lead, chosen
        left = [one for one in left if one.label != chosen.label]
        pins = search.find(given=(lead,), among=left) if left else None


def lead_requirement(lead: Candidate) -> Requirement:
    """That a stack is built around one release and build, as the others of the fleet have it."""
    ground = OthersGet(name=lead.key.component, label=lead.label)
    return Requirement(lead.key, Labelled(frozenset({lead.label})), ground)


def leads_of(software: Software) -> Leads:
    """What a software is built around: its framework and its runtime."""
    return tuple(software.pins[Key(name)] for name in LEADS if Key(name) in software.pins)


def _is_about(text: str, component: str) -> bool:
    from packaging.requirements import Requirement as Pep508
    from packaging.utils import canonicalize_name

    from provisioner.names import COMPONENT_OF_DISTRIBUTION

    return COMPONENT_OF_DISTRIBUTION.get(canonicalize_name(Pep508(text).name)) == component
