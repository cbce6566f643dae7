"""The locked packages that a spec still requires, and the frameworks among them, to solve the components without an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.grounds.requirement import LockedPackagesRequire
from provisioner.index.model import IndexFile, PackageRelease
from provisioner.names import DISTRIBUTION_OF_COMPONENT
from provisioner.resolver.requirement import NO_VERSION, PACKAGE, Candidate, FileCandidate, Key, Labelled, Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provisioner.lock.format.model import Lock, LockedPackage
    from provisioner.resolver.problem import Problem


def kept(lock: Lock, problem: Problem) -> tuple[LockedPackage, ...]:
    """Return the locked packages that the spec requires, directly or through dependencies, on the platform of the problem.

    The result is empty when the lock is not for this platform.
    """
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
    """Return locked packages as chosen candidates, by key, so that the matrix's rules on distributions apply to them.

    One that is built from source has its file, because what is compiled on a machine may be for its GPUs.
    """
    found: dict[Key, Candidate] = {}
    for package in packages:
        key = Key(package.name, PACKAGE)
        version = str(PackageVersion(package.version))
        source = None if package.wheels else package.sdist or package.archive
        file = IndexFile(filename=source.filename, url=source.url, index="") if source is not None else None
        release = PackageRelease.of(name=canonicalize_name(package.name), version_text=version, file=file)
        found[key] = FileCandidate(key, NO_VERSION, package.version, release)
    return found


def brought_along(lock: Lock, problem: Problem) -> Iterator[Requirement]:
    """Yield a requirement, met by any release, on each framework whose distribution is among the packages that `kept` returns.

    A problem without packages needs these requirements, because no package in it requires the framework.
    """
    names = {package.name for package in kept(lock, problem)}
    stack = lock.on(problem.request.platform).stack.components if names else {}
    for component, distribution in DISTRIBUTION_OF_COMPONENT.items():
        domain = problem.domains.get(Key(component), ())
        if distribution in names and component in stack and domain:
            labels = frozenset(candidate.label for candidate in domain)
            ground = LockedPackagesRequire(name=component, distribution=distribution)
            yield Requirement(Key(component), Labelled(labels), ground)
