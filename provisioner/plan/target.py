"""What a machine has to become for a stack: the cheapest set of changes, and the best values for them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from provisioner.accelerators import GPU_DRIVERS
from provisioner.components import ABSENT
from provisioner.plan.machine import BROUGHT, FOLLOWERS, PREPARED, followed
from provisioner.resolver.requirement import Key, OneOf
from provisioner.resolver.rules.lifecycle import has_ended
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date

    from provisioner.matrix.model import DriverBranch
    from provisioner.plan.judge import Judge, Software
    from provisioner.plan.machine import Facts, Machine
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

FLAVOURS = ("open", "proprietary")
"""NVIDIA's own order: the open modules wherever the GPU has a choice (Driver Installation Guide, Kernel Modules)."""

SUPPORTED = ("Long Term Support Branch", "Production Branch")


class Search:
    """Looks for the cheapest facts of machines; `free` is what may be changed on each, the most expensive first."""

    def __init__(self, judge: Judge, *, today: date | None) -> None:
        self.judge = judge
        self._branches = {branch.branch: branch for branch in judge.matrix.branches}
        self._today = today
        self._found: dict[tuple[str, int, tuple[object, ...]], Facts | None] = {}

    def cheapest(self, machine: Machine, software: Software, free: Sequence[str]) -> Facts | None:
        """The facts after the cheapest changes that let the software run, today's where it runs already, None where none do.

        Sets of changes are tried in the lexicographic order of their cost: all that leave the most expensive thing alone come
        before all that do not. Softwares that ask the same of the machine share the answer.
        """
        question = (machine.label, id(software.aim), self._asked(machine, software))
        if question not in self._found:
            self._found[question] = self._cheapest(machine, software, free)
        return self._found[question]

    def _asked(self, machine: Machine, software: Software) -> tuple[object, ...]:
        """What a software asks of a machine, whatever the releases in it are called."""
        instance = self.judge.instance(machine, machine.facts, software.aim)
        asked = (one for candidate in software.pins.values() for one in instance.requirements(candidate) if one.key.scope)
        return tuple(sorted({(one.key.name, type(one.test).__name__, str(one.test)) for one in asked}))

    def _cheapest(self, machine: Machine, software: Software, free: Sequence[str]) -> Facts | None:
        still, blamed = self.judge.prepared(machine, dict(machine.facts), software)
        if still is not None:
            return still
        for moving in subsets(free):
            # What is unmet between things that all stay is unmet for good.
            if _movers(blamed) & set(moving):
                found, _ = self._walk(machine, software, self._choices(machine, software, moving), ())
                if found is not None:
                    return found
        return None

    def _choices(self, machine: Machine, software: Software, moving: tuple[str, ...]) -> list[tuple[str, list[Candidate]]]:
        """For each thing that is to move what it may become, best first: what the spec and the software allow."""
        instance = self._instance(machine, software, moving)
        asked: dict[Key, list[Requirement]] = {}
        sources = (one for candidate in software.pins.values() for one in instance.requirements(candidate))
        for one in (*instance.roots, *sources):
            if one.ground.kind != "fact":
                asked.setdefault(one.key, []).append(one)
        found = []
        for name in moving:
            key = Key(name, machine.label)
            offered = [one for one in instance.candidates(key) if all(test.allows(one) for test in asked.get(key, ()))]
            fitting = [one for one in offered if self._fits(machine, instance, one, moving)]
            # What is in the matrix under today's number, or is known to be absent, is no change.
            same = {machine.facts.get(name), ABSENT}
            found.append((name, [one for one in self.ranked(machine, name, fitting) if one.label not in same]))
        return found

    def _instance(self, machine: Machine, software: Software, moving: Sequence[str]) -> ProblemInstance:
        """The world in which these things move; which value they take makes no difference to it."""
        moved = {name: "" for name in moving if name != "container_toolkit"}
        return self.judge.instance(machine, {**machine.facts, **moved}, software.aim)

    def _walk(
        self,
        machine: Machine,
        software: Software,
        choices: Sequence[tuple[str, list[Candidate]]],
        chosen: tuple[Candidate, ...],
    ) -> tuple[Facts | None, frozenset[str]]:
        """Try every combination, best first, and jump over those that differ only in what nothing unmet is about."""
        if not choices:
            return self._judged(machine, software, chosen)
        name, offered = choices[0]
        blamed: frozenset[str] = frozenset()
        for candidate in offered:
            found, why = self._walk(machine, software, choices[1:], (*chosen, candidate))
            if found is not None or name not in _movers(why):
                return found, why
            blamed |= why
        return None, blamed

    def _judged(
        self, machine: Machine, software: Software, chosen: tuple[Candidate, ...]
    ) -> tuple[Facts | None, frozenset[str]]:
        moving = [one.key.component for one in chosen]
        instance = self._instance(machine, software, moving)
        clash = _clash(instance, chosen)
        if clash:
            return None, clash
        facts = followed({**_released(machine, instance, chosen), **{one.key.component: one.label for one in chosen}}, machine)
        flavours = FLAVOURS if "driver" in moving else ()
        # Today's flavour of modules where that will do, else the other; the open one where none is stated.
        states = [
            {**facts, "driver_module": one} for one in sorted(flavours, key=lambda one: one != facts.get("driver_module"))
        ]
        blamed: frozenset[str] = frozenset()
        for state in states or [facts]:
            found, why = self.judge.prepared(machine, state, software)
            if found is not None:
                return found, frozenset()
            blamed |= why
        return None, blamed

    def _fits(self, machine: Machine, instance: ProblemInstance, candidate: Candidate, moving: tuple[str, ...]) -> bool:
        """Whether a candidate can stand beside what stays on the machine."""
        loose = {*moving, "driver_module", *PREPARED, *(("glibc", "kernel") if "os" in moving else ())}
        for one in instance.requirements(candidate):
            if one.key.scope == machine.label and one.key.component not in loose:
                pinned = self.judge.fact(instance, one.key, machine.facts)
                if pinned is not None and not instance.accepts(one, pinned):
                    return False
        return True

    def ranked(self, machine: Machine, component: str, offered: Sequence[Candidate]) -> list[Candidate]:
        """Candidates in the order they are tried: near to today's where moving is dear, supported and new elsewhere."""
        before = machine.facts.get(component)
        if component == "driver":
            return sorted(offered, key=lambda one: self._driver_rank(one.version, before))
        if component in {"kernel", "os", "macos"} and before is not None:
            return _nearest(component, before, offered)
        if component in GPU_DRIVERS and before is not None:
            major = Version.parse(before).release[0]
            return sorted(offered, key=lambda one: one.version.release[0] != major)
        return list(offered)

    def _driver_rank(self, version: Version, before: str | None) -> tuple[bool, int, tuple[int, ...]]:
        """The branch of today first, then branches that are supported for long, then others, then those that ended."""
        branch = str(version.release[0])
        is_other = before is None or branch != before.partition(".")[0]
        newest_first = tuple(-part for part in (*version.release, 0, 0, 0)[:4])
        return is_other, self._support(self._branches.get(branch)), newest_first

    def _support(self, branch: DriverBranch | None) -> int:
        if branch is None:
            return 2
        if has_ended(branch.end_of_life, self._today):
            return 3
        return SUPPORTED.index(branch.designation) if branch.designation in SUPPORTED else 2


def subsets(free: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Every set of changes, cheapest first: what is dear is left alone as long as anything cheaper helps.

    Another driver is installed with a flavour of its own, so that the flavour alone is a change only of the driver that stays.
    """
    for chosen in product((False, True), repeat=len(free)):
        moving = tuple(name for name, is_moving in zip(free, chosen, strict=True) if is_moving)
        if "driver" in moving and "driver_module" in moving:
            continue
        yield moving


def _released(machine: Machine, instance: ProblemInstance, chosen: Sequence[Candidate]) -> Facts:
    """Today's facts, less what another release of the operating system replaces: its C library is known, its kernel is not."""
    release = next((one for one in chosen if one.key.component == "os"), None)
    if release is None:
        return dict(machine.facts)
    found = {name: value for name, value in machine.facts.items() if name not in BROUGHT}
    for one in instance.requirements(release):
        if one.key == Key("glibc", machine.label) and isinstance(one.test, OneOf):
            found["glibc"] = str(one.test.versions[0])
    return found


def _clash(instance: ProblemInstance, chosen: Sequence[Candidate]) -> frozenset[str]:
    """The components of which one does not allow the other: a quick look before the whole state is judged."""
    by_key = {one.key: one for one in chosen}
    for candidate in chosen:
        for one in instance.requirements(candidate):
            if one.key in by_key and not instance.accepts(one, by_key[one.key]):
                return frozenset((candidate.key.component, one.key.component))
    return frozenset()


def _movers(blamed: frozenset[str]) -> set[str]:
    """What has to move for components to change: some of them follow others."""
    found = set(blamed)
    if found & {"driver_module", *FOLLOWERS}:
        found |= {"driver", "driver_module"}
    if found & set(PREPARED):
        found |= {"kernel", "driver"}
    return found | ({"os"} if "glibc" in found else set())


def _nearest(component: str, before: str, offered: Sequence[Candidate]) -> list[Candidate]:
    """Nearest to today's first, the newer of two that are as near; of operating systems only releases of the same one."""
    if component == "os":
        name = before.partition(" ")[0]
        same = [one for one in offered if one.label.partition(" ")[0] == name and " " in one.label]
        return sorted(same, key=lambda one: _distance(one.label.partition(" ")[2], before.partition(" ")[2], offered))
    return sorted(offered, key=lambda one: _distance(one.label, before, offered))


def _distance(label: str, before: str, offered: Sequence[Candidate]) -> tuple[int, bool]:
    """How many offered releases lie between two, and whether it goes back."""
    try:
        one, other = Version.parse(label), Version.parse(before)
    except ValueError:
        return len(offered), True
    low, high = min(one, other), max(one, other)
    numbers = (candidate.label.rpartition(" ")[2] for candidate in offered)
    between = sum(1 for text in numbers if text[:1].isdigit() and low < Version.parse(text) < high)
    return between, one < other


def cost(machine: Machine, facts: Mapping[str, str] | None, order: Sequence[str]) -> tuple[int, ...]:
    """What a plan costs, the most expensive kind first, in machines: those that fall out, then those where each thing moves."""
    if facts is None:
        return (machine.count, *(0 for _ in order))
    moved = {name for name in order if facts.get(name) != machine.facts.get(name)}
    if "driver" in moved:
        moved.discard("driver_module")  # another driver is installed with a flavour of its own
    return (0, *(machine.count if name in moved else 0 for name in order))
