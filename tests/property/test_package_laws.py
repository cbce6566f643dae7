"""The laws of the joint search: thousands of random problems of distributions and a matrix, against a second opinion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.resolve import decide
from tests.package_trials import Entry, Opinion, Trial, Wanted, instance_of, random_trial
from tests.strategies import case, dice, examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.resolver.requirement import Candidate, Key

pytestmark = pytest.mark.property

ANSWERED = {"possible": 0.15, "impossible": 0.3}
"""The least shares of the problems that have an answer, and that have none."""


@st.composite
def trials(draw: st.DrawFn, *, limits: int = 2) -> Trial:
    """Two to four distributions of up to three versions, with everything else that is random."""
    names, versions = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    return random_trial(draw(dice()), names=names, versions=versions, limits=limits, constraints=2)


@st.composite
def long_trials(draw: st.DrawFn) -> Trial:
    """Two or three distributions of dozens of versions: where one requirement rules out many at once."""
    names, versions = draw(st.integers(2, 3)), draw(st.integers(12, 40))
    return random_trial(draw(dice(4000)), names=names, versions=versions, constraints=1)


def chosen(pins: Mapping[Key, Candidate]) -> dict[str, str]:
    """The answer in the opinion's words: the framework's wheel is not its build."""
    return {"wheel" if key.name == "torch" else key.name: candidate.label for key, candidate in pins.items()}


def judge(trial: Trial, pins: Mapping[Key, Candidate] | None) -> None:
    """There is an answer exactly where the opinion finds one possible, and it agrees that this is one."""
    opinion = Opinion(trial)
    case("impossible" if pins is None else "possible")
    assert (pins is not None) == opinion.is_possible()
    assert pins is None or opinion.is_valid(chosen(pins))


@examples(3000, shares=ANSWERED)
@given(trials())
def test_1_valid_and_2_complete(trial: Trial) -> None:
    """An answer is found exactly when there is one, and the opinion agrees that it is one."""
    judge(trial, decide(instance_of(trial)))


@examples(3000, shares=ANSWERED)
@given(trials())
def test_1_valid_and_2_complete_of_the_complete_search_alone(trial: Trial) -> None:
    complete = CompleteSearch(instance_of(trial))
    pins = complete.best()
    complete.close()
    judge(trial, pins)


@examples(300, shares=ANSWERED)
@given(long_trials())
def test_1_valid_and_2_complete_with_dozens_of_versions(trial: Trial) -> None:
    judge(trial, decide(instance_of(trial)))


@examples(1000)
@given(trials())
def test_3_nothing_could_be_newer_with_everything_else_as_it_is(trial: Trial) -> None:
    """The first answer that a search meets may hold a version that only a choice it took back asked for."""
    opinion = Opinion(trial)
    pins = decide(instance_of(trial))
    assume(pins is not None)
    assert pins is not None
    answer = chosen(pins)
    for name, versions in trial.packages.items():
        keys = [key for key in answer if key.partition("[")[0] == name]
        newer = [number for number, entry in versions.items() if keys and number > int(answer[keys[0]])]
        for number in newer:
            moved = {**answer, **dict.fromkeys(keys, str(number))}
            assert versions[number].state == "yanked" or not opinion.is_valid(moved), f"{name} {number} would do"


@examples(250)
@given(trials())
def test_5_fewer_rules_never_hurt(trial: Trial) -> None:
    """Without one of its limits, or one of its requests, a problem that has an answer still has one."""
    assume(decide(instance_of(trial)) is not None)
    for index in range(len(trial.limits)):
        assert decide(instance_of(replace(trial, limits=(*trial.limits[:index], *trial.limits[index + 1 :])))) is not None
    for index in range(len(trial.constraints)):
        fewer = (*trial.constraints[:index], *trial.constraints[index + 1 :])
        gone = trial.constraints[index]
        # One that pins lets everybody have a yanked version (PEP 592): without it there may be none. One that leaves out the
        # version with an extra that is asked for lets the older ones do without it.
        if gone.operator != "==" and not any(one.extra for one in trial.roots if one.name == gone.name):
            assert decide(instance_of(replace(trial, constraints=fewer))) is not None
    for index in range(len(trial.shared)):
        assert decide(instance_of(replace(trial, shared=(*trial.shared[:index], *trial.shared[index + 1 :])))) is not None
    if len(trial.roots) > 1:
        assert decide(instance_of(replace(trial, roots=_unpinned(trial)))) is not None


def _unpinned(trial: Trial) -> tuple[Wanted, ...]:
    """The requests without the last, where that is no pin: pinning lets everybody have a yanked version (PEP 592)."""
    *rest, last = trial.roots
    return trial.roots if last.operator == "==" else tuple(rest)


@examples(2300)
@given(trials(limits=0))
def test_7_sufficient_and_8_minimal(trial: Trial) -> None:
    opinion = Opinion(trial)
    assume(not opinion.is_possible())
    complete = CompleteSearch(instance_of(trial))
    groups = set(complete.minimal())
    complete.close()
    assert not opinion.is_possible(kept={str(one) for one in groups}), f"{groups} can hold together"
    for group in groups:
        assert opinion.is_possible(kept={str(one) for one in groups - {group}}), f"{group} is not needed among {groups}"


def test_a_cycle_that_nothing_needs_any_longer_does_not_trap_the_engine() -> None:
    """Here alpha 2 needs torch, torch needs alpha[x] <=1, and alpha[x] 1 needs torch again: alpha 1 alone is the answer.

    resolvelib 1.2.1 walks around the abandoned cycle until the interpreter stops it.
    """
    torch = Wanted(name="torch")
    trial = Trial(
        packages={"alpha": {1: Entry(requires=(Wanted(name="torch", under="x"),)), 2: Entry(requires=(torch,))}},
        wheels={(1, "cu1"): Entry(requires=(Wanted(name="alpha", extra="x", operator="<=", number=1),))},
        builds={(1, "cu1"): (1,)},
        cuda={1: (1,)},
        drivers=1,
        driver=1,
        roots=(Wanted(name="alpha"),),
        pytorch=None,
    )
    pins = decide(instance_of(trial))
    assert pins is not None
    assert chosen(pins)["alpha"] == "1"
    assert Opinion(trial).is_valid(chosen(pins))


def test_a_yanked_version_is_for_who_pins_it() -> None:
    def picked(*roots: Wanted) -> str | None:
        yanked, pinner = Entry(state="yanked"), Entry(requires=(Wanted(name="alpha", operator="==", number=2),))
        trial = Trial(
            packages={"alpha": {1: Entry(), 2: yanked}, "beta": {1: pinner}},
            wheels={},
            builds={},
            cuda={1: (1,)},
            drivers=1,
            driver=None,
            roots=roots,
            pytorch=None,
        )
        pins = decide(instance_of(trial))
        return chosen(pins)["alpha"] if pins is not None else None

    assert picked(Wanted(name="alpha")) == "1"
    assert picked(Wanted(name="alpha", operator=">=", number=2)) is None
    assert picked(Wanted(name="alpha", operator="==", number=2)) == "2"
    assert picked(Wanted(name="beta")) == "2"
    assert picked(Wanted(name="alpha", operator="==", number=2), Wanted(name="alpha", operator=">=", number=1)) == "2"
