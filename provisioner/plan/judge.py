"""Whether a stack runs on a machine as it would be after some changes: every rule of the matrix, asked of one state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.components import ABSENT, COMPONENTS, DRIVERS
from provisioner.grounds.predicate import NoToolkit
from provisioner.grounds.requirement import Entails, LockHas, Row
from provisioner.grounds.source import Documents
from provisioner.host.facts import with_fact
from provisioner.places import Place
from provisioner.plan.machine import PREPARED, REBUILT, Facts, Machine
from provisioner.request import Request, TargetHost
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Candidate, Key, Labelled, Requirement, Within
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.problem import Problem
    from provisioner.spec.model import Spec

TOOLKIT = "container_toolkit"
TOOLKIT_MISSING = "container-toolkit-missing"
"""The failure of the matrix that containers meet on a machine without the toolkit."""


class Aim(Struct, frozen=True, kw_only=True, eq=False):
    """One side of a plan: a spec and where its keys stand, and what a lock fixes of the components all hosts share.

    `accelerator` is the fleet's, whatever a single host would call for.
    """

    spec: Spec
    platform: str
    accelerator: str
    places: Mapping[str, Place] = field(default_factory=dict)
    fixed: Mapping[str, str] = field(default_factory=dict)
    fixed_by: str = ""

    def request(self, targets: Sequence[TargetHost]) -> Request:
        """What is wanted of these hosts."""
        request = Request(spec=self.spec, hosts=tuple(targets), platform=self.platform, places=self.places)
        if request.accelerator == self.accelerator:
            return request
        return replace(request, spec=replace(self.spec, accelerator=self.accelerator))

    def unlisted(self, matrix: Matrix) -> tuple[str, ...]:
        """What the lock has and the matrix does not list for this spec, such as `pytorch 9.9.9+cu999`."""
        domains = join(matrix, self.request(())).domains if self.fixed else {}
        return tuple(
            f"{component} {label}"
            for component, label in sorted(self.fixed.items())
            if component in matrix.components
            and not any(one.label == label for key in domains if key == Key(component) for one in domains[key])
        )

    def problem(self, matrix: Matrix, targets: Sequence[TargetHost]) -> Problem:
        """The problem of these hosts, with what the lock fixes required from the start; what the matrix lacks is left out."""
        problem = join(matrix, self.request(targets))
        fixed = []
        for component, label in sorted(self.fixed.items()):
            key = Key(component)
            if key in problem.domains and any(one.label == label for one in problem.domains[key]):
                ground = LockHas(name=component, label=label, place=Place.parse(self.fixed_by))
                fixed.append(Requirement(key, Labelled(frozenset({label})), ground))
        return problem.with_roots(*fixed) if fixed else problem


class Software(Struct, frozen=True, kw_only=True, eq=False):
    """What all hosts share and an image or an installer brings: the aim it is for, and the choices made."""

    aim: Aim
    pins: Mapping[Key, Candidate] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether anything is known of it; today's is not where there is no lock."""
        return bool(self.pins)


class Judge:
    """Answers for states of machines; what was joined for one state serves all of the same machine."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self._instances: dict[tuple[str, int, bool, str], ProblemInstance] = {}
        self._kept: list[Aim] = []
        self._toolkit = next((one for one in matrix.failures if one.name == TOOLKIT_MISSING), None)

    def instance(self, machine: Machine, facts: Mapping[str, str], aim: Aim) -> ProblemInstance:
        """The world of one machine: as it runs, or, once a module is to be loaded anew, with the driver still to install."""
        is_rebuilt = any(facts.get(name) != machine.facts.get(name) for name in REBUILT)
        system = facts.get("os", "") if facts.get("os") != machine.facts.get("os") else ""
        key = (machine.label, id(aim), is_rebuilt, system)
        found = self._instances.get(key)
        if found is None:
            self._kept.append(aim)  # an id is an aim's own only as long as the aim lives
            host = self._host(machine.host, is_rebuilt=is_rebuilt, system=system)
            target = replace(machine.target, host=host)
            found = self._instances[key] = ProblemInstance(aim.problem(self.matrix, (target,)))
        return found

    def _host(self, host: Host, *, is_rebuilt: bool, system: str) -> Host:
        if is_rebuilt and host.driver is not None and host.driver.kind != "webdriver":
            host = replace(host, driver=None)
        return with_fact(host, "os", system) if system else host

    def pins(self, machine: Machine, facts: Mapping[str, str], software: Software) -> dict[Key, Candidate]:
        """The choices of one state: the software's, and the facts of the machine as candidates."""
        instance = self.instance(machine, facts, software.aim)
        found = dict(software.pins)
        for key in instance.problem.domains:
            if key.scope == machine.label:
                candidate = self.fact(instance, key, facts)
                if candidate is not None:
                    found[key] = candidate
        return found

    def fact(self, instance: ProblemInstance, key: Key, facts: Mapping[str, str]) -> Candidate | None:
        """A fact of the machine as a candidate, listed in the matrix or not; None where nobody states it."""
        value = key.name.partition(":")[2] if key.component == "gpu" else facts.get(key.component)
        if value is None:
            return None
        offered = instance.candidates(key)
        found = next((one for one in offered if one.label == value), None)
        if found is not None or (key.component == "macos" and "+" not in value):
            return found
        component = self.matrix.components.get(key.component)
        is_named = (component is not None and component.named) or value == ABSENT
        return Candidate(key, Version.named(value) if is_named else Version.parse(value), value)

    def unmet(self, machine: Machine, facts: Mapping[str, str], software: Software) -> tuple[Requirement, ...]:
        """Every requirement that does not hold in a state; one that nobody can judge, for want of a fact, is not among them."""
        instance = self.instance(machine, facts, software.aim)
        pins = self.pins(machine, facts, software)
        return tuple(
            requirement
            for requirement in self._wanted(instance, machine, facts, pins)
            if not self._holds(machine, instance, requirement, pins, is_whole=software.is_known)
        ) + tuple(self._without_toolkit(instance, machine, facts, software))

    def is_documented(self, machine: Machine, aim: Aim) -> bool:
        """Whether what is loaded on a machine could be installed on it anew."""
        nothing = Software(aim=aim)
        anew = self.instance(machine, {**machine.facts, "kernel": ""}, aim)
        pins = {key: one for key in anew.problem.domains if (one := self.fact(anew, key, machine.facts)) is not None}
        known = {one.ground.group for one in self.unmet(machine, machine.facts, nothing)}
        wanted = self._wanted(anew, machine, machine.facts, pins)
        return all(self._holds(machine, anew, one, pins, is_whole=False) or one.ground.group in known for one in wanted)

    def _wanted(
        self, instance: ProblemInstance, machine: Machine, facts: Mapping[str, str], pins: Mapping[Key, Candidate]
    ) -> Iterator[Requirement]:
        for root in instance.roots:
            component = root.key.component
            is_moved = root.ground.kind == "fact" and facts.get(component) != machine.facts.get(component)
            if not (is_moved and root.key.scope == machine.label):
                yield root
        for candidate in pins.values():
            yield from instance.requirements(candidate)

    def _holds(
        self,
        machine: Machine,
        instance: ProblemInstance,
        requirement: Requirement,
        pins: Mapping[Key, Candidate],
        *,
        is_whole: bool,
    ) -> bool:
        """Whether a requirement holds, as far as the facts go; a driver nobody states has to be installed, or found."""
        pinned = pins.get(requirement.key)
        if pinned is None and requirement.key.component in DRIVERS:
            return machine.host.jetson is not None  # whose driver is a part of Jetson Linux
        if pinned is None:
            return bool(requirement.key.scope) or not is_whole
        return instance.accepts(requirement, pinned)

    def _without_toolkit(
        self, instance: ProblemInstance, machine: Machine, facts: Mapping[str, str], software: Software
    ) -> Iterator[Requirement]:
        """Containers reach no GPU on a machine known to have no toolkit, which no rule can say: rules speak of versions."""
        request = instance.problem.request
        if facts.get(TOOLKIT) != ABSENT or not software.is_known or self._toolkit is None:
            return
        if request.runs == "container" and request.accelerator in COMPONENTS[TOOLKIT].accelerators:
            citations = self.matrix.citations
            cited = Documents(tuple(str(citations[one]) for one in self._toolkit.source if one in citations))
            relation = Row("failure", TOOLKIT_MISSING)
            ground = Entails(name=TOOLKIT, subject=None, predicate=NoToolkit(), relation=relation, cited=cited)
            yield Requirement(Key(TOOLKIT, machine.label), Within(Range.parse(">=1")), ground)

    def prepared(self, machine: Machine, facts: Facts, software: Software) -> tuple[Facts | None, frozenset[str]]:
        """The facts, with what stands in the way put right beside them.

        None where something else is in the way; then the components that what is unmet is about, on either side.
        """
        found = dict(facts)
        unmet = self.unmet(machine, found, software)
        for _ in PREPARED:
            wrong = dict.fromkeys(one.key for one in unmet)
            if any(key.component not in PREPARED or key.scope != machine.label for key in wrong):
                break
            remedies = {key.component: self._remedy(key, found, unmet) for key in wrong}
            moved = {name: value for name, value in remedies.items() if value is not None and value != found.get(name)}
            if not moved:
                break
            found.update(moved)
            unmet = self.unmet(machine, found, software)
        if not unmet:
            return found, frozenset()
        return None, frozenset(name for one in unmet for name in (one.key.component, one.ground.component))

    def _remedy(self, key: Key, facts: Facts, unmet: Sequence[Requirement]) -> str | None:
        """Return the value that puts a fact right: the only one, that of what it is installed with, or the oldest that fits."""
        row = COMPONENTS[key.component]
        if row.remedy:
            return row.remedy
        if row.installed_with:
            return facts.get(row.installed_with)
        tests = [one for one in unmet if one.key == key]
        offered = self._offered(key.component)
        fitting = [one for one in offered if all(test.test.allows(Candidate(key, one, str(one))) for test in tests)]
        return str(min(fitting)) if fitting else None

    def _offered(self, component: str) -> tuple[Version, ...]:
        found = self.matrix.components.get(component)
        return tuple(release.version for release in found.releases) if found is not None else ()
