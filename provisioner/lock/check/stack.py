"""Check whether the components of a lock still satisfy the spec, the matrix and the hosts, by solving with them fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from provisioner.grounds.finding import (
    NewerGlibc,
    NotInstallable,
    OfUnstatedHosts,
    OtherGate,
    OtherHostRequirement,
    OtherHostSetup,
    OtherKey,
    OtherReason,
    OtherSystemPackages,
    OtherVariable,
    UnknownGlibc,
    Unverified,
    line_of,
)
from provisioner.grounds.requirement import HostFact
from provisioner.index.pages.tags import filename_ranks, glibc_needed, wheel_incompatibility
from provisioner.lock.check.explanation import explanation_findings
from provisioner.lock.check.settled import Settled, settle
from provisioner.lock.create import locked_stack
from provisioner.lock.format.artifact import fits
from provisioner.resolver.attempts import Attempt, environment_of, known_glibc
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.stack import ManagedPython, RuntimeImage
from provisioner.versions import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.finding import Finding
    from provisioner.lock.format.model import Lock, LockedStack
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.search.instance import ProblemInstance
    from provisioner.resolver.stack import Stack


def stack_findings(
    lock: Lock, problem: Problem, *, file: str, has_other_hosts: bool = False, has_reasons: bool = False
) -> Iterator[Finding]:
    """Solve again with the components that a lock of one platform (`Lock.on`) has, and yield a finding for each difference.

    `file` is the name of the lock. With `has_other_hosts` the hosts are not those of the spec: the lock must hold on them, but
    its host requirements and environment variables are not compared with those that solving for them gives. `has_reasons`: the
    lock was made from these inputs by this version, so that it must have the same reasons, too.
    """
    settled = settle(lock, problem, file=file)
    if not isinstance(settled, Settled):
        yield settled
        return
    problem, instance, pins, packages = settled.problem, settled.instance, settled.pins, settled.packages
    stack = lock.stack
    yield from _wheel_findings(lock, instance, pins)
    again = answer(instance, pins, beside=packages, host_needs=settled.host_needs)
    yield from (Unverified(doubt=doubt) for doubt in again.doubts)
    needed_stack = locked_stack(again)
    if not has_other_hosts:
        reasons = _of_explanation(lock, again, needed_stack) if has_reasons else ()
        for finding in (*_of_hosts(stack, needed_stack), *reasons):
            # These are the hosts of the spec. If it has none, the lock may be for hosts given on a command line.
            yield finding if problem.request.spec.target.host is not None else OfUnstatedHosts(finding=finding)
    needed, locked = (tuple(one.name for one in some.apt) for some in (needed_stack, stack))
    if needed != locked:
        yield OtherSystemPackages(needed=needed, locked=locked)
    if needed_stack.require_cuda != stack.require_cuda:
        yield OtherGate(locked=stack.require_cuda, needed=needed_stack.require_cuda)
    yield from _of_components(stack, needed_stack)


def _of_explanation(lock: Lock, again: Stack, needed: LockedStack) -> tuple[OtherReason, ...]:
    """Return the findings about what a lock records to explain itself, compared with `needed`, which is `again` as locked.

    A lock does not say whether it was made with `--strict`: its assumptions may be assumptions or doubts.
    """
    found = tuple(explanation_findings(lock, needed))
    every = (*again.doubts, *again.assumes)
    doubts = every if again.assumes else tuple(one for one in every if not one.is_assumption)
    otherwise = replace(again, doubts=doubts, assumes=tuple(one for one in every if one not in doubts))
    return found if not found or any(explanation_findings(lock, locked_stack(otherwise))) else ()


def _of_components(stack: LockedStack, needed: LockedStack) -> Iterator[OtherKey]:
    """Yield a finding for each key of a stack that follows from its components, and differs from what they come to.

    A component that the stack lacks was chosen again, so it differs, too. Without a digest in the spec, that of the image is
    what a registry said, and is not compared. Locks of earlier versions name no image to ship in place of the base image.
    """
    compared = [
        (f"stack.{name}", needed.components.get(name, ""), stack.components.get(name, ""))
        for name in sorted({*needed.components, *stack.components})
    ]
    compared.append(("arch-list", ", ".join(needed.arch_list), ", ".join(stack.arch_list)))
    wanted_image, image = (asdict(one) if one is not None else {} for one in (needed.image, stack.image))
    compared += [
        (f"image.{name.replace('_', '-')}", _shown(wanted_image.get(name)), _shown(image.get(name)))
        for name in sorted({*wanted_image, *image})
        if not (name == "digest" and not wanted_image.get(name)) and not (name == "runtime" and not image.get(name))
    ]
    for key, wanted, has in compared:
        if wanted != has:
            yield OtherKey(platform=stack.platform, object=key, needed=wanted, locked=has)


def _shown(value: str | ManagedPython | RuntimeImage | None) -> str:
    match value:
        case ManagedPython(version=version, url=url, sha256=sha256):
            return f"{version} of {url}, {sha256}"
        case RuntimeImage(reference=reference):
            return reference
    return value or ""


def _of_hosts(
    stack: LockedStack, again: LockedStack
) -> Iterator[OtherHostRequirement | OtherHostSetup | OtherVariable | OtherKey]:
    """Yield a finding for each requirement, setup or variable that differs from what solving for the same components gives.

    So does the way in which the drivers of the hosts meet the CUDA requirement.
    """
    if stack.basis != again.basis:
        yield OtherKey(platform=stack.platform, object="basis", needed=again.basis, locked=stack.basis)
    for fact in sorted({*stack.host_requirements, *again.host_requirements}):
        locked, needed = stack.host_requirements.get(fact, ""), again.host_requirements.get(fact, "")
        if locked != needed:
            yield OtherHostRequirement(object=fact, locked=locked, needed=needed)
    locked_setups, needed_setups = ({one.os: one for one in some} for some in (stack.host_setups, again.host_setups))
    for system in sorted({*locked_setups, *needed_setups}):
        if locked_setups.get(system) != needed_setups.get(system):
            is_locked, is_needed = system in locked_setups, system in needed_setups
            yield OtherHostSetup(object=system, is_locked=is_locked, is_needed=is_needed)
    for name in sorted({*stack.environment, *again.environment}):
        locked, needed = stack.environment.get(name, ""), again.environment.get(name, "")
        if locked != needed:
            yield OtherVariable(object=name, locked=locked, needed=needed)


def _wheel_findings(lock: Lock, instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> Iterator[Finding]:
    """Yield a finding for each package that has wheels for the platform, but none whose tags the hosts or the image support.

    The hosts may have changed since the lock was made. `pins` are the locked components as they were chosen again on these
    hosts.
    """
    python = lock.stack.components.get("python", "")
    if not python:
        return
    attempt = Attempt(python=python, problem=instance.problem, system=dict(pins))
    environment = environment_of(attempt)
    ranks = filename_ranks(environment)
    for package in lock.packages:
        # One fitting wheel is enough: a package may have wheels for several versions of macOS.
        here = [wheel.filename for wheel in package.wheels if fits(wheel.filename, lock.stack.platform)]
        if not here or any(ranks[_tag(filename)] is not None for filename in here):
            continue
        subject, file = package.subject, here[0]
        needed, has = glibc_needed(file), environment.glibc
        if needed is None or has is None or needed <= has:
            problem = wheel_incompatibility(frozenset({_tag(file)}), environment).text
            yield NotInstallable(subject=subject, file=file, problem=problem)
        elif not known_glibc(attempt):
            yield UnknownGlibc(subject=subject, file=file, needed=dotted(needed))
        else:
            facts = [root.ground for root in instance.roots if isinstance(root.ground, HostFact)]
            by = next((one for one in facts if one.name == "glibc" and one.value == dotted(has)), None)
            place = line_of(by) if by is not None else None
            yield NewerGlibc(subject=subject, file=file, needed=dotted(needed), locked=dotted(has), by=by, place=place)


def _tag(filename: str) -> str:
    return "-".join(filename.removesuffix(".whl").rsplit("-", maxsplit=3)[1:])
