"""Choose the one stack of a fleet: for most machines, then with the fewest and cheapest changes, then by the policy.

The leads of a stack are the release of its framework (else of its runtime) and the CUDA or ROCm under it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from provisioner.accelerators import RUNTIMES
from provisioner.components import LEADS
from provisioner.grounds.requirement import OthersGet
from provisioner.plan.changes import cost, subsets
from provisioner.plan.machine import REMEDIABLE, open_host, without_facts
from provisioner.plan.state import Software
from provisioner.resolver.requirement import Key, Labelled, Requirement
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.plan.changes import ChangeSearch
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.state import StackSpec
    from provisioner.request import TargetHost
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate

    Leads = tuple[Candidate, ...]
    Labels = tuple[str, ...]

FEW_MACHINES = 20
"""The most machines for which `_bound` is computed; for more machines, trying every stack is faster."""


class _Option(NamedTuple):
    """Leads with which a stack exists for the host `target`."""

    leads: Leads
    target: TargetHost


class _Attempt(NamedTuple):
    """Leads to try, the number of machines that can have these (`served`), and the hosts of those machines.

    `order` is a sort key: the attempt with the smallest one is made first.
    """

    order: tuple[int, tuple[int, ...]]
    served: int
    targets: tuple[TargetHost, ...]
    leads: Leads


class ChosenStack(Struct, frozen=True, kw_only=True, eq=False):
    """The chosen software, and for each machine its facts after the changes; None for an excluded machine."""

    software: Software | None
    facts: Mapping[str, Facts | None]


class StackChoice:
    """Chooses stacks for one spec; `free` has the components that may change on each machine, by its label."""

    def __init__(
        self, matrix: Matrix, stack_spec: StackSpec, search: ChangeSearch, *, free: Mapping[str, Sequence[str]]
    ) -> None:
        self._matrix = matrix
        self._stack_spec = stack_spec
        self._search = search
        self._free = free

    def choose(self, machines: Sequence[Machine]) -> ChosenStack:
        """Find the one stack that runs on most machines, and of such stacks the one with the cheapest changes of the machines.

        The leads are tried in the policy's order. The search ends when only the components change that the spec itself requires
        to change, because no stack costs less.
        """
        unchanged = self._without_changes(machines)
        if unchanged is not None:
            return unchanged
        least = self._least(machines)
        is_sure = len(machines) > FEW_MACHINES
        best: tuple[tuple[int, ...], ChosenStack] | None = None
        count = sum(one.count for one in machines)
        for attempt in self._attempts(machines):
            if best is not None and count - attempt.served > best[0][0]:
                break  # no later attempt serves more machines
            software = self._software(attempt.targets, attempt.leads)
            if software is None:
                continue
            facts = {one.label: self._search.cheapest(one, software, self._free[one.label]) for one in machines}
            total = self.total(machines, facts)
            if best is None or total < best[0]:
                best = total, ChosenStack(software=software, facts=facts)
            if not is_sure and best[0] > least:
                least, is_sure = max(least, self._bound(machines)), True
            if best[0] <= least:
                break
        return best[1] if best is not None else ChosenStack(software=None, facts=dict.fromkeys(one.label for one in machines))

    def _without_changes(self, machines: Sequence[Machine]) -> ChosenStack | None:
        """Return the policy's best stack for all machines if it needs no changes of them; None if there is no such stack."""
        pins = decide(ProblemInstance(self._stack_spec.problem(self._matrix, [one.target for one in machines])))
        if pins is None:
            return None
        software = self._shared(pins)
        facts = {one.label: self._search.cheapest(one, software, self._free[one.label]) for one in machines}
        return ChosenStack(software=software, facts=facts) if not any(self.total(machines, facts)) else None

    def newest(self, machine: Machine) -> ChosenStack:
        """Return the policy's best stack that a machine can have with any changes, and the cheapest changes for it."""
        software = self._software((self._opened(machine),), ())
        facts = self._search.cheapest(machine, software, self._free[machine.label]) if software is not None else None
        return ChosenStack(software=software if facts is not None else None, facts={machine.label: facts})

    def _least(self, machines: Sequence[Machine]) -> tuple[int, ...]:
        """Return a lower bound of the cost: the changes that the spec's own requirements on hosts need."""
        nothing = Software(stack_spec=self._stack_spec)
        found = {one.label: self._search.cheapest(one, nothing, self._free[one.label]) for one in machines}
        return self.total(machines, found)

    def _bound(self, machines: Sequence[Machine]) -> tuple[int, ...]:
        """Return a lower bound of the cost: the cheapest changes with which each machine, by itself, has any stack."""
        found: dict[str, Facts | None] = {}
        for machine in machines:
            for moving in subsets(self._free[machine.label]):
                host = without_facts(open_host(machine, moving), REMEDIABLE)
                search = CompleteSearch(
                    ProblemInstance(self._stack_spec.problem(self._matrix, (replace(machine.target, host=host),)))
                )
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
        """Return the cost of a plan: the number of excluded machines, then of changes per component, most expensive first.

        `facts` has the facts of each machine at the end of the plan, None for an excluded machine.
        """
        order = max((self._free[one.label] for one in machines), key=len, default=())
        rows = [cost(one, facts[one.label], order) for one in machines]
        return tuple(sum(row[index] for row in rows) for index in range(len(order) + 1))

    def _attempts(self, machines: Sequence[Machine]) -> list[_Attempt]:
        """Return the leads to try: those for most machines first, then in the policy's order."""
        lead = next((name for name in LEADS if self._is_required(name)), None)
        if lead is None:
            served = sum(one.count for one in machines)
            return [_Attempt((-served, ()), served, tuple(self._opened(one) for one in machines), ())]
        allowed = {one.label: found for one, found in self._allowed(machines, Key(lead))}
        rank = self._rank(machines[0])
        attempts = []
        for labels in dict.fromkeys(labels for found in allowed.values() for labels in found):
            options = [(one.count, allowed[one.label][labels]) for one in machines if labels in allowed[one.label]]
            served, leads = sum(count for count, _ in options), options[0][1].leads
            preference = tuple(rank.get((one.key, one.label), len(rank)) for one in leads)
            targets = tuple(option.target for _, option in options)
            attempts.append(_Attempt((-served, preference), served, targets, leads))
        return sorted(attempts, key=lambda attempt: attempt.order)

    def _allowed(self, machines: Sequence[Machine], lead: Key) -> Iterator[tuple[Machine, dict[Labels, _Option]]]:
        """Yield each machine with the leads that it can have if all its changeable components may have any value.

        A machine whose loaded driver the matrix does not document for its kernel also has the leads of the machine as it is.
        """
        for members in self._groups(machines):
            opened = self._opened(members[0])
            found = self._possible(opened, lead)
            for machine in members:
                is_open = opened.host == machine.host or self._search.checker.is_documented(machine, self._stack_spec)
                as_it_is = {} if is_open else self._possible(machine.target, lead)
                yield machine, {**as_it_is, **found}

    def _is_required(self, name: str) -> bool:
        spec = self._stack_spec.spec
        return (
            name in spec.requires
            or name in self._stack_spec.locked
            or any(_is_distribution_of(text, name) for text in spec.packages)
        )

    def _rank(self, machine: Machine) -> dict[tuple[Key, str], int]:
        """Return the rank of each lead, by its key and label, in the policy's order: 0 for the most preferred of a key."""
        domains = self._stack_spec.problem(self._matrix, (machine.target,)).domains
        keys = (key for key in domains if not key.scope and key.component in LEADS)
        return {(key, one.label): index for key in keys for index, one in enumerate(domains[key])}

    def _groups(self, machines: Sequence[Machine]) -> Iterator[list[Machine]]:
        """Yield groups of machines that are equal without the facts of changeable components."""
        found: dict[Host, list[Machine]] = {}
        for machine in machines:
            found.setdefault(open_host(machine, self._free[machine.label]), []).append(machine)
        yield from found.values()

    def _possible(self, target: TargetHost, lead: Key) -> dict[Labels, _Option]:
        """Return the leads with which the target has a stack: candidates of the key `lead`, each with every CUDA or ROCm."""
        found: dict[Labels, _Option] = {}
        problem = self._stack_spec.problem(self._matrix, (target,))
        instance = ProblemInstance(problem)
        roots = [one for one in instance.roots if one.key == lead]
        search = CompleteSearch(instance)
        try:
            for candidate in problem.domains[lead]:
                if all(one.allows(candidate) for one in roots):
                    for leads in _runtimes(search, problem, candidate):
                        found[tuple(one.label for one in leads)] = _Option(leads, target)
        finally:
            search.close()
        return found

    def _opened(self, machine: Machine) -> TargetHost:
        """Return the target of a machine without the facts of changeable components."""
        return replace(machine.target, host=open_host(machine, self._free[machine.label]))

    def _software(self, targets: Sequence[TargetHost], leads: Leads) -> Software | None:
        """Return the policy's best stack with these leads for all targets, else for as many of the first targets as possible.

        Targets that no stack serves are passed over. None if no stack serves any target.
        """
        alike = {target.host: target for target in reversed(targets)}
        different = [target for target in targets if alike[target.host] is target]
        for count in range(len(different), 0, -1):
            pins = self._pins(different[:count], leads)
            if pins is not None:
                return self._shared(pins)
        served = [target for target in different[1:] if self._pins((target,), leads) is not None]
        return self._software(served, leads) if served else None

    def _pins(self, targets: Sequence[TargetHost], leads: Leads) -> Mapping[Key, Candidate] | None:
        problem = self._stack_spec.problem(self._matrix, targets)
        return decide(ProblemInstance(problem.with_roots(*(lead_requirement(one) for one in leads))))

    def _shared(self, pins: Mapping[Key, Candidate]) -> Software:
        return Software(stack_spec=self._stack_spec, pins={key: one for key, one in pins.items() if not key.scope})


def _runtimes(search: CompleteSearch, problem: Problem, lead: Candidate) -> Iterator[Leads]:
    """Yield leads: the candidate `lead` with each CUDA or ROCm that a stack can have beside it.

    `lead` is yielded alone if it needs no runtime or is one itself, and nothing is yielded if it has no stack.
    """
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
        pins = search.find(given=(lead,), among=(left,)) if left else None


def lead_requirement(lead: Candidate) -> Requirement:
    """Return the requirement that a machine has the same lead as the other machines of the fleet."""
    ground = OthersGet(name=lead.key.component, label=lead.label)
    return Requirement(lead.key, Labelled(frozenset({lead.label})), ground)


def leads_of(software: Software) -> Leads:
    """Return the leads of software: its framework and its CUDA or ROCm, as far as it has these."""
    return tuple(software.pins[Key(name)] for name in LEADS if Key(name) in software.pins)


def _is_distribution_of(text: str, component: str) -> bool:
    """Return whether a PEP 508 requirement is on the distribution of a component."""
    from packaging.requirements import Requirement as Pep508
    from packaging.utils import canonicalize_name

    from provisioner.names import COMPONENT_OF_DISTRIBUTION

    return COMPONENT_OF_DISTRIBUTION.get(canonicalize_name(Pep508(text).name)) == component
