"""Check whether software runs on a machine in a given state, that is with the facts it has after some changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.components import ABSENT, COMPONENTS, DRIVERS
from provisioner.grounds.predicate import NoToolkit
from provisioner.grounds.requirement import Entails, LockHas, Row
from provisioner.grounds.source import Documents
from provisioner.host.facts import with_fact
from provisioner.places import Place
from provisioner.plan.machine import MODULE_RELOADING, REMEDIABLE, Facts, Machine
from provisioner.request import Request, TargetHost
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Candidate, Key, Labelled, Requirement, Within
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.versions import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.problem import Problem
    from provisioner.spec.model import Spec

TOOLKIT = "container_toolkit"
TOOLKIT_MISSING = "container-toolkit-missing"
"""The name of the matrix row on containers that do not start on a machine without the toolkit."""


class StackSpec(Struct, frozen=True, kw_only=True, eq=False):
    """The requirements of a plan on a stack, today's or the wanted one: a spec, and the versions of a lock, if there is one.

    `accelerator` is that of all hosts, also for a host whose own GPUs are of another vendor. `places` has the file and line of
    each key of the spec. `locked` has the locked version of each component that all hosts share, `locked_in` the file of the
    lock.
    """

    spec: Spec
    platform: str
    accelerator: str
    places: Mapping[str, Place] = field(default_factory=dict)
    locked: Mapping[str, str] = field(default_factory=dict)
    locked_in: Place = Place("")

    def fixed(self, lock: Lock, *, file: str) -> StackSpec:
        """Return a stack spec that requires every version in `lock`, a lock of one platform in `file`."""
        labels = {name: value for name, value in lock.stack.components.items() if name not in {"pytorch_build", "platform"}}
        if "pytorch" in labels:
            labels["pytorch"] = f"{labels['pytorch']}+{lock.stack.components['pytorch_build']}"
        update: dict[str, object] = {"runs": lock.stack.runs}
        if lock.stack.image is not None:
            update["image"] = replace(self.spec.image, base=lock.stack.image.reference)
        return replace(self, spec=replace(self.spec, **update), locked=labels, locked_in=Place(file))

    def request(self, targets: Sequence[TargetHost]) -> Request:
        """Return the request for a stack on these hosts."""
        request = Request(spec=self.spec, hosts=tuple(targets), platform=self.platform, places=self.places)
        if request.accelerator == self.accelerator:
            return request
        return replace(request, spec=replace(self.spec, accelerator=self.accelerator))

    def unlisted(self, matrix: Matrix) -> tuple[str, ...]:
        """Return the locked versions of matrix components that the matrix does not list for the spec: `pytorch 9.9.9+cu999`."""
        domains = join(matrix, self.request(())).domains if self.locked else {}
        return tuple(
            f"{component} {label}"
            for component, label in sorted(self.locked.items())
            if component in matrix.components
            and not any(one.label == label for key in domains if key == Key(component) for one in domains[key])
        )

    def problem(self, matrix: Matrix, targets: Sequence[TargetHost]) -> Problem:
        """Return the problem of the hosts `targets`, which requires the locked versions as far as the matrix lists them."""
        problem = join(matrix, self.request(targets))
        locked = []
        for component, label in sorted(self.locked.items()):
            key = Key(component)
            if key in problem.domains and any(one.label == label for one in problem.domains[key]):
                ground = LockHas(name=component, label=label, place=self.locked_in)
                locked.append(Requirement(key, Labelled(frozenset({label})), ground))
        return problem.with_roots(*locked) if locked else problem


class Software(Struct, frozen=True, kw_only=True, eq=False):
    """The part of a stack that all hosts share, as an image or an installer provides it: the chosen candidates."""

    stack_spec: StackSpec
    pins: Mapping[Key, Candidate] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        """Whether any candidate is known; today's software is unknown if there is no lock."""
        return bool(self.pins)


class Trial(NamedTuple):
    """The facts with which software runs on a machine, None if the software does not run.

    `blamed` are the components that unmet requirements are on or come from; empty if the software runs.
    """

    facts: Facts | None
    blamed: frozenset[str] = frozenset()


class StateChecker:
    """Checks states of machines; states with the same modules and operating system share one joined problem."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self._instances: dict[tuple[str, int, bool, str], ProblemInstance] = {}
        self._stack_specs: list[StackSpec] = []
        self._toolkit = next((one for one in matrix.failures if one.name == TOOLKIT_MISSING), None)

    def instance(self, machine: Machine, facts: Mapping[str, str], stack_spec: StackSpec) -> ProblemInstance:
        """Return the problem, which is cached, of one machine in the state `facts`.

        If a change since today reloads kernel modules, the problem does not contain the driver of the machine's profile, so
        that the requirements for installing a driver apply.
        """
        reloads_modules = any(facts.get(name) != machine.facts.get(name) for name in MODULE_RELOADING)
        system = facts.get("os", "") if facts.get("os") != machine.facts.get("os") else ""
        key = (machine.label, id(stack_spec), reloads_modules, system)
        found = self._instances.get(key)
        if found is None:
            self._stack_specs.append(stack_spec)  # keeps it alive, so that no other one gets its id
            host = machine.host
            if reloads_modules and host.driver is not None and host.driver.kind != "webdriver":
                host = replace(host, driver=None)
            host = with_fact(host, "os", system) if system else host
            target = replace(machine.target, host=host)
            found = self._instances[key] = ProblemInstance(stack_spec.problem(self.matrix, (target,)))
        return found

    def pins(self, machine: Machine, facts: Mapping[str, str], software: Software) -> dict[Key, Candidate]:
        """Return the candidate of each key in one state: those of the software, and the facts of the machine as candidates."""
        instance = self.instance(machine, facts, software.stack_spec)
        found = dict(software.pins)
        for key in instance.problem.domains:
            if key.scope == machine.label:
                candidate = self.host_candidate(instance, key, facts)
                if candidate is not None:
                    found[key] = candidate
        return found

    def host_candidate(self, instance: ProblemInstance, key: Key, facts: Mapping[str, str]) -> Candidate | None:
        """Return the value that `facts` has for a key of the machine, as a candidate, even if the matrix does not list it.

        None if `facts` lacks the component; also for a release of macOS that the matrix does not list.
        """
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
        """Return every requirement that does not hold in a state, without those that depend on an unknown fact."""
        instance = self.instance(machine, facts, software.stack_spec)
        pins = self.pins(machine, facts, software)
        return tuple(
            requirement
            for requirement in self._requirements(instance, machine, facts, pins)
            if not self._is_met(machine, instance, requirement, pins, is_whole=software.is_known)
        ) + tuple(self._missing_toolkit(instance, machine, facts, software))

    def is_documented(self, machine: Machine, stack_spec: StackSpec) -> bool:
        """Return whether the matrix documents that the machine's loaded kernel modules can be installed on its kernel.

        `stack_spec` is the spec of the problem to check. Requirements that are unmet on the machine today are ignored.
        """
        nothing = Software(stack_spec=stack_spec)
        anew = self.instance(machine, {**machine.facts, "kernel": ""}, stack_spec)
        pins = {key: one for key in anew.problem.domains if (one := self.host_candidate(anew, key, machine.facts)) is not None}
        known = {one.ground.group for one in self.unmet(machine, machine.facts, nothing)}
        requirements = self._requirements(anew, machine, machine.facts, pins)
        return all(self._is_met(machine, anew, one, pins, is_whole=False) or one.ground.group in known for one in requirements)

    def _requirements(
        self, instance: ProblemInstance, machine: Machine, facts: Mapping[str, str], pins: Mapping[Key, Candidate]
    ) -> Iterator[Requirement]:
        """Yield the requirements of a state; one that fixes a component to today's fact is left out if the fact has changed."""
        for root in instance.roots:
            component = root.key.component
            is_moved = root.ground.kind == "fact" and facts.get(component) != machine.facts.get(component)
            if not (is_moved and root.key.scope == machine.label):
                yield root
        for candidate in pins.values():
            yield from instance.requirements(candidate)

    def _is_met(
        self,
        machine: Machine,
        instance: ProblemInstance,
        requirement: Requirement,
        pins: Mapping[Key, Candidate],
        *,
        is_whole: bool,
    ) -> bool:
        """Return whether a requirement holds in a state; with `is_whole`, `pins` contain every shared component of the stack.

        A requirement on an unknown fact of the host holds, except on a driver: a driver that is not stated is missing.
        """
        pinned = pins.get(requirement.key)
        if pinned is None and requirement.key.component in DRIVERS:
            return machine.host.jetson is not None  # whose driver is a part of Jetson Linux
        if pinned is None:
            return bool(requirement.key.scope) or not is_whole
        return instance.accepts(requirement, pinned)

    def _missing_toolkit(
        self, instance: ProblemInstance, machine: Machine, facts: Mapping[str, str], software: Software
    ) -> Iterator[Requirement]:
        """Yield a requirement on the container toolkit if containers need one and the machine is known to have none.

        No rule of the matrix requires it, because rules are about versions of installed components.
        """
        request = instance.problem.request
        if facts.get(TOOLKIT) != ABSENT or not software.is_known or self._toolkit is None:
            return
        if request.runs == "container" and request.accelerator in COMPONENTS[TOOLKIT].accelerators:
            citations = self.matrix.citations
            cited = Documents(tuple(str(citations[one]) for one in self._toolkit.source if one in citations))
            relation = Row("failure", TOOLKIT_MISSING)
            ground = Entails(name=TOOLKIT, subject=None, predicate=NoToolkit(), relation=relation, cited=cited)
            yield Requirement(Key(TOOLKIT, machine.label), Within(Range.parse(">=1")), ground)

    def with_remedies(self, machine: Machine, facts: Facts, software: Software) -> Trial:
        """Check a state, and correct values for which there is a remedy, such as that of Secure Boot.

        If every unmet requirement is on a component with a remedy, these components are corrected, and the state is checked
        again. If unmet requirements remain, the components that they are on, or come from, are blamed.
        """
        found = dict(facts)
        unmet = self.unmet(machine, found, software)
        for _ in REMEDIABLE:
            wrong = dict.fromkeys(one.key for one in unmet)
            if any(key.component not in REMEDIABLE or key.scope != machine.label for key in wrong):
                break
            remedies = {key.component: self._remedy(key, found, unmet) for key in wrong}
            moved = {name: value for name, value in remedies.items() if value is not None and value != found.get(name)}
            if not moved:
                break
            found.update(moved)
            unmet = self.unmet(machine, found, software)
        if not unmet:
            return Trial(found)
        return Trial(None, frozenset(name for one in unmet for name in (one.key.component, one.ground.component)))

    def _remedy(self, key: Key, facts: Facts, unmet: Sequence[Requirement]) -> str | None:
        """Return the value to which a component of the host is corrected, None if there is no remedy.

        The value is the component's only remedy, that of the component it is installed with, or the oldest release that all
        unmet requirements allow.
        """
        row = COMPONENTS[key.component]
        if row.remedy:
            return row.remedy
        if row.installed_with:
            return facts.get(row.installed_with)
        tests = [one for one in unmet if one.key == key]
        component = self.matrix.components.get(key.component)
        offered = [release.version for release in component.releases] if component is not None else []
        fitting = [one for one in offered if all(test.test.allows(Candidate(key, one, str(one))) for test in tests)]
        return str(min(fitting)) if fitting else None
