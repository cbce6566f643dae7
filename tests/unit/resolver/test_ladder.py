"""At most one of many, held against counting."""

from __future__ import annotations

from itertools import count, product

import pytest
from pysat.solvers import Solver

from provisioner.resolver.search.ladder import at_most_one


@pytest.mark.parametrize("size", range(6))
def test_a_choice_is_allowed_exactly_when_it_holds_at_most_one(size: int) -> None:
    literals = list(range(1, size + 1))
    numbers = count(size + 1)
    with Solver(name="glucose42", bootstrap_with=list(at_most_one(literals, lambda: next(numbers)))) as solver:
        for choice in product((False, True), repeat=size):
            assumed = [literal if is_chosen else -literal for literal, is_chosen in zip(literals, choice, strict=True)]
            assert solver.solve(assumptions=assumed) == (sum(choice) <= 1), choice
