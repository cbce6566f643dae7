"""Edits that shape a problem before it is solved: the policy, the base image, the Python, bounds, and fewer hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.grounds.edit import (
    DropHost,
    DropRequiresPython,
    OpenPython,
    SetAccelerator,
    SetImage,
    SetPolicyWords,
    SetStrategy,
)
from provisioner.grounds.requirement import FactOf, Forbids, Relation, RequiresComponent, SpecLine
from provisioner.resolver.explain.relaxable import bound_left_out
from provisioner.resolver.requirement import Key
from provisioner.resolver.rules.devices import FRAMEWORKS
from provisioner.resolver.rules.standing import is_prerelease

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from provisioner.grounds.edit import Edit
    from provisioner.grounds.requirement import Ground, Group
    from provisioner.request import Request
    from provisioner.resolver.search.complete import CompleteSearch
    from provisioner.resolver.search.universe import Universe


def _relates(group: Group, subjects: Collection[str], to: str) -> bool:
    return isinstance(group, Relation) and group.subject in subjects and group.object == to


ALLOWANCES: dict[str, Callable[[Group], bool]] = {
    "minor-version": lambda group: _relates(group, {"cuda"}, "driver"),
    "forward-compat": lambda group: _relates(group, {"cuda"}, "driver"),
    "ptx-jit": lambda group: _relates(group, FRAMEWORKS, "gpu"),
    "patched-kernel": lambda group: _relates(group, {"driver"}, "kernel"),
    "image-gate": lambda _: False,
    "prerelease": lambda group: isinstance(group, SpecLine) and group.key in {"requires", "packages"},
    "end-of-life": lambda _: False,
    "shared-files": lambda _: False,
}
"""Words of `policy.allow`, and whether a group makes the word worth trying."""

BASES = ("auto", "cuda-runtime")
"""Base images worth trying instead of another: the smallest, and the one that brings a CUDA and its newer libcuda."""

MOST_WITHOUT_HOSTS = 3
"""How many sets of hosts to leave out are solved again."""


def edits_of_inputs(universe: Universe, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield every such edit that may help with a conflict, the cheapest first; whether it does is found by solving again."""
    request = universe.problem.request
    roots = [root for root in universe.roots if root.ground.group in groups]
    is_python_asked = any(root.key == Key("python") and root.ground.is_request for root in roots)
    if is_python_asked and (edit := open_python(universe)) is not None:
        yield (edit,)
    yield from _accelerators(request, groups)
    yield from _bounds(universe, groups)
    policies = list(_policies(universe, groups))
    for policy in policies:
        yield (policy,)
    images = [SetImage(base=base, asked=request.spec.image.base) for base in _bases(request, groups)]
    for image in images:
        yield (image,)
    for policy in policies:
        if isinstance(policy, SetPolicyWords) and "forward-compat" in policy.words and policy.key == "allow":
            # An older driver branch helps nobody whose image does not carry the newer libcuda.
            yield from ((policy, image) for image in images if image.base.startswith("cuda-"))


def open_python(universe: Universe) -> OpenPython | None:
    """Return the edit that leaves Python open; None where the spec asks for none, or there are no packages."""
    request = universe.problem.request
    if universe.packages is None or "python" not in request.spec.requires:
        return None
    asked = RequiresComponent(name="python", range=request.spec.requires["python"], place=request.place("requires.python"))
    return OpenPython(asked=(asked,))


def _accelerators(request: Request, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield what the target's GPUs call for, where the spec says otherwise: nobody falls back to it in silence."""
    asked = request.spec.accelerator
    own = replace(request, spec=replace(request.spec, accelerator=None)).accelerator
    if asked is not None and SpecLine("accelerator") in groups and own != asked:
        yield (SetAccelerator(accelerator=own, asked=asked),)


def _bounds(universe: Universe, groups: tuple[Group, ...]) -> Iterator[tuple[Edit, ...]]:
    """Yield constraints, overrides and hashes without which the rest may hold together."""
    problem = universe.problem
    lines: dict[Group, Ground] = {ground.group: ground for _, ground in problem.constraints}
    lines |= {ground.group: ground for ground in problem.overrides.grounds}
    lines |= {ground.group: ground for ground in universe.bounds.grounds}
    for group in groups:
        if group == SpecLine("requires-python"):
            yield (DropRequiresPython(ranges=tuple(problem.request.spec.requires_python)),)
        elif group in lines and (edit := bound_left_out(lines[group])) is not None:
            yield (edit,)


def _policies(universe: Universe, groups: tuple[Group, ...]) -> Iterator[Edit]:
    policy = universe.problem.request.spec.policy
    roots = (root.ground for root in universe.roots if root.ground.group in groups)
    forbidden = [ground for ground in roots if isinstance(ground, Forbids)]
    words = {ground.word for ground in forbidden}
    for word, is_about in ALLOWANCES.items():
        is_concerned = word in words or any(map(is_about, groups))
        if not is_concerned or (word == "prerelease" and word not in words and not _has_prereleases(universe, groups)):
            continue
        if word in policy.forbid:
            yield SetPolicyWords(key="forbid", words=tuple(one for one in policy.forbid if one != word))
        elif word not in policy.allow:
            yield SetPolicyWords(key="allow", words=(*policy.allow, word))
    if any(ground.is_by_strategy for ground in forbidden):
        yield SetStrategy(strategy="newest")


def _has_prereleases(universe: Universe, groups: tuple[Group, ...]) -> bool:
    """Whether something asked for has prereleases, or a distribution has no final version that was asked for."""
    components = universe.problem.matrix.components
    for root in universe.roots:
        if root.ground.group in groups and root.ground.is_request:
            component = components.get(root.key.component)
            if root.key.is_package and not universe.allowed(root):
                return True
            if component is not None and any(is_prerelease(release) for release in component.releases):
                return True
    return False


def _bases(request: Request, groups: tuple[Group, ...]) -> Iterator[str]:
    if request.runs != "container" or not {SpecLine("image"), Relation("cuda", "driver")}.intersection(groups):
        return
    base = request.spec.image.base
    for other in BASES:
        if other != base and not (other == "auto" and base == "slim") and (other == "auto" or request.accelerator == "cuda"):
            yield other


def fewer_hosts(universe: Universe, search: CompleteSearch, groups: Sequence[Group]) -> Iterator[tuple[Edit, ...]]:
    """Yield sets of hosts without which the clauses can be satisfied, each found from another host of the conflict."""
    facts = _facts_of_hosts(universe)
    found: list[frozenset[str]] = []
    for start in _concerned(facts, groups):
        gone = _gone(search, facts, start, groups)
        if gone and gone not in found and len(found) < MOST_WITHOUT_HOSTS:
            found.append(gone)
            yield tuple(DropHost(host=label) for label in facts if label in gone)


def _facts_of_hosts(universe: Universe) -> dict[str, frozenset[FactOf]]:
    """Return the groups of facts of each host, in the order of the target."""
    facts: dict[str, set[FactOf]] = {target.label: set() for target in universe.problem.request.hosts}
    for root in universe.roots:
        group = root.ground.group
        if isinstance(group, FactOf) and group.host in facts:
            facts[group.host].add(group)
    return {label: frozenset(some) for label, some in facts.items()}


def _concerned(facts: dict[str, frozenset[FactOf]], groups: Collection[Group]) -> list[str]:
    return [label for label, some in facts.items() if some.intersection(groups)]


def _gone(
    search: CompleteSearch, facts: dict[str, frozenset[FactOf]], start: str, groups: Sequence[Group]
) -> frozenset[str] | None:
    """Return `start` and every other host that has to go with it; None where none would be left, or nothing helps."""
    gone = {start}
    against = _kinds(facts[start].intersection(groups))
    while len(gone) < len(facts):
        dropped = frozenset[FactOf]().union(*(facts[label] for label in gone))
        if not search.refutes(without=dropped):
            return frozenset(gone)
        core = search.core(without=dropped)
        others = [label for label in _concerned(facts, core) if label not in gone]
        if not others:
            return None
        # Of two that stand against each other the one goes that is like those that went.
        gone.add(max(others, key=lambda label: len(against & _kinds(facts[label].intersection(core)))))
    return None


def _kinds(facts: Collection[FactOf]) -> set[tuple[str, str]]:
    """Return facts without their hosts: `gpu` `7.0`."""
    return {(fact.component, fact.value) for fact in facts}
