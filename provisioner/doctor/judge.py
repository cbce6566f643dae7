"""Judge by the resolver: does what shall run go with the machine, and which changes, one after the other, would make it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, convert
from msgspec.structs import replace

from provisioner.components import COMPONENTS
from provisioner.grounds.finding import StaleStack
from provisioner.host.facts import following, stated, with_change, with_fact
from provisioner.lock.check.stack import stack_findings
from provisioner.resolver.explain.outcomes import applied
from provisioner.resolver.joint import NoStackError, UnlistedReleaseError, solve_system
from provisioner.resolver.problem import join
from provisioner.spec.model import Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provisioner.grounds.conflict import Conflict, Fix
    from provisioner.grounds.finding import Finding
    from provisioner.host.model import Host
    from provisioner.lock.format.model import Lock
    from provisioner.matrix.model import Matrix
    from provisioner.request import Request
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.stack import Stack

MOST_CONFLICTS = 6
"""The number of conflicts that are looked for, one after the other."""


def spec_asking(**keys: object) -> Spec:
    """Return a spec with some keys, spelled as in its file; it has no outputs."""
    return convert({"outputs": (), **keys}, Spec)


class Judgement(Struct, frozen=True, kw_only=True):
    """The opinion of the resolver on a request.

    `conflicts` are all conflicts, each found after the nearest fix of those before it was applied; of a conflict without a fix,
    a fact is left out. `mended` is the request with all these changes. `stack` is the answer to it, None if it has none, or if
    a lock was judged; `findings` are those of the check of the lock.
    """

    mended: Request
    conflicts: tuple[Conflict, ...] = ()
    stack: Stack | None = None
    findings: tuple[Finding, ...] = ()


class _Outcome(NamedTuple):
    """What the resolver says to one request: a conflict, else its answer or the findings about a lock."""

    conflict: Conflict | None = None
    stack: Stack | None = None
    findings: tuple[Finding, ...] = ()


def judge(matrix: Matrix, request: Request, *, beside: Mapping[Key, Candidate] | None = None) -> Judgement:
    """Return the opinion on a request without a lock; `beside` are installed distributions, by key."""

    def ask(asked: Request) -> _Outcome:
        try:
            return _Outcome(stack=solve_system(join(matrix, asked), beside=beside, finds_all=False))
        except (NoStackError, UnlistedReleaseError) as error:
            return _Outcome(conflict=error.conflict)

    return _judged(request, ask)


def judge_lock(matrix: Matrix, request: Request, lock: Lock, *, file: str) -> Judgement:
    """Return the opinion on a lock of one platform on the hosts of a request, as `check` has it; `file` is the lock's name."""

    def ask(asked: Request) -> _Outcome:
        findings = tuple(stack_findings(lock, join(matrix, asked), file=file, has_other_hosts=True))
        stale = next((one for one in findings if isinstance(one, StaleStack)), None)
        return _Outcome(findings=findings) if stale is None else _Outcome(conflict=stale.conflict)

    return _judged(request, ask)


def _judged(request: Request, ask: Callable[[Request], _Outcome]) -> Judgement:
    """Return all conflicts of a request, and the outcome once each is mended, or a fact of it left out.

    A conflict has no fix while there is another one beside it. It is looked for again when that is mended, with its fact alone
    put back.
    """
    conflicts: list[Conflict] = []
    left_out: dict[int, str] = {}
    mended = request
    while (outcome := ask(mended)).conflict is not None and len(conflicts) < MOST_CONFLICTS:
        conflicts.append(outcome.conflict)
        fix = nearest_fix(outcome.conflict)
        if fix is not None:
            mended = applied(mended, fix.edits)
            continue
        fact = fact_to_doubt(outcome.conflict)
        if fact is None or fact in left_out.values():
            break
        left_out[len(conflicts) - 1] = fact
        mended = _with_host(mended, _without_fact(mended.hosts[0].host, fact))
    if outcome.conflict is None:
        for index, fact in left_out.items():
            alone = _with_host(mended, _with_fact_of(mended.hosts[0].host, request.hosts[0].host, fact))
            again = ask(alone).conflict
            if again is not None:
                conflicts[index] = again
    return Judgement(mended=mended, conflicts=tuple(conflicts), stack=outcome.stack, findings=outcome.findings)


def _with_host(request: Request, host: Host) -> Request:
    """Return the request of one machine with other facts of it."""
    return replace(request, hosts=(replace(request.hosts[0], host=host),))


def _with_fact_of(host: Host, other: Host, component: str) -> Host:
    """Return a host with the facts of `other` about a component and what is installed with it; a driver's with its flavour."""
    if component == "gpu":
        return replace(host, gpus=other.gpus)
    if component == "driver":
        host = replace(host, driver=other.driver)
    for name in (component, *following(other, component)):
        host = with_fact(host, name, stated(other, name))
    return host


def nearest_fix(conflict: Conflict) -> Fix | None:
    """Return the nearest fix that gives up nothing and changes no hardware, else the nearest of all; None without fixes."""
    kept = (fix for fix in conflict.fixes if not fix.gives_up and all(edit.component != "gpu" for edit in fix.edits))
    return next(kept, None) or next(iter(conflict.fixes), None)


def fact_to_doubt(conflict: Conflict) -> str | None:
    """Return the component of the fact in a conflict that is the least work to change, None if no fact is a member."""
    names = {member.component for member in conflict.members if member.kind == "fact"}
    known = [COMPONENTS[name] for name in names if name in COMPONENTS and COMPONENTS[name].effort is not None]
    cheapest = min(known, key=lambda row: (row.effort, row.name), default=None)
    return cheapest.name if cheapest is not None else None


def _without_fact(host: Host, component: str) -> Host:
    return replace(host, gpus=None) if component == "gpu" else with_change(host, component, None)
