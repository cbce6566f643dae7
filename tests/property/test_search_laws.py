"""The laws of the search, on thousands of small random problems, against brute force that shares no code with it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.solve.complete import CompleteSearch
from provisioner.solve.conflict import explain_conflict
from provisioner.solve.problem import join
from provisioner.solve.provider import search
from provisioner.solve.resolve import decide
from provisioner.solve.universe import Universe, violations
from provisioner.versions import Range
from tests import oracle, small

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix
    from provisioner.solve.requirement import Candidate, Key

pytestmark = pytest.mark.property

SETTINGS = settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")


@st.composite
def problems(draw: st.DrawFn, *, is_cyclic: bool = False) -> tuple[Matrix, dict[str, str]]:
    """A random matrix of 2 to 5 components and requests for all of them; rules point down unless `is_cyclic`."""
    names = NAMES[: draw(st.integers(2, 5))]
    seed = random.Random(draw(st.integers(0, 2**32)))
    versions = {name: [str(number) for number in range(1, seed.randint(1, 4) + 1)] for name in names}
    density = seed.choice((0.2, 0.4, 0.6, 0.8))
    table: dict[str, dict[str, dict[str, list[str]]]] = {}
    for index, name in enumerate(names):
        others = [other for other in names if other != name] if is_cyclic else names[index + 1 :]
        table[name] = {
            version: {
                other: seed.sample(versions[other], seed.randint(1, len(versions[other])))
                for other in others
                if seed.random() < density
            }
            for version in versions[name]
        }
    requires = {name: f">={seed.choice(versions[name])}" if seed.random() < 0.3 else ">=0" for name in names}
    return small.matrix(names, table, virtual=()), requires


def universe_of(matrix: Matrix, requires: dict[str, str]) -> Universe:
    return Universe(join(matrix, small.wish(requires)))


def chosen(pins: dict[Key, Candidate], matrix: Matrix) -> dict[str, str]:
    return {key.name: candidate.label for key, candidate in pins.items() if key.name in matrix.order}


def expected(matrix: Matrix, requires: dict[str, str]) -> dict[str, str] | None:
    first = next(oracle.stacks(matrix, {name: Range.parse(text) for name, text in requires.items()}), None)
    return {name: str(version) for name, version in first.items()} if first else None


@SETTINGS
@given(problems())
def test_a_stack_is_found_exactly_when_brute_force_finds_one_and_it_is_the_newest_in_order(
    problem: tuple[Matrix, dict[str, str]],
) -> None:
    pins = decide(universe_of(*problem))
    assert (chosen(pins, problem[0]) if pins is not None else None) == expected(*problem)


@SETTINGS
@given(problems(is_cyclic=True))
def test_cyclic_problems_are_decided_correctly_whatever_the_engine_said(problem: tuple[Matrix, dict[str, str]]) -> None:
    matrix, requires = problem
    universe = universe_of(matrix, requires)
    pins = decide(universe)
    best = expected(matrix, requires)
    assert (pins is None) == (best is None)
    if pins is not None:
        versions = {key.name: candidate.version for key, candidate in pins.items() if key.name in matrix.order}
        assert oracle.holds(matrix, {name: Range.parse(text) for name, text in requires.items()}, versions)


@SETTINGS
@given(problems(is_cyclic=True))
def test_the_complete_search_finds_the_newest_in_order_on_any_problem(problem: tuple[Matrix, dict[str, str]]) -> None:
    complete = CompleteSearch(universe_of(*problem))
    pins = complete.best()
    complete.close()
    assert (chosen(pins, problem[0]) if pins is not None else None) == expected(*problem)


@SETTINGS
@given(problems(is_cyclic=True))
def test_a_conflict_is_sufficient_and_minimal(problem: tuple[Matrix, dict[str, str]]) -> None:
    if expected(*problem) is not None:
        return
    complete = CompleteSearch(universe_of(*problem))
    groups = complete.minimal()
    assert not complete.holds(groups), "the members alone can hold together"
    for group in groups:
        assert complete.holds([other for other in groups if other != group]), f"{group} is not needed"
    complete.close()


@SETTINGS
@given(problems())
def test_every_hint_works_when_it_is_applied(problem: tuple[Matrix, dict[str, str]]) -> None:
    matrix, requires = problem
    if expected(matrix, requires) is not None:
        return
    for hint in explain_conflict(universe_of(matrix, requires)).hints:
        changed = {**requires, **dict(hint.changes)}
        assert expected(matrix, changed) is not None, (requires, hint)


@SETTINGS
@given(problems())
def test_removing_a_rule_keeps_a_solvable_problem_solvable(problem: tuple[Matrix, dict[str, str]]) -> None:
    matrix, requires = problem
    if expected(matrix, requires) is None:
        return
    for name in matrix.order:
        table = {
            one: {str(r.version): {n.component: [str(v) for v in n.one_of] for n in r.needs if one != name} for r in c.releases}
            for one, c in matrix.components.items()
        }
        assert decide(universe_of(small.matrix(matrix.order, table, virtual=()), requires)) is not None


@SETTINGS
@given(problems(), st.integers(0, 2**32))
def test_the_order_of_rows_and_needs_does_not_matter(problem: tuple[Matrix, dict[str, str]], seed: int) -> None:
    matrix, requires = problem
    shuffle = random.Random(seed)
    table: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name, component in matrix.components.items():
        releases = list(component.releases)
        shuffle.shuffle(releases)
        table[name] = {}
        for release in releases:
            needs = list(release.needs)
            shuffle.shuffle(needs)
            table[name][str(release.version)] = {need.component: [str(one) for one in need.one_of] for need in needs}
    shuffled = universe_of(small.matrix(matrix.order, table, virtual=()), requires)
    first, second = decide(universe_of(matrix, requires)), decide(shuffled)
    assert (first and chosen(first, matrix)) == (second and chosen(second, matrix))


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
    universe = universe_of(matrix, requires)
    engine = search(universe)
    pins = decide(universe)
    assert pins is not None
    assert violations(universe, pins) == []
    assert engine is None or chosen(engine, matrix) != {}  # the engine's own answer is not trusted either way
    assert chosen(pins, matrix) == expected(matrix, requires)
