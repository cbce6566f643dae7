"""Every failure of the shipped matrix is recognised by its samples, and by no other failure's unless it says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provisioner.diagnose.log import log_of
from provisioner.diagnose.recognise import recognise
from tests.shipped import shipped

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix

MESSAGES = Path(__file__).parents[2] / "facts/messages.txt"
"""A message of each failure, after its name."""

LEAST = 60
"""The number of distinct failures that logs must be known to tell."""


def names_in(text: str, matrix: Matrix) -> set[str]:
    return {one.failure.name for one in recognise(log_of(text), matrix).failures}


def test_each_sample_is_recognised_by_its_own_row_and_by_no_other_that_it_does_not_name(matrix: Matrix) -> None:
    for failure in (one for one in matrix.failures if one.kind != "silent"):
        allowed = {failure.name, *failure.also, *(o.name for o in matrix.failures if set(o.alike) & set(failure.alike))}
        seen: set[str] = set()
        for sample in failure.samples:
            found = names_in(sample, matrix)
            assert failure.name in found, (failure.name, sample)
            assert found <= allowed, (failure.name, sample)
            seen |= found
        assert set(failure.also) <= seen, f"{failure.name}: no sample has the messages of {failure.also}"


def test_more_failures_than_were_asked_for_are_known(matrix: Matrix) -> None:
    assert len([one for one in matrix.failures if one.kind in {"cause", "consequence"}]) >= LEAST
    assert any(one.kind == "benign" for one in matrix.failures)


@pytest.mark.parametrize("line", MESSAGES.read_text(encoding="utf-8").splitlines(), ids=lambda line: line.partition(" ")[0])
def test_a_message_that_is_kept_beside_the_matrix_is_still_recognised(line: str) -> None:
    """The messages are kept twice, so that a row that is deleted or narrowed is missed."""
    name, _, message = line.partition(" ")
    assert name in names_in(message, shipped())


def test_every_statement_states_facts_and_is_no_failure(matrix: Matrix) -> None:
    for row in matrix.statements:
        for sample in row.samples:
            found = recognise(log_of(sample), matrix)
            assert found.readings or row.states, row.name
            assert not found.failures, row.name


@pytest.mark.parametrize(
    ("text", "fact", "value"),
    [
        ("is too old (found version 11040). Please", "cuda_of_driver", "11.4"),
        ("was compiled against (9, 1, 0) but found runtime version (9, 0, 0)", "", ""),
        ("Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.", "cudnn_wanted", "8.6.0"),
        ("with CUDA capability sm_120 is not compatible with the current PyTorch installation", "gpu", "12.0"),
        ("Mismatched NCCL version detected : rank 0 version 22005 rank 1 version 2708", "nccl_other", "2.7.8"),
        ("libc.so.6: version `GLIBC_2.34' not found", "glibc_wanted", "2.34"),
        ("NVRM: API mismatch: the client has the version 535.54.03, but", "userspace_driver", "535.54.03"),
        ("unsatisfied condition: cuda>=12.8, please", "", ""),
        ("requirement error: unsatisfied condition: cuda>=12.8, please", "cuda_wanted", "12.8"),
    ],
)
def test_numbers_in_messages_are_decoded(text: str, fact: str, value: str) -> None:
    found = recognise(log_of(f"RuntimeError: The NVIDIA driver on your system {text}"), shipped())
    readings = {reading.fact: reading.value for one in found.failures for reading in one.readings}
    assert readings.get(fact, "") == value
