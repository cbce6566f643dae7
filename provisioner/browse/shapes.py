"""Reduce a cell of the heat map to what its verdict depends on, so that equal cells are decided once.

The shape of a candidate is its requirements, each with its group and the candidates that it allows. A requirement on
a component of which the request leaves a single value, such as the GPU, is a part of the shape only if that value does not meet
it. What a driver does to a build is told apart from the build: the effect of a driver is which requirements on drivers it does
not meet, and which it meets by less than native support. Builds with equal shapes, down to all that they can reach, have equal
verdicts under drivers with equal effects on what they reach, on whatever GPU and platform that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from provisioner.resolver.rules.drivers import RunsCuda

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance


class Numbers:
    """Numbers for values, the same for equal ones; a set of values is an integer with their bits."""

    def __init__(self) -> None:
        self._of: dict[object, int] = {}

    def bit(self, value: object) -> int:
        """Return the bit of a value."""
        return 1 << self.number(value)

    def number(self, value: object) -> int:
        """Return the number of a value, a new one for a new value."""
        return self._of.setdefault(value, len(self._of))


class Reach(NamedTuple):
    """What a candidate requires, directly or through others: sets of shapes, of requirements on drivers, and of keys."""

    shapes: int = 0
    on_drivers: int = 0
    keys: int = 0

    def with_(self, other: Reach) -> Reach:
        """Return the union of two reaches."""
        return Reach(self.shapes | other.shapes, self.on_drivers | other.on_drivers, self.keys | other.keys)


class Shapes:
    """The shapes of the candidates of one problem; `numbers` are shared by all problems whose shapes are compared.

    `subject` are the keys of the components whose candidates are told apart by their shapes alone, not by their labels.
    `ignored` groups are no part of a shape.
    """

    def __init__(
        self, instance: ProblemInstance, numbers: Numbers, *, driver: Key, subject: Collection[Key], ignored: Collection[Group]
    ) -> None:
        self._instance = instance
        self._numbers = numbers
        self._driver = driver
        self._subject = frozenset((*subject, driver))
        self._ignored = frozenset(ignored)
        self._only = self._settled()
        self._reaches: dict[Candidate, Reach] = {}
        self._sets: dict[int, tuple[int, Reach]] = {}
        self._on_drivers: dict[int, Requirement] = {}
        self._users: dict[int, int] = {}
        self._effects: dict[int, int] = {}
        self.roots = numbers.number(tuple(self._root(one) for one in instance.roots if one.key not in self._only))

    def _settled(self) -> dict[Key, Candidate]:
        """Return the keys of which the roots leave a single candidate, with that candidate."""
        allowed: dict[Key, frozenset[Candidate]] = {}
        for root in self._instance.roots:
            found = self._instance.allowed(root)
            allowed[root.key] = found & allowed[root.key] if root.key in allowed else found
        return {key: next(iter(found)) for key, found in allowed.items() if len(found) == 1 and key != self._driver}

    def _root(self, root: Requirement) -> tuple[Key, Group, int]:
        return root.key, root.ground.group, self._labels(self._instance.allowed(root))

    def _labels(self, candidates: Iterable[Candidate]) -> int:
        return self._numbers.number(frozenset(one.label for one in candidates))

    def reach(self, candidate: Candidate) -> Reach:
        """Return what a candidate reaches, itself included; drivers are not followed, unless the candidate is one."""
        found = self._reaches.get(candidate)
        if found is None:
            found = self._reaches[candidate] = self._read(candidate)
        return found

    def _read(self, candidate: Candidate) -> Reach:
        shape: list[object] = ["" if candidate.key in self._subject else candidate.label]
        reach = Reach(keys=self._numbers.bit(candidate.key))
        for requirement in self._instance.requirements(candidate):
            key, group = requirement.key, requirement.ground.group
            if group in self._ignored:
                continue
            allowed = self._instance.allowed(requirement)
            only = self._only.get(key)
            if only is not None:
                if only not in allowed:
                    shape.append((key.component, group))
            elif key == self._driver:
                number = self._numbers.number(("on drivers", candidate.key, shape[0], group))
                self._on_drivers[number] = requirement
                reach = reach.with_(Reach(on_drivers=1 << number))
            else:
                labels, of_all = self._of_all(allowed)
                shape.append((key, group, labels))
                reach = reach.with_(of_all)
        return reach.with_(Reach(shapes=self._numbers.bit((candidate.key, tuple(shape)))))

    def _of_all(self, candidates: frozenset[Candidate]) -> tuple[int, Reach]:
        """Return the number of the labels of some candidates, and what they reach; the instance keeps each set once."""
        found = self._sets.get(id(candidates))
        if found is None:
            reach = Reach()
            for one in candidates:
                reach = reach.with_(self.reach(one))
            found = self._sets[id(candidates)] = self._labels(candidates), reach
        return found

    def effect(self, driver: Candidate) -> int:
        """Return what a driver does to the requirements on drivers that were read: a set of refusals and relaxations."""
        effect = 0
        for number, requirement in self._on_drivers.items():
            way = requirement.test.basis(driver.version) if isinstance(requirement.test, RunsCuda) else "native"
            if driver not in self._instance.allowed(requirement):
                way = "refused"
            elif way == "native":
                continue
            bit = self._numbers.bit((number, way))
            effect |= bit
            self._users[number] = self._users.get(number, 0) | bit
            self._effects.clear()
        return effect

    def effects_on(self, requirements: int) -> int:
        """Return the set of all effects that drivers have on a set of requirements."""
        found = self._effects.get(requirements)
        if found is None:
            found = 0
            for number, bits in self._users.items():
                if requirements >> number & 1:
                    found |= bits
            self._effects[requirements] = found
        return found

    def groups_on_drivers(self) -> Iterator[Group]:
        """Yield the groups of the requirements on drivers that were read."""
        return (one.ground.group for one in self._on_drivers.values())
