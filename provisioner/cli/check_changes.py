"""`provision check --changes`: what solving a lock again would change and why; of a stale lock the system half, offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from packaging.utils import NormalizedName

    from provisioner.cli.inputs import Inputs
    from provisioner.cli.locking import Locking
    from provisioner.index.model import IndexFile
    from provisioner.lock.changes import Held
    from provisioner.lock.comparison import Comparison
    from provisioner.lock.finding import Finding
    from provisioner.lock.model import Installer, Lock
    from provisioner.lock.offered import Offer
    from provisioner.solve.joint import NoStackError
    from provisioner.solve.problem import Problem
    from provisioner.solve.stack import Stack

STALE_CODES = frozenset(
    {
        "contradiction", "missing-package", "missing-platform", "stale-accelerator", "stale-environment", "stale-gate",
        "stale-host-requirements", "stale-index", "stale-package", "stale-runs", "stale-stack", "unasked-package",
        "unknown-release",
    }
)  # fmt: skip
"""Findings that solving again would do something about."""


class Renewal(Struct, frozen=True, kw_only=True):
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


class _Answer(Struct, frozen=True, kw_only=True):
    """A lock solved twice: keeping what it has where it may, and with the newest of everything; `held` is of the second."""

    kept: Lock
    upgraded: Lock
    held: tuple[Held, ...]


def renewed_system(path: Path, lock: Lock, inputs: Inputs) -> Renewal | None:
    """What solving the system half of a stale lock again would change; asks no index. None where nothing fits.

    The locked packages stay that the spec still leads to, with the frameworks they bring along and what they need of hosts.
    """
    from provisioner.cli.locking import Locking
    from provisioner.lock.asked_places import asked_places
    from provisioner.lock.compare import compare
    from provisioner.lock.kept import kept
    from provisioner.solve.joint import NoStackError

    locking = Locking(inputs, path.parent, offline=True, keep=set(), earlier=lock)
    try:
        problems = [locking.problem(platform) for platform in inputs.platforms]
        stacks = [_system_beside(lock, problem) for problem in problems]
    except NoStackError:  # the finding that the lock is stale has the conflict
        return None
    new = locking.lock(stacks, installer={})
    staying = {(package.name, one.request.platform) for one in problems for package in kept(lock, one)}
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
    return Renewal(system=replace(found, changes=tuple(told)))


def _system_beside(lock: Lock, problem: Problem) -> Stack:
    """The system half of one platform beside the locked packages that stay."""
    from provisioner.lock.kept import brought_along, chosen, kept
    from provisioner.solve.joint import solve_system

    wanted = problem.with_roots(*brought_along(lock, problem))
    return _with_known_image(solve_system(wanted, beside=chosen(kept(lock, problem))), lock)


def _with_known_image(stack: Stack, lock: Lock) -> Stack:
    """The digest of an image that stays is the locked one: no registry is asked for it."""
    known = lock.on(stack.platform).image if stack.platform in lock.platforms else None
    if stack.image is None or known is None or known.reference != stack.image.reference:
        return stack
    return replace(stack, image=replace(stack.image, digest=known.digest))


def _installer(lock: Lock, platform: str) -> Installer | None:
    return lock.on(platform).installer if platform in lock.platforms else None


def renewed(path: Path, lock: Lock, inputs: Inputs, *, offline: bool) -> Renewal:
    """Ask the indexes (or the cache) what solving again would change, and whether the locked files are still offered.

    What cannot be told, and that nothing fits any more, are findings.
    """
    from provisioner.lock.asked_places import asked_places
    from provisioner.lock.changes import successor_changes
    from provisioner.lock.finding import Finding
    from provisioner.lock.offered import offer_findings
    from provisioner.solve.joint import NoStackError

    found: tuple[Offer, ...] = ()
    try:
        try:
            # Solving reads pages many at a time; afterwards they are at hand.
            answer: _Answer | NoStackError = _solved_again(path, lock, inputs, offline=offline)
        except NoStackError as error:
            answer = error
        found = _offers(lock, inputs, offline=offline)
    except UnavailableError as error:
        text = f"what solving again would change cannot be told: {error.message}"
        finding = Finding(
            code="unverified-changes", verdict="unverified", text=text, where=str(path), details=error.causes, hints=error.hints
        )
        return Renewal(findings=(finding,))
    findings = tuple(offer_findings(found, where=str(path)))
    if isinstance(answer, NoStackError):
        return Renewal(offers=found, findings=(*findings, _impossible(answer, path)))
    places = asked_places(inputs.spec, inputs.document)
    return Renewal(
        least=successor_changes(lock, answer.kept, found, places=places),
        upgrade=successor_changes(lock, answer.upgraded, found, is_upgrade=True, places=places),
        held=answer.held,
        offers=found,
        findings=findings,
    )


def _impossible(error: NoStackError, path: Path) -> Finding:
    from provisioner.lock.finding import Finding
    from provisioner.solve.explain.words import conflict_lines, hint_line

    return Finding(
        code="no-longer-solvable", verdict="no", where=str(path),
        text="nothing fits the spec, the matrix and the indexes of today, so this lock could not be made again",
        details=conflict_lines(error.conflict), hints=tuple(hint_line(hint) for hint in error.conflict.hints),
    )  # fmt: skip


def _solved_again(path: Path, lock: Lock, inputs: Inputs, *, offline: bool) -> _Answer:
    """The lock that keeps what it may, the one that takes the newest, and what is held back in the second."""
    from provisioner.cli.display import step
    from provisioner.cli.locking import Locking

    least = Locking(inputs, path.parent, offline=offline, keep=set(), earlier=lock)
    newest = Locking(inputs, path.parent, offline=offline, keep=None, earlier=lock)
    newest.warned = least.warned
    try:
        with step("Solving again", least.progress):
            kept = least.lock(least.solve())
        with step("Solving again with the newest of everything", newest.progress):
            upgraded = newest.lock(newest.solve())
            return _Answer(kept=kept, upgraded=upgraded, held=tuple(_held(upgraded, newest, inputs)))
    finally:
        least.close()
        newest.close()


def _offers(lock: Lock, inputs: Inputs, *, offline: bool) -> tuple[Offer, ...]:
    """What the indexes say today of the locked files."""
    from provisioner.cli.display import step
    from provisioner.cli.locking import index_settings
    from provisioner.index.address import public_url
    from provisioner.index.client import PackageIndex
    from provisioner.index.model import Environment
    from provisioner.lock.offered import offers

    settings = index_settings(inputs, is_offline=offline)
    by_url = {public_url(one.url).rstrip("/"): one.name for one in settings.indexes if not one.is_template}
    environment = Environment(platform=lock.platform, python=lock.stack.get("python", ""))
    with step("Asking what is still offered"), PackageIndex(settings, environment) as source:

        def named(name: NormalizedName, index: str, filenames: Collection[str]) -> tuple[IndexFile, ...]:
            return source.named(name, filenames, index=by_url.get(index.rstrip("/"), index))

        return tuple(offers(lock, named))


def _held(lock: Lock, locking: Locking, inputs: Inputs) -> Iterator[Held]:
    from provisioner.lock.asked_places import asked_places
    from provisioner.lock.changes import held_back

    places = asked_places(inputs.spec, inputs.document)
    for platform in inputs.platforms:
        source = locking.answering(platform)
        yield from held_back(lock, source, source.environment, places=places)
