"""Policies over packages: of random requirements among a few distributions the policy's optimum is chosen.

Every distribution is named by the spec, so the order in which they are decided is the spec's; brute force tries every choice.
"""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from provisioner.index.model import Environment, IndexFile, PackageRelease
from provisioner.resolver.problem import join
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from tests import small
from tests.extras_named import applicable, extras_named
from tests.strategies import times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.utils import NormalizedName

    from provisioner.resolver.requirement import Candidate, Key

pytestmark = pytest.mark.property

NAMES = ("alpha", "beta", "gamma", "delta")
PROBLEMS = times(400)

Needs = dict[tuple[str, str], tuple[str, ...]]
"""What each version of each distribution requires, as PEP 508 text."""


class Shelf:
    """An index in memory."""

    def __init__(self, versions: Mapping[str, list[str]], needs: Needs) -> None:
        self._versions = versions
        self._needs = needs

    def releases(self, name: NormalizedName, *, index: str = "") -> tuple[PackageRelease, ...]:
        return tuple(
            PackageRelease.of(
                name=name,
                version_text=text,
                file=IndexFile(filename=f"{name}-{text}-py3-none-any.whl", url=f"https://files.example/{name}", index=index),
            )
            for text in reversed(self._versions[name])
        )

    def requirements(self, release: PackageRelease, extras: tuple[str, ...] = ("",)) -> tuple[Requirement, ...]:
        return applicable(self._declared(release), extras)

    def _declared(self, release: PackageRelease) -> list[Requirement]:
        return [Requirement(text) for text in self._needs[release.name, str(release.version)]]

    def extras(self, release: PackageRelease) -> tuple[str, ...]:
        return extras_named(self._declared(release))

    def prefetch(self, names: Iterable[NormalizedName], *, follows: bool = True) -> None:
        del names, follows


def problem_of(seed: random.Random) -> tuple[dict[str, list[str]], Needs, dict[str, Any]]:
    """Random versions, requirements (cycles too) and a policy."""
    names = NAMES[: seed.randint(2, 4)]
    versions = {name: [str(number) for number in range(1, seed.randint(2, 4) + 1)] for name in names}
    density = seed.choice((0.2, 0.4, 0.6))
    needs: Needs = {
        (name, version): tuple(
            f"{other}{seed.choice(('>=', '<=', '==', '!='))}{seed.choice(versions[other])}"
            for other in names
            if other != name and seed.random() < density
        )
        for name in names
        for version in versions[name]
    }
    policy: dict[str, Any] = {"strategy": seed.choice(("newest", "newest", "oldest"))}
    for table in ("prefer", "avoid"):
        policy[table] = {
            name: f"{seed.choice(('==', '>=', '<='))}{seed.randint(1, 4)}" for name in names if seed.random() < 0.4
        }
    return versions, needs, policy


def instance_of(versions: dict[str, list[str]], needs: Needs, policy: dict[str, Any]) -> ProblemInstance:
    matrix = small.matrix(("python",), {"python": {"3.12": {}}}, virtual=())
    request = small.request({"python": "3.12"}, accelerator="cpu", packages=list(versions), policy=policy, runs="host")
    problem = join(matrix, request)
    return ProblemInstance(
        problem, PackageFinder(problem, Shelf(versions, needs), Environment(platform="linux/amd64", python="3.12"))
    )


def best(versions: dict[str, list[str]], needs: Needs, policy: dict[str, Any]) -> dict[str, str] | None:
    """The first valid choice in the policy's order."""
    valid = []
    for choice in product(*versions.values()):
        chosen = dict(zip(versions, choice, strict=True))
        wanted = [Requirement(text) for pair in chosen.items() for text in needs[pair]]
        if all(one.specifier.contains(chosen[one.name]) for one in wanted):
            valid.append(chosen)

    def place(chosen: dict[str, str]) -> tuple[tuple[bool, bool, int], ...]:
        sign = 1 if policy["strategy"] == "oldest" else -1
        found = []
        for name, version in chosen.items():
            is_avoided = name in policy["avoid"] and SpecifierSet(policy["avoid"][name]).contains(version)
            is_other = name in policy["prefer"] and not SpecifierSet(policy["prefer"][name]).contains(version)
            found.append((is_avoided, is_other, sign * int(version)))
        return tuple(found)

    return min(valid, key=place, default=None)


def shown(pins: dict[Key, Candidate] | None) -> dict[str, str] | None:
    return None if pins is None else {key.name: one.label for key, one in pins.items() if key.is_package}


def test_the_complete_search_finds_the_optimum_of_the_policy_among_packages() -> None:
    for number in range(PROBLEMS):
        problem = problem_of(random.Random(number))
        search = CompleteSearch(instance_of(*problem))
        pins = search.best()
        search.close()
        assert shown(pins) == best(*problem), (number, problem)


def test_packages_are_found_exactly_when_brute_force_finds_some_and_hold_together() -> None:
    for number in range(PROBLEMS):
        problem = problem_of(random.Random(10_000_000 + number))
        pins, wanted = shown(decide(instance_of(*problem))), best(*problem)
        assert (pins is None) == (wanted is None), (number, problem)
        needed = [Requirement(text) for pair in (pins or {}).items() for text in problem[1][pair]]
        assert all(one.specifier.contains((pins or {})[one.name]) for one in needed), (number, problem)


def test_an_avoided_package_is_in_an_answer_only_where_the_optimum_has_it() -> None:
    for number in range(PROBLEMS):
        problem = problem_of(random.Random(20_000_000 + number))
        pins, wanted = shown(decide(instance_of(*problem))) or {}, best(*problem) or {}
        for name, text in problem[2]["avoid"].items():
            if name in pins and SpecifierSet(text).contains(pins[name]):
                assert pins == wanted, (number, problem)
