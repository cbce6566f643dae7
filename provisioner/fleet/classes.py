"""Fold hosts that no requirement can tell apart into classes, and divide the classes into pools by platform and accelerator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.host.facts import stated
from provisioner.platforms import PLATFORMS
from provisioner.request import Request, TargetHost, listed_target
from provisioner.resolver.rules.facts import FACTS, binds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from provisioner.host.inventory import InventoryHost
    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix


class HostClass(Struct, frozen=True, kw_only=True):
    """Hosts that no requirement can tell apart; `members` are sorted by name, `host` is the profile of the first."""

    host: Host
    members: tuple[InventoryHost, ...]

    @property
    def name(self) -> str:
        """The name of the first host, which is also the label of the class."""
        return self.members[0].name

    @property
    def nodes(self) -> int:
        """The number of machines in the class; one listed host may stand for several."""
        return sum(member.count for member in self.members)

    @property
    def target(self) -> TargetHost:
        """The class as one host of a request, labelled with the name of its first host."""
        return listed_target(self.members[0])


class Pool(Struct, frozen=True, kw_only=True):
    """Classes of hosts with one platform and one accelerator, so that one stack may serve them together.

    `request` is the request for a stack for one of these hosts.
    """

    request: Request
    classes: tuple[HostClass, ...]

    def request_for(self, targets: Iterable[TargetHost]) -> Request:
        """Return the request of the pool with its host replaced by `targets`."""
        return replace(self.request, hosts=tuple(targets))


class Fleet(Struct, frozen=True, kw_only=True):
    """All hosts of an inventory: pools to find stacks for, and those of a platform that the spec does not name."""

    pools: tuple[Pool, ...]
    other_platforms: tuple[HostClass, ...] = ()


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key with which numbers in names count as numbers: `node-2` comes before `node-10`."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts if part)


def fold(listed: Iterable[InventoryHost]) -> Iterator[HostClass]:
    """Yield a class for each set of hosts with equal profiles, which need not be listed one after the other."""
    same: dict[Host, list[InventoryHost]] = {}
    known: dict[int, list[InventoryHost]] = {}
    for one in listed:
        # An inventory shares one object among equal profiles where it can; looking up its id is faster than hashing the
        # profile.
        members = known.get(id(one.host))
        if members is None:
            members = known[id(one.host)] = same.setdefault(one.host, [])
        members.append(one)
    for host, members in same.items():
        yield HostClass(host=host, members=tuple(sorted(members, key=lambda one: (natural(one.name), one.name))))


def indistinguishable(classes: Iterable[HostClass], matrix: Matrix, request: Request) -> tuple[HostClass, ...]:
    """Merge classes that differ only in facts that no rule or requirement reads, and return the result.

    The class with the most machines comes first.
    """
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
    """Return the hosts of an inventory in pools, one for each platform and accelerator of GPUs.

    `platforms` are those that the spec names, () if it leaves the platform to the hosts. Hosts that state that they have no GPU
    are a pool of their own, of CPUs, unless the spec names an accelerator; hosts that do not state their GPUs are not.
    """
    parts: dict[tuple[str, str], list[HostClass]] = {}
    other_platforms = []
    for one in fold(listed):
        platform = one.host.platform_among(platforms or (request.platform,))
        if platform not in (platforms or PLATFORMS):
            other_platforms.append(one)
            continue
        alone = replace(request, hosts=(TargetHost(label=one.name, host=one.host),), platform=platform)
        parts.setdefault((platform, alone.accelerator), []).append(one)
    pools = []
    for (platform, _), some in sorted(parts.items(), key=lambda item: (item[0][0], item[0][1] == "cpu", item[0][1])):
        known = replace(request, hosts=(TargetHost(label="", host=some[0].host),), platform=platform)
        pools.append(Pool(request=known, classes=indistinguishable(some, matrix, known)))
    return Fleet(
        pools=tuple(pools),
        other_platforms=indistinguishable(other_platforms, matrix, request),
    )
