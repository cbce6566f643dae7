"""Preview what solving a lock again would change, and why.

For a lock that is stale (no longer satisfies its spec, matrix or hosts), this is possible for its system half alone, without
reading indexes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.grounds.finding import NoLongerSolvable, UnknownChanges
from provisioner.index.address import public_url
from provisioner.index.model import Environment
from provisioner.lock.check.files import drift_findings, file_drifts
from provisioner.lock.check.kept import brought_along, chosen
from provisioner.lock.check.kept import kept as kept_packages
from provisioner.lock.diff.compare import compare
from provisioner.lock.diff.relock import held_back, successor_changes
from provisioner.lock.format.model import relaxed_by
from provisioner.lock.requested import requested_places
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_system
from provisioner.workflow.session import Session
from provisioner.workflow.solving import Completed, assemble, complete, job_of, problem_of, resolve

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from packaging.utils import NormalizedName

    from provisioner.grounds.change import Comparison, Held
    from provisioner.grounds.finding import FileDrift, Finding
    from provisioner.grounds.notice import Notice
    from provisioner.index.model import IndexFile
    from provisioner.lock.format.model import Installer, Lock
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack
    from provisioner.workflow.inputs import Inputs
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.solving import Job


class Preview(Struct, frozen=True, kw_only=True):
    """The changes that a new solve would make; a field with a comparison is None if not requested or not computable.

    `system` compares only what is not a Python package. `least` keeps the versions of the lock if possible, as `provision
    solve` does; `upgrade` takes the newest versions, and `held` are the packages that even this leaves outdated. `drifts` are
    differences between the locked files and what the indexes offer today. `findings` are about such differences, or say why a
    comparison is missing. `moves_packages`: the system half has an answer, but none beside the locked packages, so
    some of these would have to move; whether the indexes have such ones is not known.
    """

    system: Comparison | None = None
    moves_packages: bool = False
    least: Comparison | None = None
    upgrade: Comparison | None = None
    held: tuple[Held, ...] = ()
    drifts: tuple[FileDrift, ...] = ()
    findings: tuple[Finding, ...] = ()
    notices: tuple[Notice, ...] = ()


def preview_system(path: Path, lock: Lock, inputs: Inputs) -> Preview | None:
    """Return the changes of solving the system half of a stale lock again, without reading indexes; None when no stack fits.

    The solution includes the locked packages that the spec still requires, directly or not, the frameworks that these packages
    require, and their requirements on hosts. If there is none beside these packages, but one without them, the preview says
    only that.
    """
    job = job_of(inputs, path.parent, is_offline=True, earlier=lock)
    problems: list[Problem] = []
    try:
        problems.extend(problem_of(job, platform) for platform in inputs.platforms)
        stacks = [_system_beside(lock, problem) for problem in problems]
    except (NoStackError, UnlistedReleaseError):  # the finding about the stale lock has the conflict already
        return Preview(moves_packages=True) if lock.packages and _have_stacks(problems) else None
    new = assemble(job, [Completed(stack=stack) for stack in stacks])
    staying = {(package.name, one.request.platform) for one in problems for package in kept_packages(lock, one)}
    new = replace(
        new,
        stacks=tuple(replace(one, installer=_installer(lock, one.platform)) for one in new.stacks),
        packages=tuple(package for package in lock.packages if staying & {(package.name, one) for one in package.platforms}),
    )
    names = {package.name for package in lock.packages}
    places = requested_places(inputs.spec, inputs.document)
    found = compare(_system_half(lock, names), _system_half(new, names), places=places)
    return Preview(system=replace(found, changes=tuple(one for one in found.changes if one.section in {"hosts", "system"})))


def _have_stacks(problems: Sequence[Problem]) -> bool:
    """Return whether the system half of each problem has an answer when packages may be any."""
    try:
        for problem in problems:
            solve_system(problem, finds_all=False)
    except (NoStackError, UnlistedReleaseError):
        return False
    return bool(problems)


def _system_half(lock: Lock, packages: Collection[str]) -> Lock:
    """Return a lock without doubts, which the check reports as findings, and without relaxations caused by `packages`."""
    stacks = (
        replace(stack, unverified=(), relaxations=tuple(one for one in stack.relaxations if relaxed_by(one) not in packages))
        for stack in lock.stacks
    )
    return replace(lock, stacks=tuple(stacks))


def _system_beside(lock: Lock, problem: Problem) -> Stack:
    """Solve the system half of one platform, for the locked packages that the spec still requires.

    The stack has the locked digest of the base image if its reference is unchanged.
    """
    wanted = problem.with_roots(*brought_along(lock, problem))
    stack = solve_system(wanted, beside=chosen(kept_packages(lock, problem)), finds_all=False)
    known = lock.on(stack.platform).stack.image if stack.platform in lock.platforms else None
    if stack.image is None or known is None or known.reference != stack.image.reference:
        return stack
    return replace(stack, image=stack.image.with_digests({one.reference: one.digest for one in known.images}))


def _installer(lock: Lock, platform: str) -> Installer | None:
    return lock.on(platform).stack.installer if platform in lock.platforms else None


class _Solved(Struct, frozen=True, kw_only=True):
    """The lock that a new solve of the same spec returned, and the Python environment of each of its platforms."""

    lock: Lock
    environments: tuple[Environment, ...]


def preview_changes(path: Path, lock: Lock, inputs: Inputs, *, is_offline: bool, progress: Progress | None = None) -> Preview:
    """Return the changes of solving a lock again with the indexes (offline: with the cache), and check its files there.

    If no stack exists any longer, or an index is out of reach, the preview has a finding about that, and nothing is raised.
    """
    least = job_of(inputs, path.parent, is_offline=is_offline, earlier=lock)
    newest = job_of(inputs, path.parent, upgrades=None, is_offline=is_offline, earlier=lock)
    session = Session(inputs, least.settings, progress)
    refusal: Finding | None = None
    with session:
        try:
            try:
                # First, because solving reads project pages concurrently, and `_drifts` then finds them in the cache.
                kept, upgraded = _solved(least, session), _solved(newest, session)
            except NoStackError as error:
                refusal = NoLongerSolvable(conflict=error.conflict)
            found = _drifts(lock, session)
        except UnavailableError as error:
            unknown = UnknownChanges(problem=error.message, causes=error.causes, hints=error.hints)
            return Preview(findings=(unknown,), notices=session.notices)
        findings = tuple(drift_findings(found))
        if refusal is not None:
            return Preview(drifts=found, findings=(*findings, refusal), notices=session.notices)
        places = requested_places(inputs.spec, inputs.document)
        held = [
            one
            for environment in upgraded.environments
            for one in held_back(upgraded.lock, session.open(environment), environment, places=places)
        ]
    return Preview(
        least=successor_changes(lock, kept.lock, found, places=places),
        upgrade=successor_changes(lock, upgraded.lock, found, is_upgrade=True, places=places),
        held=tuple(held),
        drifts=found,
        findings=findings,
        notices=session.notices,
    )


def _solved(job: Job, session: Session) -> _Solved:
    resolved = resolve(job, session)
    lock = assemble(job, [complete(job, one, session) for one in resolved])
    return _Solved(lock=lock, environments=tuple(one.environment for one in resolved))


def _drifts(lock: Lock, session: Session) -> tuple[FileDrift, ...]:
    """Return the differences between the locked files and what the indexes offer today."""
    by_url = {public_url(one.url).rstrip("/"): one.name for one in session.settings.indexes if not one.is_template}
    source = session.open(Environment(platform=lock.stacks[0].platform, python=lock.stacks[0].components.get("python", "")))

    def named(name: NormalizedName, index: str, filenames: Collection[str]) -> tuple[IndexFile, ...]:
        return source.named_files(name, filenames, index=by_url.get(index.rstrip("/"), index))

    return tuple(file_drifts(lock, named))
