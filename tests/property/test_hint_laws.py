"""Ways out of conflicts of packages, constraints and overrides, against every change a person could make by hand.

The second opinion tries all changes of up to three things and asks the brute force of `test_request_laws` whether anything
is left; a change is another version of what a line asks for, or a line that is left out.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from packaging.requirements import Requirement

from provisioner.grounds.conflict import AT_ONCE
from provisioner.resolver.joint import NoStackError, solve_joint
from provisioner.resolver.problem import join
from provisioner.words.conflict import fix_words
from tests import small
from tests.property.test_request_laws import NAMES, NUMBERS, REQUIRES, Wanted, World, table
from tests.strategies import examples
from tests.told import changes
from tests.unit.resolver.test_finder import Shelf, matrix_with_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provisioner.grounds.conflict import Conflict, Fix

pytestmark = pytest.mark.property

LINE, LEFT_OUT = "leaving out the {} `{}`", "left out"

BOUND = st.builds(Wanted, st.sampled_from(NAMES), st.sampled_from(["==", "<=", ">="]), st.sampled_from(NUMBERS))
TIGHT = st.tuples(
    REQUIRES,
    st.lists(BOUND, min_size=1, max_size=3).map(tuple),
    st.lists(BOUND, min_size=1, max_size=3).map(tuple),
    st.just({}) | st.lists(BOUND, min_size=1, max_size=2).map(lambda some: {one.name: one for one in some}),
).map(lambda fields: World(*fields))
"""Worlds in which little is left to choose, so that most have no answer."""

Step = tuple[str, str, object]
"""One change: `package` and its name with the version it may have (0: none of its lines), or a line that is left out."""


def conflicts_of(world: World) -> tuple[Conflict, ...]:
    """All conflicts that a person is told at once; () for a world that has an answer."""
    request = small.request({"python": "3.11"}, {}, packages=[str(one) for one in world.packages])
    lists = {
        "constraints": tuple(str(one) for one in world.constraints),
        "overrides": tuple(str(one) for one in world.overrides.values()),
    }
    request = replace(request, spec=replace(request.spec, **lists))
    try:
        solve_joint(join(matrix_with_facts(), request), lambda _: Shelf(table(world)))
    except NoStackError as error:
        return error.conflicts
    return ()


def changed(world: World, steps: tuple[Step, ...]) -> World:
    """The world after some changes."""
    for kind, name, value in steps:
        if kind == "package":
            lines = (one if one.name != name else Wanted(name, "==", value) for one in world.packages)  # type: ignore[arg-type]
            world = replace(world, packages=tuple(one for one in lines if one.name != name or value))
        elif kind == "constraint":
            world = replace(world, constraints=tuple(one for one in world.constraints if str(one) != value))
        else:
            world = replace(world, overrides={other: one for other, one in world.overrides.items() if other != name})
    return world


def steps_of(world: World) -> list[list[Step]]:
    """For each thing that could be changed all it could be."""
    names = dict.fromkeys(one.name for one in world.packages)
    found: list[list[Step]] = [[("package", name, number) for number in (*NUMBERS, 0)] for name in names]
    found.extend([("constraint", one.name, str(one))] for one in dict.fromkeys(world.constraints))
    found.extend([("override", name, "")] for name in world.overrides)
    return found


def ways(world: World) -> Iterator[tuple[Step, ...]]:
    """Every set of changes of up to three things after which something that was asked for can be had, fewest first."""
    for count in range(1, AT_ONCE + 1):
        for some in combinations(steps_of(world), count):
            for steps in product(*some):
                after = changed(world, steps)
                if after.packages and next(after.solutions(), None) is not None:
                    yield steps


def read(world: World, hint: Fix) -> tuple[Step, ...]:
    """What a hint tells a person to change, as steps."""
    found: list[Step] = []
    for component, text in changes(hint):
        key, _, name = component.partition(".")
        if key == "constraints":
            lines = [one for one in dict.fromkeys(world.constraints) if one.name == name]
            found.extend(("constraint", name, str(one)) for one in lines if LINE.format("constraint", one) in fix_words(hint))
        elif key == "overrides":
            found.append(("override", name, ""))
        else:
            found.append(("package", component, 0 if text == LEFT_OUT else int(text.removeprefix("=="))))
    return tuple(dict.fromkeys(found))


BOTH_REFUTED = World(
    {
        ("a", 1): (),
        ("b", 1): (),
        ("b", 2): (),
        ("b", 3): (Wanted("d", "<=", 1),),
        ("d", 1): (Wanted("b", ">=", 2), Wanted("b", "<=", 1)),
    },
    (Wanted("b", "==", 3), Wanted("d", "==", 1)),
    (Wanted("b", "==", 3), Wanted("d", "==", 1)),
    {},
)
"""What refutes d says nothing of b, which cannot be had either as long as it is constrained."""


def check_patch(world: World, hint: Fix) -> None:
    """The patch of a hint leaves every line of the spec that the hint does not name, also those of other conflicts."""
    after = changed(world, read(world, hint))
    spec = hint.patch.get("spec", {})
    for key, lines in {"packages": after.packages, "constraints": after.constraints}.items():
        assert [Requirement(line).name for line in spec.get(key, map(str, lines))] == [one.name for one in lines], fix_words(
            hint
        )


def check_several(world: World, conflicts: tuple[Conflict, ...]) -> None:
    """Each hint on one of several conflicts works together with the first hints on the others, and where a way is, is one."""
    event(f"{len(conflicts)} conflicts")
    if not world.overrides:
        assert any(one.fixes for one in conflicts) or next(ways(world), None) is None, conflicts
    first = [conflict.fixes[:1] for conflict in conflicts]
    for number, conflict in enumerate(conflicts):
        for hint in conflict.fixes:
            check_patch(world, hint)
            every = [*first[:number], (hint,), *first[number + 1 :]]
            steps = tuple(step for hints in every for one in hints for step in read(world, one))
            told = [fix_words(one) for hints in every for one in hints]
            assert next(changed(world, steps).solutions(), None) is not None, told


@examples(220)
@example(world=BOTH_REFUTED)
@given(world=TIGHT)
def test_hints_work_by_hand_and_where_there_is_a_way_there_is_a_hint(world: World) -> None:
    assume(next(world.solutions(), None) is None)
    conflicts = conflicts_of(world)
    assert conflicts
    if len(conflicts) > 1:
        check_several(world, conflicts)
        return
    (conflict,) = conflicts
    told = [read(world, hint) for hint in conflict.fixes]
    for steps, hint in zip(told, conflict.fixes, strict=True):
        check_patch(world, hint)
        assert next(changed(world, steps).solutions(), None) is not None, fix_words(hint)
        assert not any(set(other) < set(steps) for other in told), fix_words(hint)
    shortest = next(ways(world), None)
    event(
        "no way" if shortest is None else f"{len(shortest)} changes, {sum(kind != 'package' for kind, _, _ in shortest)} lines"
    )
    # What an override replaced is in no conflict, so nobody knows what else would have to change without it.
    if not world.overrides or told:
        assert told or shortest is None, (shortest, conflict)
    # More changes than that are told only where no fewer do.
    assert shortest is not None or all(len(steps) > AT_ONCE for steps in told), conflict
