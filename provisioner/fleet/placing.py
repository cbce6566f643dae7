"""Compute where each stack of a fleet may be scheduled: a node affinity per stack that refuses the hosts of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.fleet.affinity import Affinity, node_affinity
from provisioner.fleet.affinity_needs import needs_of
from provisioner.fleet.labels import label_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.fleet.model import FleetAnswer
    from provisioner.host.inventory import InventoryHost
    from provisioner.host.model import Host
    from provisioner.matrix.model import Matrix


def affinities(answer: FleetAnswer, matrix: Matrix) -> tuple[Affinity, ...]:
    """Return one affinity for each stack, in their order: it admits the stack's hosts and no other host of the fleet."""
    named = _Named({gpu.name: gpu.compute_capability for gpu in matrix.gpus if gpu.compute_capability})
    served = [label_sets(named.listed(one.hosts, one.stack.platform)) for one in answer.stacks]
    left_out = answer.limit.left_out if answer.limit is not None else ()
    without = [*(one for some in answer.unserved for one in some.classes), *left_out]
    unserved = [member for one in without for member in one.members]
    found = []
    for at, (one, own) in enumerate(zip(answer.stacks, served, strict=True)):
        left = label_sets(named.listed(unserved, one.stack.platform))
        refused = [labels for place, others in enumerate(served) if place != at for labels in others]
        found.append(node_affinity(own, [*refused, *left], needs_of(one.stack, own)))
    return tuple(found)


class _Named:
    """Adds to hosts the facts that feature discovery reads and a profile may leave out.

    Added are the compute capability of a GPU of which the profile states only the name, and the platform of the stack if the
    profile states none.
    """

    def __init__(self, capabilities: Mapping[str, str]) -> None:
        self._capabilities = capabilities
        self._hosts: dict[tuple[int, str], tuple[Host, Host]] = {}

    def listed(self, hosts: Iterable[InventoryHost], platform: str) -> Iterator[InventoryHost]:
        """Yield the hosts; to those without Kubernetes labels add the missing facts, from which their labels are computed."""
        for one in hosts:
            yield one if one.labels else replace(one, host=self._host(one.host, platform))

    def _host(self, host: Host, platform: str) -> Host:
        # The pair holds the original host, so that no other host gets its id.
        key = (id(host), "" if host.platform else platform)
        if key not in self._hosts:
            gpus = tuple(
                replace(gpu, compute_capability=self._capabilities.get(gpu.name or "")) if gpu.target is None else gpu
                for gpu in host.gpus or ()
            )
            update = {"platform": host.platform or platform, **({"gpus": gpus} if host.gpus else {})}
            self._hosts[key] = (host, replace(host, **update))
        return self._hosts[key][1]
