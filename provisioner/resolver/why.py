"""Why a component or a distribution is at its version: what bound it, and what holds back the newest one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError, UsageError
from provisioner.grounds.choice import BundledVersion, CannotTell
from provisioner.grounds.conflict import Conclusion, Conflict, member_of
from provisioner.grounds.edit import LEFT_OUT
from provisioner.grounds.requirement import PYTHON_ATTEMPT, AsksWhyNot
from provisioner.names import COMPONENT_OF_DISTRIBUTION, nearest
from provisioner.resolver.explain.fixes import fix_of, gives
from provisioner.resolver.explain.freed import Freed, edits_of, freed, moved
from provisioner.resolver.joint import NoStackError, choose
from provisioner.resolver.requirement import PACKAGE, PYTORCH, TORCH, Key, Labelled, Requirement
from provisioner.resolver.search.carried import carrier_of
from provisioner.resolver.search.order import passed_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provisioner.grounds.choice import PassedOver
    from provisioner.grounds.requirement import Ground
    from provisioner.resolver.joint import Chosen, SourceFor
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate
    from provisioner.resolver.search.universe import Universe

HIDDEN = frozenset({"accelerator", "platform", "policy", "shared-file"})
KINDS = ("fact", "request", "rule")


class Why(Struct, frozen=True, kw_only=True):
    """The chosen release, the requirements on it, and the newest release that was passed over with what stands in its way.

    `slot` names the framework that has this component for itself.
    `held_by` are those of the requirements that the newest release breaks by itself; `order` says why a newer release that
    would work was not taken; `conflict` what cannot hold together with it; `freed`, where the spec's own lines hold it, what it
    would need without them; `is_fact`: the host states it, nothing was chosen; `is_unknown`: an index that the newest needs is
    out of reach.
    """

    component: str
    chosen: str
    platform: str
    host: str = ""
    slot: str = ""
    reasons: tuple[Ground, ...]
    newer: str | None = None
    held_by: tuple[Ground, ...] = ()
    order: PassedOver | None = None
    conflict: Conflict | None = None
    freed: Freed | None = None
    is_fact: bool = False
    is_unknown: bool = False
    is_package: bool = False


def why(problem: Problem, component: str, source_for: SourceFor | None = None) -> tuple[Why, ...]:
    """Explain one component, once for each host or slot that has one; `source_for` is for specs with packages.

    Raises `NoStackError` when there is no answer to explain, `UsageError` when the component is not part of it.
    """
    name = COMPONENT_OF_DISTRIBUTION.get(component, component)
    chosen = choose(problem, source_for)
    return tuple(_why(problem, chosen, key, source_for) for key in _keys(chosen, name))


def _why(problem: Problem, chosen: Chosen, key: Key, source_for: SourceFor | None) -> Why:
    universe, pins = chosen
    wanted = [one for one in _wanted(universe, pins) if _is_about(one, key) and one.ground.group != PYTHON_ATTEMPT]
    found = Why(
        component=key.name if key.is_package else key.component,
        chosen=pins[key].label,
        platform=problem.request.platform,
        slot="" if key.is_package else key.slot,
        is_package=key.is_package,
        host=key.scope if not key.is_package else "",
        reasons=_reasons(wanted),
        is_fact=any(one.ground.kind == "fact" and len(_labels(one)) == 1 for one in wanted),
    )
    newer = [] if found.is_fact else _newer(universe, pins[key])
    if not newer:
        return found
    best = _release(newer[0])
    some = [one for one in newer if _release(one) == best]
    holding = [one for one in wanted if not any(one.allows(candidate) for candidate in some)]
    held_by = _reasons(holding)
    found = replace(found, newer=best, held_by=held_by)
    question = _question(key, found.component, some)
    carrier = carrier_of(problem, key, chosen[1])
    if carrier is not None and str(carrier.pep440) == found.chosen:
        return replace(found, order=BundledVersion(distribution=carrier.key.name, version=found.chosen))
    try:
        return _why_not(found, problem, chosen, question, holding=holding, source_for=source_for)
    except UnavailableError as error:
        return replace(found, order=CannotTell(problem=error.message), is_unknown=True)


def _why_not(
    found: Why,
    problem: Problem,
    chosen: Chosen,
    question: Requirement,
    *,
    holding: Sequence[Requirement],
    source_for: SourceFor | None,
) -> Why:
    """What stands in the way of the newest, or that nothing does; raises `UnavailableError`."""
    opened = freed(problem, holding)
    if opened is not None:
        found = _without(found, chosen, opened, question=question, holding=holding, source_for=source_for)
        if found.conflict is not None:
            return found
    try:
        other = choose(problem.with_roots(question), source_for)
    except NoStackError as error:
        return replace(found, conflict=error.conflict)
    return replace(found, order=passed_over(problem, question.key, chosen=chosen, other=other))


def _without(
    found: Why,
    chosen: Chosen,
    opened: Problem,
    *,
    question: Requirement,
    holding: Sequence[Requirement],
    source_for: SourceFor | None,
) -> Why:
    """What the newest would need without the lines of the spec that hold it; where that can be had, they are the conflict."""
    try:
        (universe, pins), order = _newest(opened, question, source_for)
    except NoStackError as error:
        return replace(found, freed=Freed(lines=found.held_by, conflict=error.conflict))
    shown = frozenset(name for name in opened.matrix.components if not opened.is_virtual(name))
    edits = edits_of(holding, pins[question.key])
    # Who leaves out a constraint asks for no version: what comes first in the order of preference stays.
    is_way = order is None or all(edit.change != LEFT_OUT for edit in edits)
    conflict = Conflict(
        members=(member_of(question.ground), member_of(found.held_by[0])),
        fixes=(fix_of(edits, gives(universe, pins), {}, asked=frozenset()),) if is_way else (),
        conclusion=Conclusion(question=question.ground),
    )
    moves = moved(question.key, chosen[1], pins, shown=shown)
    return replace(found, conflict=conflict, freed=Freed(lines=found.held_by, moved=moves, order=order))


def _newest(opened: Problem, question: Requirement, source_for: SourceFor | None) -> tuple[Chosen, PassedOver | None]:
    """Return an answer with the newest, and why another would be chosen by itself, None where it would not.

    Raises `NoStackError`.
    """
    key, first = question.key, None
    with suppress(NoStackError):  # without a version that names it, a pre-release is not to be had
        first = choose(opened, source_for)
    if first is not None and key in first[1] and question.allows(first[1][key]):
        return first, None
    other = choose(opened.with_roots(question), source_for)
    return other, passed_over(opened, key, chosen=first, other=other) if first is not None else None


def _wanted(universe: Universe, pins: dict[Key, Candidate]) -> list[Requirement]:
    """Every requirement of the answer; those of what the user named first."""
    bounds = (one for candidate in pins.values() for one in universe.bounds.about(candidate))
    return [*universe.roots, *bounds, *(one for candidate in pins.values() for one in universe.requirements(candidate))]


def _is_about(one: Requirement, key: Key) -> bool:
    """Whether a requirement binds what is explained: of a distribution those of its extras too, but not what extras are."""
    if one.key != key:
        return key.is_package and one.key.is_package and one.key.distribution == key.name
    return not (one.ground.kind == "rule" and one.ground.component == key.name and key.is_package)


def _reasons(wanted: Sequence[Requirement]) -> tuple[Ground, ...]:
    """Return facts, requests and rules in this order, each once."""
    return tuple(dict.fromkeys(one.ground for one in sorted(wanted, key=lambda one: KINDS.index(one.ground.kind))))


def _labels(requirement: Requirement) -> frozenset[str]:
    return requirement.test.labels if isinstance(requirement.test, Labelled) else frozenset()


def _newer(universe: Universe, chosen: Candidate) -> list[Candidate]:
    """What is newer than the chosen one, the very newest first: an answer about a release nobody would take helps nobody."""
    found = [one for one in universe.candidates(chosen.key) if not one.is_withheld and _age(one) > _age(chosen)]
    return sorted(found, key=_age, reverse=True)


def _age(candidate: Candidate) -> Any:  # noqa: ANN401 - the versions of one key compare, whichever kind they are
    return candidate.pep440 if candidate.key.is_package else candidate.version


def _release(candidate: Candidate) -> str:
    return candidate.label if candidate.key.is_package else candidate.label.partition("+")[0]


def _question(key: Key, name: str, some: Sequence[Candidate]) -> Requirement:
    ground = AsksWhyNot(name=name, release=_release(some[0]))
    return Requirement(key, Labelled(frozenset(one.label for one in some)), ground)


def _keys(chosen: Chosen, name: str) -> list[Key]:
    universe, pins = chosen
    package = canonicalize_name(name)
    found = [one for one in pins if not one.is_package and one.component == name]
    found = found or [one for one in pins if one.is_package and one.name == package]
    if found:
        return sorted(found)
    known = sorted({one.component for one in pins if one != TORCH} - HIDDEN | {"pytorch" for one in pins if one == PYTORCH})
    near = nearest(name, known) if name not in universe.problem.matrix.components else None
    has = ", ".join(one for one in known if Key(one, PACKAGE) not in pins)
    raise UsageError(
        f"`{name}` is not part of the stack of this spec", hints=(f"did you mean `{near}`?" if near else f"it has {has}",)
    )
