"""Brute force, independent of the solver: every choice is tried, and every need of everything chosen is checked.

It reads the matrix's nouns and compares versions; nothing of `provisioner.resolver` is used. It knows releases and their
builds, rules with guards, several hosts, what is known to be missing, and the third verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provisioner.matrix.model import Matrix, Rule
    from provisioner.matrix.need import Need
    from provisioner.versions import Range

ABSENT = "none"
ACCELERATOR = "cuda"
MOST_FACTS = 2
"""How many unstated facts are completed together."""


class Place(NamedTuple):
    """What is chosen once: a component, of one host where a host provides it."""

    component: str
    host: str = ""


class Choice(NamedTuple):
    """A release, and its build where it has any; a fact is the release it names."""

    version: Version
    build: str = ""


class Wanted(NamedTuple):
    """That a place is chosen so that `allows` is true, because of `subject` (None: from the start).

    `group` names what a person could drop as a whole, in the solver's words: all that oracle and solver have in common.
    """

    place: Place
    allows: Callable[[Choice], bool]
    group: str
    subject: Place | None = None


Assignment = dict[str, Version]
"""One release for every component, where there are no builds and no hosts."""

Pins = dict[Place, Choice]
Facts = dict[str, dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A problem. `hosts` holds what each states, by component; `chosen` are host components that are chosen where unstated."""

    matrix: Matrix
    requires: Mapping[str, Need]
    hosts: Facts = field(default_factory=dict)
    chosen: frozenset[str] = frozenset()
    platform: str = "linux/amd64"
    is_oldest: bool = False


class Oracle:
    """Answers one question by trying everything."""

    def __init__(self, question: Question) -> None:
        self._asked = question
        self._matrix = question.matrix
        self._rank = {name: index for index, name in enumerate(question.matrix.order)}

    def stacks(self, *, kept: Collection[str] | None = None) -> Iterator[Pins]:
        """Every valid choice for everything that is needed, or for what the groups in `kept` need.

        The most wanted comes first when the needs point down the order, and when everything is required from the start.
        """
        yield from self._search({}, {}, [one for one in self._roots() if kept is None or one.group in kept], kept)

    def is_possible(self, *, kept: Collection[str] | None = None) -> bool:
        """Whether there is any."""
        return next(self.stacks(kept=kept), None) is not None

    def holds(self, pins: Pins) -> bool:
        """Whether a whole choice meets everything it needs."""
        wanted = [*self._roots(), *(one for place, choice in pins.items() for one in self._needs(place, choice))]
        return all(one.place in pins and one.allows(pins[one.place]) for one in wanted)

    def broken_by(self, pins: Pins) -> Iterator[tuple[tuple[Place, ...], Facts]]:
        """Unstated facts, and what they may turn out to be, such that a chosen stack does not work there.

        Facts of a host that exclude each other by themselves are no host. What nobody states is not held against a stack here:
        only what the completed facts say is.
        """
        unstated = [
            Place(name, host)
            for host, facts in self._asked.hosts.items()
            for name, component in self._matrix.components.items()
            if component.is_virtual and name not in facts and name not in self._asked.chosen
        ]
        for count in range(1, MOST_FACTS + 1):
            for places in combinations(unstated, count):
                for values in product(*(self._values(place.component) for place in places)):
                    hosts = {host: dict(facts) for host, facts in self._asked.hosts.items()}
                    for place, value in zip(places, values, strict=True):
                        hosts[place.host][place.component] = value
                    if self._is_broken(pins, hosts):
                        yield places, hosts

    def _is_broken(self, pins: Pins, hosts: Facts) -> bool:
        asked = self._asked
        known = Oracle(Question(**{**asked.__dict__, "hosts": hosts}))
        facts = {Place(name, host): known._fact(name, text) for host, some in hosts.items() for name, text in some.items()}
        whole = {**pins, **facts}
        wanted = [one for place, choice in whole.items() for one in known._needs(place, choice)]
        broken = [one for one in wanted if not _is_met(known, one, whole)]
        return bool(broken) and not any(one.subject in facts for one in broken)

    def _search(
        self, pins: Pins, wants: dict[Place, tuple[Wanted, ...]], new: Sequence[Wanted], kept: Collection[str] | None
    ) -> Iterator[Pins]:
        merged = dict(wants)
        for one in new:
            if one.place in pins and not one.allows(pins[one.place]):
                return
            merged[one.place] = (*merged.get(one.place, ()), one)
        waiting = [place for place in merged if place not in pins]
        if not waiting:
            yield pins
            return
        place = min(waiting, key=lambda one: (self._rank[one.component], one))
        for choice in self._domain(place):
            if all(one.allows(choice) for one in merged[place]):
                needs = [one for one in self._needs(place, choice) if kept is None or one.group in kept]
                yield from self._search({**pins, place: choice}, merged, needs, kept)

    def _roots(self) -> Iterator[Wanted]:
        for name, need in self._asked.requires.items():
            yield from (Wanted(place, _allowing(need), f"requires.{name}") for place in self._places(name))
        for host, facts in self._asked.hosts.items():
            for name, text in facts.items():
                stated = self._fact(name, text)
                yield Wanted(Place(name, host), _exactly(stated), f"{name} of {host}")

    def _places(self, component: str) -> list[Place]:
        if not self._matrix.components[component].is_virtual:
            return [Place(component)]
        hosts = self._asked.hosts.items()
        return [Place(component, host) for host, facts in hosts if component in facts or component in self._asked.chosen]

    def _domain(self, place: Place) -> list[Choice]:
        component = self._matrix.components[place.component]
        found = [
            Choice(release.version, build)
            for release in component.releases
            for build in [b.name for b in release.builds] or [""]
        ]
        facts = self._asked.hosts.get(place.host, {})
        for name in (place.component, *self._twins(place.component)):
            stated = self._fact(place.component, facts[name]) if name in facts else None
            if stated is not None and stated not in found and (name == place.component or facts[name] != ABSENT):
                found.append(stated)
        if not component.is_named:
            # Of one release's builds the one of the newer runtime comes first, whichever release is wanted.
            found.sort(key=lambda choice: int(choice.build.strip("cu") or 0), reverse=True)
            found.sort(key=lambda choice: choice.version, reverse=not (self._asked.is_oldest and not component.is_virtual))
        return found

    def _twins(self, component: str) -> Iterator[str]:
        """Components that some rule wants of the very version of this one: what a host has of one can be had of the other."""
        for rule in self._matrix.rules:
            for need in rule.needs:
                pair = (rule.when.component, need.component)
                if need.is_same and component in pair:
                    yield pair[1 - pair.index(component)]

    def _fact(self, component: str, text: str) -> Choice:
        is_name = self._matrix.components[component].is_named or text == ABSENT
        return Choice(Version.named(text) if is_name else Version.parse(text))

    def _values(self, component: str) -> list[str]:
        found = self._matrix.components[component]
        return [str(release.version) for release in found.releases] + ([] if found.is_named else [ABSENT])

    def _needs(self, place: Place, choice: Choice) -> Iterator[Wanted]:
        if str(choice.version) == ABSENT:
            return
        for release in self._matrix.components[place.component].releases:
            if release.version == choice.version:
                builds = [build for build in release.builds if build.name == choice.build]
                for need in (*release.needs, *(need for build in builds for need in build.needs)):
                    yield from self._reached(place, choice, need, f"{place.component} needs {need.component}")
        for rule in self._matrix.rules:
            if rule.when.component == place.component and rule.when.allows(choice.version):
                for need in rule.needs:
                    yield from self._ruled(place, choice, rule, need)

    def _reached(self, place: Place, choice: Choice, need: Need, group: str) -> Iterator[Wanted]:
        for other in self._places(need.component):
            if place.host in {"", other.host} or not other.host:
                yield Wanted(other, _allowing(need, choice), group, place)

    def _ruled(self, place: Place, choice: Choice, rule: Rule, need: Need) -> Iterator[Wanted]:
        for wanted in self._reached(place, choice, need, f"rule {rule.name}"):
            hosts = [wanted.place.host] if wanted.place.host else [place.host] if place.host else list(self._asked.hosts)
            judged = [self._judge(rule, host, wanted.place) for host in hosts]
            if any(verdict is True for verdict in judged):
                yield wanted
            for verdict in judged:
                if not isinstance(verdict, bool):
                    yield wanted._replace(allows=_unless(verdict, wanted.allows))

    def _judge(self, rule: Rule, host: str, about: Place) -> bool | Need:
        """Whether every guard holds on a host; a guard on the very choice the rule is about is handed back."""
        left = None
        facts = self._asked.hosts[host]
        for guard in rule.guards:
            named = [str(one) for one in guard.one_of]
            if guard.component == "platform":
                is_held = self._asked.platform in named
            elif guard.component == "accelerator":
                is_held = ACCELERATOR in named
            elif named == [ABSENT]:
                is_held = facts.get(guard.component, ABSENT) == ABSENT
            elif guard.component in facts:
                is_held = guard.allows(self._fact(guard.component, facts[guard.component]).version)
            elif guard.component in self._asked.chosen and about == Place(guard.component, host) and left is None:
                left, is_held = guard, True
            else:
                is_held = False
            if not is_held:
                return False
        return True if left is None else left


def _allowing(need: Need, subject: Choice | None = None) -> Callable[[Choice], bool]:
    if need.is_same:
        return lambda choice: subject is not None and choice.version == subject.version
    return lambda choice: need.allows(choice.version)


def _exactly(wanted: Choice) -> Callable[[Choice], bool]:
    return lambda choice: choice == wanted


def _unless(guard: Need, allows: Callable[[Choice], bool]) -> Callable[[Choice], bool]:
    return lambda choice: not guard.allows(choice.version) or allows(choice)


def _is_met(oracle: Oracle, wanted: Wanted, whole: Pins) -> bool:
    """Whether something chosen meets a need; what nobody chose yet can still be chosen if anything would do."""
    if wanted.place in whole:
        return wanted.allows(whole[wanted.place])
    return any(wanted.allows(choice) for choice in oracle._domain(wanted.place))


def stacks(matrix: Matrix, requires: Mapping[str, Range]) -> Iterator[Assignment]:
    """Every valid choice of one release for every component, newest first in the declared order."""
    domains = [sorted((one.version for one in matrix.components[name].releases), reverse=True) for name in matrix.order]
    for choice in product(*domains):
        assignment = dict(zip(matrix.order, choice, strict=True))
        if holds(matrix, requires, assignment):
            yield assignment


def holds(matrix: Matrix, requires: Mapping[str, Range], assignment: Assignment) -> bool:
    """Whether every request and every need and rule of every chosen release is met."""
    if not all(wanted.allows(assignment[name]) for name, wanted in requires.items()):
        return False
    for name, version in assignment.items():
        chosen = next(one for one in matrix.components[name].releases if one.version == version)
        if not all(need.allows(assignment[need.component]) for need in chosen.needs):
            return False
    return all(
        need.allows(assignment[need.component])
        for rule in matrix.rules
        if rule.when.allows(assignment[rule.when.component])
        for need in rule.needs
    )
