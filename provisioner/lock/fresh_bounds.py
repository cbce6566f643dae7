"""A lock against what the spec says of distributions that others require: constraints, overrides and hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.index.metadata.core_metadata import parsed_requirement
from provisioner.lock.finding import Finding
from provisioner.words.ground import say_with_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement as Pep508

    from provisioner.lock.model import Lock
    from provisioner.resolver.choices.markers import Markers
    from provisioner.resolver.problem import Problem


def bound_findings(lock: Lock, problem: Problem, markers: Markers, *, where: str) -> Iterator[Finding]:
    """What of a lock of one platform is out; `markers` judges those of the lock's own environment."""
    locked = {package.name: package for package in lock.packages}
    for constraint, ground in problem.constraints:
        package = locked.get(canonicalize_name(constraint.name))
        if package is not None and markers.hold(constraint.marker) and not _meets(constraint, package.version):
            yield _stale(f"{package.name} {package.version} is locked, but {say_with_source(ground)}", where)
    for name, digests in problem.request.spec.hashes.items():
        for file in locked[name].files if name in locked else ():
            if file.sha256 not in digests:
                place = problem.request.place(f"hashes.{name}")
                yield _stale(
                    f"{name} {locked[name].version} is locked with a file that has none of your hashes  ({place})", where
                )
    yield from _by_override(lock, problem, markers, where)


def _by_override(lock: Lock, problem: Problem, markers: Markers, where: str) -> Iterator[Finding]:
    """What an override puts in the place of requirements must be met, wherever there were any."""
    locked = {package.name: package for package in lock.packages}
    replaced = {canonicalize_name(parsed_requirement(text).name) for package in lock.packages for text in package.requires}
    for name in sorted(replaced):
        for override, ground in problem.overrides.of(name):
            if not markers.hold(override.marker):
                continue
            if name not in locked:
                yield Finding(
                    code="missing-package",
                    verdict="no",
                    text=f"`{name}` is not locked: {say_with_source(ground)}",
                    where=where,
                )
            elif not _meets(override, locked[name].version):
                yield _stale(f"{name} {locked[name].version} is locked, but {say_with_source(ground)}", where)


def _meets(requirement: Pep508, version: str) -> bool:
    return requirement.specifier.contains(PackageVersion(version), prereleases=True)


def _stale(text: str, where: str) -> Finding:
    return Finding(code="stale-package", verdict="no", text=text, where=where)
