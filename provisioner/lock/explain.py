"""Explain a lock: why it has each version, and series by series what keeps newer ones out, without an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.utils import canonicalize_name

from provisioner.grounds.bound import Specifier
from provisioner.grounds.predicate import Requires
from provisioner.grounds.requirement import Entails, Relation
from provisioner.grounds.source import Metadata
from provisioner.index.markers import Markers, marker_environment
from provisioner.index.metadata.core_metadata import parse_requirement
from provisioner.index.model import Environment
from provisioner.lock.check.settled import Settled, settle
from provisioner.resolver.attempts import system_half
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.requirement import Key, Matching, Requirement
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.why import why_each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement as Pep508

    from provisioner.grounds.requirement import Ground
    from provisioner.lock.format.model import Lock
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack
    from provisioner.resolver.why import Why


class Explained(Struct, frozen=True, kw_only=True):
    """One platform of a lock, explained.

    `lock` is narrowed to the platform. `stack` is the answer that the lock stands for, as it was found again; None if the lock
    is none any longer, or if its spec is missing. `whys` are the explanations of its components, in the matrix's order, and
    `requested` the lines of the spec that require each package, by its name; both empty without a stack.
    """

    lock: Lock
    stack: Stack | None = None
    whys: tuple[Why, ...] = ()
    requested: tuple[tuple[str, Ground], ...] = ()


def explain_lock(lock: Lock, problem: Problem, *, file: str) -> Explained:
    """Explain a lock of one platform (`Lock.on`) for the problem of its spec; `file` is the name of the lock.

    The components are solved again with the versions of the lock. Of its packages, what they require of components is looked
    at; which other versions of them there are is known to an index alone.
    """
    settled = settle(lock, problem, file=file)
    if not isinstance(settled, Settled):
        return Explained(lock=lock)
    whole = settled.problem.with_roots(*settled.host_needs)
    free = ProblemInstance(system_half(whole.with_roots(*_on_components(lock, problem))))
    return Explained(
        lock=lock,
        stack=answer(settled.instance, settled.pins, beside=settled.packages, host_needs=settled.host_needs),
        whys=why_each(whole, (free, dict(settled.pins))),
        requested=tuple((canonicalize_name(one.name), ground) for one, ground in _requested(lock, problem)),
    )


def _requested(lock: Lock, problem: Problem) -> Iterator[tuple[Pep508, Ground]]:
    """Yield the requirements on packages that the spec has for the platform and Python of a lock, with their lines."""
    python = lock.stack.components.get("python", "")
    markers = Markers(marker_environment(Environment(platform=lock.stack.platform, python=python))) if python else None
    for requirement, ground in problem.packages:
        if requirement.marker is None or (markers is not None and markers.hold(requirement.marker)):
            yield requirement, ground


def _on_components(lock: Lock, problem: Problem) -> Iterator[Requirement]:
    """Yield what the spec's and the locked packages' requirements on distributions demand of components, such as PyTorch."""
    requested = (*_requested(lock, problem), *problem.constraints)
    for requirement, ground in requested:
        yield from _on_component(requirement, ground, problem)
    for package in lock.packages:
        for text in package.requires:
            requirement = parse_requirement(text)
            name = canonicalize_name(requirement.name)
            if name == package.name or problem.overrides.of(name):
                continue
            ground = Entails(
                name=package.name,
                subject=package.subject,
                predicate=Requires(requirement.name, (Specifier(str(requirement.specifier)),)),
                relation=Relation(package.name, name),
                cited=Metadata(package.name, package.version),
            )
            yield from _on_component(requirement, ground, problem)


def _on_component(requirement: Pep508, ground: Ground, problem: Problem) -> Iterator[Requirement]:
    component = problem.component_of(canonicalize_name(requirement.name))
    if component and Key(component) in problem.domains:
        yield Requirement(Key(component), Matching(requirement.specifier), ground)
