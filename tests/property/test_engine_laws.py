"""What the search adds to resolvelib: it remembers, walks lazily, leaves dead versions out and tells what is needed by itself.

Without backtracking that changes nothing. With backtracking it may: the engine skips choices that would have worked, and which
it skips depends on what is left out.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st
from resolvelib.resolvers import ResolutionImpossible, ResolutionTooDeep, Resolver

from provisioner.resolver.requirement import FileCandidate
from provisioner.resolver.search.provider import PACKAGE_ROUNDS, Provider, SearchReporter, search
from tests.package_trials import Trial, instance_of, random_trial
from tests.property.test_package_laws import judge
from tests.strategies import case, dice, examples

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

pytestmark = pytest.mark.property


class EagerProvider(Provider):
    """Every candidate is judged by every requirement, each time anew."""

    def __init__(self, instance: ProblemInstance) -> None:
        super().__init__(instance)
        self._world = instance

    def find_matches(  # type: ignore[override]
        self,
        identifier: Key,
        requirements: Mapping[Key, Iterator[Requirement]],
        incompatibilities: Mapping[Key, Iterator[Candidate]],
    ) -> list[Candidate]:
        wanted, refused = list(requirements[identifier]), list(incompatibilities[identifier])
        return [
            one
            for one in self._world.candidates(identifier)
            if one not in refused
            and all(self._world.accepts(requirement, one) for requirement in wanted)
            and (not isinstance(one, FileCandidate) or one.release.file is not None)
        ]

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        return self._world.accepts(requirement, candidate)


def engine_alone(instance: ProblemInstance, reporter: SearchReporter) -> dict[Key, Candidate] | None:
    """What resolvelib's own resolver answers, which remembers nothing; raises `RecursionError` as it does."""
    resolver: Resolver[Requirement, Candidate, Key] = Resolver(EagerProvider(instance), reporter)
    try:
        return dict(resolver.resolve(instance.roots, max_rounds=PACKAGE_ROUNDS).mapping)
    except (ResolutionImpossible, ResolutionTooDeep):
        return None


def needed(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> set[Key]:
    """The keys that can be reached from what is required from the start: by growing a set until it grows no more."""
    found: set[Key] = {root.key for root in instance.roots}
    while True:
        more = {one.key for key in found & pins.keys() for one in instance.requirements(pins[key])} | found
        if more == found:
            return found & pins.keys()
        found = more


def labels(pins: Mapping[Key, Candidate], keys: Collection[Key]) -> dict[Key, str]:
    return {key: pins[key].label for key in keys}


def trial_of(chance: random.Random) -> Trial:
    return random_trial(chance, names=chance.randint(2, 5), versions=chance.randint(1, 4), limits=chance.randint(0, 2))


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    return trial_of(draw(dice()))


@examples(1500, shares={"answered without backtracking": 0.1, "the same after backtracking": 0.03})
@example(trial_of(random.Random(3286)))
@example(trial_of(random.Random(3358)))
@given(trials())
def test_the_engine_answers_what_it_answers_alone_without_what_nothing_needs(trial: Trial) -> None:
    ours, reporter = search(instance_of(trial)), SearchReporter()
    try:
        alone = engine_alone(instance := instance_of(trial), reporter)
    except RecursionError:
        reject()
    if alone is not None and not reporter.has_backtracked:
        case("answered without backtracking")
        assert ours is not None
        assert labels(ours, ours) == labels(alone, needed(instance, alone))
    elif ours is not None:
        # The engine denies some that exist; begun again without versions that turned out to be dead, it may find one.
        judge(trial, ours)
        if alone is not None and labels(ours, ours) == labels(alone, needed(instance, alone)):
            case("the same after backtracking")
