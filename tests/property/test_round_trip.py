"""Law 10: what is written reads back as what was locked, and solving again with a fresh lock returns that lock.

Locks of invented stacks, with every field a stack may have, are in tests/unit/lock/test_round_trip.py.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from msgspec.structs import replace

from provisioner.lock.format.file import parse_lock, write_lock
from provisioner.resolver.joint import solve_system
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.problem import join
from provisioner.resolver.search.resolve import decide
from tests import small
from tests.lock_examples import lock_of
from tests.property.test_three_valued import cases
from tests.shipped import shipped
from tests.strategies import Dice, System, chosen, dice, examples, systems, times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Component
    from provisioner.resolver.search.instance import ProblemInstance

pytestmark = pytest.mark.property

FILE = "pylock.trainer.toml"


def locked(instance: ProblemInstance) -> Lock | None:
    pins = decide(instance)
    return None if pins is None else lock_of(answer(instance, pins))


def preferred(lock: Lock) -> Mapping[str, str]:
    """What a lock chose, as the next solve is told (`provision solve` without --upgrade)."""
    return lock.on("linux/amd64").stack.components


@examples(200)
@given(systems())
def test_10_what_is_written_reads_back(system: System) -> None:
    """`read(write(lock)) == lock`, `write(read(text)) == text`."""
    lock = locked(system.instance())
    assume(lock is not None)
    assert lock is not None
    text = write_lock(lock)
    assert parse_lock(text, file=FILE) == lock
    assert write_lock(parse_lock(text, file=FILE)) == text


def test_10_what_is_written_of_the_shipped_matrix_reads_back() -> None:
    for case in random.Random(10).sample(cases(), min(len(cases()), times(30))):
        lock = lock_of(solve_system(join(shipped(), case.request())))
        text = write_lock(lock)
        assert parse_lock(text, file=FILE) == lock, case.name
        assert write_lock(parse_lock(text, file=FILE)) == text, case.name


@examples(200)
@given(systems())
def test_10_solving_with_a_fresh_lock_returns_that_lock(system: System) -> None:
    lock = locked(system.instance())
    assume(lock is not None)
    assert lock is not None
    again = locked(system.instance(preferred=preferred(lock)))
    assert again is not None
    assert write_lock(again) == write_lock(lock)


@examples(200)
@given(systems(has_builds=False), dice())
def test_10_newer_releases_move_nothing_that_is_locked(system: System, chance: Dice) -> None:
    """A lock that is still a solution stays, whatever was published since; hosts keep the newest that is to be chosen."""
    pins = decide(system.instance())
    assume(pins is not None)
    assert pins is not None
    lock = lock_of(answer(system.instance(), pins))
    grown = system.having(matrix=replace(system.matrix, components=_grown(system, chance)))
    again = decide(grown.instance(preferred=preferred(lock)))
    assert again is not None
    assert chosen(again, grown.matrix) == chosen(pins, system.matrix)


def _grown(system: System, chance: Dice) -> dict[str, Component]:
    """The components of an image with newer releases, which need nothing, so that every one of them is wanted."""
    found = dict(system.matrix.components)
    for name, component in found.items():
        if not component.virtual and chance.random() < 0.7:
            newer = small.release(str(len(component.releases) + 5), {})
            found[name] = replace(component, releases=(newer, *component.releases))
    return found
