"""At-most-one clauses, maximal sets and smallest covers, against brute force."""

from __future__ import annotations

import random
from itertools import combinations, count, product

import pytest
from pysat.solvers import Solver

from provisioner.resolver.search.sat import Clauses, at_most_one, covers, fewest, independent


def requests_of(pairs_apart: list[tuple[int, int]], count: int) -> tuple[Clauses, list[int]]:
    """Requests of which some pairs cannot be met together."""
    clauses = Clauses()
    requests = [clauses.variable() for _ in range(count)]
    for first, second in pairs_apart:
        clauses.add([-requests[first], -requests[second]])
    return clauses, requests


def test_every_maximal_set_is_listed_and_the_clauses_can_be_used_after_it() -> None:
    clauses, requests = requests_of([(0, 1), (1, 2)], 4)
    found = {frozenset(requests.index(one) for one in some) for some in clauses.maximal(requests, most=100)}
    assert found == {frozenset({0, 2, 3}), frozenset({1, 3})}
    again = {frozenset(requests.index(one) for one in some) for some in clauses.maximal(requests, most=100)}
    assert again == found
    assert clauses.model([requests[0], requests[1]]) is None
    assert clauses.core() == {requests[0], requests[1]}
    clauses.close()


def test_no_more_sets_are_listed_than_asked_for() -> None:
    clauses, requests = requests_of([(0, 1), (1, 2)], 4)
    assert len(list(clauses.maximal(requests, most=1))) == 1
    clauses.close()


def test_a_set_grows_from_what_it_must_hold() -> None:
    clauses, requests = requests_of([(0, 1), (1, 2)], 4)
    assert clauses.grown([requests[1]], requests) == frozenset({requests[1], requests[3]})
    assert clauses.grown([requests[0], requests[1]], requests) is None
    clauses.close()


def test_at_most_one_of_many_is_chosen() -> None:
    clauses = Clauses()
    literals = [clauses.variable() for _ in range(6)]
    clauses.at_most_one(literals)
    assert all(clauses.model([one]) is not None for one in literals)
    assert all(clauses.model(pair) is None for pair in combinations(literals, 2))
    clauses.close()


@pytest.mark.parametrize("seed", range(60))
def test_covers_are_the_smallest_there_are_and_what_is_apart_is_a_lower_bound(seed: int) -> None:
    dice = random.Random(seed)
    elements = list(range(dice.randint(1, 7)))
    sets = [frozenset(dice.sample(elements, dice.randint(1, len(elements)))) for _ in range(dice.randint(1, 6))]
    sets += [frozenset({one}) for one in elements if not any(one in some for some in sets)]
    smallest = next(
        size
        for size in range(1, len(sets) + 1)
        if any(frozenset().union(*some) >= set(elements) for some in combinations(sets, size))
    )
    chosen = fewest(sets, elements)
    assert len(chosen) == smallest
    assert frozenset[int]().union(*(sets[at] for at in chosen)) == set(elements)
    found = covers(sets, elements, size=smallest, most=1000)
    expected = {
        some
        for some in combinations(range(len(sets)), smallest)
        if frozenset[int]().union(*(sets[at] for at in some)) == set(elements)
    }
    assert set(found) == expected
    together = {one: frozenset[int]().union(*(some for some in sets if one in some)) for one in elements}
    assert len(independent(elements, together)) <= smallest


def test_only_the_first_covers_are_listed() -> None:
    sets = [frozenset({0}), frozenset({0}), frozenset({0})]
    assert covers(sets, [0], size=1, most=2) == [(0,), (1,)]


def test_nothing_to_cover_needs_nothing() -> None:
    assert fewest([], []) == ()
    assert independent([], {}) == ()


@pytest.mark.parametrize("size", range(6))
def test_a_choice_is_allowed_exactly_when_it_holds_at_most_one(size: int) -> None:
    literals = list(range(1, size + 1))
    numbers = count(size + 1)
    with Solver(name="glucose42", bootstrap_with=list(at_most_one(literals, lambda: next(numbers)))) as solver:
        for choice in product((False, True), repeat=size):
            assumed = [literal if is_chosen else -literal for literal, is_chosen in zip(literals, choice, strict=True)]
            assert solver.solve(assumptions=assumed) == (sum(choice) <= 1), choice
