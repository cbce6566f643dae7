"""What a refutation of some needs on components tells of other needs."""

from __future__ import annotations

import pytest

from provisioner.resolver.requirement import NO_VERSION, Candidate, Key
from provisioner.resolver.search.components import Refuted

CUDA, PYTHON = Key("cuda"), Key("python")
C = {number: Candidate(CUDA, NO_VERSION, str(number)) for number in (1, 2, 3)}
P = {number: Candidate(PYTHON, NO_VERSION, str(number)) for number in (1, 2)}


def cuda(*numbers: int) -> tuple[Key, frozenset[Candidate]]:
    return CUDA, frozenset(C[number] for number in numbers)


def python(*numbers: int) -> tuple[Key, frozenset[Candidate]]:
    return PYTHON, frozenset(P[number] for number in numbers)


@pytest.mark.parametrize(
    ("needs", "is_refuted"),
    [
        ([cuda(1, 2), python(1)], True),
        ([python(1), cuda(1)], True),
        ([cuda(1, 2, 3), python(1)], False),
        ([cuda(1, 2), python(1, 2)], False),
        ([cuda(1, 2)], False),
        ([cuda(3), python(1)], False),
    ],
)
def test_what_is_stricter_than_needs_that_nothing_meets_together_is_met_by_nothing(
    needs: list[tuple[Key, frozenset[Candidate]]], *, is_refuted: bool
) -> None:
    refuted = Refuted()
    refuted.add([cuda(1, 2), python(1)])
    assert refuted.include(needs) is is_refuted


def test_candidates_that_nothing_goes_with_one_by_one_are_refuted_as_alternatives() -> None:
    refuted = Refuted()
    refuted.add([cuda(1)])
    refuted.add([cuda(3)])
    assert refuted.include([python(1), cuda(1, 3)])
    assert not refuted.include([cuda(1, 2)])


def test_where_there_is_no_choice_at_all_everything_is_refuted() -> None:
    refuted = Refuted()
    assert not refuted.include([cuda(1)])
    refuted.add([])
    assert refuted.include([cuda(1)])
    assert refuted.include([])
