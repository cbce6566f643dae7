"""Random problems, and how many of them: `PROVISION_EXAMPLES=10 pytest -m property` tries ten times as many.

A `System` is a matrix of a few components with builds, rules and guards, one or two hosts that state some facts and leave
others out, and a request; `question` says the same to the oracle. Whatever is random is drawn by Hypothesis (`Dice`), which
shrinks it: a counterexample is printed as the profile, request and rules it consists of.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import wraps
from math import sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.matrix.need import Need
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import build_of, release_of
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.versions import Range
from tests import small
from tests.oracle import Choice, Oracle, Place, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from provisioner.matrix.model import Matrix, Release, Rule
    from provisioner.resolver.requirement import Candidate, Key

TIMES = float(os.environ.get("PROVISION_EXAMPLES", "1"))
"""How many times as many examples are tried; `make test` tries a twentieth."""

NAMES = ("alpha", "beta", "gamma", "delta")
FACTS = ("fabric_manager", "userspace_driver", "secure_boot")
CHOSEN = "kernel"
BOOT = {
    "disabled": {"enabled": False},
    "enrolled": {"enabled": True, "mok_enrolled": True},
    "enforced": {"enabled": True, "mok_enrolled": False},
}


def times(count: int) -> int:
    """Return how many examples stand for `count` of them in this run, which are ten at least (or `count`, if that is fewer)."""
    return max(min(count, 10), round(count * TIMES))


_cases: Counter[str] = Counter()


def case(name: str) -> None:
    """Count one example of a law as a case of this name, for the shares that `examples` demands."""
    _cases[name] += 1


def examples(
    count: int, *, derandomize: bool = False, shares: Mapping[str, float] = MappingProxyType({})
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that tries a law on `count` random problems, and fails a law that would prove nothing.

    `count` problems have to get past everything that the law assumes (`hypothesis.assume`). `shares` gives the least share of
    them that has to be counted by `case` under a name: `examples(2000, shares={"impossible": 0.1})`; fewer are an error where
    chance does not explain it (three standard deviations).
    """
    chosen = settings(max_examples=times(count), deadline=None, suppress_health_check=list(HealthCheck))
    if derandomize:  # on CI every law does, by the profile that Hypothesis has for it
        chosen = settings(chosen, derandomize=True)

    def decorate(law: Any) -> Callable[..., None]:  # noqa: ANN401 - what `given` returns has attributes of its own
        reached = 0
        inner = law.hypothesis.inner_test

        @wraps(inner)
        def counted(*arguments: object, **named: object) -> None:
            nonlocal reached
            inner(*arguments, **named)
            reached += 1

        law.hypothesis.inner_test = counted
        run = chosen(law)

        @wraps(run)
        def checked(*arguments: object, **named: object) -> None:
            nonlocal reached
            reached = 0
            _cases.clear()
            run(*arguments, **named)
            assert reached >= times(count), f"only {reached} of {times(count)} examples reach what the law asserts"
            for name, share in shares.items():
                due = share * reached
                assert _cases[name] >= due - 3 * sqrt(due), f"only {_cases[name]} of {reached} examples are {name}"

        return checked

    return decorate


class Dice(random.Random):
    """Random numbers out of bytes that Hypothesis draws, so that what is built with them shrinks.

    Smaller bytes make fewer and smaller things, and zeros follow the last byte. All bytes are drawn at once, and so are as
    random as those of a seed; of single draws Hypothesis repeats many. The standard library builds every method of
    `random.Random` on these two.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__(0)
        self._bytes = iter(content)

    def random(self) -> float:
        """Return one of 256 numbers of [0, 1); the least byte makes the greatest, so that `random() < 0.3` shrinks to False."""
        return 1 - (next(self._bytes, 0) + 1) / 256

    def getrandbits(self, k: int, /) -> int:
        """Return a whole number of `k` bits."""
        content = bytes(next(self._bytes, 0) for _ in range(-(-k // 8)))
        return int.from_bytes(content, "big") >> (-k % 8)


def dice(size: int = 600) -> st.SearchStrategy[Dice]:
    """Draw random numbers out of `size` bytes."""
    return st.binary(min_size=size, max_size=size).map(Dice)


class System(Struct, frozen=True, kw_only=True):
    """A problem without packages."""

    matrix: Matrix
    requires: Mapping[str, str]
    profiles: Sequence[Mapping[str, Any]]
    spec: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        rules = [
            f"{rule.name}: {rule.when.component} {rule.when} {[f'{g.component} {g}' for g in rule.on]} -> "
            f"{[f'{n.component} {n}' for n in rule.require]}"
            for rule in self.matrix.rules
        ]
        releases = [
            f"{name} {release.version}{'+' + build.name if build else ''} -> "
            f"{[f'{n.component} {n}' for n in (*release.requires, *(build.requires if build else ()))]}"
            for name, component in self.matrix.components.items()
            for release in component.releases
            for build in (release.builds or (None,))
        ]
        lines = [*releases, *rules, f"requires {dict(self.requires)}", *map(str, self.profiles), str(dict(self.spec))]
        return "System\n  " + "\n  ".join(lines)

    def instance(self, *, preferred: Mapping[str, str] | None = None) -> ProblemInstance:
        """The problem as the solver sees it, which may know what an earlier lock chose."""
        request = small.request(self.requires, *self.profiles, accelerator="cuda", **self.spec)
        return ProblemInstance(join(self.matrix, replace(request, preferred=preferred or {})))

    def question(self) -> Question:
        """The problem as the oracle sees it."""
        hosts = {
            f"host{index}": {
                name: next(word for word, state in BOOT.items() if state == value) if name == "secure_boot" else value
                for name, value in profile.items()
                if name in self.matrix.components
            }
            for index, profile in enumerate(self.profiles)
        }
        requires = {name: Need(component=name, range=Range.parse(text)) for name, text in self.requires.items()}
        is_oldest = dict(self.spec.get("policy", {})).get("strategy") == "oldest"
        return Question(matrix=self.matrix, requires=requires, hosts=hosts, chosen=frozenset({CHOSEN}), is_oldest=is_oldest)

    def oracle(self) -> Oracle:
        """A second opinion."""
        return Oracle(self.question())

    def having(self, **changes: Any) -> System:  # noqa: ANN401 - any field
        """The same problem with another matrix, request or hosts."""
        return replace(self, **changes)


def chosen(pins: Mapping[Key, Candidate], matrix: Matrix) -> dict[Place, Choice]:
    """An answer in the oracle's words."""
    found = {}
    for key, candidate in pins.items():
        if key.component in matrix.components:
            release, build = release_of(candidate), build_of(candidate)
            version = release.version if release is not None else candidate.version
            found[Place(key.component, key.scope)] = Choice(version, build.name if build is not None else "")
    return found


@st.composite
def systems(draw: st.DrawFn, *, is_cyclic: bool = False, is_oldest: bool = False, has_builds: bool = True) -> System:
    """Two to four components with builds, up to four facts on one or two hosts, and rules with guards."""
    return _Draw(draw(dice()), is_cyclic=is_cyclic, has_builds=has_builds).system(is_oldest=is_oldest)


class _Draw:
    """Needs point down the order, or anywhere among what is installed when `is_cyclic`."""

    def __init__(self, seed: random.Random, *, is_cyclic: bool, has_builds: bool = True) -> None:
        self._seed = seed
        self._has_builds = has_builds
        self._is_cyclic = is_cyclic
        self._names = NAMES[: seed.randint(2, 4)]
        facts = [name for name in FACTS if seed.random() < 0.6]
        self._hosted = (*facts, CHOSEN) if seed.random() < 0.8 else tuple(facts)
        self._counts = {name: seed.randint(1, 3) for name in (*self._names, *self._hosted)}
        self._density = seed.choice((0.2, 0.4, 0.6))

    def system(self, *, is_oldest: bool) -> System:
        seed = self._seed
        order = (*self._names, *self._hosted)
        releases = {name: self._releases(name) for name in order}
        rules = [self._rule(f"r{number}") for number in range(seed.randint(0, 4))]
        matrix = small.matrix(order, {}, releases=releases, rules=[rule for rule in rules if rule], virtual=self._hosted)
        requires = {name: f">={seed.randint(1, self._counts[name])}" for name in self._names if seed.random() < 0.3}
        everything = dict.fromkeys((*self._names, *({CHOSEN} & set(self._hosted))), ">=0")
        spec = {"policy": {"strategy": "oldest"}} if is_oldest else {}
        profiles = [self._profile() for _ in range(seed.randint(1, 2))]
        return System(matrix=matrix, requires={**everything, **requires}, profiles=profiles, spec=spec)

    def _values(self, name: str) -> list[str]:
        return list(BOOT) if name == "secure_boot" else [str(number) for number in range(1, self._counts[name] + 1)]

    def _some(self, name: str) -> list[str]:
        """Some of the values; of names never all, for that would say nothing."""
        values = self._values(name)
        return self._seed.sample(values, self._seed.randint(1, len(values) - (name == "secure_boot")))

    def _profile(self) -> dict[str, Any]:
        profile: dict[str, Any] = {"gpus": [{"compute_capability": "9.0"}], "container_toolkit": "1.17"}
        for name in self._hosted:
            if self._seed.random() < 0.55:
                value = self._seed.choice(self._values(name))
                is_missing = name not in {"secure_boot", CHOSEN} and self._seed.random() < 0.15
                profile[name] = BOOT[value] if name == "secure_boot" else "none" if is_missing else value
        return profile

    def _releases(self, name: str) -> tuple[Release, ...]:
        if name == "secure_boot":
            return small.names(*BOOT)
        has_builds = self._has_builds and name in self._names and self._seed.random() < 0.3
        found = []
        for version in self._values(name):
            more: dict[str, Any] = {}
            if has_builds:
                names = self._seed.sample(("cu1", "cu2", "cu3"), self._seed.randint(1, 2))
                more["builds"] = tuple(small.build(one, self._needs(name), accelerator="", sass=None) for one in names)
            found.append(small.release(version, self._needs(name), **more))
        return tuple(found)

    def _below(self, name: str) -> list[str]:
        """What needs of a component may be about: what comes after it; host components need nothing installed."""
        order = [*self._names, *self._hosted]
        if self._is_cyclic and name in self._names:
            return [one for one in order if one != name]
        return order[order.index(name) + 1 :]

    def _needs(self, name: str) -> dict[str, list[str]]:
        factor = 1.0 if name in self._names else 0.4
        return {
            other: self._some(other)
            for other in self._below(name)
            if self._seed.random() < self._density * (factor if other in self._names else 0.4)
        }

    def _rule(self, title: str) -> Rule | None:
        """A rule about anything, on hosts of some kind; None where nothing comes below its subject."""
        seed = self._seed
        subject = seed.choice([*self._names, *self._hosted])
        below = self._below(subject)
        if not below or subject == "secure_boot":
            return None
        other = seed.choice(below)
        guards: dict[str, Any] = {}
        for name in (*(one for one in self._hosted if one != CHOSEN), *([CHOSEN] if other == CHOSEN else [])):
            if seed.random() < 0.35 and name != subject:
                is_missing = name not in {"secure_boot", CHOSEN} and seed.random() < 0.3
                guards[name] = "none" if is_missing else self._some(name)
        if seed.random() < 0.1:
            guards["platform"] = seed.choice(("linux/amd64", "linux/arm64"))
        is_same = other != "secure_boot" and other in self._hosted and seed.random() < 0.15
        return small.rule(title, {subject: self._some(subject)}, {other: "same" if is_same else self._some(other)}, on=guards)
