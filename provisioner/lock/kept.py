"""What of a lock stays when its system half is solved again without an index: its packages, and what they bring along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.grounds.requirement import LockedPackagesRequire
from provisioner.index.model import PackageRelease
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.requirement import PACKAGE, Candidate, FileCandidate, Key, Labelled, Requirement
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.lock.model import Lock, LockedPackage
    from provisioner.resolver.problem import Problem


def kept(lock: Lock, problem: Problem) -> tuple[LockedPackage, ...]:
    """The locked packages that what the spec asks for still leads to, on the platform of a problem."""
    if problem.request.platform not in lock.platforms:
        return ()
    packages = {package.name: package for package in lock.on(problem.request.platform).packages}
    reached: dict[str, LockedPackage] = {}
    waiting: list[str] = [canonicalize_name(requirement.name) for requirement, _ in problem.packages]
    while waiting:
        name = waiting.pop()
        if name in packages and name not in reached:
            reached[name] = packages[name]
            waiting += packages[name].dependencies
    return tuple(package for package in packages.values() if package.name in reached)


def chosen(packages: Iterable[LockedPackage]) -> dict[Key, Candidate]:
    """Locked packages as what was chosen, for what the matrix says of them."""
    found: dict[Key, Candidate] = {}
    for package in packages:
        key = Key(package.name, PACKAGE)
        version = PackageVersion(package.version)
        release = PackageRelease(name=canonicalize_name(package.name), version=version, file=None)
        found[key] = FileCandidate(key, Version.named(""), package.version, release)
    return found


def brought_along(lock: Lock, problem: Problem) -> Iterator[Requirement]:
    """That a problem without packages still has the frameworks which the kept packages bring along, in any version."""
    names = {package.name for package in kept(lock, problem)}
    stack = lock.on(problem.request.platform).stack if names else {}
    for component, distribution in DISTRIBUTION_OF_COMPONENT.items():
        domain = problem.domains.get(Key(component), ())
        if distribution in names and component in stack and domain:
            labels = frozenset(candidate.label for candidate in domain)
            ground = LockedPackagesRequire(name=component, distribution=distribution)
            yield Requirement(Key(component), Labelled(labels), ground)
