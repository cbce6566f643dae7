"""Where each stack of a fleet may be scheduled: a node affinity for each that keeps out the hosts of all others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from provisioner.fleet.affinity import Affinity, node_affinity
from provisioner.fleet.affinity_needs import needs_of
from provisioner.fleet.labels import label_sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.fleet.model import FleetAnswer
    from provisioner.host.model import Host
    from provisioner.host.roster import ListedHost
    from provisioner.matrix.model import Matrix


def affinities(answer: FleetAnswer, matrix: Matrix) -> tuple[Affinity, ...]:
    """One affinity for each stack, in their order: it admits the stack's hosts and no other host of the fleet."""
    named = _Named({gpu.name: gpu.compute_capability for gpu in matrix.gpus if gpu.compute_capability})
    served = [label_sets(named.listed(one.hosts)) for one in answer.stacks]
    left = label_sets(named.listed(member for some in answer.unserved for one in some.classes for member in one.members))
    found = []
    for at, (one, own) in enumerate(zip(answer.stacks, served, strict=True)):
        refused = [labels for place, others in enumerate(served) if place != at for labels in others]
        found.append(node_affinity(own, [*refused, *left], needs_of(one.stack, own)))
    return tuple(found)


class _Named:
    """Hosts as feature discovery sees them: it asks a GPU for its compute capability, which a profile may leave to its name."""

    def __init__(self, capabilities: Mapping[str, str]) -> None:
        self._capabilities = capabilities
        self._hosts: dict[int, tuple[Host, Host]] = {}

    def listed(self, hosts: Iterable[ListedHost]) -> Iterator[ListedHost]:
        """The hosts whose labels are worked out from their facts with what the matrix knows of their GPUs."""
        for one in hosts:
            yield one if one.labels else replace(one, host=self._host(one.host))

    def _host(self, host: Host) -> Host:
        # The first of the pair keeps the host alive, and so its identity its own.
        if id(host) not in self._hosts:
            gpus = tuple(
                gpu.model_copy(update={"compute_capability": self._capabilities.get(gpu.name or "")})
                if gpu.compute_capability is None and gpu.gfx is None
                else gpu
                for gpu in host.gpus or ()
            )
            self._hosts[id(host)] = (host, host.model_copy(update={"gpus": gpus}) if host.gpus else host)
        return self._hosts[id(host)][1]
