"""Least change: what the search gave up is tried again, and what moved is told with what ruled the locked version out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.resolver.joint import solve_joint
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import PACKAGE, Candidate, Key
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.least_change import with_least_change
from provisioner.resolver.search.resolve import decide
from provisioner.words.choice import move_reason_words
from tests import small
from tests.unit.resolver.test_finder import ENVIRONMENT, Shelf, matrix_with_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack

TABLE: dict[str, dict[str, list[str] | str]] = {
    "web": {"2": ["core>=2", "json>=2"], "1": ["core", "json"]},
    "core": {"3": [], "2": [], "1": []},
    "json": {"2": [], "1": []},
    "old": {"2": [], "1": ["core<3"]},
    "gone": {"2": [], "1": "no wheel"},
    "app": {"3": ["hub"], "2": ["hub<2"], "1": ["hub"]},
    "hub": {"2": [], "1": []},
}


def problem(packages: list[str], locked: Mapping[str, str], *upgraded: str, prefer: Mapping[str, str] | None = None) -> Problem:
    request = small.request({"python": "3.11"}, {}, packages=packages, policy={"prefer": dict(prefer or {})})
    kept = {name: version for name, version in locked.items() if name not in upgraded}
    named = {name: locked.get(name, "") for name in upgraded}
    return join(matrix_with_facts(), replace(request, preferred=kept, upgraded=named))


def solved(packages: list[str], locked: Mapping[str, str], *upgraded: str, prefer: Mapping[str, str] | None = None) -> Stack:
    return solve_joint(problem(packages, locked, *upgraded, prefer=prefer), lambda _: Shelf(TABLE))


def versions(stack: Stack) -> dict[str, str]:
    return {package.name: package.version for package in stack.packages}


def told(stack: Stack) -> list[str]:
    return [f"{move.name} {move.before} {move.after}: {move_reason_words(move.reason)}" for move in stack.moves]


LOCKED = {"web": "1", "core": "1", "json": "1", "python": "3.11"}


def test_what_the_upgraded_needs_moves_no_further_than_it_must() -> None:
    stack = solved(["web"], LOCKED, "web")
    assert versions(stack) == {"web": "2", "core": "3", "json": "2"}
    assert told(stack) == ["web 1 2: it was asked for", "core 1 3: web 2 needs core>=2", "json 1 2: web 2 needs json>=2"]
    assert versions(solved(["web"], {**LOCKED, "core": "2"}, "web")) == {"web": "2", "core": "2", "json": "2"}


def test_what_needs_the_upgraded_stays_and_says_so() -> None:
    stack = solved(["old"], {"old": "1", "core": "2"}, "core")
    assert versions(stack) == {"old": "1", "core": "2"}
    assert told(stack) == ["core 2 2: old 1 needs core<3"]


def test_what_is_the_newest_already_needs_no_word() -> None:
    assert told(solved(["core"], {"core": "3"}, "core")) == []


def test_nothing_is_told_without_an_upgrade_by_name() -> None:
    stack = solved(["web==2"], LOCKED)
    assert (versions(stack), told(stack)) == ({"web": "2", "core": "3", "json": "2"}, [])


def test_a_locked_version_that_is_no_longer_there_is_a_reason() -> None:
    stack = solved(["web", "gone"], {**LOCKED, "gone": "1", "json": "0.9"}, "web")
    assert told(stack)[1:] == [
        "core 1 3: web 2 needs core>=2",
        "gone 1 2: gone 1: no wheel",
        "json 0.9 2: no index offers json 0.9 any longer",
    ]


def test_what_an_answer_gave_up_for_nothing_is_taken_back() -> None:
    instance = ProblemInstance(asked := problem(["web"], LOCKED), PackageFinder(asked, Shelf(TABLE), ENVIRONMENT))
    pins = decide(instance)
    assert pins is not None
    wasteful = {key: _newest(instance, key) if key.is_package else pin for key, pin in pins.items()}
    found = with_least_change(instance, wasteful)
    assert {key.name: pin.label for key, pin in found.items() if key.is_package} == {"web": "1", "core": "1", "json": "1"}
    assert with_least_change(instance, found) is found


def test_what_is_named_is_not_older_for_the_sake_of_what_is_not() -> None:
    """Transformers 2.3.0 of 2019 was the answer, because no later one went with the locked huggingface-hub."""
    assert versions(solved(["app<3"], {"app": "3", "hub": "2"})) == {"app": "2", "hub": "1"}
    assert versions(solved(["app<3"], {"app": "1", "hub": "2"})) == {"app": "1", "hub": "2"}
    assert versions(solved(["app<3", "hub"], {"app": "3", "hub": "2"})) == {"app": "1", "hub": "2"}


def test_what_the_policy_prefers_to_what_is_locked_is_not_taken_back() -> None:
    assert versions(solved(["core"], {"core": "1"}, prefer={"core": "2"})) == {"core": "2"}
    assert versions(solved(["core"], {"core": "1"})) == {"core": "1"}


def _newest(instance: ProblemInstance, key: Key) -> Candidate:
    assert key.scope == PACKAGE
    return max(instance.candidates(key), key=lambda one: one.pep440)
