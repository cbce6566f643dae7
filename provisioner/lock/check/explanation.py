"""Check whether what a lock records to explain itself is what solving again gives: reasons, relaxations and assumptions.

Reasons change with the matrix, the spec and the words of this program, and nothing is decided by them, so they are compared
only where the lock was made from the same three. The reasons of packages need the index that these were chosen from; of them,
only the package is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace
from packaging.version import Version as PackageVersion

from provisioner.grounds.fields import type_of
from provisioner.grounds.finding import OtherReason
from provisioner.grounds.predicate import Requires
from provisioner.grounds.requirement import LockHas
from provisioner.index.metadata.core_metadata import parse_requirement
from provisioner.lock.format.model import relaxation, relaxed_by

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from provisioner.lock.format.model import Lock, LockedPackage, LockedStack, Reason

_LOCKED = type_of(LockHas)
"""The type of the reasons by which a check fixes the components of a lock."""

_REQUIRES = type_of(Requires)
_PRERELEASE = "prerelease"


def explanation_findings(lock: Lock, needed: LockedStack) -> Iterator[OtherReason]:
    """Yield a finding for each recorded reason of a lock of one platform that differs from those of the stack solved again."""
    stack = lock.stack
    yield from _of_reasons(lock, "pins", _of_pins(stack), _of_pins(needed))
    # Of a package that carries a component, what it needs of a host is a reason only where solving chose the package.
    of_hosts = {fact: _of_system(lock, reasons) for fact, reasons in needed.host_reasons.items()}
    yield from _of_reasons(lock, "host-reasons", dict(stack.host_reasons), of_hosts)
    systems = ({one.name: one.reasons for one in each.apt} for each in (stack, needed))
    yield from _of_reasons(lock, "apt", *systems)
    for at, pin in enumerate(stack.pins):
        if pin in stack.pins[:at]:
            yield OtherReason(platform=stack.platform, object="pins", locked=f"{pin.component} {pin.version}, twice")
    for key, has, wanted in (
        ("unverified", stack.unverified, needed.unverified),
        ("assumes", stack.assumes, needed.assumes),
        ("accepts", stack.accepts, needed.accepts),
        ("relaxations", stack.relaxations, needed.relaxations),
    ):
        for text in sorted(set(wanted) - set(has)):
            yield OtherReason(platform=stack.platform, object=key, needed=text)
        for text in sorted({text for text in has if has.count(text) > 1}):
            yield OtherReason(platform=stack.platform, object=key, locked=f"{text}, twice")
    yield from _of_relaxations(lock, needed.relaxations)


def _without_line(reason: Reason) -> Reason:
    """Return a reason without the line of a request, which another layout of the spec changes."""
    return replace(reason, where="", place="") if reason.kind == "request" else reason


def _of_system(lock: Lock, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    subjects = {str(package.subject) for package in lock.packages}
    return tuple(reason for reason in reasons if reason.subject not in subjects)


def _of_pins(stack: LockedStack) -> dict[str, tuple[Reason, ...]]:
    return {f"{pin.component} {pin.version}{'+' if pin.build else ''}{pin.build}": pin.reasons for pin in stack.pins}


def _of_reasons(
    lock: Lock, key: str, locked: dict[str, tuple[Reason, ...]], needed: dict[str, tuple[Reason, ...]]
) -> Iterator[OtherReason]:
    """Yield a finding for each reason under a key that the lock lacks, or has of a package that is not locked."""
    packages: dict[str, LockedPackage] = {package.name: package for package in lock.packages}
    for name in sorted({*locked, *needed}):
        has = tuple(map(_without_line, locked.get(name, ())))
        wanted = [_without_line(reason) for reason in needed.get(name, ()) if reason.type != _LOCKED]
        about = f"{key}: {name}"
        if any(reason in has[:at] for at, reason in enumerate(has)):
            yield OtherReason(platform=lock.stack.platform, object=about, locked="the same twice")
        for reason in wanted:
            if reason not in has:
                yield OtherReason(platform=lock.stack.platform, object=about, needed=reason.text)
        for reason in has:
            if reason not in wanted and not _is_of_packages(reason, packages):
                yield OtherReason(platform=lock.stack.platform, object=about, locked=reason.text)


def _is_of_packages(reason: Reason, packages: Mapping[str, LockedPackage]) -> bool:
    """Return whether a reason is about a locked package, whose requirements solving the system alone does not read."""
    package = packages.get(reason.component)
    if package is None or reason.subject != str(package.subject):
        return False
    if reason.type != _REQUIRES:
        return True
    required = map(parse_requirement, package.requires)
    return any((one.name, (str(one.specifier),)) == (reason.object, reason.ranges or ("",)) for one in required)


def _of_relaxations(lock: Lock, needed: Collection[str]) -> Iterator[OtherReason]:
    """Yield a finding for relaxations of what is not locked, and for pre-releases among the packages without theirs."""
    versions = {package.name: PackageVersion(package.version) for package in lock.packages}
    before = {relaxation(_PRERELEASE, name) for name, version in versions.items() if version.is_prerelease}
    has = lock.stack.relaxations
    for text in sorted(before - set(has)):
        yield OtherReason(platform=lock.stack.platform, object="relaxations", needed=text)
    known = {*needed, *before}
    for text in sorted(set(has) - known):
        if relaxed_by(text) not in versions or text == relaxation(_PRERELEASE, relaxed_by(text)):
            yield OtherReason(platform=lock.stack.platform, object="relaxations", locked=text)
