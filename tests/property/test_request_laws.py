"""Constraints, overrides and upgrades by name on small random worlds, against every choice there is.

The second opinion shares no code with the solver: it tries all combinations of versions, reads ranges as comparisons of
integers, and knows constraints and overrides by their definition alone.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from tests import small
from tests.strategies import examples
from tests.unit.resolver.test_finder import Shelf, matrix_with_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.resolver.stack import Stack

pytestmark = pytest.mark.property

NAMES = ("a", "b", "c", "d")
NUMBERS = (1, 2, 3)
SIGNS = {"==": int.__eq__, "<=": int.__le__, ">=": int.__ge__, "!=": int.__ne__}

Choice = dict[str, int]


class Wanted(Struct, frozen=True):
    """A range of one name; without a sign any version."""

    name: str
    sign: str = ""
    number: int = 0

    def __str__(self) -> str:
        return f"{self.name}{self.sign}{self.number or ''}"

    def holds(self, choice: Mapping[str, int]) -> bool:
        """Whether something is chosen that is in the range."""
        return self.name in choice and (not self.sign or SIGNS[self.sign](choice[self.name], self.number))


class World(Struct, frozen=True):
    """What each version of each name requires; a spec's packages, constraints and overrides."""

    requires: Mapping[tuple[str, int], tuple[Wanted, ...]]
    packages: tuple[Wanted, ...]
    constraints: tuple[Wanted, ...] = ()
    overrides: Mapping[str, Wanted] = field(default_factory=dict)

    def after(self, wanted: tuple[Wanted, ...]) -> Iterator[Wanted]:
        """Requirements after the overrides."""
        return (self.overrides.get(one.name, one) for one in wanted)

    def solutions(self) -> Iterator[Choice]:
        """Every choice that holds together and has nothing that nobody requires."""
        versions = [[0, *(number for name, number in self.requires if name == one)] for one in NAMES]
        for numbers in product(*versions):
            choice = {name: number for name, number in zip(NAMES, numbers, strict=True) if number}
            wanted = [*self.after(self.packages)]
            for pair in choice.items():
                wanted.extend(self.after(self.requires[pair]))
            bounded = all(one.holds(choice) for one in self.constraints if one.name in choice)
            if bounded and all(one.holds(choice) for one in wanted) and self.reached(choice) == set(choice):
                yield choice

    def reached(self, choice: Choice) -> set[str]:
        """What the packages lead to."""
        found: set[str] = set()
        queue = [one.name for one in self.after(self.packages)]
        while queue:
            name = queue.pop()
            if name in choice and name not in found:
                found.add(name)
                queue.extend(one.name for one in self.after(self.requires[name, choice[name]]))
        return found


WANTED = st.builds(Wanted, st.sampled_from(NAMES), st.sampled_from(["", *SIGNS]), st.sampled_from(NUMBERS)).map(
    lambda one: replace(one, number=one.number if one.sign else 0)
)
REQUIRES = st.fixed_dictionaries(
    {(name, number): st.lists(WANTED, max_size=2).map(tuple) for name in NAMES for number in NUMBERS}
)
WORLDS = st.tuples(
    REQUIRES,
    st.lists(WANTED, min_size=1, max_size=2).map(tuple),
    st.lists(WANTED.filter(lambda one: bool(one.sign)), max_size=2).map(tuple),
    st.lists(WANTED, max_size=2).map(lambda some: {one.name: one for one in some}),
).map(lambda fields: World(*fields))


def table(world: World) -> dict[str, dict[str, list[str] | str]]:
    found: dict[str, dict[str, list[str] | str]] = {name: {} for name in NAMES}
    for (name, number), wanted in world.requires.items():
        found[name][str(number)] = [str(one) for one in wanted]
    return found


def solved(world: World, *, preferred: Choice | None = None, upgraded: str = "") -> Choice | None:
    stack = stack_of(world, preferred=preferred or {}, upgraded=upgraded)
    return None if stack is None else {package.name: int(package.version) for package in stack.packages}


def stack_of(world: World, *, preferred: Choice, upgraded: str = "") -> Stack | None:
    request = small.request({"python": "3.11"}, {}, packages=[str(one) for one in world.packages])
    lists = {
        "constraints": tuple(str(one) for one in world.constraints),
        "overrides": tuple(str(one) for one in world.overrides.values()),
    }
    kept = {name: str(number) for name, number in preferred.items() if name != upgraded}
    named = {upgraded: str(preferred.get(upgraded, ""))} if upgraded else {}
    request = replace(request, spec=replace(request.spec, **lists), preferred=kept, upgraded=named)
    try:
        return solve_joint(join(matrix_with_facts(), request), lambda _: Shelf(table(world)))
    except NoStackError:
        return None


@examples(150)
@given(world=WORLDS)
def test_an_answer_is_one_of_all_solutions_and_none_means_there_is_none(world: World) -> None:
    solutions = list(world.solutions())
    found = solved(world)
    event("solved" if found else "impossible")
    assert found in solutions if found is not None else not solutions


@examples(60)
@given(world=WORLDS)
def test_what_an_answer_does_not_meet_of_the_metadata_is_named(world: World) -> None:
    stack = stack_of(world, preferred={})
    assume(stack is not None)
    assert stack is not None
    choice = {package.name: int(package.version) for package in stack.packages}
    unmet = {
        one.name
        for pair in choice.items()
        for one in world.requires[pair]
        if not one.holds(choice) and one.name in world.overrides
    }
    assert {one.component for one in stack.relaxations if one.name == "override"} == unmet


@examples(150)
@given(world=WORLDS, hidden=st.sets(st.tuples(st.sampled_from(NAMES), st.just(3))), name=st.sampled_from(NAMES))
def test_an_upgrade_moves_nothing_that_could_have_stayed(world: World, hidden: set[tuple[str, int]], name: str) -> None:
    older = replace(world, requires={pair: wanted for pair, wanted in world.requires.items() if pair not in hidden})
    locked = solved(older)
    assume(locked is not None and name in locked)
    assert locked is not None
    found = solved(world, preferred=locked, upgraded=name)
    assert found is not None, "what was locked is still a solution"
    moved = _moved(locked, found) - {name}
    event(f"{len(moved)} moved along")
    for other in world.solutions():
        if other.get(name) == found.get(name) and set(other) >= set(found):
            assert not _moved(locked, other) - {name} < moved, (locked, found, other)


@examples(100)
@given(world=WORLDS, hidden=st.sets(st.tuples(st.sampled_from(NAMES), st.just(3))))
def test_without_an_upgrade_what_is_locked_stays(world: World, hidden: set[tuple[str, int]]) -> None:
    older = replace(world, requires={pair: wanted for pair, wanted in world.requires.items() if pair not in hidden})
    locked = solved(older)
    assume(locked is not None)
    assert locked is not None
    assert solved(world, preferred=locked) == locked


def _moved(before: Choice, after: Choice) -> set[str]:
    """What both have, in different versions."""
    return {name for name in before.keys() & after.keys() if before[name] != after[name]}
