"""Cover a fleet, the entry point: find the fewest stacks that serve its hosts, and explain the hosts that none can serve."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.fleet.choice import allotted
from provisioner.fleet.classes import pools_of
from provisioner.fleet.cover import Bound, Coverage
from provisioner.fleet.effects import depends_on_other_hosts, effects_of
from provisioner.fleet.groups import Grouping
from provisioner.fleet.model import FleetAnswer, Gain, Limit
from provisioner.fleet.stacks import VERIFIED, stack_of
from provisioner.fleet.unserved import Explaining
from provisioner.host.gpu_names import GpuNames, UnreadName
from provisioner.resolver.problem import UnknownGpuError
from provisioner.words.gpu_name import name_hints, target_hints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.fleet.choice import Rung
    from provisioner.fleet.classes import HostClass, Pool
    from provisioner.fleet.groups import Group
    from provisioner.fleet.model import FleetStack, Unserved
    from provisioner.host.inventory import InventoryHost
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request


def cover_fleet(
    matrix: Matrix,
    request: Request,
    listed: Sequence[InventoryHost],
    *,
    platforms: Sequence[str],
    most: int | None = None,
) -> FleetAnswer:
    """Return stacks for all hosts that any stack can serve, as few as possible, and the conflicts of the other hosts.

    `request` is that of the spec, without hosts; `platforms` are those that the spec names, () if it leaves the platform to the
    hosts. A stack is for one platform and one accelerator. With `most`, at most so many stacks are returned: those that serve
    the most machines, and of these the newest. Raises `UnknownGpuError` for a GPU that the matrix does not list, and the errors
    of `join`.
    """
    _require_known_gpus(matrix, listed)
    fleet = pools_of(listed, matrix, request, platforms=platforms)
    explaining = Explaining(matrix)
    other = explaining.other_platforms(request, fleet.other_platforms, platforms=platforms)
    with ExitStack() as opened:
        pools = [opened.enter_context(_PoolCover(matrix, pool)) for pool in fleet.pools]
        unserved = (*(left for pool in pools for left in pool.unserved(explaining)), *other)
        if most is not None:
            return _limited(pools, unserved, most)
        found = [pool.fewest() for pool in pools]
    stacks = tuple(stack for some, _ in found for stack in some)
    bound = Bound(lower=sum(bound.lower for _, bound in found), found=len(stacks))
    return FleetAnswer(stacks=stacks, unserved=unserved, bound=bound)


def _limited(pools: Sequence[_PoolCover], unserved: tuple[Unserved, ...], most: int) -> FleetAnswer:
    """Return the answer with at most `most` stacks, and what one more of them buys."""
    useful = min(most, sum(len(pool.served) for pool in pools))
    while True:
        ladders = [pool.grouping.ladder(useful + 1) for pool in pools]
        chosen, more = (
            [ladder[at] for ladder, at in zip(ladders, allotted(ladders, count), strict=True)] for count in (useful, useful + 1)
        )
        now = [pool.stacks(rung) for pool, rung in zip(pools, chosen, strict=True)]
        then = [pool.stacks(rung) for pool, rung in zip(pools, more, strict=True)]
        if None not in now and None not in then:
            break
        # What cannot be solved together is recorded by now: choose again.
    stacks = tuple(stack for some in now for stack in some or ())
    served = {one.name for stack in stacks for one in stack.classes}
    limit = Limit(
        stacks=most,
        left_out=tuple(one for pool in pools for one in pool.served if one.name not in served),
        is_proved=all(rung.is_proved for rung in chosen),
        gains=_gains(stacks, [stack for some in then for stack in some or ()]),
    )
    return FleetAnswer(stacks=stacks, unserved=unserved, bound=Bound(lower=len(stacks), found=len(stacks)), limit=limit)


def _gains(now: Sequence[FleetStack], then: Sequence[FleetStack]) -> tuple[Gain, ...]:
    """Return the classes that have another stack `then`, those with the same stacks together, the largest first."""
    before = {one.name: stack for stack in now for one in stack.classes}
    found: dict[tuple[str, str], list[tuple[HostClass, FleetStack | None, FleetStack]]] = {}
    for stack in then:
        for one in stack.classes:
            old = before.get(one.name)
            if old is None or old.stack.components != stack.stack.components:
                found.setdefault((_identity(old), _identity(stack)), []).append((one, old, stack))
    gains = (Gain(classes=tuple(one for one, _, _ in some), before=some[0][1], after=some[0][2]) for some in found.values())
    return tuple(sorted(gains, key=lambda gain: (-gain.nodes, gain.classes[0].name)))


def _require_known_gpus(matrix: Matrix, listed: Sequence[InventoryHost]) -> None:
    """Raise one `UnknownGpuError` about all GPUs that state no target, and a product that the matrix does not list.

    Any stack would seem to run on such a GPU, because nothing is known about it.
    """
    known = {gpu.name for gpu in matrix.gpus}
    strange: dict[str, list[str]] = {}
    for one in listed:
        for gpu in one.host.gpus or ():
            if gpu.name and gpu.name not in known and gpu.target is None:
                strange.setdefault(gpu.name, []).append(str(one.place or one.name))
    if not strange:
        return
    causes = []
    hints: dict[str, None] = {}
    names = GpuNames(matrix.gpus, matrix.chips)
    for name, places in sorted(strange.items()):
        more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
        read = names.read(name)
        assert isinstance(read, UnreadName), "the hosts of an inventory have the names and targets of the matrix"
        causes.append(f"`{name}`  ({places[0]}{more}){''.join(f'; {hint}' for hint in name_hints(read))}")
        hints |= dict.fromkeys(target_hints(read))
    raise UnknownGpuError(
        f"{'a GPU' if len(strange) == 1 else f'{len(strange)} GPUs'} the matrix does not know, without a compute_capability",
        causes=tuple(causes),
        hints=tuple(hints),
    )


def _identity(stack: FleetStack | None) -> str:
    return str(sorted(stack.stack.components.items())) if stack is not None else ""


class _PoolCover(AbstractContextManager["_PoolCover"]):
    """Finds the stacks of one pool, whose solver is open until the end of the context."""

    def __init__(self, matrix: Matrix, pool: Pool) -> None:
        self._matrix = matrix
        self._pool = pool
        self._is_joint = depends_on_other_hosts(matrix, pool)
        self._coverage = Coverage(effects_of(matrix, pool), is_joint=self._is_joint)
        self._signatures = list(zip(pool.classes, self._coverage.signature_of, strict=True))
        self._stacks: dict[frozenset[frozenset[int]], list[FleetStack]] = {}
        self.grouping = Grouping(matrix, pool, self._coverage)

    def __exit__(self, *_: object) -> None:
        self._coverage.close()

    @property
    def served(self) -> tuple[HostClass, ...]:
        """The classes of the pool that some stack serves."""
        served = set(self._coverage.served)
        return tuple(one for one, signature in self._signatures if signature in served)

    def unserved(self, explaining: Explaining) -> list[Unserved]:
        """Return the conflicts of the classes that no stack serves."""
        served = set(self._coverage.served)
        return explaining.explain(self._pool.request, [one for one, signature in self._signatures if signature not in served])

    def fewest(self) -> tuple[list[FleetStack], Bound]:
        """Return the fewest stacks for all classes that any stack serves, and the bound proved for their number."""
        groups, bound = self.grouping.groups()
        return self._verified(groups), bound

    def stacks(self, rung: Rung) -> list[FleetStack] | None:
        """Return the stacks of a rung; None if one of its groups cannot be solved together."""
        key = frozenset(rung.groups)
        if key not in self._stacks:
            groups = self.grouping.solved(rung)
            if groups is None:
                return None
            self._stacks[key] = self._verified(groups)
        return self._stacks[key]

    def _verified(self, groups: Sequence[Group]) -> list[FleetStack]:
        stacks = []
        for group in groups:
            classes = [one for one, signature in self._signatures if signature in group.signatures]
            deciding = {signature: one for one, signature in reversed(self._signatures) if signature in group.maximal}
            size = len(classes) if self._is_joint else VERIFIED
            found = stack_of(self._matrix, self._pool, group, classes=classes, size=size)
            stacks.append(replace(found, deciding=tuple(deciding[signature] for signature in sorted(deciding))))
        return stacks
