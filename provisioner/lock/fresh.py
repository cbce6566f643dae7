"""Does a lock still hold? Freshness is satisfaction: it is judged by solving, not by comparing hashes of inputs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version as PackageVersion

from provisioner.document import FileError
from provisioner.grounds.requirement import LockHas
from provisioner.index.direct_reference import direct_reference
from provisioner.index.markers import Markers, marker_environment
from provisioner.index.metadata.core_metadata import parse_requirement
from provisioner.lock.finding import Finding
from provisioner.lock.fresh_bounds import bound_findings
from provisioner.lock.fresh_files import file_findings
from provisioner.lock.fresh_request import request_findings, unasked_findings
from provisioner.lock.kept import chosen
from provisioner.names import COMPONENT_OF_DISTRIBUTION
from provisioner.places import Place
from provisioner.resolver.choices.frameworks import published_version
from provisioner.resolver.joint import NoStackError, choose
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.outcome.require_cuda import require_cuda
from provisioner.resolver.python.distributions import host_requirements_of
from provisioner.resolver.requirement import PYTORCH, TORCH, Key, Labelled, ReleaseCandidate, Requirement
from provisioner.resolver.rules.bundled import BUNDLED
from provisioner.resolver.search.bundled import align_bundled, with_bundled_candidates
from provisioner.words.conflict import conflict_lines, fix_line
from provisioner.words.doubt import doubt_words
from provisioner.words.ground import say_with_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.requirements import Requirement as Pep508

    from provisioner.index.direct_reference import DirectReference
    from provisioner.lock.model import Lock, LockedPackage
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack

_WRITES_AGAIN = "`provision solve` writes it again; what is locked stays as it is where nothing else changed"


def stack_findings(lock: Lock, problem: Problem, *, where: str, has_other_hosts: bool = False) -> Iterator[Finding]:
    """Solve again with everything the lock chose fixed: on these hosts, with this matrix, for this spec.

    `lock` is of one platform (`Lock.on`). What no longer holds is explained as any conflict is. With `has_other_hosts` the
    hosts are not those of the spec: the lock is to hold on them, and not to say of them what it would if solved for them.
    """
    packages = chosen(lock.packages)
    problem = with_bundled_candidates(problem, packages)
    fixed = []
    for component, value in sorted(lock.stack.items()):
        key = Key(component)
        if component == "pytorch_build" or key not in problem.domains:
            continue
        label = f"{value}+{lock.stack['pytorch_build']}" if component == "pytorch" else value
        if not any(candidate.label == label for candidate in problem.domains[key]):
            base = problem.request.spec.image.base
            text = (
                f"the lock has base image {label}, the spec asks for {base}"
                if component == "image"
                else f"the matrix does not list {component} {label} (any longer) for what the spec asks"
            )
            yield Finding(code="unknown-release", verdict="no", text=text, where=where)
            return
        ground = LockHas(name=component, label=label, place=Place(where))
        fixed.append(Requirement(key, Labelled(frozenset({label})), ground))
    try:
        instance, pins = choose(problem.with_roots(*fixed, *host_requirements_of(problem, packages)), None)
        pins = align_bundled(instance, pins, packages)
    except NoStackError as error:
        hints = tuple(map(fix_line, error.conflict.fixes))
        text = "the locked stack does not satisfy the spec, the matrix and the hosts"
        yield Finding(
            code="stale-stack", verdict="no", text=text, where=where, details=conflict_lines(error.conflict), hints=hints
        )
        return
    yield from file_findings(lock, instance, pins, where=where)
    again = answer(instance, pins, beside=packages)
    for doubt in again.doubts:
        yield Finding(code="unverified", verdict="unverified", text=doubt_words(doubt), where=where)
    if not has_other_hosts:
        yield from _told_otherwise(lock, again, problem, where)
    gate = require_cuda(problem, {**pins, **packages})
    if gate != lock.require_cuda:
        yield _stale_gate(lock.require_cuda, gate, where)


def _told_otherwise(lock: Lock, again: Stack, problem: Problem, where: str) -> Iterator[Finding]:
    """What the lock tells hosts, and what is set in its image, beside what the same choices call for today.

    Both are those of the hosts of the spec; where it has none, the lock may be for hosts of a command line.
    """
    told = []
    for fact in sorted({*lock.host_requirements, *again.host_requirements}):
        old, new = lock.host_requirements.get(fact, ""), again.host_requirements.get(fact, "")
        if old != new:
            text = f"the lock asks hosts for {fact} {old or 'of any kind'}, the stack needs {new or 'none in particular'}"
            told.append(("stale-host-requirements", text))
    for name in sorted({*lock.environment, *again.environment}):
        old, new = lock.environment.get(name, ""), again.environment.get(name, "")
        if old != new:
            text = f"the lock sets {name} to {_or_none(old)}, the stack needs it to be {_or_none(new)}"
            told.append(("stale-environment", text))
    for code, text in told:
        if problem.request.spec.target.host is not None:
            yield Finding(code=code, verdict="no", text=text, where=where, hints=(_WRITES_AGAIN,))
        else:
            unknown = f"{text}; the spec has no hosts, and of those of a command line no lock tells"
            hints = ("`provision check --host PROFILE` asks about the hosts it was solved for",)
            yield Finding(code="unverified", verdict="unverified", text=unknown, where=where, hints=hints)


def _stale_gate(old: str, new: str, where: str) -> Finding:
    text = (
        f"the image would start on other hosts than the stack runs on: NVIDIA_REQUIRE_CUDA should be {_or_none(new)}, "
        f"the lock has {_or_none(old)}"
    )
    return Finding(code="stale-gate", verdict="no", text=text, where=where, hints=(_WRITES_AGAIN,))


def _or_none(requirement: str) -> str:
    return f"`{requirement}`" if requirement else "empty"


def package_findings(lock: Lock, problem: Problem, *, where: str) -> Iterator[Finding]:
    """The packages against the spec, against each other and against the stack; no index is asked."""
    locked = {package.name: package for package in lock.packages}
    markers = _markers(lock)
    unmet: list[Finding] = []
    for requirement, ground in problem.packages:
        if requirement.marker is None or requirement.marker.evaluate(markers):
            unmet.extend(_unmet(requirement, locked, say_with_source(ground), where))
    for package in lock.packages:
        for text in package.requires:
            required = parse_requirement(text)
            if not problem.overrides.of(canonicalize_name(required.name)):
                unmet.extend(_unmet(required, locked, f"{package.name} {package.version} needs {text}", where))
    yield from unmet
    yield from bound_findings(lock, problem, Markers(markers), where=where)
    yield from request_findings(lock, problem, Markers(markers), where=where)
    if not any(finding.code == "missing-package" for finding in unmet):  # what is missing may be who needs the rest
        yield from unasked_findings(lock, problem, where=where)
    yield from _contradictions(lock, locked, where)
    yield from _other_build(lock, locked, problem, where)


def _markers(lock: Lock) -> dict[str, str]:
    from provisioner.index.model import Environment

    return marker_environment(Environment(platform=lock.platform, python=lock.stack.get("python", "3.12")))


def _unmet(requirement: Pep508, locked: dict[str, LockedPackage], why: str, where: str) -> Iterator[Finding]:
    name = canonicalize_name(requirement.name)
    package = locked.get(name)
    if package is None:
        yield Finding(code="missing-package", verdict="no", text=f"`{name}` is not locked: {why}", where=where)
    elif not requirement.specifier.contains(PackageVersion(package.version), prereleases=True):
        text = f"{name} {package.version} is locked, but {why}"
        yield Finding(code="stale-package", verdict="no", text=text, where=where)
    elif requirement.url is not None and not _is_of_file(package, direct_reference(name, requirement.url, Path())):
        text = f"{name} {package.version} is locked from elsewhere, but {why}"
        yield Finding(code="stale-package", verdict="no", text=text, where=where)


def _is_of_file(package: LockedPackage, reference: DirectReference) -> bool:
    """Whether a package is locked from the file that a requirement names; of a path, which is of one machine, by its name."""
    for file in package.files:
        is_there = file.filename == reference.filename if reference.path else file.url == reference.url
        if is_there and reference.sha256 in {"", file.sha256}:
            return True
    return False


def _contradictions(lock: Lock, locked: dict[str, LockedPackage], where: str) -> Iterator[Finding]:
    """The stack table and the package list describe one environment and must not disagree."""
    for component, distributions in BUNDLED.items():
        wanted = lock.stack.get(component)
        carriers = [locked[name] for name in distributions if name in locked]
        # One may be for another CUDA than the framework's, which loads its own; files that both write are in the matrix.
        if wanted and not any(PackageVersion(one.version) == PackageVersion(wanted) for one in carriers):
            for one in carriers:
                text = f"the stack has {component} {wanted}, the packages have {one.name} {one.version}"
                yield Finding(code="contradiction", verdict="no", text=text, where=where)
    for name, component in COMPONENT_OF_DISTRIBUTION.items():
        wanted = lock.stack.get(component)
        if (
            wanted
            and name in locked
            and PackageVersion(locked[name].version).base_version != PackageVersion(wanted).base_version
        ):
            text = f"the stack has {component} {wanted}, the packages have {name} {locked[name].version}"
            yield Finding(code="contradiction", verdict="no", text=text, where=where)


def _other_build(lock: Lock, locked: dict[str, LockedPackage], problem: Problem, where: str) -> Iterator[Finding]:
    """The framework's wheel is that of the build in the stack: the wheel of PyPI is not the CPU build of the same release."""
    label = f"{lock.stack.get(PYTORCH.name)}+{lock.stack.get('pytorch_build')}"
    build = next((one for one in problem.domains.get(PYTORCH, ()) if one.label == label), None)
    torch = locked.get(TORCH.name)
    if torch is None or not isinstance(build, ReleaseCandidate) or build.build is None or build.build.compiled:
        return
    wanted = published_version(build)
    # A release that differs was said already.
    is_same_release = PackageVersion(torch.version).base_version == wanted.base_version
    if is_same_release and PackageVersion(torch.version) != wanted:
        text = f"the stack has pytorch {label}, whose wheel is torch {wanted}; the packages have torch {torch.version}"
        hint = "`provision solve` locks the wheel of the build"
        yield Finding(code="contradiction", verdict="no", text=text, where=where, hints=(hint,))


def artefact_findings(lock: Lock, folder: Path, *, where: str) -> Iterator[Finding]:
    """Local files that the lock names: there, and with the hash it states."""
    for package in lock.packages:
        for file in package.files:
            if not file.path:
                continue
            path = folder / file.path
            if not path.is_file():
                text = f"`{file.path}` of {package.name} {package.version} is missing"
                yield Finding(code="missing-artefact", verdict="no", text=text, where=where)
            elif (found := _sha256(path)) != file.sha256:
                text = f"`{file.path}` has sha256 {found}, the lock says {file.sha256}"
                yield Finding(code="changed-artefact", verdict="no", text=text, where=where)
            elif file.size is not None and (size := path.stat().st_size) != file.size:
                text = f"`{file.path}` has {size} bytes, the lock says {file.size}"
                yield Finding(code="changed-artefact", verdict="no", text=text, where=where)


def _sha256(path: Path) -> str:
    """The hash of a file that may be larger than memory; raises `FileError`."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"locked file `{path}` cannot be read: {error.strerror}") from None
