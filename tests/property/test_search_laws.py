"""The laws of the search, on thousands of small random problems, against brute force that shares no code with it.

The problems have builds, rules with guards, one or two hosts that state some facts and leave others out, and what is known to
be missing; half of them are cyclic. Laws of the packages are in test_package_laws.py, of policies in test_policy_laws.py, of
what nobody states in test_three_valued.py, of locks in test_round_trip.py, of parsers in test_parsers_total.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from provisioner.resolver.explain.conflict import explain_conflict
from provisioner.resolver.problem import join
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.direct import direct_answer
from provisioner.resolver.search.instance import ProblemInstance, violations
from provisioner.resolver.search.provider import search
from provisioner.resolver.search.resolve import decide
from tests import oracle, small
from tests.oracle import Choice, Place
from tests.strategies import BOOT, Dice, System, case, chosen, dice, examples, systems
from tests.told import changes, hosts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.conflict import Fix
    from provisioner.matrix.model import Component, Matrix, Release
    from provisioner.resolver.requirement import Candidate, Key

pytestmark = pytest.mark.property

ANY = st.booleans().flatmap(lambda is_cyclic: systems(is_cyclic=is_cyclic))


ANSWERED = {"possible": 0.4, "impossible": 0.2}
"""The least shares of the problems that have an answer, and that have none."""


def answered(system: System) -> dict[Place, Choice] | None:
    pins = decide(system.instance())
    case("impossible" if pins is None else "possible")
    return None if pins is None else chosen(pins, system.matrix)


@examples(2000, shares=ANSWERED)
@given(ANY)
def test_1_valid(system: System) -> None:
    """The stack satisfies every requirement (checked by the oracle's code, not ours)."""
    pins = answered(system)
    assert pins is None or system.oracle().holds(pins)


@examples(2000, shares=ANSWERED)
@given(ANY)
def test_2_complete(system: System) -> None:
    """`solve` finds a stack exactly when brute force does."""
    assert (answered(system) is not None) == system.oracle().is_possible()


@examples(2000, shares=ANSWERED)
@given(st.booleans().flatmap(lambda is_oldest: systems(is_oldest=is_oldest)))
def test_3_newest_in_order(system: System) -> None:
    """The stack is the first of the oracle's list under the policy, newest or oldest."""
    assert answered(system) == next(system.oracle().stacks(), None)


@examples(1200, shares=ANSWERED)
@given(st.booleans().flatmap(lambda is_oldest: systems(is_cyclic=True, is_oldest=is_oldest)))
def test_3_the_complete_search_finds_the_newest_in_order_of_cyclic_problems_too(system: System) -> None:
    complete = CompleteSearch(system.instance())
    pins = complete.best()
    complete.close()
    case("impossible" if pins is None else "possible")
    assert (None if pins is None else chosen(pins, system.matrix)) == next(system.oracle().stacks(), None)


@examples(600)
@given(ANY, dice())
def test_4_deterministic(system: System, chance: Dice) -> None:
    """Repeated runs, shuffled YAML and shuffled rules give the same stack; the same input gives the same conflict and hints.

    Of several minimal conflicts it depends on the order of the rows which is told. Whole locks and Dockerfiles are compared in
    test_determinism.py.
    """
    first = outcome(system)
    assert first == outcome(system)
    assert answered(shuffled(system, chance)) == (first if isinstance(first, dict) else None)


def outcome(system: System) -> object:
    instance = system.instance()
    pins = decide(instance)
    return explain_conflict(instance) if pins is None else chosen(pins, system.matrix)


def shuffled(system: System, chance: Dice) -> System:
    """The same problem, written down in another order."""

    def mixed(rows: Any) -> tuple[Any, ...]:  # noqa: ANN401 - rows of any kind
        return tuple(chance.sample(list(rows), len(rows)))

    def release(one: Release) -> Release:
        builds = tuple(replace(build, requires=mixed(build.requires)) for build in mixed(one.builds))
        return replace(one, requires=mixed(one.requires), builds=builds)

    def component(one: Component) -> Component:
        # Names have no order of their own: what stands first in the file is wanted first.
        rows = one.releases if one.named else mixed(one.releases)
        return replace(one, releases=tuple(release(row) for row in rows))

    matrix = system.matrix
    rules = tuple(replace(rule, on=mixed(rule.on), require=mixed(rule.require)) for rule in mixed(matrix.rules))
    components = {name: component(matrix.components[name]) for name in mixed(matrix.components)}
    profiles = [{name: profile[name] for name in mixed(profile)} for profile in system.profiles]
    requires = {name: system.requires[name] for name in mixed(system.requires)}
    return system.having(matrix=replace(matrix, rules=rules, components=components), profiles=profiles, requires=requires)


@examples(200)
@given(ANY)
def test_5_fewer_rules_never_hurt(system: System) -> None:
    """Removing a rule, a need of a release or build, or a request keeps a satisfiable problem satisfiable."""
    assume(answered(system) is not None)
    for fewer in with_less(system):
        assert answered(fewer) is not None


def with_less(system: System) -> Iterator[System]:
    """The problem without one of its rules, or one of its needs, or one request."""
    matrix = system.matrix
    for index in range(len(matrix.rules)):
        yield system.having(matrix=replace(matrix, rules=(*matrix.rules[:index], *matrix.rules[index + 1 :])))
    for name, component in matrix.components.items():
        for place, release in enumerate(component.releases):
            for lighter in _lighter(release):
                releases = (*component.releases[:place], lighter, *component.releases[place + 1 :])
                yield system.having(matrix=_with(matrix, replace(component, releases=releases)))
        if name in system.requires and not component.virtual:
            yield system.having(requires={**system.requires, name: ">=0"})


def _lighter(release: Release) -> Iterator[Release]:
    for need in release.requires:
        yield replace(release, requires=tuple(one for one in release.requires if one is not need))
    for index, build in enumerate(release.builds):
        for need in build.requires:
            less = replace(build, requires=tuple(one for one in build.requires if one is not need))
            yield replace(release, builds=(*release.builds[:index], less, *release.builds[index + 1 :]))


def _with(matrix: Matrix, component: Component) -> Matrix:
    return replace(matrix, components={**matrix.components, component.name: component})


@examples(300)
@given(systems())
def test_6_irrelevant_alternatives(system: System) -> None:
    """Removing an unchosen release or build changes nothing; removing any never makes the impossible possible."""
    pins = answered(system)
    for name, place, fewer in with_fewer_alternatives(system):
        if pins is None:
            assert answered(fewer) is None, f"possible without {name} {place}"
        elif place not in {choice for where, choice in pins.items() if where.component == name}:
            assert answered(fewer) == pins, f"another answer without {name} {place}"


def with_fewer_alternatives(system: System) -> Iterator[tuple[str, Choice, System]]:
    """The problem without one release or one build, and which; what a host states stays known to its component."""
    for name, component in system.matrix.components.items():
        if component.virtual:
            continue
        for index, release in enumerate(component.releases):
            rest = (*component.releases[:index], *component.releases[index + 1 :])
            for build in release.builds:
                kept = tuple(one for one in release.builds if one is not build)
                releases = (*rest, replace(release, builds=kept)) if kept else rest
                fewer = _with(system.matrix, replace(component, releases=releases))
                yield name, Choice(release.version, build.name), system.having(matrix=fewer)
            if not release.builds:
                fewer = _with(system.matrix, replace(component, releases=rest))
                yield name, Choice(release.version), system.having(matrix=fewer)


@examples(430)
@given(ANY)
def test_7_sufficient_and_8_minimal(system: System) -> None:
    """The problem reduced to its conflict is still impossible; dropping any one member makes it possible."""
    assume(not system.oracle().is_possible())
    complete = CompleteSearch(system.instance())
    groups = set(complete.minimal())
    complete.close()
    second = system.oracle()
    assert not second.is_possible(kept={str(one) for one in groups}), f"{groups} can hold together"
    for group in groups:
        assert second.is_possible(kept={str(one) for one in groups - {group}}), f"{group} is not needed among {groups}"


@examples(180)
@given(ANY)
def test_9_hints_work(system: System) -> None:
    """Applying a hint, to the letter, yields a stack."""
    assume(not system.oracle().is_possible())
    for hint in explain_conflict(system.instance()).fixes:
        assert applied(system, hint).oracle().is_possible(), hint


def applied(system: System, hint: Fix) -> System:
    """The problem with every change of a hint made: a line of the spec, a fact of the host it names, or a host left out."""
    requires, profiles = dict(system.requires), [dict(profile) for profile in system.profiles]
    gone = set()
    for (component, change), host in zip(changes(hint), hosts(hint) or [""] * len(changes(hint)), strict=True):
        if (component, change) == ("target", "left out"):
            gone.add(int(host.removeprefix("host")))
            continue
        value = change.lstrip("<>=")
        numbers = [int(host.removeprefix("host"))] if host else range(len(profiles))
        stating = [number for number in numbers if component in profiles[number]]
        for number in stating:
            profiles[number][component] = BOOT[value] if component == "secure_boot" else value
        if not stating:
            assert component in requires, f"{component} is neither in the spec nor on {host or 'the host'}"
            requires[component] = change
    return system.having(requires=requires, profiles=[one for number, one in enumerate(profiles) if number not in gone])


def test_the_published_counterexample_is_answered_although_the_engine_returns_an_invalid_stack() -> None:
    """Resolvelib issue 206, as shrunk: rules a1->c2, a1->d{1,2}, c2->a{2,3}, d3->a{1,2}."""
    table: dict[str, dict[str, dict[str, list[str]]]] = {
        "a": {"3": {}, "1": {"c": ["2"], "d": ["1", "2"]}},
        "b": {"3": {}},
        "c": {"3": {}, "2": {"a": ["2", "3"]}},
        "d": {"3": {"a": ["1", "2"]}, "2": {}},
    }
    matrix = small.matrix("abcd", table, virtual=())
    requires = dict.fromkeys("abcd", ">=0")
    instance = ProblemInstance(join(matrix, small.request(requires)))
    pins = decide(instance)
    assert pins is not None
    assert violations(instance, pins) == []
    best = next(oracle.stacks(matrix, {name: small.need(name, text).range for name, text in requires.items()}))
    assert {key.name: one.version for key, one in pins.items() if key.name in matrix.order} == best


def test_an_invalid_answer_of_the_engine_is_caught() -> None:
    """The stack resolvelib was measured to return for that problem, a3 b3 c2 d3, although d3 requires a in {1, 2}."""
    table: dict[str, dict[str, dict[str, list[str]]]] = {
        "a": {"3": {}, "1": {"c": ["2"], "d": ["1", "2"]}},
        "b": {"3": {}},
        "c": {"3": {}, "2": {"a": ["2", "3"]}},
        "d": {"3": {"a": ["1", "2"]}, "2": {}},
    }
    instance = ProblemInstance(join(small.matrix("abcd", table, virtual=()), small.request(dict.fromkeys("abcd", ">=0"))))
    engine = search(instance)
    invalid = {key: _labelled(instance, key, label) for key, label in _measured(instance)}
    (broken,) = violations(instance, invalid)
    assert str(broken.ground.group) == "d needs a"
    assert engine is None or violations(instance, engine) or engine[_key(instance, "a")].label in {"1", "3"}


def _measured(instance: ProblemInstance) -> Iterator[tuple[Key, str]]:
    wanted = {"a": "3", "b": "3", "c": "2", "d": "3", "platform": "linux/amd64", "accelerator": "cuda"}
    return ((key, wanted[key.name]) for key in instance.problem.domains)


def _key(instance: ProblemInstance, name: str) -> Key:
    return next(key for key in instance.problem.domains if key.name == name)


def _labelled(instance: ProblemInstance, key: Key, label: str) -> Candidate:
    return next(one for one in instance.candidates(key) if one.label == label)


@examples(2000, shares={"direct": 0.2, "searched": 0.2})
@given(ANY, st.booleans())
def test_3_what_follows_directly_is_what_a_search_finds(system: System, is_locked: bool) -> None:  # noqa: FBT001 - drawn
    """Without a search the answer is the same or none; with every choice required, as in a lock, it is the same."""
    instance = system.instance()
    pins = decide(instance)
    if is_locked and pins is not None:
        instance = instance.relaxed(given=list(pins.values()))
    direct = direct_answer(instance)
    case("searched" if direct is None else "direct")
    assert direct is None or direct == pins
    assert direct is not None or not is_locked or pins is None
