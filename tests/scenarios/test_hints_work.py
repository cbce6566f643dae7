"""Every hint of every scenario, applied to the inputs as a person would, is solved again and gives what it says."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import TYPE_CHECKING

import pytest

from provisioner.components import FRAMEWORKS
from provisioner.errors import UnavailableError
from provisioner.grounds.edit import SetComponent, SetDistribution
from provisioner.resolver.stack import Stack
from provisioner.words.conflict import fix_words
from tests.scenarios.applied import applied, patched
from tests.scenarios.test_scenarios import HERE, SCENARIOS, outcome, read
from tests.told import changes, hosts

if TYPE_CHECKING:
    from pathlib import Path

    from provisioner.grounds.conflict import Conflict, Fix

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
        is_one_of_gpus = any(name == "gpu" for name, _ in changes(hint)) and len(scenario["hosts"][0]["gpus"]) > 1
        given_by = {}
        for is_at_end in (False,) if is_one_of_gpus else (False, True):  # of several GPUs the changes do not say which one
            # The near end as a program applies it, which knows the patch of the hint alone.
            after = (
                applied(scenario, hint, is_at_end=True) if is_at_end else patched(scenario, json.loads(json.dumps(hint.patch)))
            )
            assert after != scenario, fix_words(hint)
            try:
                again = outcome(after, tmp_path)
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
def test_no_two_hints_say_the_same_and_the_first_is_what_a_person_would_rather_change(path: Path, tmp_path: Path) -> None:
    conflicts = outcome(read(path), tmp_path)
    assert isinstance(conflicts, tuple)
    for conflict in conflicts:
        check_hints_differ(conflict)
        check_first(conflict)


def check_first(conflict: Conflict) -> None:
    """Check that no leaf is offered after its framework, and nothing after another GPU or what is given up."""
    for first in conflict.fixes[:1]:
        others = [one for one in conflict.fixes[1:] if one.is_unverified <= first.is_unverified]
        assert not (is_of_framework(first) and any(map(is_of_leaf, others))), fix_words(first)
        is_last_resort = first.is_hardware or first.gives_up
        assert not (is_last_resort and not all(one.is_hardware or one.gives_up for one in others)), fix_words(first)


def is_of_framework(fix: Fix) -> bool:
    """Return whether a fix takes another version of a framework."""
    edits = (edit for edit in fix.edits if isinstance(edit, SetComponent | SetDistribution))
    return any(edit.component in FRAMEWORKS for edit in edits)


def is_of_leaf(fix: Fix) -> bool:
    """Return whether a fix takes another version of a distribution that is no framework, and changes nothing else."""
    return len(fix.edits) == 1 and isinstance(fix.edits[0], SetDistribution) and fix.edits[0].name not in FRAMEWORKS


def check_hints_differ(conflict: Conflict) -> None:
    told = [frozenset(zip_longest(changes(hint), hosts(hint), fillvalue="")) for hint in conflict.fixes]
    assert len(set(told)) == len(told)
    for one in told:
        assert not any(other < one for other in told), "a hint with a change that is not needed"
