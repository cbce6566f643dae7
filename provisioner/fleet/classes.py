"""Hosts folded into classes: those that state the same facts, as far as anything may read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.components import COMPONENTS
from provisioner.host.facts import stated
from provisioner.request import Request, TargetHost
from provisioner.resolver.rules.facts import FACTS, binds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.host.inventory import InventoryHost
    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix

_GPUS = 16
"""For how many kinds of GPU in one machine a place is given; more do not fit into one."""


class HostClass(Struct, frozen=True, kw_only=True):
    """Hosts of which the same things are known; `members` are in the order of their names, `host` is the first's profile."""

    host: Host
    members: tuple[InventoryHost, ...]

    @property
    def name(self) -> str:
        """The name of the first host, which stands for the class."""
        return self.members[0].name

    @property
    def nodes(self) -> int:
        """How many machines it is."""
        return sum(member.count for member in self.members)

    @property
    def target(self) -> TargetHost:
        """The class as the target of a request, under the name of its first host."""
        place = self.members[0].place
        keys = (*(row.key for row in COMPONENTS.values() if row.key), *(f"gpus.{index}" for index in range(_GPUS)))
        return TargetHost(label=self.name, host=self.host, places=dict.fromkeys(keys, place) if place is not None else {})


class Pool(Struct, frozen=True, kw_only=True):
    """Classes that one stack may serve together: of one platform and one accelerator. `request` is for the first of them."""

    request: Request
    classes: tuple[HostClass, ...]

    def request_for(self, targets: Iterable[TargetHost]) -> Request:
        """The same request for some hosts."""
        return replace(self.request, hosts=tuple(targets))


class Fleet(Struct, frozen=True, kw_only=True):
    """All hosts: pools to cover, and classes whose platform the spec does not name or that have no GPU beside hosts that do."""

    pools: tuple[Pool, ...]
    other_platforms: tuple[HostClass, ...] = ()
    without_gpu: tuple[HostClass, ...] = ()

    @property
    def accelerators(self) -> tuple[str, ...]:
        """What the GPUs of the fleet call for."""
        return tuple(sorted({pool.request.accelerator for pool in self.pools}))


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """The key by which people sort names: `node-2` before `node-10`."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part)


def fold(listed: Iterable[InventoryHost]) -> Iterator[HostClass]:
    """Hosts with equal profiles as one class each, whatever order they are listed in."""
    same: dict[Host, list[InventoryHost]] = {}
    known: dict[int, list[InventoryHost]] = {}
    for one in listed:
        # An inventory uses one object for equal profiles where it can, and looking at it takes longer than knowing it.
        members = known.get(id(one.host))
        if members is None:
            members = known[id(one.host)] = same.setdefault(one.host, [])
        members.append(one)
    for host, members in same.items():
        yield HostClass(host=host, members=tuple(sorted(members, key=lambda one: (natural(one.name), one.name))))


def indistinguishable(classes: Iterable[HostClass], matrix: Matrix, request: Request) -> tuple[HostClass, ...]:
    """Classes that no requirement can tell apart as one: they differ in what nothing of this request reads."""
    guarded = {guard.component for rule in matrix.rules for guard in rule.on}
    read = tuple(name for name in FACTS if name in guarded or binds(name, request))
    same: dict[tuple[object, ...], list[HostClass]] = {}
    for one in classes:
        host = one.host
        gpus = None if host.gpus is None else frozenset((gpu.name, gpu.target) for gpu in host.gpus)
        facts = tuple(stated(host, name) for name in read)
        key = (host.platform, host.virtualization, host.driver, host.kernel, gpus, facts)
        same.setdefault(key, []).append(one)
    merged = (_merged(some) for some in same.values())
    return tuple(sorted(merged, key=lambda one: (-one.nodes, natural(one.name), one.name)))


def _merged(classes: Sequence[HostClass]) -> HostClass:
    if len(classes) == 1:
        return classes[0]
    members = sorted((one for some in classes for one in some.members), key=lambda one: (natural(one.name), one.name))
    return HostClass(host=members[0].host, members=tuple(members))


def pools_of(listed: Sequence[InventoryHost], matrix: Matrix, request: Request, *, platforms: Sequence[str]) -> Fleet:
    """Part the hosts by platform and by what their GPUs call for.

    `platforms` are those the spec names, none where it leaves the platform to the hosts. Hosts without a GPU are a pool of
    their own only where no host has one, or where the spec asks for an accelerator by name: CPU is never a silent fall-back.
    """
    parts: dict[tuple[str, str], list[HostClass]] = {}
    other_platforms, without_gpu = [], []
    classes = list(fold(listed))
    has_gpus = any(one.host.gpus for one in classes)
    for one in classes:
        platform = one.host.platform or (platforms[0] if platforms else request.platform)
        alone = replace(request, hosts=(TargetHost(label=one.name, host=one.host),), platform=platform)
        if platforms and platform not in platforms:
            other_platforms.append(one)
        elif alone.has_no_gpu and has_gpus and request.spec.accelerator is None:
            without_gpu.append(one)
        else:
            parts.setdefault((platform, alone.accelerator), []).append(one)
    pools = []
    for (platform, _), some in sorted(parts.items()):
        known = replace(request, hosts=(TargetHost(label="", host=some[0].host),), platform=platform)
        pools.append(Pool(request=known, classes=indistinguishable(some, matrix, known)))
    return Fleet(
        pools=tuple(pools),
        other_platforms=indistinguishable(other_platforms, matrix, request),
        without_gpu=indistinguishable(without_gpu, matrix, request),
    )
