"""A law that proves nothing fails, and what is built with dice shrinks."""

from __future__ import annotations

import pytest
from hypothesis import assume, find, given
from hypothesis import strategies as st

from tests.strategies import Dice, case, dice, examples


def test_a_law_whose_assumptions_nothing_meets_but_one_example_fails() -> None:
    @examples(100)
    @given(st.integers(0, 9))
    def law(number: int) -> None:
        assume(number == 5)

    with pytest.raises(AssertionError, match=r"^only 1 of [0-9]+ examples reach what the law asserts"):
        law()


def test_a_law_that_meets_no_case_of_a_kind_fails() -> None:
    @examples(2000, shares={"odd": 0.4})
    @given(st.integers())
    def law(number: int) -> None:
        case("even" if number % 2 == 0 else "one")

    with pytest.raises(AssertionError, match=r"^only 0 of [0-9]+ examples are odd"):
        law()


def test_a_law_that_meets_its_cases_holds() -> None:
    @examples(2000, shares={"even": 0.4, "odd": 0.4})
    @given(dice())
    def law(chance: Dice) -> None:
        case("even" if chance.randint(1, 6) % 2 == 0 else "odd")

    law()


def test_what_is_thrown_shrinks_to_the_least_that_will_do() -> None:
    throws = dice(40).map(lambda chance: [chance.randint(1, 6) for _ in range(5)])
    assert find(throws, lambda numbers: sum(numbers) > 5) == [1, 1, 1, 1, 2]
