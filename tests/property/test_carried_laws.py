"""The laws of what distributions carry: a component is at the version that is installed, or there is no answer.

The second opinion tries every pair of a framework's release and a library's, and knows nothing of the solver but its inputs.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from provisioner.lock.check.packages import package_findings
from provisioner.lock.check.stack import stack_findings
from provisioner.lock.create import create_lock
from provisioner.lock.requested import requested
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_joint
from provisioner.resolver.problem import join
from provisioner.words.finding import finding_words
from tests import small
from tests.lock_examples import MATRIX_DIGEST, SPEC_DIGEST
from tests.strategies import case, dice, examples
from tests.told import unverified
from tests.unit.resolver.test_finder import Shelf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack

pytestmark = pytest.mark.property

CARRIER = "nvidia-cudnn-cu12"
GPU, DRIVER = "8.0", "580.65.06"
BOUNDS = (">=9.2", ">=9.3", ">=9.4", "<9.3", "<9.4", "<9.5", "==9.2", "==9.4", "")


class World(Struct, frozen=True, kw_only=True):
    """Releases of a framework with what its build and its metadata take, libraries listed and offered, rules and lines."""

    frameworks: tuple[tuple[str, str, str], ...]
    listed: tuple[str, ...]
    offered: tuple[str, ...]
    rules: tuple[tuple[dict[str, str], dict[str, str]], ...]
    asked: str | None
    constraint: str
    override: str

    def problem(self) -> Problem:
        """The world as the solver's input."""
        builds = {"install": "jax[cuda12]", "sass": ("sm_80",)}
        matrix = small.matrix(
            ("pytorch", "jax", "cudnn", "cuda", "python", "driver", "gpu"),
            {"python": {"3.12": {}}, "driver": {DRIVER: {}}, "gpu": {GPU: {}, "9.0": {}}},
            branches={"580": "13.0"},
            rules=[small.rule(f"r{place}", when, require) for place, (when, require) in enumerate(self.rules)],
            releases={
                "jax": tuple(
                    small.release(version, {}, builds=(small.build("cuda12", needs(takes), **builds),))
                    for version, takes, _ in self.frameworks
                ),
                "cudnn": tuple(
                    small.release(version, {}, builds=(small.build("cu12", {"cuda": "==12.*"}, accelerator=""),))
                    for version in self.listed
                ),
                "cuda": (small.cuda("12.9.1", "525.60.13", "575.57"),),
            },
        )
        host = {"driver": {"version": DRIVER}, "gpus": [{"compute_capability": GPU}], "container_toolkit": "1", "glibc": "2.36"}
        packages = ["jax[cuda12]", *([] if self.asked is None else [f"{CARRIER}{self.asked}"])]
        lines: dict[str, Any] = {
            "constraints": [f"{CARRIER}{self.constraint}"] if self.constraint else [],
            "overrides": [f"{CARRIER}{self.override}"] if self.override else [],
        }
        return join(matrix, small.request({}, host, packages=packages, accelerator="cuda", runs="host", **lines))

    def shelf(self) -> Shelf:
        """The index: the framework needs its library through a plugin."""
        return Shelf({
            "jax": {version: [f"plugin=={version}; extra == 'cuda12'"] for version, _, _ in self.frameworks},
            "plugin": {version: [f"{CARRIER}{wanted}"] for version, _, wanted in self.frameworks},
            CARRIER: {version: [] for version in self.offered},
        })  # fmt: skip

    def possible(self) -> list[tuple[str, str]]:
        """Every framework and library that may be installed together, by the rules as they are written."""
        pairs = product(self.frameworks, self.offered)
        return [(one[0], library) for one, library in pairs if self._goes(one, library)]

    def known(self) -> set[str]:
        """The frameworks for which the matrix lists a library: of another nobody knows whether any would do."""
        is_listed = any(in_range(library, self.override) for library in self.listed)
        found = set()
        for version, takes, _ in self.frameworks:
            bound = takes if not self.override else self.override if is_listed else ""
            if any(in_range(library, bound) and self._keeps_rules(version, library) for library in self.listed):
                found.add(version)
        return found

    def _goes(self, framework: tuple[str, str, str], library: str) -> bool:
        version, takes, wanted = framework
        declared = [self.override] if self.override else [takes, wanted, self.asked or ""]
        return self._keeps_rules(version, library) and all(in_range(library, text) for text in (*declared, self.constraint))

    def _keeps_rules(self, version: str, library: str) -> bool:
        have = {"jax": version, "cudnn": library, "gpu": GPU}
        binding = [need for when, need in self.rules if all(in_range(have[name], text) for name, text in when.items())]
        return all(in_range(have[name], text) for need in binding for name, text in need.items())


def needs(cudnn: str) -> dict[str, str]:
    return {"cuda": "==12.*", "cudnn": cudnn or ">=0"}


def in_range(version: str, text: str) -> bool:
    return SpecifierSet(text).contains(version)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    chance = draw(dice())
    versions = [f"9.{number}" for number in range(1, 6)]

    def some(among: Sequence[str], least: int) -> tuple[str, ...]:
        return tuple(sorted(chance.sample(among, chance.randint(least, len(among))), reverse=True))

    def bound() -> str:
        return chance.choice(BOUNDS)

    def often_none() -> str:
        return bound() if chance.random() < 0.2 else ""

    rules: list[tuple[dict[str, str], dict[str, str]]] = []
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        kind = chance.random()
        if kind < 0.4:
            rules.append(({"cudnn": bound() or ">=9.5"}, {"gpu": chance.choice([">=8.0", ">=9.0", "<9.0"])}))
        else:
            rules.append(({"jax": chance.choice([">=0.2", "<0.2", "==0.3"])}, {"cudnn": bound() or ">=9.2"}))
    return World(
        frameworks=tuple((version, often_none(), often_none()) for version in some(["0.1", "0.2", "0.3"], 1)),
        listed=some(versions, 2),
        offered=some(versions, 2),
        rules=tuple(rules),
        asked=None if chance.random() < 0.6 else often_none(),
        constraint=often_none(),
        override=often_none(),
    )


@examples(1500, shares={"answered": 0.5, "refused": 0.04})
@given(worlds())
def test_the_component_is_what_is_installed_and_check_agrees_with_solve(world: World) -> None:
    """There is an answer where one is possible, of the newest framework, and `check` says of it what `solve` said."""
    problem, shelf, possible = world.problem(), world.shelf(), world.possible()
    try:
        stack = solve_joint(problem, lambda _: shelf)
    except (NoStackError, UnlistedReleaseError):
        case("refused")
        assert not [framework for framework, _ in possible if framework in world.known()]
    else:
        case("answered")
        agrees_with(world, stack)


def agrees_with(world: World, stack: Stack) -> None:
    """The stack is one that is possible, of the newest framework, and `check` says of it what `solve` said."""
    packages = {package.name: package.version for package in stack.packages}
    possible = world.possible()
    assert (packages["jax"], packages[CARRIER]) in possible
    assert stack.components["cudnn"] == packages[CARRIER]
    if world.asked is None:
        assert packages["jax"] >= max((framework for framework, _ in possible if framework in world.known()), default="")
    unlisted = [] if packages[CARRIER] in world.listed else [missing(packages[CARRIER])]
    assert list(unverified(stack)) == unlisted
    assert checked(world.problem(), stack) == unlisted


def missing(library: str) -> str:
    carries = f"{CARRIER} {library} carries a release that the matrix does not list"
    return f"cudnn: {carries}, so what it needs is not known"


def checked(problem: Problem, stack: Stack) -> list[str]:
    """What `check` finds of the lock that `solve` would write."""
    lock = create_lock(stack, name="trial", matrix_digest=MATRIX_DIGEST, spec_digest=SPEC_DIGEST)
    lock = replace(lock, asked=requested(problem.request.spec))
    findings = [*stack_findings(lock, problem, file="lock"), *package_findings(lock, problem)]
    return [finding_words(one) for one in findings]
