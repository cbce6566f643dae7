"""Solve again with every component as a lock has it: the answer that the lock stands for, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from provisioner.grounds.finding import OtherImage, StaleStack, UnlistedRelease
from provisioner.grounds.requirement import LockHas, Subject
from provisioner.lock.check.kept import chosen
from provisioner.places import Place
from provisioner.resolver.attempts import system_half
from provisioner.resolver.joint import NoStackError, choose
from provisioner.resolver.python.distributions import host_requirements_of
from provisioner.resolver.requirement import Key, Labelled, Requirement
from provisioner.resolver.search.bundled import align_bundled, with_bundled_candidates
from provisioner.resolver.search.direct import direct_answer
from provisioner.resolver.search.instance import ProblemInstance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provisioner.lock.format.model import Lock
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate


class Settled(Struct, frozen=True, kw_only=True):
    """A problem with the answer that a lock has for it.

    `problem` has the image of the lock. `instance` is that problem with each component fixed, and with what the packages need
    of hosts; `pins` are its answer, and `packages` the distributions of the lock as chosen candidates.
    `host_needs` are what these need of hosts.
    """

    problem: Problem
    instance: ProblemInstance
    pins: Mapping[Key, Candidate]
    packages: Mapping[Key, Candidate]
    host_needs: tuple[Requirement, ...]


def settle(lock: Lock, problem: Problem, *, file: str) -> Settled | OtherImage | UnlistedRelease | StaleStack:
    """Solve a problem with the components of a lock of one platform (`Lock.on`), or return why they are no answer.

    `file` is the name of the lock.
    """
    stack = lock.stack
    packages = chosen(lock.packages)
    problem = with_bundled_candidates(problem.with_image(stack.components.get("image", "")), packages)
    fixed = []
    for component, value in sorted(stack.components.items()):
        key = Key(component)
        if component == "pytorch_build" or key not in problem.domains:
            continue
        label = f"{value}+{stack.components['pytorch_build']}" if component == "pytorch" else value
        if not any(candidate.label == label for candidate in problem.domains[key]):
            request = problem.request
            if component == "image":
                return OtherImage(needed=request.spec.image.base, locked=label, place=request.place("image"))
            return UnlistedRelease(subject=Subject(component, label))
        ground = LockHas(name=component, label=label, place=Place(file))
        fixed.append(Requirement(key, Labelled(frozenset({label})), ground))
    try:
        host_needs = tuple(host_requirements_of(problem, packages))
        instance, pins = _decided(problem.with_roots(*fixed, *host_needs))
        pins = align_bundled(instance, pins, packages)
        return Settled(problem=problem, instance=instance, pins=pins, packages=packages, host_needs=host_needs)
    except NoStackError as error:
        return StaleStack(conflict=error.conflict)


def _decided(problem: Problem) -> tuple[ProblemInstance, dict[Key, Candidate]]:
    """Return a problem without packages and its answer, which is searched for only if it does not follow directly.

    Raises `NoStackError` when there is none.
    """
    instance = ProblemInstance(system_half(problem))
    pins = direct_answer(instance)
    return choose(problem, None, finds_all=False) if pins is None else (instance, pins)
