"""What is known of a machine only ever narrows an answer.

Leaving a fact out never turns a no into a yes: the answer doubts or assumes that very fact, or it chooses the component itself
(a driver to be installed), which is then part of the answer. Stating what is evident, such as the libcuda of the driver that
runs, changes nothing of what is chosen, and no verdict.

Both are held on documented incompatibilities and ordinary machines with the shipped matrix, and on random systems, of which
the oracle of `tests/oracle.py` says what is impossible and which completions an answer survives.
"""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from msgspec.structs import replace

from provisioner.errors import ProvisionError
from provisioner.host.model import SecureBoot
from provisioner.resolver.joint import NoStackError
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Version
from tests import completions
from tests.completions import Case
from tests.facts import test_facts, test_ordinary
from tests.oracle import Choice, Place
from tests.property.test_three_valued import lines_naming, solved
from tests.shipped import shipped
from tests.strategies import BOOT, CHOSEN, System, case, chosen, examples, systems, times
from tests.told import assumed, unverified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.host.model import Host
    from provisioner.resolver.stack import Stack

pytestmark = pytest.mark.property

SAMPLE = 60
"""How many documented incompatibilities with a fact left out, and how many ordinary machines, are tried."""


# ---- leaving a fact out


@cache
def refused() -> tuple[tuple[Case, int, completions.Path], ...]:
    """Every documented incompatibility whose hosts do not contradict themselves, with each fact that could be left out."""
    found = []
    for one in test_facts.REFUSED:
        whole = Case(name=one["name"], spec=one["spec"], hosts=one.get("hosts", []))
        if decide(ProblemInstance(join(shipped(), whole.bare().request()))) is not None:
            found += [(whole, number, path) for number, host in enumerate(whole.hosts) for path in completions.facts(host)]
    return tuple(found)


def silent_yes(whole: Case, number: int, path: completions.Path) -> str:
    """Return the answer that nothing but a fact left out allows, and that says nothing of the fact; "" for none."""
    hosts = list(whole.hosts)
    hosts[number] = completions.without(hosts[number], path)
    label = f"host {number + 1}"
    try:
        found = solved(Case(name=whole.name, spec=whole.spec, hosts=hosts).request())
    except ProvisionError:
        return ""
    if found is None or lines_naming(found[1], path, label):
        return ""
    pins, stack = found
    names = completions.named_as(path)
    is_chosen = any(key.scope == label and key.component in names for key in pins)
    return "" if is_chosen else f"{whole.name} without {path} of {label}: {stack.verdict} {dict(stack.components)}"


def test_leaving_a_fact_out_turns_no_documented_incompatibility_into_a_yes() -> None:
    problems = random.Random(1).sample(refused(), times(SAMPLE))
    assert [text for text in (silent_yes(*problem) for problem in problems) if text] == []


@examples(300, shares={"answered": 0.05})
@given(systems())
def test_leaving_a_fact_out_turns_no_random_impossibility_into_a_yes(system: System) -> None:
    assume(not system.oracle().is_possible())
    # Facts of a host that exclude each other by themselves are no machine's.
    assume(system.having(requires={}).oracle().is_possible())
    for number, name in stated(system):
        profiles = [dict(profile) for profile in system.profiles]
        del profiles[number][name]
        instance = system.having(profiles=profiles).instance()
        pins = decide(instance)
        if pins is None:
            continue
        case("answered")
        stack = answer(instance, pins)
        told = {tuple(line.split(" ")[:2]) for line in (*unverified(stack), *assumed(stack))}
        is_told = name == CHOSEN or (f"{name}:", f"host{number}") in told
        assert is_told or is_of_its_own(system, name), f"without {name} of host{number}: {stack.verdict}"


def is_of_its_own(system: System, name: str) -> bool:
    """Whether a stated part of a host, such as DCGM, makes the problem impossible by what it needs itself.

    Where the answer does not need the part, a host that does not state it may as well not have it.
    """
    components = dict(system.matrix.components)
    plain = [replace(release, requires=(), expects=(), builds=()) for release in components[name].releases]
    components[name] = replace(components[name], releases=plain)
    rules = [rule for rule in system.matrix.rules if rule.when.component != name]
    return system.having(matrix=replace(system.matrix, components=components, rules=rules)).oracle().is_possible()


def stated(system: System) -> list[tuple[int, str]]:
    """The facts that the hosts of a random system state."""
    names = system.matrix.components
    return [(number, name) for number, profile in enumerate(system.profiles) for name in profile if name in names]


# ---- stating what is evident


def evident(host: Host) -> dict[str, object]:
    """Facts that a Linux machine with a running NVIDIA driver has without stating them, as its own kind of machine has them."""
    if host.driver is None or host.driver.version is None or host.driver.kind != "nvidia":
        return {}
    facts: dict[str, object] = {
        "loaded_modules": ("nvidia",),
        "userspace_driver": host.driver.version,
        "kernel": "5.15.0-91-generic",
        "kernel_headers": "none",
        "kernel_gcc": "12.3.0",
        "secure_boot": SecureBoot(enabled=False),
        "glibc": None if host.os is not None else "2.39",  # a distribution release is its glibc
        "container_toolkit": "1.17.8",
        "python_arch": "arm64" if host.platform == "linux/arm64" else "x86_64",
    }
    return {name: value for name, value in facts.items() if value is not None and getattr(host, name) is None}


def told(profile: dict[str, Any], host: Host) -> tuple[str, Mapping[str, str]]:
    """The verdict on a machine, and what is chosen but its own facts; of a no the components that exclude each other."""
    try:
        stack = test_ordinary.solve(profile, host)
    except NoStackError as error:
        return "no", {member.component: "" for member in error.conflict.members}
    return stack.verdict, chosen_for_all(stack)


def chosen_for_all(stack: Stack) -> Mapping[str, str]:
    return {pin.component: f"{pin.version} {pin.build}" for pin in stack.pins if not pin.host}


def machines() -> Iterator[tuple[dict[str, Any], Host]]:
    """Ordinary machines that leave out what is evident, in random order."""
    for profile in random.Random(2).sample(test_ordinary.PROFILES, len(test_ordinary.PROFILES)):
        host = test_ordinary.host_of(profile)
        if evident(host):
            yield profile, host


def test_stating_what_is_evident_changes_no_answer_for_an_ordinary_machine() -> None:
    seed = random.Random(3)
    tried = 0
    for (profile, host), _ in zip(machines(), range(times(SAMPLE)), strict=False):
        before = told(profile, host)
        facts = evident(host)
        name = seed.choice(list(facts))
        assert told(profile, replace(host, **facts)) == before, test_ordinary.title(profile)
        assert told(profile, replace(host, **{name: facts[name]})) == before, f"{test_ordinary.title(profile)}: {name}"
        tried += 1
    assert tried == times(SAMPLE)


@examples(120, shares={"stated": 0.3})
@given(systems())
def test_stating_what_an_answer_survives_changes_no_random_answer(system: System) -> None:
    """Some facts change more than what is known, and are no facts of this law.

    A rule that binds where a fact is missing binds no longer where it is stated. And where a rule asks for the same version of
    two components, a stated version of the one is one more candidate of the other.
    """
    pins = decide(system.instance())
    assume(pins is not None)
    assert pins is not None
    before = chosen(pins, system.matrix)
    guards = [guard for rule in system.matrix.rules for guard in rule.on]
    if_missing = {guard.component for guard in guards if [str(one) for one in guard.one_of] == ["none"]}
    for number, name, value in unstated(system):
        profiles = [dict(one) for one in system.profiles]
        profiles[number][name] = BOOT[value] if name == "secure_boot" else value
        more = system.having(profiles=profiles)
        fact = Choice(Version.named(value) if name == "secure_boot" else Version.parse(value))
        whole = {**before, Place(name, f"host{number}"): fact}
        if name not in if_missing and not is_candidate_elsewhere(system, name, value) and more.oracle().holds(whole):
            now = decide(more.instance())
            assert now is not None, f"{name} of host{number} is {value}"
            assert chosen(now, system.matrix) == whole, f"{name} of host{number} is {value}"
            case("stated")


def is_candidate_elsewhere(system: System, name: str, value: str) -> bool:
    """Whether stating a value makes it a candidate of another component, of which the matrix has no such release."""
    others = [
        need.component for rule in system.matrix.rules if rule.when.component == name for need in rule.require if need.is_same
    ]
    return any(value not in [str(one.version) for one in system.matrix.components[other].releases] for other in others)


def unstated(system: System) -> Iterator[tuple[int, str, str]]:
    """The facts that the hosts of a random system leave out, with each value that they may have."""
    for number, profile in enumerate(system.profiles):
        for name, component in system.matrix.components.items():
            if component.virtual and name not in profile and name != CHOSEN:
                yield from ((number, name, str(release.version)) for release in component.releases)
