"""Law 3 under a policy, over the shipped matrix: of what a policy allows, nothing more wanted than the answer would work.

The second opinion is written from the words of README's policy section: what a policy refuses, and which of two candidates is
more wanted. Of the solver it takes what candidates there are and what each requires, and puts that to a SAT solver in clauses
of its own. Requests are for a framework, and on a base image with CUDA only where the framework uses it: elsewhere nothing but
the image says which CUDA there is.
"""

from __future__ import annotations

import json
import random
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.json import decode
from msgspec.structs import replace

from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Candidate, ImageCandidate, Key, ReleaseCandidate, build_of, release_of
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide
from provisioner.spec.model import Spec
from provisioner.strict_model import plain_data
from provisioner.versions import Range
from tests.random_requests import NAMES, requests
from tests.shipped import shipped
from tests.strategies import times

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provisioner.request import Request
    from provisioner.resolver.requirement import Requirement

pytestmark = pytest.mark.property

COUNT = 60
WORDS = ("minor-version", "forward-compat", "ptx-jit", "prerelease", "end-of-life", "patched-kernel", "image-gate")
FRAMEWORKS = {"pytorch", "tensorflow", "jax"}
SUPPORTED = {"Production Branch", "Long Term Support Branch"}
TASTES = ("pytorch", "triton", "driver", "kernel", "tensorflow", "jax", "rocm")
"""What is preferred and avoided here: none of what a build or image fixes, by which these are ordered too."""


class Policy:
    """A policy in the words of the README; `facts` are the labels hosts state, by key."""

    def __init__(self, policy: Mapping[str, Any], facts: Mapping[Key, set[str]]) -> None:
        self._facts = facts
        self._day = max(one.read for one in shipped().citations.values())
        self._week_ago = str(date.fromisoformat(self._day) - timedelta(days=7))
        self._branches = {branch.branch: branch for branch in shipped().branches}
        self._is_stable = policy["strategy"] == "stable"
        self._forbidden, self._allowed = set(policy["forbid"]), set(policy["allow"]) - set(policy["forbid"])
        self.prefer = {name: Range.parse(text) for name, text in policy["prefer"].items()}
        self.avoid = {name: Range.parse(text) for name, text in policy["avoid"].items()}

    def refuses(self, candidate: Candidate) -> bool:
        """Whether a candidate may not be in an answer; what a host states stays where the word is about what is chosen."""
        name, is_stated = candidate.key.component, candidate.label in self._facts.get(candidate.key, ())
        release = release_of(candidate)
        branch = self._branches.get(candidate.label.partition(".")[0]) if name == "driver" else None
        end = branch.end_of_life if branch else _end(candidate)
        has_ended = bool(end) and self._day > (end if len(end) == 10 else f"{end}-31")
        is_early = release is not None and bool(release.prerelease)
        refuses_ended = "end-of-life" in self._forbidden or (self._is_stable and "end-of-life" not in self._allowed)
        if (has_ended and refuses_ended) or (is_early and "prerelease" in self._forbidden):
            return True
        if is_early and "prerelease" not in self._allowed and (self._is_stable or not is_stated):
            return True
        if not self._is_stable:
            return False
        is_feature = name == "driver" and (branch is None or branch.designation not in SUPPORTED)
        is_designated = branch is not None and bool(branch.designation)
        is_new = release is not None and release.released > self._week_ago and not is_stated
        return (is_feature and (is_designated or not is_stated)) or is_new

    def rank(self, candidate: Candidate) -> tuple[bool, bool]:
        """What is not avoided comes first, and of that what is preferred."""
        name = candidate.key.component
        is_avoided = name in self.avoid and self.avoid[name].allows(candidate.version)
        return is_avoided, name in self.prefer and not self.prefer[name].allows(candidate.version)


def _end(candidate: Candidate) -> str:
    """A distribution repairs its kernels and compilers for longer than their own projects do."""
    is_distributed = candidate.key.component in {"gcc", "clang"} or "-" in candidate.label
    if isinstance(candidate, ImageCandidate):
        return candidate.image.end_of_life
    release = release_of(candidate)
    return release.end_of_life if release is not None and not is_distributed else ""


class Clauses:
    """An instance less what a policy refuses, as clauses, read from the roots as far as a model goes."""

    def __init__(self, instance: ProblemInstance, policy: Policy) -> None:
        from pysat.solvers import Solver

        self._instance, self._policy, self._solver = instance, policy, Solver(name="cadical153")
        self._numbers: dict[int, int] = {}
        self._named: dict[int, Candidate] = {}
        self._domains: dict[Key, list[int]] = {}
        self._read: set[int] = set()
        self._count = 0
        for root in instance.roots:
            self._add(root, ())

    def find(self, given: Sequence[Candidate]) -> bool:
        """Whether there is a stack with all of these."""
        while self._solver.solve(assumptions=[self._number(one) for one in given]):
            true = {number for number in self._solver.get_model() or () if number > 0}
            fresh = [one for one in self._reached(true, given) if id(one) not in self._read]
            if not fresh:
                return True
            for one in fresh:
                self._read.add(id(one))
                for requirement in self._instance.requirements(one):
                    self._add(requirement, (-self._number(one),))
        return False

    def _reached(self, true: set[int], given: Sequence[Candidate]) -> Iterator[Candidate]:
        queue, seen = [*(root.key for root in self._instance.roots), *(one.key for one in given)], set()
        while queue:
            key = queue.pop()
            chosen = next((self._named[number] for number in self._domain(key) if number in true), None)
            if key not in seen and chosen is not None:
                seen.add(key)
                queue.extend(one.key for one in self._instance.requirements(chosen))
                yield chosen

    def _add(self, requirement: Requirement, unless: tuple[int, ...]) -> None:
        self._domain(requirement.key)
        allowed = (one for one in self._instance.candidates(requirement.key) if requirement.test.allows(one))
        self._solver.add_clause([*unless, *(self._number(one) for one in allowed)])

    def _domain(self, key: Key) -> list[int]:
        if key not in self._domains:
            numbers = self._domains[key] = [self._number(one) for one in self._instance.candidates(key)]
            before: list[int] = []
            for number in numbers:
                self._count += 1
                self._solver.add_clause([-number, self._count])
                for one in before:
                    self._solver.add_clause([-one, self._count])
                    self._solver.add_clause([-one, -number])
                before = [self._count]
        return self._domains[key]

    def _number(self, candidate: Candidate) -> int:
        if id(candidate) not in self._numbers:
            self._count += 1
            self._numbers[id(candidate)], self._named[self._count] = self._count, candidate
            if self._policy.refuses(candidate):
                self._solver.add_clause([-self._count])
        return self._numbers[id(candidate)]


def with_policies(seed: int) -> Iterator[tuple[Request, Request, dict[str, Any]]]:
    """Random requests with a random policy, each with the same request whose policy refuses and prefers nothing."""
    draw = random.Random(seed)
    for request in requests(shipped(), seed=seed, count=times(COUNT)):
        words = draw.sample(WORDS, draw.randint(0, 4))
        cut = draw.randint(0, len(words))
        forbid = words[cut:]
        allow = words[:cut] if draw.random() < 0.3 or "minor-version" in words else [*words[:cut], "minor-version"]
        policy: dict[str, Any] = {"strategy": draw.choice(("newest", "oldest", "stable")), "allow": allow, "forbid": forbid}
        for table in ("prefer", "avoid"):
            policy[table] = {name: _some(name, draw) for name in draw.sample(TASTES, draw.randint(0, 3))}
        plain = {"strategy": "oldest" if policy["strategy"] == "oldest" else "newest"}
        open_to = sorted({*allow, "prerelease", "end-of-life"})
        requires = {name: text.replace("==", ">=") for name, text in request.spec.requires.items() if draw.random() < 0.5}
        if not FRAMEWORKS & requires.keys():
            requires["pytorch"] = ">=1.8"
        yield _replaced(request, requires, policy), _replaced(request, requires, {**plain, "allow": open_to}), policy


def _some(name: str, draw: random.Random) -> str:
    assert name in NAMES
    return f"{draw.choice(('>=', '<='))}{draw.choice(shipped().components[name].releases).version}"


def _replaced(request: Request, requires: Mapping[str, str], policy: Mapping[str, Any]) -> Request:
    base = request.spec.image.base if request.accelerator == "cuda" else "auto"
    content = {
        **plain_data(request.spec),
        "requires": requires,
        "policy": policy,
        "image": {"base": base},
    }
    return replace(request, spec=decode(json.dumps(content), type=Spec))


def in_order(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Key]:
    """The keys of an answer in the declared order, each as soon as something decided before requires it."""
    known, left = {root.key for root in instance.roots}, set(pins)
    while left:
        key = min(left & known or left, key=lambda one: (instance.problem.order.get(one, 0), one))
        left.discard(key)
        known.update(one.key for one in instance.requirements(pins[key]))
        yield key


def test_nothing_a_policy_allows_and_wants_more_would_work() -> None:
    solved = refused = 0
    for request, plain, text in with_policies(11):
        instance, base = ProblemInstance(join(shipped(), request)), ProblemInstance(join(shipped(), plain))
        facts: dict[Key, set[str]] = {}
        for root in base.roots:
            if root.ground.kind == "fact" and root.key.scope:
                facts.setdefault(root.key, set()).update(getattr(root.test, "labels", ()))
        policy = Policy(text, facts)
        clauses, pins = Clauses(base, policy), decide(instance)
        if pins is None:
            refused += 1
            assert not clauses.find(()), request.spec
            continue
        solved += 1
        decided: list[Candidate] = []
        for key in in_order(instance, pins):
            if key.component == "policy":
                continue
            ranked = sorted(base.candidates(key), key=policy.rank)
            mine = next(one for one in ranked if _is_same(one, pins[key]))
            better = ranked[: ranked.index(mine)]
            assert not policy.refuses(mine), f"{mine} in {request.spec}"
            for one in better:
                assert policy.refuses(one) or not clauses.find([*decided, one]), f"{one} before {mine} in {request.spec}"
            decided.append(mine)
    assert solved > times(COUNT) // 8, f"only {solved} of {solved + refused} requests have an answer"


def _is_same(one: Candidate, other: Candidate) -> bool:
    """Of two builds of one name for two platforms, the same one."""
    return one.label == other.label and build_of(one) == build_of(other)


def test_the_second_opinion_refuses_a_beta_unless_it_is_allowed() -> None:
    beta = next(one for one in shipped().components["driver"].releases if one.prerelease)
    candidate = ReleaseCandidate(Key("driver", "host 1"), beta.version, str(beta.version), beta)
    plain = {"strategy": "newest", "allow": [], "forbid": [], "prefer": {}, "avoid": {}}
    assert Policy(plain, {}).refuses(candidate)
    assert not Policy({**plain, "allow": ["prerelease"]}, {}).refuses(candidate)
    assert Policy({**plain, "allow": ["prerelease"], "forbid": ["prerelease"]}, {}).refuses(candidate)
