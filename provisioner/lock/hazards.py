"""Is a lock still a solution by what the matrix knows of distributions: files they share, undeclared needs, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version as PackageVersion

from provisioner.lock.finding import Finding
from provisioner.resolver.python.distributions import has_abi
from provisioner.resolver.requirement import PYTORCH, build_of
from provisioner.resolver.rules.shared_files import FORBIDDEN
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.lock.model import Lock
    from provisioner.matrix.model import ImpliedNeed, Matrix
    from provisioner.resolver.problem import Problem


def hazard_findings(lock: Lock, problem: Problem, *, where: str) -> Iterator[Finding]:
    """What the matrix has against the packages of a lock of one platform, and has not had, or nobody would have locked it."""
    locked = {package.name: package.version for package in lock.packages}
    for text in (*_shared(locked, problem), *_implied(lock, locked, problem), *_limited(lock, locked, problem.matrix)):
        yield Finding(code="stale-package", verdict="no", text=text, where=where)


def _shared(locked: Mapping[str, str], problem: Problem) -> Iterator[str]:
    """Files of which several locked distributions write their own."""
    matrix = problem.matrix
    is_forbidden = FORBIDDEN in problem.request.spec.policy.forbid
    for row in matrix.shared_files:
        names = [one.distribution for one in row.owners if _holds(one.versions, locked.get(one.distribution))]
        if len(names) > 1 and (row.refused or is_forbidden):
            both = " and ".join(f"{name} {locked[name]}" for name in names)
            yield f"{both} write files such as {row.path}: {row.because}  ({matrix.place_of(f'shared-file:{row.name}')})"


def _implied(lock: Lock, locked: Mapping[str, str], problem: Problem) -> Iterator[str]:
    """What locked versions need although their metadata does not say so."""
    matrix = problem.matrix
    for known in matrix.distributions:
        for row in known.implies:
            # What is about the files of one index only was settled by the file that was locked.
            if row.served_by or not _holds(row.versions, locked.get(known.name)):
                continue
            subject = f"{known.name} {locked[known.name]}"
            place = matrix.place_of(f"distribution:{known.name} {row.versions}")
            yield from (f"{text}: {row.because}  ({place})" for text in _unmet(subject, row, lock, locked))
            yield from (f"{text}  ({place})" for text in _of_other_abi(subject, row, lock, problem))


def _unmet(subject: str, row: ImpliedNeed, lock: Lock, locked: Mapping[str, str]) -> Iterator[str]:
    for name, specifier in row.packages.items():
        if not _holds(specifier, locked.get(name)):
            beside = f"{name} {locked[name]} is locked" if name in locked else f"no {name} is locked"
            yield f"{subject} needs {name} {specifier}, and {beside}"
    for need in row.require:
        stated = lock.stack.get(need.component, "")
        if stated and "," not in stated and not need.allows(Version.parse(stated)):
            yield f"{subject} needs {need.component} {need}, and {need.component} {stated} is locked"


def _of_other_abi(subject: str, row: ImpliedNeed, lock: Lock, problem: Problem) -> Iterator[str]:
    """A wheel that calls a build of PyTorch of the other C++ ABI; one with a local version is of its build's."""
    build = f"{lock.stack.get(PYTORCH.name)}+{lock.stack.get('pytorch_build')}"
    locked = next((one for one in problem.domains.get(PYTORCH, ()) if one.label == build), None)
    if locked is not None and "+" not in subject and not has_abi(build_of(locked), row):
        words = "new" if row.cxx11_abi else "old"
        yield f"{subject} needs a build of the {words} C++ ABI of PyTorch, and {build} is locked"


def _limited(lock: Lock, locked: Mapping[str, str], matrix: Matrix) -> Iterator[str]:
    """Distributions that a release of the framework limits; rows with guards depend on hosts and are left to solving."""
    for row in matrix.limits:
        framework = lock.stack.get(row.when.component, "")
        if not framework or row.on or not row.when.allows(Version.parse(framework)):
            continue
        version = locked.get(row.distribution)
        if version is not None and not _holds(row.specifier, version):
            place = matrix.place_of(f"limit:{row.name}")
            limited = f"{row.when.component} {framework} needs {row.distribution} {row.specifier}"
            yield f"{limited}, and {row.distribution} {version} is locked: {row.because}  ({place})"


def _holds(specifier: str, version: str | None) -> bool:
    return version is not None and SpecifierSet(specifier).contains(PackageVersion(version), prereleases=True)
