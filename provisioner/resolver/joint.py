"""Solve one problem, components and packages together, for one platform: the entry point of the resolver.

A component is an entry of the matrix, such as PyTorch, CUDA or a driver; the choice of all components is the system half of a
problem and needs no index. The packages are the Python distributions that the spec names and their dependencies. A key is one
thing to choose: a component (of one host, if hosts provide it) or a distribution. An answer is a valid assignment: a candidate,
such as a release or version, for each key.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from provisioner.errors import RefusedError, UnavailableError
from provisioner.grounds.conflict import Offered
from provisioner.resolver.for_gpus import told_of_gpus
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.python.distributions import host_requirements_of
from provisioner.resolver.refutation import Refutation, decided, every_conflict
from provisioner.resolver.search.bundled import align_bundled
from provisioner.words.conflict import (
    conflict_lines,
    failure_hints,
    not_known_words,
    refresh_words,
    refusal_hints,
    refusal_lines,
    refusal_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from provisioner.grounds.conflict import Conflict, Newest, Unlisted
    from provisioner.grounds.series import Instead
    from provisioner.resolver.attempts import Chosen, SourceFor
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.requirement import Candidate, Key
    from provisioner.resolver.stack import Stack


class NoStackError(RefusedError):
    """Raised when it is proved that no stack satisfies the request.

    `conflict` has the requirements that contradict each other, called its members, and the fixes: edits of the spec after which
    a stack exists. `conflicts` are all conflicts that were found, with no request in common, each with the fixes that it alone
    needs. `instead` is the version that there would be of the component to be explained, None when that is unknown.
    """

    code = "no-stack"
    instead: Instead | None = None

    def __init__(self, conflict: Conflict, *others: Conflict) -> None:
        self.conflict = conflict
        self.conflicts = (conflict, *others)
        super().__init__(
            refusal_words(self.conflicts), causes=refusal_lines(self.conflicts), hints=refusal_hints(self.conflicts)
        )


class UnlistedReleaseError(UnavailableError):
    """Raised when no releases of the matrix satisfy the request, but releases that the matrix does not know yet might.

    `conflict` has the requirements that no releases of the matrix meet together, and the edits of the spec after which a stack
    exists. `unlisted` are, by component, the releases on an index that the matrix lacks, or the newest that the matrix knows.
    """

    code = "unlisted-release"

    def __init__(self, conflict: Conflict, unlisted: Mapping[str, Unlisted | Newest]) -> None:
        offers = tuple(unlisted.values())
        hints = (*map(refresh_words, offers), *failure_hints(conflict))
        super().__init__(not_known_words(offers), causes=conflict_lines(conflict), hints=hints)
        self.conflict = conflict


def solve_system(problem: Problem, *, beside: Mapping[Key, Candidate] | None = None, finds_all: bool = True) -> Stack:
    """Return the stack without packages, found without an index; raises `NoStackError` when there is none.

    `beside` are distributions chosen before, by key: hosts must also meet the requirements that the matrix has for these
    distributions. `finds_all`: the error has all independent conflicts, not only the first.
    """
    host_needs = tuple(host_requirements_of(problem, beside or {}))
    instance, pins = choose(problem.with_roots(*host_needs), None, finds_all=finds_all)
    return answer(instance, align_bundled(instance, pins, beside or {}), beside=beside, host_needs=host_needs)


def solve_joint(problem: Problem, source_for: SourceFor) -> Stack:
    """Return the stack with its packages, solved as one problem.

    `source_for` opens the indexes. Raises `NoStackError` when there is no stack, `UnavailableError` when an index that cannot
    be reached might have packages for a stack.
    """
    return told_of_gpus(answer(*choose(problem, source_for)), problem, source_for)


def choose(
    problem: Problem,
    source_for: SourceFor | None,
    *,
    finds_all: bool = True,
    when_refuted: Callable[[Sequence[Conflict]], None] | None = None,
) -> Chosen:
    """Return a problem instance and its most preferred answer; without `source_for`, those for the components alone.

    With packages, the answer is that of the most preferred Python that has one (see `attempts`). Raises `NoStackError` when no
    Python has an answer, `UnlistedReleaseError` when there might be one with releases that the matrix does not know, and
    `UnavailableError` when there might be one with an index that cannot be reached. `finds_all`: a `NoStackError` has all
    independent conflicts, not only the first. `when_refuted` is called with the conflicts known so far, without fixes, before
    fixes and other conflicts are looked for; not where releases that the matrix does not know might have an answer.
    """
    read = cache(source_for) if source_for is not None else None
    found = decided(problem, read)
    if not isinstance(found, Refutation):
        return found
    try:
        if when_refuted is not None and not found.unlisted:
            when_refuted([one.conflict for one in (found, *found.beside)])
        conflicts = every_conflict(found, read) if finds_all or found.unlisted else [found.explained()]
        if found.unlisted and len(conflicts) == 1:  # a conflict beside it is proved, whatever newer releases there are
            raise UnlistedReleaseError(_as_unlisted(conflicts[0], found.unlisted), found.unlisted)
        raise NoStackError(*conflicts)
    finally:
        found.close()


def _as_unlisted(conflict: Conflict, unlisted: Mapping[str, Unlisted | Newest]) -> Conflict:
    """Return a conflict with `unlisted`, by component, in place of the releases of the matrix that are offered."""
    members = tuple(
        replace(one, offer=unlisted[one.offer.name]) if isinstance(one.offer, Offered) and one.offer.name in unlisted else one
        for one in conflict.members
    )
    return replace(conflict, members=members, conclusion=None)
