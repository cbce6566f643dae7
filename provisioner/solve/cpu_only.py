"""Packages that run on the CPU where a GPU is asked for, and have a twin that does not: named, never in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provisioner.solve.requirement import PACKAGE, Candidate, Key
from provisioner.solve.stack import Relaxation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.solve.universe import Universe


def cpu_only(universe: Universe, pins: Mapping[Key, Candidate]) -> Iterator[Relaxation]:
    """Those that other packages brought along; who names one in the spec knows what it is."""
    problem, packages = universe.problem, universe.packages
    if problem.wish.accelerator != "cuda" or packages is None:
        return
    named = {key.name.partition("[")[0] for key in packages.order}
    for row in problem.matrix.distributions:
        chosen = pins.get(Key(row.name, PACKAGE)) if row.gpu_twin else None
        if chosen is None or row.name in named:
            continue
        asking = sorted({one.key.name.partition("[")[0] for one in pins.values() if _requires(universe, one, chosen)})
        why = f", which {asking[0]} needs," if asking else ""
        text = f"{row.name} {chosen.label}{why} runs on the CPU; {row.gpu_twin} is the one for GPUs"
        where = problem.matrix.positions.get(f"distribution:{row.name}", "the matrix")
        yield Relaxation(name="cpu-only", component=row.name, text=text, where=where)


def _requires(universe: Universe, one: Candidate, other: Candidate) -> bool:
    return one is not other and any(needed.key == other.key for needed in universe.requirements(one))
