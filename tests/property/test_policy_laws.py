"""The policy's optimum, on tens of thousands of random problems, against brute force that shares no code with the solver."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from provisioner.matrix.model import Citation, Release
from provisioner.resolver.outcome.relaxations import relaxations
from provisioner.resolver.problem import join
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Range, Version
from tests import oracle_policy, small
from tests.strategies import times

if TYPE_CHECKING:
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request
    from provisioner.resolver.requirement import Candidate, Key

pytestmark = pytest.mark.property

NAMES = ("alpha", "beta", "gamma", "delta")
READ = "2026-06-15"
DAYS = ("2026-06-15", "2026-06-09", "2026-06-08", "2026-05-01", "")
ENDS = ("2026-06-14", "2026-06-15", "2026-06", "2026-05", "2024-01-31", "", "", "")
CHUNK = times(1000)


def matrix_of(seed: random.Random, *, is_cyclic: bool) -> Matrix:
    """A random matrix whose releases have dates, ends and now and then are betas."""
    names = NAMES[: seed.randint(1, 4)]
    versions = {name: [str(number) for number in range(1, seed.randint(1, 5) + 1)] for name in names}
    density = seed.choice((0.1, 0.3, 0.6))
    releases: dict[str, list[Release]] = {}
    for index, name in enumerate(names):
        others = [other for other in names if other != name] if is_cyclic else names[index + 1 :]
        releases[name] = [
            Release(
                version=Version.parse(version),
                requires=small.needs(
                    {
                        other: seed.sample(versions[other], seed.randint(1, len(versions[other])))
                        for other in others
                        if seed.random() < density
                    }
                ),
                released=seed.choice(DAYS),
                end_of_life=seed.choice(ENDS),
                prerelease="beta" if seed.random() < 0.15 else "",
                source=("invented",),
            )
            for version in versions[name]
        ]
        seed.shuffle(releases[name])
    made = small.matrix(names, {}, releases=releases, virtual=())
    return _read_on(made, READ)


def _read_on(matrix: Matrix, day: str) -> Matrix:
    from msgspec.structs import replace

    return replace(matrix, citations={"invented": Citation(title="an invented table", read=day)})


def policy_of(seed: random.Random, matrix: Matrix) -> dict[str, Any]:
    """A random policy about the matrix's components."""
    policy: dict[str, Any] = {"strategy": seed.choice(("newest", "newest", "oldest", "stable"))}
    allow = [word for word in ("minor-version", "prerelease", "end-of-life") if seed.random() < 0.35]
    forbid = [word for word in ("prerelease", "end-of-life", "minor-version") if word not in allow and seed.random() < 0.3]
    policy |= {"allow": allow, "forbid": forbid}
    for table in ("prefer", "avoid"):
        policy[table] = {
            name: f"{seed.choice(('==', '>=', '<=', '!='))}{seed.randint(1, 5)}" for name in matrix.order if seed.random() < 0.3
        }
    return policy


def rules_of(policy: dict[str, Any], locked: dict[str, str]) -> oracle_policy.Rules:
    return oracle_policy.Rules(
        strategy=policy["strategy"],
        forbid=frozenset(policy["forbid"]),
        allow=frozenset(policy["allow"]),
        prefer={name: Range.parse(text) for name, text in policy["prefer"].items()},
        avoid={name: Range.parse(text) for name, text in policy["avoid"].items()},
        locked=locked,
        day="2026-06-15",
        week_ago="2026-06-08",
    )


def requires_of(seed: random.Random, matrix: Matrix) -> dict[str, str]:
    return {name: f">={seed.randint(1, 4)}" if seed.random() < 0.25 else ">=0" for name in matrix.order}


def request_of(requires: dict[str, str], policy: dict[str, Any], locked: dict[str, str]) -> Request:
    from msgspec.structs import replace

    return replace(small.request(requires, policy=policy), preferred=locked)


def shown(pins: dict[Key, Candidate] | None, matrix: Matrix) -> dict[str, str] | None:
    return None if pins is None else {key.name: one.label for key, one in pins.items() if key.name in matrix.order}


@pytest.mark.parametrize("chunk", range(10))
def test_the_answer_is_the_optimum_of_the_policy_and_there_is_one_exactly_when_brute_force_finds_one(chunk: int) -> None:
    for number in range(CHUNK):
        seed = random.Random(chunk * CHUNK + number)
        matrix = matrix_of(seed, is_cyclic=False)
        policy, requires = policy_of(seed, matrix), requires_of(seed, matrix)
        is_locked = seed.random() < 0.3
        locked = {name: str(seed.randint(1, 5)) for name in matrix.order if seed.random() < 0.6} if is_locked else {}
        pins = decide(ProblemInstance(join(matrix, request_of(requires, policy, locked))))
        best = oracle_policy.best(
            matrix, {name: Range.parse(text) for name, text in requires.items()}, rules_of(policy, locked)
        )
        wanted = {name: str(version) for name, version in best.items()} if best else None
        assert shown(pins, matrix) == wanted, (chunk * CHUNK + number, requires, policy, locked)


@pytest.mark.parametrize("chunk", range(3))
def test_the_complete_search_finds_the_optimum_of_the_policy_on_cyclic_problems(chunk: int) -> None:
    for number in range(CHUNK):
        seed = random.Random(1_000_000 + chunk * CHUNK + number)
        matrix = matrix_of(seed, is_cyclic=True)
        policy, requires = policy_of(seed, matrix), requires_of(seed, matrix)
        complete = CompleteSearch(ProblemInstance(join(matrix, request_of(requires, policy, {}))))
        pins = complete.best()
        complete.close()
        best = oracle_policy.best(matrix, {name: Range.parse(text) for name, text in requires.items()}, rules_of(policy, {}))
        wanted = {name: str(version) for name, version in best.items()} if best else None
        assert shown(pins, matrix) == wanted, (number, requires, policy)


def test_every_ended_early_or_avoided_part_of_an_answer_is_named_and_nothing_else() -> None:
    named = 0
    for number in range(CHUNK):
        seed = random.Random(2_000_000 + number)
        matrix = matrix_of(seed, is_cyclic=False)
        policy, requires = policy_of(seed, matrix), requires_of(seed, matrix)
        instance = ProblemInstance(join(matrix, request_of(requires, policy, {})))
        pins = decide(instance)
        if pins is None:
            continue
        rules = rules_of(policy, {})
        expected = set()
        for name in matrix.order:
            label = shown(pins, matrix)[name]  # type: ignore[index]
            chosen = next(one for one in matrix.components[name].releases if str(one.version) == label)
            end = chosen.end_of_life
            if end and rules.day > (end if len(end) == 10 else f"{end}-31"):
                expected.add(("end-of-life", name))
            if chosen.prerelease:
                expected.add(("prerelease", name))
            if name in rules.avoid and rules.avoid[name].allows(chosen.version):
                expected.add(("avoided", name))
        assert {(one.name, one.component) for one in relaxations(instance, pins)} == expected, (number, policy)
        named += bool(expected)
    assert named > CHUNK // 10


def test_solving_again_with_what_was_chosen_returns_it_whatever_the_policy_prefers() -> None:
    solved = 0
    for number in range(CHUNK):
        seed = random.Random(3_000_000 + number)
        matrix = matrix_of(seed, is_cyclic=False)
        policy, requires = policy_of(seed, matrix), requires_of(seed, matrix)
        first = shown(decide(ProblemInstance(join(matrix, request_of(requires, policy, {})))), matrix)
        if first is not None:
            again = decide(ProblemInstance(join(matrix, request_of(requires, policy, first))))
            assert shown(again, matrix) == first, (number, requires, policy)
            solved += 1
    assert solved > CHUNK // 3
