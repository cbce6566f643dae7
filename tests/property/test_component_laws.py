"""The law of the components alone: a candidate is admitted exactly where some choice of components goes with it.

Two instances, one for each Python, share a search, and are asked in turn: what one learns must not be told of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from provisioner.index.model import Environment
from provisioner.resolver.attempts import system_half, with_python
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import PACKAGE, TORCH, FileCandidate, Key
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.components import ComponentSearch, Refuted, SharedComponents
from provisioner.resolver.search.instance import ProblemInstance
from tests.package_trials import OTHER_PYTHON, PYTHON, Entry, Shelf, Trial, Wanted, instance_of, random_trial
from tests.strategies import case, dice, examples

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from provisioner.resolver.requirement import Candidate

pytestmark = pytest.mark.property


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    names, versions = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    return random_trial(draw(dice()), names=names, versions=versions)


def is_admitted(trial: Trial, python: str, candidate: Candidate) -> bool:
    """Whether brute force finds PyTorch, CUDA and driver that go with a candidate, the host and the spec."""
    wanted = [one for one in trial.roots if one.name == "torch"] + ([trial.pytorch] if trial.pytorch is not None else [])
    asked = {}
    if candidate.key == TORCH:
        asked["pytorch"] = candidate.label
    elif candidate.key.is_package:
        own = [one for one in needs(trial, candidate) if one.name == "torch"]
        if not own:
            return True  # it goes with any components, if there are any
        wanted += own
    else:
        asked[candidate.key.name] = candidate.label
    if asked.get("python", python) != python:
        return False
    drivers = [one for one in range(1, trial.drivers + 1) if trial.driver in {None, one}]
    drivers = [one for one in drivers if asked.get("driver", str(one)) == str(one)]
    cuda = [number for number, some in trial.cuda.items() if not set(some).isdisjoint(drivers)]
    if "cuda" in asked:
        cuda = [one for one in cuda if str(one) == asked["cuda"]]
        if not cuda:
            return False
    if not wanted and "pytorch" not in asked:
        return bool(drivers)
    return any(
        is_usable(trial.wheels[release, variant])
        and python == PYTHON
        and all(one.takes(release) for one in wanted)
        and asked.get("pytorch", f"{release}+{variant}") == f"{release}+{variant}"
        and not set(needed).isdisjoint(cuda)
        for (release, variant), needed in trial.builds.items()
    )


def is_usable(wheel: Entry | None) -> bool:
    return wheel is not None and wheel.state == "usable"


def needs(trial: Trial, candidate: Candidate) -> Collection[Wanted]:
    """What a version requires with the Python whose markers the index evaluates, and without extras."""
    entry = trial.packages[candidate.key.name][int(candidate.label)]
    return [one for one in entry.requires if not one.under and one.python in {"", PYTHON}]


@examples(400, shares={"admitted": 0.2, "refused": 0.1, "refused for a wheel": 0.01})
@given(trials(), st.randoms(use_true_random=False))
def test_a_candidate_is_admitted_where_some_choice_of_components_goes_with_it(trial: Trial, random: Random) -> None:
    trial = replace(trial, constraints=(), shared=(), limits=())
    fixed = instance_of(trial).problem
    # Without the line on Python both instances have the same roots, and a Python of their own besides.
    problem = replace(fixed, roots=tuple(root for root in fixed.roots if root.key != Key("python")))
    system = ProblemInstance(system_half(problem))
    shared = SharedComponents(system, CompleteSearch(system), Refuted())
    questions: list[tuple[str, ComponentSearch, Candidate]] = []
    for python in problem.domains[Key("python")]:
        own = with_python(problem, python)
        finder = PackageFinder(own, Shelf(trial), Environment(platform="linux/amd64", python=python.label))
        instance = ProblemInstance(own, finder)
        known = shared.search.best(given=[python]) if random.random() < 0.5 else None
        search = ComponentSearch(instance, shared, known)
        assert shared.serve(instance)
        keys = [Key(one) for one in ("pytorch", "cuda", "python")] + [TORCH, *(Key(one, PACKAGE) for one in trial.packages)]
        asked = [one for key in keys for one in instance.candidates(key) if not one.has_no_file]
        questions += [(python.label, search, one) for one in asked if not isinstance(one, FileCandidate) or not one.is_withheld]
    random.shuffle(questions)
    for label, search, candidate in questions:
        expected = is_admitted(trial, label, candidate)
        case("admitted" if expected else "refused")
        if label == PYTHON and candidate.key == TORCH and not expected:
            case("refused for a wheel")
        assert search.admits(candidate) == expected, (label, candidate)
    assert {PYTHON, OTHER_PYTHON} == {one.label for one in problem.domains[Key("python")]}
