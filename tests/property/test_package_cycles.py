"""Circles: a few distributions that all require each other, where nearly every choice is taken back.

Brute force tries every choice of versions; nothing here is shared with the solver but the text of the requirements.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from tests.file_shelf import solved, wheel
from tests.strategies import case, dice, examples

pytestmark = pytest.mark.property

NAMES = ("alpha", "beta", "gamma")
OPERATORS = ("", "", "==", "<", "<=", ">=", "!=")

Metadata = dict[str, tuple[str, ...]]


@st.composite
def circles(draw: st.DrawFn) -> tuple[Metadata, int]:
    """Draw what each version requires, and how many versions each of the distributions has."""
    chance = draw(dice())
    names, count = NAMES[: chance.randint(2, 3)], chance.randint(2, 4)

    def wanted(other: str) -> str:
        operator = chance.choice(OPERATORS)
        return f"{other}{operator}{chance.randint(1, count + 1)}" if operator else other

    needs = {
        f"{name} {number}": tuple(wanted(other) for other in names if other != name and chance.random() < 0.7)
        for name in names
        for number in range(1, count + 1)
    }
    return needs, count


def is_valid(needs: Metadata, pins: dict[str, str]) -> bool:
    """Whether everything that somebody requires is there, in a version that will do."""
    wanted = [Requirement(text) for name, version in pins.items() for text in needs[f"{name} {version}"]]
    return all(one.name in pins and one.specifier.contains(pins[one.name]) for one in wanted)


def is_possible(needs: Metadata, count: int) -> bool:
    """Whether some choice of versions, of which some may be left out, has alpha and is valid."""
    numbers = [str(number) for number in range(1, count + 1)]
    for choice in product(numbers, ["", *numbers], ["", *numbers]):
        pins = {name: number for name, number in zip(NAMES, choice, strict=True) if number}
        if all(f"{name} 1" in needs for name in pins) and is_valid(needs, pins):
            return True
    return False


def answered(needs: Metadata, count: int) -> dict[str, str] | None:
    files = {name: [wheel(name, str(number)) for number in range(1, count + 1)] for name in NAMES}
    return solved(files, "alpha", metadata=needs)


@examples(3000, shares={"possible": 0.2, "impossible": 0.05})
@given(circles())
def test_1_valid_and_2_complete(circle: tuple[Metadata, int]) -> None:
    needs, count = circle
    pins = answered(needs, count)
    case("impossible" if pins is None else "possible")
    assert (pins is not None) == is_possible(needs, count)
    assert pins is None or is_valid(needs, pins)


@examples(2000)
@given(circles())
def test_3_nothing_could_be_newer_with_everything_else_as_it_is(circle: tuple[Metadata, int]) -> None:
    """An engine that takes a choice back may keep what only that choice asked for: 1 in 20 of these, without a second look."""
    needs, count = circle
    pins = answered(needs, count)
    assume(pins is not None)
    assert pins is not None
    for name, version in pins.items():
        for newer in range(int(version) + 1, count + 1):
            assert not is_valid(needs, {**pins, name: str(newer)}), f"{name} {newer} would do"
