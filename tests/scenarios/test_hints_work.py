"""Every hint of every scenario, applied to the inputs as a person would, is solved again and gives what it says."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest

from provisioner.errors import UnavailableError
from provisioner.resolver.stack import Stack
from provisioner.words.conflict import fix_words
from tests.scenarios.applied import applied
from tests.scenarios.test_scenarios import HERE, SCENARIOS, outcome, read
from tests.told import changes, hosts

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.grounds.conflict import Conflict

pytestmark = pytest.mark.slow

CONFLICTS = [path for path in SCENARIOS if "conflict" in read(path)["expected"]]


@pytest.mark.parametrize("path", CONFLICTS, ids=lambda path: str(path.relative_to(HERE)))
def test_every_hint_gives_what_it_says(path: Path, tmp_path: Path) -> None:
    scenario = read(path)
    conflicts = outcome(scenario, tmp_path)
    assert isinstance(conflicts, tuple)
    if len(conflicts) > 1:
        together = scenario
        for conflict in conflicts:
            for hint in conflict.fixes[:1]:
                together = applied(together, hint, is_at_end=False)
        found = [outcome(one, tmp_path) for one in (together, applied(scenario, conflicts[0].fixes[0], is_at_end=False))]
        assert any(isinstance(one, Stack) for one in found), found
        return
    for hint in conflicts[0].fixes:
        if any(component == "gpu" for component, _ in changes(hint)) and len(scenario["hosts"][0]["gpus"]) > 1:
            continue  # of several GPUs the words say which one, the changes cannot
        given_by = {}
        for is_at_end in (False, True):
            try:
                again = outcome(applied(scenario, hint, is_at_end=is_at_end), tmp_path)
            except UnavailableError:
                assert hint.is_unverified, fix_words(hint)
                assert conflicts[0].unreached, fix_words(hint)
                given_by[is_at_end] = dict(hint.gives)  # the framework is on an index out of reach, and the rest was solved
                continue
            assert isinstance(again, Stack), f"{fix_words(hint)}: {again}"
            given_by[is_at_end] = given(again, hint.gives)
        assert dict(hint.gives) in given_by.values(), fix_words(hint)


def given(stack: Stack, names: object) -> dict[str, str]:
    """What a stack holds of what a hint promised."""
    packages = {package.name: package.version for package in stack.packages}
    assert isinstance(names, dict)
    return {name: stack.components.get(name) or packages.get(name.partition("[")[0], "") for name in names}


@pytest.mark.parametrize("path", CONFLICTS, ids=lambda path: str(path.relative_to(HERE)))
def test_no_two_hints_say_the_same(path: Path, tmp_path: Path) -> None:
    conflicts = outcome(read(path), tmp_path)
    assert isinstance(conflicts, tuple)
    for conflict in conflicts:
        check_hints_differ(conflict)


def check_hints_differ(conflict: Conflict) -> None:
    told = [frozenset(zip_longest(changes(hint), hosts(hint), fillvalue="")) for hint in conflict.fixes]
    assert len(set(told)) == len(told)
    for one in told:
        assert not any(other < one for other in told), "a hint with a change that is not needed"
