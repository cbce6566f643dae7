"""Find the cheapest changes of a machine that let software run on it: the part of a stack that all hosts share."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from provisioner.accelerators import GPU_DRIVERS
from provisioner.components import ABSENT, FOLLOWERS
from provisioner.plan.machine import INSTALLED_WITH_OS, REMEDIABLE, with_installed_together
from provisioner.plan.state import Trial
from provisioner.resolver.requirement import Key, OneOf
from provisioner.resolver.rules.lifecycle import has_ended
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date

    from provisioner.matrix.model import DriverBranch
    from provisioner.plan.machine import Facts, Machine
    from provisioner.plan.state import Software, StateChecker
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

FLAVOURS = ("open", "proprietary")
"""Flavours of kernel modules in NVIDIA's order: open ones if the GPU supports both (Driver Installation Guide)."""

SUPPORTED = ("Long Term Support Branch", "Production Branch")
"""Designations of driver branches with long support, the longest first."""


class ChangeSearch:
    """Searches for the cheapest changes of machines; answers are cached.

    The key of the cache is the machine with the software's requirements on it.
    """

    def __init__(self, checker: StateChecker, *, today: date | None) -> None:
        self.checker = checker
        self._branches = {branch.branch: branch for branch in checker.matrix.branches}
        self._today = today
        self._found: dict[tuple[str, int, tuple[tuple[str, str, str], ...]], Facts | None] = {}

    def cheapest(self, machine: Machine, software: Software, free: Sequence[str]) -> Facts | None:
        """Return the facts after the cheapest changes with which the software runs, None if no changes suffice.

        `free` are the components that may change, most expensive first. Sets of them are tried in the lexicographic order of
        their cost: every set without the most expensive component comes before every set with it.
        """
        instance = self.checker.instance(machine, machine.facts, software.stack_spec)
        on_host = (one for candidate in software.pins.values() for one in instance.requirements(candidate) if one.key.scope)
        signature = tuple(sorted({(one.key.name, type(one.test).__name__, str(one.test)) for one in on_host}))
        key = (machine.label, id(software.stack_spec), signature)
        if key not in self._found:
            self._found[key] = self._cheapest(machine, software, free)
        return self._found[key]

    def _cheapest(self, machine: Machine, software: Software, free: Sequence[str]) -> Facts | None:
        unchanged = self.checker.with_remedies(machine, dict(machine.facts), software)
        if unchanged.facts is not None:
            return unchanged.facts
        for moving in subsets(free):
            # A requirement that is unmet between components that do not change stays unmet.
            if _components_to_move(unchanged.blamed) & set(moving):
                trial = self._walk(machine, software, self._choices(machine, software, moving), ())
                if trial.facts is not None:
                    return trial.facts
        return None

    def _choices(self, machine: Machine, software: Software, moving: tuple[str, ...]) -> list[tuple[str, list[Candidate]]]:
        """Return each component of `moving` with its candidates that the spec and the software allow, best first."""
        instance = self._instance(machine, software, moving)
        requirements: dict[Key, list[Requirement]] = {}
        sources = (one for candidate in software.pins.values() for one in instance.requirements(candidate))
        for one in (*instance.roots, *sources):
            if one.ground.kind != "fact":
                requirements.setdefault(one.key, []).append(one)
        found = []
        for name in moving:
            key = Key(name, machine.label)
            tests = requirements.get(key, ())
            offered = [one for one in instance.candidates(key) if all(test.allows(one) for test in tests)]
            fitting = [one for one in offered if self._fits(machine, instance, one, moving)]
            unchanged = {machine.facts.get(name), ABSENT}
            found.append((name, [one for one in self.ranked(machine, name, fitting) if one.label not in unchanged]))
        return found

    def _instance(self, machine: Machine, software: Software, moving: Sequence[str]) -> ProblemInstance:
        """Return the problem of the machine while the components in `moving` change, the same for all their new values."""
        moved = {name: "" for name in moving if name != "container_toolkit"}
        return self.checker.instance(machine, {**machine.facts, **moved}, software.stack_spec)

    def _walk(
        self,
        machine: Machine,
        software: Software,
        choices: Sequence[tuple[str, list[Candidate]]],
        chosen: tuple[Candidate, ...],
    ) -> Trial:
        """Try every combination of candidates, best first, and return the trial of the first with which the software runs.

        `chosen` are candidates already chosen; `choices` are the remaining components with their candidates.
        A component is blamed if an unmet requirement is on it or comes from it. Combinations that differ only in components
        that are not blamed are skipped.
        """
        if not choices:
            return self._try(machine, software, chosen)
        name, offered = choices[0]
        blamed: frozenset[str] = frozenset()
        for candidate in offered:
            trial = self._walk(machine, software, choices[1:], (*chosen, candidate))
            if trial.facts is not None or name not in _components_to_move(trial.blamed):
                return trial
            blamed |= trial.blamed
        return Trial(None, blamed)

    def _try(self, machine: Machine, software: Software, chosen: tuple[Candidate, ...]) -> Trial:
        """Check one combination of candidates, with each flavour of kernel modules if the driver changes."""
        moving = [one.key.component for one in chosen]
        instance = self._instance(machine, software, moving)
        conflicting = _conflicting(instance, chosen)
        if conflicting:
            return Trial(None, conflicting)
        facts = with_installed_together(
            {**_facts_under_new_release(machine, instance, chosen), **{one.key.component: one.label for one in chosen}}, machine
        )
        flavours = FLAVOURS if "driver" in moving else ()
        # Today's flavour of modules first; the open one if none is stated.
        states = [
            {**facts, "driver_module": one} for one in sorted(flavours, key=lambda one: one != facts.get("driver_module"))
        ]
        blamed: frozenset[str] = frozenset()
        for state in states or [facts]:
            trial = self.checker.with_remedies(machine, state, software)
            if trial.facts is not None:
                return trial
            blamed |= trial.blamed
        return Trial(None, blamed)

    def _fits(self, machine: Machine, instance: ProblemInstance, candidate: Candidate, moving: tuple[str, ...]) -> bool:
        """Return whether the requirements of a candidate allow the components of the machine that do not change."""
        loose = {*moving, "driver_module", *REMEDIABLE, *(("glibc", "kernel") if "os" in moving else ())}
        for one in instance.requirements(candidate):
            if one.key.scope == machine.label and one.key.component not in loose:
                pinned = self.checker.host_candidate(instance, one.key, machine.facts)
                if pinned is not None and not instance.accepts(one, pinned):
                    return False
        return True

    def ranked(self, machine: Machine, component: str, offered: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates of a component in the order in which they are tried.

        Kernels and operating systems: those nearest to today's release first. NVIDIA drivers: see `_driver_rank`. Other GPU
        drivers: those with today's major version first.
        """
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
        """Return a sort key: today's branch first, then branches with long support, then others, then ended ones.

        Within one branch, or several of equal support, newer versions are first.
        """
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
    """Yield every set of components that may change, cheapest first.

    No set has both driver and modules: a new driver comes with modules, so modules change alone only under today's driver.
    """
    for chosen in product((False, True), repeat=len(free)):
        moving = tuple(name for name, is_moving in zip(free, chosen, strict=True) if is_moving)
        if "driver" in moving and "driver_module" in moving:
            continue
        yield moving


def _facts_under_new_release(machine: Machine, instance: ProblemInstance, chosen: Sequence[Candidate]) -> Facts:
    """Return today's facts; if `chosen` has a release of the operating system, without the facts that this release replaces.

    The glibc of that release is added if the matrix names it.
    """
    release = next((one for one in chosen if one.key.component == "os"), None)
    if release is None:
        return dict(machine.facts)
    found = {name: value for name, value in machine.facts.items() if name not in INSTALLED_WITH_OS}
    for one in instance.requirements(release):
        if one.key == Key("glibc", machine.label) and isinstance(one.test, OneOf):
            found["glibc"] = str(one.test.versions[0])
    return found


def _conflicting(instance: ProblemInstance, chosen: Sequence[Candidate]) -> frozenset[str]:
    """Return the names of two chosen components of which one rules out the other, an empty set if there are no such two.

    This quick check avoids most checks of a whole state.
    """
    by_key = {one.key: one for one in chosen}
    for candidate in chosen:
        for one in instance.requirements(candidate):
            if one.key in by_key and not instance.accepts(one, by_key[one.key]):
                return frozenset((candidate.key.component, one.key.component))
    return frozenset()


def _components_to_move(blamed: frozenset[str]) -> set[str]:
    """Return `blamed` with the components that install or replace one of them, such as `driver` for `driver_module`."""
    found = set(blamed)
    if found & {"driver_module", *FOLLOWERS["driver"]}:
        found |= {"driver", "driver_module"}
    if found & set(REMEDIABLE):
        found |= {"kernel", "driver"}
    return found | ({"os"} if "glibc" in found else set())


def _nearest(component: str, before: str, offered: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates by their distance from today's value `before`, among equally distant ones the newer first.

    For `os`, only releases of the same operating system are returned.
    """
    if component == "os":
        name = before.partition(" ")[0]
        same = [one for one in offered if one.label.partition(" ")[0] == name and " " in one.label]
        return sorted(same, key=lambda one: _distance(one.label.partition(" ")[2], before.partition(" ")[2], offered))
    return sorted(offered, key=lambda one: _distance(one.label, before, offered))


def _distance(label: str, before: str, offered: Sequence[Candidate]) -> tuple[int, bool]:
    """Return the number of offered releases between `before` and `label`, and whether `label` is the older one.

    A value that is no version counts as the farthest.
    """
    try:
        one, other = Version.parse(label), Version.parse(before)
    except ValueError:
        return len(offered), True
    low, high = min(one, other), max(one, other)
    numbers = (candidate.label.rpartition(" ")[2] for candidate in offered)
    between = sum(1 for text in numbers if text[:1].isdigit() and low < Version.parse(text) < high)
    return between, one < other


def cost(machine: Machine, facts: Mapping[str, str] | None, order: Sequence[str]) -> tuple[int, ...]:
    """Return the cost of a machine's plan: how many real machines are excluded, then on how many each of `order` changes.

    `order` has names of components. `facts` are those at the end of the plan, None for an excluded machine.
    """
    if facts is None:
        return (machine.count, *(0 for _ in order))
    moved = {name for name in order if facts.get(name) != machine.facts.get(name)}
    if "driver" in moved:
        moved.discard("driver_module")  # another driver is installed with a flavour of its own
    return (0, *(machine.count if name in moved else 0 for name in order))
