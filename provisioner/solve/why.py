"""Why a component is at its version: what bound it, and what holds back the next newer one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from provisioner.errors import UsageError
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.solve.conflict import explain_conflict
from provisioner.solve.requirement import Labelled, Origin, Requirement
from provisioner.solve.resolve import decide
from provisioner.solve.universe import Universe

if TYPE_CHECKING:
    from provisioner.solve.problem import Problem
    from provisioner.solve.requirement import Candidate, Key
    from provisioner.solve.stack import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The chosen release, the requirements on it, and the newest release that was passed over with what stands in its way."""

    component: str
    chosen: str
    reasons: tuple[str, ...]
    newer: str | None = None
    conflict: Conflict | None = None


def why_not_newer(problem: Problem, component: str) -> Why:
    """Explain one component of the system stack; raises `UsageError` when it is not part of the answer."""
    name = COMPONENT_OF_DISTRIBUTION.get(component, component)
    universe = Universe(problem)
    pins = decide(universe)
    assert pins is not None, "explain a stack, not a conflict"
    key = _key(problem, pins, name)
    chosen = pins[key]
    wanted = (*universe.roots, *(one for candidate in pins.values() for one in universe.requirements(candidate)))
    reasons = tuple(
        dict.fromkeys(
            f"{one.origin.text}  ({one.origin.where})" if one.origin.where else one.origin.text
            for one in wanted
            if one.key == key
        )
    )
    # The very newest, not the next: an answer about a release nobody would take next helps nobody.
    newer = [one for one in problem.domains[key] if one.version > chosen.version]
    if not newer:
        return Why(component=name, chosen=chosen.label, reasons=reasons)
    best = max(newer, key=lambda one: one.version)
    labels = frozenset(one.label for one in newer if one.version.release == best.version.release)
    text = f"you ask why not {name} {best.version.public}"
    origin = Origin("request", name, f"newer {name}", text)
    conflict = explain_conflict(Universe(problem.with_roots(Requirement(key, Labelled(labels, best.version.public), origin))))
    # Giving up the newer release is no way to get it.
    hints = tuple(hint for hint in conflict.hints if all(component != name for component, _ in hint.changes))
    conflict = replace(conflict, hints=hints)
    return Why(component=name, chosen=chosen.label, reasons=reasons, newer=best.version.public, conflict=conflict)


def _key(problem: Problem, pins: dict[Key, Candidate], name: str) -> Key:
    key = next((one for one in pins if one.component == name), None)
    if key is None:
        known = sorted({one.component for one in pins} - {"accelerator"})
        near = nearest(name, known)
        raise UsageError(
            f"`{name}` is not part of the stack of this spec",
            hints=(f"did you mean `{near}`?" if near else f"it has {', '.join(known)}",),
        )
    del problem
    return key
