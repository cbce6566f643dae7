"""Check the packages of a lock against the matrix's rows on distributions: shared files, undeclared needs, limits.

A limit is a rule that restricts the version of a distribution beside some releases of a framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version as PackageVersion

from provisioner.grounds.finding import FileClash, OtherAbi, UnmetNeed
from provisioner.grounds.requirement import Subject
from provisioner.resolver.python.distributions import has_abi
from provisioner.resolver.requirement import PYTORCH, build_of
from provisioner.resolver.rules.shared_files import FORBIDDEN
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.finding import Finding
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import ImpliedNeed, Matrix
    from provisioner.resolver.problem import Problem


def hazard_findings(lock: Lock, problem: Problem) -> Iterator[Finding]:
    """Yield findings on a lock of one platform from the matrix's rows on shared files, undeclared needs and limits."""
    locked = {package.name: package.version for package in lock.packages}
    yield from _file_clashes(locked, problem)
    yield from _implied_needs(lock, locked, problem)
    yield from _limits(lock, locked, problem.matrix)


def _file_clashes(locked: Mapping[str, str], problem: Problem) -> Iterator[Finding]:
    """Yield a finding for each file that several locked distributions write, if the matrix or the policy forbids that."""
    matrix = problem.matrix
    is_forbidden = FORBIDDEN in problem.request.spec.policy.forbid
    for row in matrix.shared_files:
        names = [one.distribution for one in row.owners if _holds(one.versions, locked.get(one.distribution))]
        if len(names) > 1 and (row.refused or is_forbidden):
            subjects = tuple(Subject(name, locked[name]) for name in names)
            yield FileClash(
                subjects=subjects, file=row.path, because=row.because, place=matrix.place_of(f"shared-file:{row.name}")
            )


def _implied_needs(lock: Lock, locked: Mapping[str, str], problem: Problem) -> Iterator[Finding]:
    """Yield a finding for each unmet requirement that the matrix, but not the metadata, states for a locked version."""
    matrix = problem.matrix
    for known in matrix.distributions:
        for row in known.implies:
            # A row about the files of one index only was decided when the file was locked.
            if row.served_by or not _holds(row.versions, locked.get(known.name)):
                continue
            subject = Subject(known.name, locked[known.name])
            place = matrix.place_of(f"distribution:{known.name} {row.versions}")
            for name, needed, has in _unmet(row, lock, locked):
                yield UnmetNeed(subject=subject, object=name, needed=needed, locked=has, because=row.because, place=place)
            build = _build_of_other_abi(row, lock, problem)
            if build and "+" not in subject.label:  # a local version names a build, and so its ABI
                yield OtherAbi(subject=subject, needs_new=bool(row.cxx11_abi), build=build, place=place)


def _unmet(row: ImpliedNeed, lock: Lock, locked: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield each unmet need of a row: its object, the range that is needed, and the version that is locked, "" for none."""
    for name, specifier in row.packages.items():
        if not _holds(specifier, locked.get(name)):
            yield name, specifier, locked.get(name, "")
    for need in row.require:
        has = lock.stack.components.get(need.component, "")
        if has and "," not in has and not need.allows(Version.parse(has)):
            yield need.component, str(need), has


def _build_of_other_abi(row: ImpliedNeed, lock: Lock, problem: Problem) -> str:
    """Return the locked PyTorch build if it lacks the C++ ABI that the wheels of `row` need; otherwise ""."""
    components = lock.stack.components
    label = f"{components.get(PYTORCH.name)}+{components.get('pytorch_build')}"
    build = next((one for one in problem.domains.get(PYTORCH, ()) if one.label == label), None)
    return label if build is not None and not has_abi(build_of(build), row) else ""


def _limits(lock: Lock, locked: Mapping[str, str], matrix: Matrix) -> Iterator[Finding]:
    """Yield a finding for each locked distribution outside the range that the matrix gives for it beside the locked framework.

    Rows that depend on facts of hosts are left out; they are checked by solving.
    """
    for row in matrix.limits:
        framework = lock.stack.components.get(row.when.component, "")
        if not framework or row.on or not row.when.allows(Version.parse(framework)):
            continue
        version = locked.get(row.distribution)
        if version is not None and not _holds(row.specifier, version):
            yield UnmetNeed(
                subject=Subject(row.when.component, framework),
                object=row.distribution,
                needed=row.specifier,
                locked=version,
                because=row.because,
                place=matrix.place_of(f"limit:{row.name}"),
            )


def _holds(specifier: str, version: str | None) -> bool:
    return version is not None and SpecifierSet(specifier).contains(PackageVersion(version), prereleases=True)
