"""A short campaign of `make fuzz` over every reader: damaged files are read or refused, and nothing else happens."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.fuzz import READERS, content_of, too_slow, tried
from tests.strategies import times

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.property
INPUTS = {"log": 40, "lock": 100, "lock of another program": 100, "published table": 100, "spec with hosts": 200}
"""How many inputs are tried of the readers that take long; of the others it is 400."""


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, too_slow)
    yield
    signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    outcomes = {tried(name, content_of(name, 2, number), tmp_path): number for number in range(times(INPUTS.get(name, 400)))}
    assert outcomes.keys() <= {"read", "refused"}
    assert "read" in outcomes


def test_an_input_is_the_same_for_the_same_seed_and_number() -> None:
    assert content_of("lock", 7, 3) == content_of("lock", 7, 3) != content_of("lock", 8, 3)
