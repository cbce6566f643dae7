"""The drivers that a NVIDIA_REQUIRE_CUDA demands for each compute capability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.gate.grammar import numbers_of, parse
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    Capability = tuple[int, int]


def drivers_by_capability(
    require_cuda: str, capabilities: AbstractSet[Capability]
) -> tuple[tuple[Range, frozenset[Capability]], ...]:
    """Return ranges of drivers, each with the compute capabilities that it serves: newer GPUs may need a newer driver.

    `capabilities` are those to be served. Alternatives with a brand are left out: they are about forward compatibility. The
    result is empty if no alternative serves any of the capabilities.
    """
    served: dict[Range, set[Capability]] = {}
    for term in parse(require_cuda).terms:
        if any(clause.name in {"brand", "cuda"} for clause in term):
            continue
        drivers = [f"{'==' if one.operator == '=' else one.operator}{one.value}" for one in term if one.name == "driver"]
        archs = [one for one in term if one.name == "arch"]
        some = {one for one in capabilities if all(arch.holds_for(numbers_of("{}.{}".format(*one))) for arch in archs)}
        if some:
            served.setdefault(Range.parse(",".join(drivers)) if drivers else Range(), set()).update(some)
    return tuple((wanted, frozenset(those)) for wanted, those in served.items())
