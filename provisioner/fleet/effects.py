"""Compute the constraints of each class of hosts on a stack: which candidates it refuses, and which choices a host leaves open.

A stack serves several hosts exactly when it serves each, so each class becomes a set of *constraints* on the part that all
hosts share. Constraints come from the same requirements that the solver uses (`ProblemInstance`); no rule of the matrix is
evaluated a second time here. If the hosts are not independent (one environment variable for all AMD GPUs), solving them
together decides: see `groups`.

A key is what the solver makes a choice for: a component or package, shared by all hosts or on one host. A position is the index
of a candidate among the candidates of its key. A root is a requirement that holds for every stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from provisioner.accelerators import ACCELERATORS
from provisioner.fleet.local import Choice, Constraint, Local, Unservable, Want
from provisioner.grounds.requirement import Row
from provisioner.request import TargetHost
from provisioner.resolver.problem import join
from provisioner.resolver.search.instance import ProblemInstance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provisioner.fleet.classes import HostClass, Pool
    from provisioner.grounds.requirement import Group
    from provisioner.matrix.model import Matrix, Rule
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.rules.guards import Guards

BLOCK = 32
"""The number of classes in one problem, which is large because the part that all hosts share costs the same for any number."""


NEVER: frozenset[Constraint] = frozenset({Unservable()})
"""The constraints of a class that no stack of its pool serves: it states that it has no GPU, and the pool is for GPUs."""


class Shared(Struct, kw_only=True):
    """The part of a stack that all hosts share: the candidates of each key, and what choosing one requires of other keys.

    `sizes`, `labels` and `order` map the name of a key to the number of its candidates, their labels, and its rank in the
    resolver's order of choice. `roots` are pairs of a key and its positions allowed in every stack. `needs` are triples of a
    choice, another key, and the positions of that key that the choice allows.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    roots: set[tuple[str, frozenset[int]]] = field(default_factory=set)
    needs: set[tuple[Choice, str, frozenset[int]]] = field(default_factory=set)


class Effects(Struct, frozen=True, kw_only=True):
    """The part of a stack that the hosts of a pool share, and the constraints of each of its classes, in their order."""

    shared: Shared
    constraints: tuple[frozenset[Constraint], ...]


def effects_of(matrix: Matrix, pool: Pool) -> Effects:
    """Return the constraints of every class of a pool; raises `UnknownGpuError` for a GPU that the matrix does not list."""
    shared = Shared()
    found: dict[int, frozenset[Constraint]] = {}
    for index, one in enumerate(pool.classes):
        if one.host.gpus == () and ACCELERATORS[pool.request.accelerator].vendor:
            found[index] = NEVER
    remaining = [index for index in range(len(pool.classes)) if index not in found]
    size = 1 if depends_on_other_hosts(matrix, pool) else BLOCK
    for start in range(0, len(remaining), size):
        some = remaining[start : start + size]
        block = _Block(matrix, pool, [pool.classes[index] for index in some], shared=shared)
        found.update(zip(some, block.constraints(), strict=True))
    return Effects(shared=shared, constraints=tuple(constraints for _, constraints in sorted(found.items())))


def depends_on_other_hosts(matrix: Matrix, pool: Pool) -> bool:
    """Return whether a host's constraints may depend on which other hosts are served.

    The `overrides` of the matrix for AMD GPUs cause such a dependency: they are environment variables, which apply to all GPUs.
    """
    if ACCELERATORS[pool.request.accelerator].target_key != "gfx":
        return False
    passing = {gfx for row in matrix.overrides for gfx in row.gfx}
    known = {gpu.name: gpu.gfx for gpu in matrix.gpus}
    return any((gpu.gfx or known.get(gpu.name or "")) in passing for one in pool.classes for gpu in one.host.gpus or ())


def marked(index: int) -> str:
    """Return the label of host class `index` in a problem of several classes; it equals no name that a user can give."""
    return f"\x02{index}\x03"


class _Block:
    """Computes the constraints of several classes from one problem, and completes `shared`, the part common to all hosts."""

    def __init__(self, matrix: Matrix, pool: Pool, classes: Sequence[HostClass], *, shared: Shared) -> None:
        self._targets = {marked(index): TargetHost(label=marked(index), host=one.host) for index, one in enumerate(classes)}
        self._problem = join(matrix, pool.request_for(self._targets.values()))
        self._instance = ProblemInstance(self._problem)
        self._shared = shared
        self._positions: dict[Key, dict[Candidate, int]] = {}
        self._stated: dict[Key, Candidate | None] = {}
        self._locals = {label: Local() for label in self._targets}
        self._roots: dict[Key, list[Requirement]] = {}
        for root in self._problem.roots:
            self._roots.setdefault(root.key, []).append(root)
        self._rules: dict[Group, Rule] = {Row("rule", rule.name): rule for rule in matrix.rules if _reads_host(rule)}

    def constraints(self) -> Iterator[frozenset[Constraint]]:
        """Yield the constraints of each class, in the order of the classes."""
        self._read_roots()
        waiting = [root.key for root in self._problem.roots]
        seen: set[Key] = set()
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            for candidate in self._offered(key):
                for requirement in self._instance.requirements(candidate):
                    waiting.append(requirement.key)
                    self._read(candidate, requirement)
        for label in self._targets:
            yield self._locals[label].constraints()

    def _offered(self, key: Key) -> tuple[Candidate, ...]:
        """Return the candidates of a key that all roots allow but those of single hosts, and register the key.

        For a fact that a host states, this is the stated candidate alone.
        """
        candidates = self._instance.candidates(key)
        if key.scope:
            self._domain(key)
        else:
            labels = tuple(one.label for one in candidates)
            known = self._shared.labels.setdefault(key.name, labels)
            assert known == labels, f"the candidates of {key.name} depend on which hosts are asked about together"
            self._shared.sizes[key.name] = len(candidates)
            self._shared.order[key.name] = self._problem.order.get(key, -1)
        roots = [root for root in self._roots.get(key, ()) if not self._is_of_some(root)]
        return tuple(one for one in candidates if all(root.allows(one) for root in roots))

    def _domain(self, key: Key) -> None:
        roots = self._roots.get(key, ())
        allowed = [one for one in self._instance.candidates(key) if all(root.allows(one) for root in roots)]
        self._locals[key.scope].domain(key.name, [self._position(one) for one in allowed], is_required=bool(roots))
        self._stated[key] = allowed[0] if roots and len(allowed) == 1 else None

    def _read_roots(self) -> None:
        for root in self._problem.roots:
            if root.key.scope:
                continue
            allowed = frozenset(self._position(one) for one in self._instance.candidates(root.key) if root.allows(one))
            if self._is_of_some(root):
                for label, target in self._targets.items():
                    if root.key.name.partition(":")[2] in self._devices(target):
                        self._locals[label].outer(None, root.key.name, allowed)
            else:
                self._shared.roots.add((root.key.name, allowed))

    def _is_of_some(self, root: Requirement) -> bool:
        """Return whether a root comes from the GPUs of single hosts.

        This applies to the architectures to compile for, if the spec lists none.
        """
        return not root.key.scope and root.key.component == "arch_list" and root.ground.kind == "fact"

    def _devices(self, target: TargetHost) -> set[str | None]:
        return {self._guards.device(gpu) for gpu in target.host.gpus or ()}

    @property
    def _guards(self) -> Guards:
        return self._problem.needs.guards

    def _read(self, candidate: Candidate, requirement: Requirement) -> None:
        world, target = candidate.key.scope, requirement.key
        if target.scope:
            if target not in self._stated:
                self._domain(target)
            stated = self._stated[target]
            if stated is not None and requirement.allows(stated):
                return  # the stated fact meets the requirement, as most do
            local, position = self._locals[target.scope], self._position(candidate)
            allowed = frozenset[int]() if stated is not None else self._allowed_here(local, requirement)
            if world:
                local.inner(candidate.key.name, position, Want(target.name, allowed))
            else:
                local.wanted((candidate.key.name, position), Want(target.name, allowed))
            return
        position = self._position(candidate)
        allowed = frozenset(self._position(one) for one in self._instance.allowed(requirement))
        if world:
            offered = frozenset(self._position(one) for one in self._offered(target))
            if not offered <= allowed:
                self._locals[world].reaching_out(candidate.key.name, position, Want(target.name, allowed & offered))
            return
        rule = self._rules.get(requirement.ground.group)
        if rule is None:
            self._shared.needs.add(((candidate.key.name, position), target.name, allowed))
            return
        for label, host in self._targets.items():
            if self._guards.hold(rule.on, host):
                self._locals[label].outer((candidate.key.name, position), target.name, allowed)

    def _allowed_here(self, local: Local, requirement: Requirement) -> frozenset[int]:
        """Return the positions of those candidates of a host's key that a requirement allows."""
        positions = local.positions(requirement.key.name)
        candidates = self._instance.candidates(requirement.key)
        return frozenset(position for position in positions if requirement.allows(candidates[position]))

    def _position(self, candidate: Candidate) -> int:
        positions = self._positions.get(candidate.key)
        if positions is None:
            candidates = self._instance.candidates(candidate.key)
            positions = self._positions[candidate.key] = {one: position for position, one in enumerate(candidates)}
        return positions[candidate]


_OF_THE_REQUEST = frozenset({"platform", "accelerator", "runs", "build"})


def _reads_host(rule: Rule) -> bool:
    """Return whether a rule may hold on some hosts of a pool and not on others, because one of its guards reads the host."""
    return any(guard.component not in _OF_THE_REQUEST for guard in rule.on)
