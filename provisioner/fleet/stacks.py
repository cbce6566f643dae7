"""Turn a group of signatures into a stack that is verified on every class it serves, with each missing fact reported once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.accelerators import GPU_DRIVERS
from provisioner.errors import UnavailableError
from provisioner.fleet.effects import marked
from provisioner.fleet.model import FleetStack, Note
from provisioner.grounds.choice import InstallDriver
from provisioner.host.facts import stated
from provisioner.request import TargetHost
from provisioner.resolver.outcome.answer import BASES, answer
from provisioner.resolver.problem import join
from provisioner.resolver.requirement import Key
from provisioner.resolver.rules.facts import has_driver_of_some_version
from provisioner.resolver.search.instance import ProblemInstance, violations
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Version
from provisioner.words.ground import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.fleet.classes import HostClass, Pool
    from provisioner.fleet.groups import Group
    from provisioner.grounds.doubt import Doubt
    from provisioner.grounds.relaxation import Relaxation
    from provisioner.matrix.model import Matrix
    from provisioner.resolver.requirement import Candidate, Requirement
    from provisioner.resolver.stack import Stack

THE_HOST = "the host"
VERIFIED = 16
"""The number of classes verified in one problem; the cost of an answer grows faster than its number of hosts."""


class _Notes(Struct):
    """Collects notes about single hosts, and merges those with the same reason."""

    found: dict[Doubt | InstallDriver, dict[int, None]] = field(default_factory=dict)

    def add(self, reason: Doubt | InstallDriver, index: int | None) -> None:
        """Add a note about the class at `index`, or, with None, about the stack."""
        indexes = self.found.setdefault(reason, {})
        if index is not None:
            indexes[index] = None

    def notes(self, classes: Sequence[HostClass]) -> tuple[Note, ...]:
        return tuple(
            Note(reason=reason, classes=tuple(classes[index] for index in sorted(indexes)))
            for reason, indexes in self.found.items()
        )


def stack_of(matrix: Matrix, pool: Pool, group: Group, *, classes: Sequence[HostClass], size: int = VERIFIED) -> FleetStack:
    """Return the stack of a group, verified on all of its classes, in problems of at most `size` classes."""
    unverified, assumed, chosen = _Notes(), _Notes(), _Notes()
    stacks = []
    for start in range(0, len(classes), size):
        block = _Block(matrix, pool, group, start=start, classes=classes[start : start + size])
        stack, pins = block.verified()
        stacks.append(stack)
        for notes, doubts in ((unverified, stack.doubts), (assumed, stack.assumes)):
            for doubt in doubts:
                notes.add(of_the_host(doubt), block.index(doubt))
        for index, install in block.installed(pins):
            chosen.add(install, index)
    return FleetStack(
        stack=_merged(stacks),
        classes=tuple(classes),
        unverified=unverified.notes(classes),
        assumes=assumed.notes(classes),
        chosen=chosen.notes(classes),
    )


def _merged(stacks: Sequence[Stack]) -> Stack:
    """Return one stack for all blocks (problems of up to `VERIFIED` classes), with only the components that hosts share.

    `basis`, how the driver runs CUDA, is the least native one of any block.
    """
    first = stacks[0]
    pins = tuple(pin for pin in first.pins if not pin.host)
    shared = {"platform", *(pin.component for pin in pins), *(f"{pin.component}_build" for pin in pins if pin.build)}
    names = [name for name in first.host_requirements if all(name in stack.host_requirements for stack in stacks)]
    needs = {name: shared_range([stack.host_requirements[name] for stack in stacks]) for name in sorted(names)}
    return replace(
        first,
        components={name: text for name, text in first.components.items() if name in shared},
        pins=pins,
        basis=max((stack.basis for stack in stacks), key=lambda basis: BASES.index(basis) if basis else -1),
        host_requirements={name: text for name, text in needs.items() if text},
        relaxations=tuple(dict.fromkeys(of_the_host(one) for stack in stacks for one in stack.relaxations)),
        doubts=(),
        assumes=(),
        accepts=tuple(dict.fromkeys(of_the_host(one) for stack in stacks for one in stack.accepts)),
    )


def shared_range(texts: Sequence[str]) -> str:
    """Return the requirement on a host that holds in every block: the clauses that all have, and the lowest lower bound.

    A block that has only newer GPUs may have a higher lower bound than the others.
    """
    parts = [text.split(",") for text in texts]
    floors = [[part for part in some if part.startswith(">=")] for some in parts]
    shared = [part for part in parts[0] if all(part in some for some in parts) and not part.startswith(">=")]
    lowest = min((some[-1] for some in floors), key=lambda part: Version.parse(part.removeprefix(">="))) if all(floors) else ""
    return ",".join([lowest, *shared] if lowest else shared)


Reason = TypeVar("Reason", bound="Doubt | Relaxation")


def of_the_host(reason: Reason) -> Reason:
    """Return a doubt or relaxation with `the host` in place of the name of a host, so that equal ones can be merged."""
    return replace(reason, host=THE_HOST) if getattr(reason, "host", "") else reason


class _Block:
    """The problem of some classes of a group, to verify the shared choices of the group on them."""

    def __init__(self, matrix: Matrix, pool: Pool, group: Group, *, start: int, classes: Sequence[HostClass]) -> None:
        self._matrix = matrix
        self._pool = pool
        self._group = group
        self._hosts = {marked(start + index): (start + index, one) for index, one in enumerate(classes)}
        self._instance = self._instance_of(self._hosts)

    def _instance_of(self, labels: Iterable[str]) -> ProblemInstance:
        targets = [TargetHost(label=label, host=self._hosts[label][1].host) for label in labels]
        return ProblemInstance(join(self._matrix, self._pool.request_for(targets)))

    def index(self, doubt: Doubt) -> int | None:
        """Return the index of the class that a doubt is about; None if it is about the stack."""
        label = getattr(doubt, "host", "")
        return self._hosts[label][0] if label in self._hosts else None

    def verified(self) -> tuple[Stack, Mapping[Key, Candidate]]:
        """Return the stack on these classes and its pins, after every requirement was checked on the real hosts.

        Raises `UnavailableError` when the solver finds no choices for a host.
        """
        pins = self._pinned()
        broken = violations(self._instance, pins)
        if broken:
            self._repair(pins, {requirement.key.scope for requirement in broken})
            broken = violations(self._instance, pins)
        assert not broken, f"a stack was given to hosts it does not serve: {say(broken[0].ground)}"
        return answer(self._instance, pins), pins

    def installed(self, pins: Mapping[Key, Candidate]) -> Iterator[tuple[int, InstallDriver]]:
        """Yield the index of each class whose hosts have no GPU driver, with the driver that must be installed on them."""
        for key, candidate in pins.items():
            if key.scope in self._hosts and key.name in GPU_DRIVERS:
                index, one = self._hosts[key.scope]
                if stated(one.host, key.name) is None and not has_driver_of_some_version(one.host, key.name):
                    module = pins.get(Key(f"{key.name}_module", key.scope))
                    flavour = module.label if module is not None else ""
                    yield index, InstallDriver(component=key.name, version=candidate.label, module=flavour, host=THE_HOST)

    def _pinned(self) -> dict[Key, Candidate]:
        """Return the group's choices and, for each key of a host, the first candidate that all earlier choices allow.

        A key without such a candidate is left out.
        """
        instance, order = self._instance, self._instance.problem.order
        pins: dict[Key, Candidate] = {}
        wanted: dict[Key, list[Requirement]] = {}
        for requirement in instance.roots:
            wanted.setdefault(requirement.key, []).append(requirement)
        for _, name, position in self._group.rank:
            key = Key(name)
            pins[key] = instance.candidates(key)[position]
            for requirement in instance.requirements(pins[key]):
                wanted.setdefault(requirement.key, []).append(requirement)
        failed: set[Key] = set()
        while waiting := [key for key in wanted if key.scope and key not in pins and key not in failed]:
            key = min(waiting, key=lambda one: (order.get(one, -1), one))
            allowed = (one for one in instance.candidates(key) if all(test.allows(one) for test in wanted[key]))
            found = next(allowed, None)
            if found is None:
                failed.add(key)
                continue
            pins[key] = found
            for requirement in instance.requirements(found):
                wanted.setdefault(requirement.key, []).append(requirement)
        return pins

    def _repair(self, pins: dict[Key, Candidate], labels: Iterable[str]) -> None:
        """Solve each host in `labels` alone, for choices that `_pinned` did not find, and put its choices into `pins`.

        The choices of one host do not affect another host.
        """
        for label in sorted(set(labels) & self._hosts.keys()):
            instance = self._instance_of([label])
            given = [instance.candidates(Key(name))[position] for _, name, position in self._group.rank]
            found = decide(instance.relaxed(given=given))
            if found is None:
                raise UnavailableError(f"the stack of host `{self._hosts[label][1].name}` could not be verified")
            for key, candidate in found.items():
                if key.scope:
                    # Other hosts of the problem may add candidates, such as a beta driver that one of them runs.
                    alike = (one for one in self._instance.candidates(key) if one.label == candidate.label)
                    pins[key] = next(alike, candidate)
