"""Re-lock preview: what solving a lock again would change and why; of a stale lock the system half, which asks no index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import UnavailableError
from provisioner.index.address import public_url
from provisioner.index.model import Environment
from provisioner.lock.asked_places import asked_places
from provisioner.lock.changes import held_back, successor_changes
from provisioner.lock.compare import compare
from provisioner.lock.finding import Finding
from provisioner.lock.kept import brought_along, chosen
from provisioner.lock.kept import kept as kept_packages
from provisioner.lock.offered import offer_findings, offers
from provisioner.resolver.joint import NoStackError, solve_system
from provisioner.words.conflict import conflict_lines, fix_line
from provisioner.workflow.session import Session
from provisioner.workflow.solving import Completed, assemble, complete, job_of, problem_of, resolve

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from packaging.utils import NormalizedName

    from provisioner.grounds.notice import Notice
    from provisioner.index.model import IndexFile
    from provisioner.lock.changes import Held
    from provisioner.lock.comparison import Comparison
    from provisioner.lock.model import Installer, Lock
    from provisioner.lock.offered import Offer
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack
    from provisioner.workflow.inputs import Inputs
    from provisioner.workflow.progress import Progress
    from provisioner.workflow.solving import Job


class Preview(Struct, frozen=True, kw_only=True):
    """What solving again would change; None where that was not asked, or cannot be told.

    `system` is that of the system half alone. `least` keeps what the lock has where it may, as `provision solve` does;
    `upgrade` takes the newest of everything, and `held` is what stays behind even so. `offers` are what the indexes say of the
    locked files today.
    """

    system: Comparison | None = None
    least: Comparison | None = None
    upgrade: Comparison | None = None
    held: tuple[Held, ...] = ()
    offers: tuple[Offer, ...] = ()
    findings: tuple[Finding, ...] = ()
    notices: tuple[Notice, ...] = ()


def preview_system(path: Path, lock: Lock, inputs: Inputs) -> Preview | None:
    """Return what solving the system half of a stale lock again would change; asks no index. None where nothing fits.

    The locked packages stay that the spec still leads to, with the frameworks they bring along and what they need of hosts.
    """
    job = job_of(inputs, path.parent, is_offline=True, earlier=lock)
    try:
        problems = [problem_of(job, platform) for platform in inputs.platforms]
        stacks = [_system_beside(lock, problem) for problem in problems]
    except NoStackError:  # the finding that the lock is stale has the conflict
        return None
    new = assemble(job, [Completed(stack=stack) for stack in stacks])
    staying = {(package.name, one.request.platform) for one in problems for package in kept_packages(lock, one)}
    new = replace(
        new,
        stacks=tuple(replace(one, installer=_installer(lock, one.platform)) for one in new.stacks),
        packages=tuple(package for package in lock.packages if staying & {(package.name, one) for one in package.platforms}),
    )
    found = compare(lock, new, places=asked_places(inputs.spec, inputs.document))
    # What is unverified is a finding already, and packages may have their say in it.
    told = (one for one in found.changes if one.section in {"hosts", "system"} and one.subject != "unverified")
    # Nor has the system half an override, a prerelease or a source distribution of a package.
    packages = tuple(f"({package.name})" for package in lock.packages)
    told = (one for one in told if one.subject != "relaxations" or not (one.old or one.new).endswith(packages))
    return Preview(system=replace(found, changes=tuple(told)))


def _system_beside(lock: Lock, problem: Problem) -> Stack:
    """Return the system half of one platform beside the locked packages that stay; an image that stays keeps its digest."""
    wanted = problem.with_roots(*brought_along(lock, problem))
    stack = solve_system(wanted, beside=chosen(kept_packages(lock, problem)))
    known = lock.on(stack.platform).image if stack.platform in lock.platforms else None
    if stack.image is None or known is None or known.reference != stack.image.reference:
        return stack
    return replace(stack, image=replace(stack.image, digest=known.digest))


def _installer(lock: Lock, platform: str) -> Installer | None:
    return lock.on(platform).installer if platform in lock.platforms else None


class _Solved(Struct, frozen=True, kw_only=True):
    """A lock that was solved again, and the environment of each of its platforms."""

    lock: Lock
    environments: tuple[Environment, ...]


def preview_changes(path: Path, lock: Lock, inputs: Inputs, *, is_offline: bool, progress: Progress | None = None) -> Preview:
    """Ask the indexes (or the cache) what solving a lock again would change, and whether its files are still offered.

    What cannot be told, and that nothing fits any more, are findings.
    """
    least = job_of(inputs, path.parent, is_offline=is_offline, earlier=lock)
    newest = job_of(inputs, path.parent, upgrades=None, is_offline=is_offline, earlier=lock)
    session = Session(inputs, least.settings, progress)
    refusal: Finding | None = None
    with session:
        try:
            try:
                # Solving reads pages many at a time; afterwards they are at hand.
                kept, upgraded = _solved(least, session), _solved(newest, session)
            except NoStackError as error:
                refusal = _impossible(error, path)
            found = _offers(lock, session)
        except UnavailableError as error:
            return Preview(findings=(_unknown(error, path),), notices=session.notices)
        findings = tuple(offer_findings(found, where=str(path)))
        if refusal is not None:
            return Preview(offers=found, findings=(*findings, refusal), notices=session.notices)
        places = asked_places(inputs.spec, inputs.document)
        held = [
            one
            for environment in upgraded.environments
            for one in held_back(upgraded.lock, session.open(environment), environment, places=places)
        ]
    return Preview(
        least=successor_changes(lock, kept.lock, found, places=places),
        upgrade=successor_changes(lock, upgraded.lock, found, is_upgrade=True, places=places),
        held=tuple(held),
        offers=found,
        findings=findings,
        notices=session.notices,
    )


def _solved(job: Job, session: Session) -> _Solved:
    resolved = resolve(job, session)
    lock = assemble(job, [complete(job, one, session) for one in resolved])
    return _Solved(lock=lock, environments=tuple(one.environment for one in resolved))


def _offers(lock: Lock, session: Session) -> tuple[Offer, ...]:
    """Return what the indexes say today of the locked files."""
    by_url = {public_url(one.url).rstrip("/"): one.name for one in session.settings.indexes if not one.is_template}
    source = session.open(Environment(platform=lock.platform, python=lock.stack.get("python", "")))

    def named(name: NormalizedName, index: str, filenames: Collection[str]) -> tuple[IndexFile, ...]:
        return source.named(name, filenames, index=by_url.get(index.rstrip("/"), index))

    return tuple(offers(lock, named))


def _unknown(error: UnavailableError, path: Path) -> Finding:
    return Finding(
        code="unverified-changes",
        verdict="unverified",
        text=f"what solving again would change cannot be told: {error.message}",
        where=str(path),
        details=error.causes,
        hints=error.hints,
    )


def _impossible(error: NoStackError, path: Path) -> Finding:
    return Finding(
        code="no-longer-solvable",
        verdict="no",
        text="nothing fits the spec, the matrix and the indexes of today, so this lock could not be made again",
        where=str(path),
        details=conflict_lines(error.conflict),
        hints=tuple(map(fix_line, error.conflict.fixes)),
    )
