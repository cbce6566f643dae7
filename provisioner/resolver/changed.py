"""Solve a changed request again, beside what a refutation knows: what it failed by is not proved a second time.

What fixes, and other conflicts beside one that is known, are looked for with is mostly the same problem: a line of the spec or
a fact of a host is another one, and all else is as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace
from packaging.utils import canonicalize_name

from provisioner.errors import UnavailableError
from provisioner.grounds.requirement import WHEEL, Relation, SpecLine
from provisioner.resolver.attempts import attempts_of, environment_of, system_half
from provisioner.resolver.python.distributions import of_variant_indexes
from provisioner.resolver.pythons import best_answer
from provisioner.resolver.refuting import is_about_libraries, refuted
from provisioner.resolver.requirement import PYTORCH, TORCH, build_of
from provisioner.resolver.search.instance import ProblemInstance
from provisioner.resolver.search.resolve import decide

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from provisioner.grounds.requirement import Group
    from provisioner.request import Request
    from provisioner.resolver.attempts import Attempt, Chosen, Failure, Indexes
    from provisioner.resolver.explain.outcomes import Outcome
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
    """Return the groups of a proof that say that a build has no wheel, or require what indexes of builds have."""
    return _about_builds(failure, failure.groups)


def _about_builds(failure: Failure, groups: Sequence[Group]) -> set[Group]:
    """Return which groups of a search say that a build has no wheel, or require what indexes of builds have.

    PyTorch itself is not meant, whose releases are those of the matrix.
    """
    names, lacking = of_variant_indexes(failure.instance.problem.matrix), Relation(PYTORCH.name, WHEEL)

    def is_about_builds(group: Group) -> bool:
        needed = (one.key for _, one in failure.search.members(group))
        return group == lacking or any(key.is_package and key != TORCH and key.project in names for key in needed)

    return set(filter(is_about_builds, groups))


class _Known(NamedTuple):
    """What an attempt failed by: what else its candidates depend on, the lines and groups of its proof.

    The proof is beside any version of each of the distributions `present`. `unreached` is the index out of reach without which
    the attempt failed, None if there is none.
    """

    frame: object
    lines: frozenset[object]
    core: tuple[Group, ...]
    present: frozenset[str]
    unreached: Unreached | None

    def is_of(self, attempt: Attempt, lines: frozenset[object]) -> bool:
        """Return whether an attempt has all that the proof is about; `lines` are its lines."""
        plain = {canonicalize_name(line.name) for line, _ in attempt.problem.packages if line.marker is None}
        return self.lines <= lines and self.present <= plain


class KnownFailures:
    """What attempts failed by: a changed request that leaves all of it as it was fails again, and is not solved for it.

    `unreached` is the first index out of reach that might have an answer to one of them, "" when there is none.
    """

    def __init__(self, failed: Sequence[Failure] = ()) -> None:
        self.unreached = ""
        self._failures: list[_Known] = []
        self._in_vain: set[tuple[str, tuple[Group, ...]]] = set()
        """The Pythons that do not fail by the groups of a proof with another one, each with these groups."""
        self.add(failed)

    def add(self, failed: Sequence[Failure]) -> None:
        """Add failures, apart from those that only hold beside what an earlier answer lacked or bundles."""
        for one in failed:
            if one.lacking is None and not one.pairs:
                unreached = unreached_index([one])
                self._add(one.attempt, one.core, (), unreached)
                self.unreached = self.unreached or (unreached.name if unreached is not None else "")

    def exclude(self, failure: Failure, core: tuple[Group, ...], present: str) -> None:
        """Add that no version of a distribution goes with `core`, as the search of a failure has proved.

        It is not added where an index out of reach, files or pre-releases that were no candidates might have such a version.
        """
        finder = failure.instance.finder
        assert finder is not None, "a distribution is from an index"
        is_unknown = finder.discoveries.has_grown or (finder.variant_indexes.unreached and _about_builds(failure, core))
        if failure.lacking is None and not failure.pairs and not is_unknown:
            self._add(failure.attempt, core, (present,), None)

    def _add(self, attempt: Attempt, core: tuple[Group, ...], present: Sequence[str], unreached: Unreached | None) -> None:
        lines = frozenset(_lines(attempt, core))
        self._failures.append(_Known(_frame(attempt), lines, core, frozenset(present), unreached))

    def failures(self, attempt: Attempt) -> list[Unreached | None]:
        """Return the ways in which an attempt is known to fail, each with the index without which it does; [] for none."""
        if not self._failures:
            return []
        frame, lines = _frame(attempt), frozenset(_lines(attempt))
        return [one.unreached for one in self._failures if frame == one.frame and one.is_of(attempt, lines)]

    def excluded(self, attempts: Sequence[Attempt], indexes: Indexes) -> list[Failure]:
        """Return the failures of attempts by what was excluded with another Python.

        Each is proved with its own, for which only what the proof is about is read; the caller must close its search.
        """
        found: list[Failure] = []
        waiting = [(one, frozenset(_lines(one))) for one in attempts]
        for known in self._failures:
            groups = (*known.core, *(SpecLine("packages", name) for name in known.present))
            is_of_python = not known.present or any(map(is_about_libraries, groups))
            for attempt, lines in () if is_of_python else tuple(waiting):
                if (attempt.python, groups) in self._in_vain or not known.is_of(attempt, lines):
                    continue
                again = refuted(attempt, groups, indexes)
                if again is None:
                    self._in_vain.add((attempt.python, groups))
                else:
                    found.append(again)
                    waiting.remove((attempt, lines))
        return found


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
    excluded = known.excluded(untried, indexes) if known is not None else []
    try:
        untried = [one for one in untried if all(one is not other.attempt for other in excluded)]
        chosen = best_answer(problem, untried, indexes, failed=failed)
        if known is not None:
            known.add([*excluded, *failed])
        without = (failures[0] for failures in known_failures if failures and None not in failures)
        unreached = next(without, None) or unreached_index([*excluded, *failed])
        if chosen is None and unreached is not None:
            raise UndecidedError(unreached.name) from unreached.error
        return chosen
    finally:
        close([*excluded, *failed])


class ChangedRequests:
    """Solves changed requests, each once, with the extra requirements of a problem; `known` are the failures so far."""

    def __init__(self, problem: Problem, indexes: Indexes, known: KnownFailures) -> None:
        self._problem, self._indexes, self._known = problem, indexes, known
        self._solved: list[tuple[Request, Outcome | None]] = []

    def exclude(self, failure: Failure, core: tuple[Group, ...], present: str) -> None:
        """Take it as known that no version of a distribution goes with `core` (see `KnownFailures.exclude`)."""
        self._known.exclude(failure, core, present)

    def outcome(self, request: Request) -> Outcome | None:
        """Return the outcome of a changed request; None when there is no answer.

        Where only an index out of reach can tell, the outcome is that of the rest.
        """
        for solved, known in self._solved:
            if solved == request:
                return known
        found = self._outcome(request)
        self._solved.append((request, found))
        return found

    def _outcome(self, request: Request) -> Outcome | None:
        from provisioner.resolver.explain.outcomes import outcome, rejoined

        changed = rejoined(self._problem, request)
        try:
            found = choose_or_none(changed, self._indexes, self._known)
        except UndecidedError:
            rest = choose_or_none(changed.without(of_variant_indexes(changed.matrix)), self._indexes, self._known)
            return None if rest is None else outcome(*rest)._replace(is_whole=False)
        return None if found is None else outcome(*found)


def close(failed: Sequence[Failure]) -> None:
    """Free what the searches of failed attempts hold."""
    for one in failed:
        one.search.close()
