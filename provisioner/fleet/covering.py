"""Cover a fleet, the entry point: find the fewest stacks that serve its hosts, and explain the hosts that none can serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.fleet.classes import pools_of
from provisioner.fleet.cover import Bound, Coverage
from provisioner.fleet.effects import depends_on_other_hosts, effects_of
from provisioner.fleet.groups import Grouping
from provisioner.fleet.model import FleetAnswer
from provisioner.fleet.stacks import VERIFIED, stack_of
from provisioner.fleet.unserved import Explaining
from provisioner.host.gpu_names import GpuNames, UnreadName
from provisioner.resolver.problem import UnknownGpuError
from provisioner.words.gpu_name import name_hints, target_hints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.fleet.classes import Pool
    from provisioner.fleet.model import FleetStack, Unserved
    from provisioner.host.inventory import InventoryHost
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request


def cover_fleet(matrix: Matrix, request: Request, listed: Sequence[InventoryHost], *, platforms: Sequence[str]) -> FleetAnswer:
    """Return as few stacks as possible for all hosts that any stack can serve, and the conflicts of the other hosts.

    `request` is that of the spec, without hosts; `platforms` are those that the spec names, () if it leaves the platform to the
    hosts. A stack is for one platform and one accelerator. Raises `UnknownGpuError` for a GPU that the matrix does not list,
    and the errors of `join`.
    """
    _require_known_gpus(matrix, listed)
    fleet = pools_of(listed, matrix, request, platforms=platforms)
    explaining = Explaining(matrix)
    stacks: list[FleetStack] = []
    unserved: list[Unserved] = []
    lower = 0
    for pool in fleet.pools:
        found, left, bound = _cover_pool(matrix, pool, explaining)
        stacks.extend(found)
        unserved.extend(left)
        lower += bound.lower
    unserved.extend(explaining.without_gpu(request, fleet.without_gpu, accelerators=fleet.accelerators))
    unserved.extend(explaining.other_platforms(request, fleet.other_platforms, platforms=platforms))
    return FleetAnswer(stacks=tuple(stacks), unserved=tuple(unserved), bound=Bound(lower=lower, found=len(stacks)))


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


def _cover_pool(matrix: Matrix, pool: Pool, explaining: Explaining) -> tuple[list[FleetStack], list[Unserved], Bound]:
    is_joint = depends_on_other_hosts(matrix, pool)
    coverage = Coverage(effects_of(matrix, pool), is_joint=is_joint)
    try:
        served = set(coverage.served)
        groups, bound = Grouping(matrix, pool, coverage).groups()
        signatures = [(one, signature) for one, signature in zip(pool.classes, coverage.signature_of, strict=True)]
    finally:
        coverage.close()
    stacks = []
    for group in groups:
        classes = [one for one, signature in signatures if signature in group.signatures]
        deciding = {signature: one for one, signature in reversed(signatures) if signature in group.maximal}
        found = stack_of(matrix, pool, group, classes=classes, size=len(classes) if is_joint else VERIFIED)
        stacks.append(replace(found, deciding=tuple(deciding[signature] for signature in sorted(deciding))))
    left = explaining.explain(pool.request, [one for one, signature in signatures if signature not in served])
    return stacks, left, bound
