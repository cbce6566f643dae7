"""Solve a changed problem again: what attempts are known to fail by fails again, and is not solved for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.grounds.requirement import WHEEL, Relation, SpecLine
from provisioner.resolver.attempts import attempts_of, environment_of, system_half
from provisioner.resolver.python.distributions import of_variant_indexes
from provisioner.resolver.pythons import best_answer
from provisioner.resolver.requirement import PYTORCH, TORCH, build_of
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.request import Request
    from provisioner.resolver.attempts import Attempt, Chosen, Failure, Indexes
    from provisioner.resolver.explain.fixes import Outcome
    from provisioner.resolver.problem import Problem


class UndecidedError(UnavailableError):
    """Raised when there might be an answer with an index of framework builds, the one that is named, that cannot be reached."""


class Unreached(NamedTuple):
    """An index of framework builds that cannot be reached, and the error of it."""

    name: str
    error: UnavailableError


def unreached_index(failed: Sequence[Failure]) -> Unreached | None:
    """Return the first index without which an attempt in `failed` failed; None if none.

    An index that was asked in vain, but of which the proof uses nothing, would not help.
    """
    for one in failed:
        errors = one.instance.finder.variant_indexes.unreached if one.instance.finder else {}
        if errors and _rests_on_builds(one):
            return Unreached(*next(iter(errors.items())))
    return None


def _rests_on_builds(failure: Failure) -> bool:
    """Return whether a proof uses that a build has no wheel, or which versions there are of what indexes of builds have."""
    return bool(groups_about_builds(failure))


def groups_about_builds(failure: Failure) -> set[Group]:
    """Return the groups of a proof that say that a build has no wheel, or require what indexes of builds have.

    PyTorch itself is not meant, whose releases are those of the matrix.
    """
    names, lacking = of_variant_indexes(failure.instance.problem.matrix), Relation(PYTORCH.name, WHEEL)

    def is_about_builds(group: Group) -> bool:
        needed = (one.key for _, one in failure.search.members(group))
        return group == lacking or any(key.is_package and key != TORCH and key.project in names for key in needed)

    return set(filter(is_about_builds, failure.groups))


class KnownFailures:
    """What attempts failed by: a changed request that leaves all of it as it was fails again, and is not solved for it.

    `unreached` is the first index out of reach that might have an answer to one of them, "" when there is none.
    """

    def __init__(self, failed: Sequence[Failure]) -> None:
        self.unreached = ""
        self._failures: list[tuple[object, frozenset[object], Unreached | None]] = []
        self.add(failed)

    def add(self, failed: Sequence[Failure]) -> None:
        """Add failures, apart from those that only hold beside what an earlier answer lacked or bundles."""
        for one in failed:
            if one.lacking is None and not one.pairs:
                unreached = unreached_index([one])
                self._failures.append((_frame(one.attempt), frozenset(_lines(one.attempt, one.core)), unreached))
                self.unreached = self.unreached or (unreached.name if unreached is not None else "")

    def failures(self, attempt: Attempt) -> list[Unreached | None]:
        """Return the ways in which an attempt is known to fail, each with the index without which it does; [] for none."""
        frame = _frame(attempt)
        lines = frozenset(_lines(attempt))
        return [unreached for known, needed, unreached in self._failures if frame == known and needed <= lines]


def _lines(attempt: Attempt, groups: Collection[Group] | None = None) -> Iterator[object]:
    """Yield what is required of components, and each package as it is required; with `groups`, what belongs to these."""
    problem = attempt.problem
    yield from (root for root in problem.roots if groups is None or root.ground.group in groups)
    for line, _ in problem.packages:
        if groups is None or SpecLine("packages", canonicalize_name(line.name)) in groups:
            yield line


def _frame(attempt: Attempt) -> object:
    """Return all of an attempt that candidates and their requirements depend on, which is all but its root requirements."""
    request = attempt.problem.request
    build = build_of(attempt.system.get(PYTORCH))
    return (
        environment_of(attempt),
        build.index if build is not None else "",
        replace(request, spec=replace(request.spec, packages=(), requires={})),
    )


def choose_or_none(problem: Problem, indexes: Indexes | None, known: KnownFailures | None = None) -> Chosen | None:
    """Return what `choose` returns, or None when there is no answer; no conflict is explained.

    Attempts that are known to fail are not solved, and those that fail are added to `known`, unless they might have an answer
    with an index that cannot be reached. Raises `UnavailableError` then, and when the budget of metadata reads is exhausted.
    """
    if indexes is None:
        instance = ProblemInstance(system_half(problem))
        pins = decide(instance)
        return None if pins is None else (instance, pins)
    failed: list[Failure] = []
    attempts = attempts_of(problem)
    known_failures = [known.failures(one) if known is not None else [] for one in attempts]
    untried = [one for one, failures in zip(attempts, known_failures, strict=True) if not failures]
    try:
        chosen = best_answer(problem, untried, indexes, failed=failed)
        if known is not None:
            known.add(failed)
        without = (failures[0] for failures in known_failures if failures and None not in failures)
        unreached = next(without, None) or unreached_index(failed)
        if chosen is None and unreached is not None:
            raise UndecidedError(unreached.name) from unreached.error
        return chosen
    finally:
        for one in failed:
            one.search.close()


def outcome_or_none(problem: Problem, indexes: Indexes, request: Request, *, known: KnownFailures) -> Outcome | None:
    """Return the outcome of a changed request, with the extra requirements of `problem`; None when there is no answer.

    Where only an index out of reach can tell, the outcome is that of the rest.
    """
    from provisioner.resolver.explain.fixes import outcome, rejoined

    changed = rejoined(problem, request)
    try:
        found = choose_or_none(changed, indexes, known)
    except UndecidedError:
        rest = choose_or_none(changed.without(of_variant_indexes(problem.matrix)), indexes, known)
        return None if rest is None else outcome(*rest)._replace(is_whole=False)
    return None if found is None else outcome(*found)
