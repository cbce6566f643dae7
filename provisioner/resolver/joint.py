"""Solve one problem, system and packages together, for one platform: the entry of the resolver.

The system half of a problem is the choice of its components, which needs no index. The packages are the distributions of the
spec and their dependencies.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.components import FRAMEWORKS
from provisioner.errors import RefusedError, UnavailableError
from provisioner.grounds.conflict import Offered, Statement, Unlisted
from provisioner.grounds.predicate import NoFile
from provisioner.grounds.requirement import EXPECTATION, PYTHON_ATTEMPT, RequiresComponent, Row, TriesPython
from provisioner.host.facts import stated
from provisioner.index.model import Environment, PackageSource
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.outcome.libraries import is_lacking, may_be_elsewhere
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.python.distributions import host_requirements_of, of_variant_indexes
from provisioner.resolver.requirement import PYTORCH, Candidate, ImageCandidate, Key, Labelled, Requirement, build_of
from provisioner.resolver.rules.images import realises_toolkit
from provisioner.resolver.search.bundled import align_bundled, misaligned
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import Pair, ProblemInstance, ReadBudget
from provisioner.resolver.search.least_change import with_least_change
from provisioner.resolver.search.resolve import decide, pins_or_proof
from provisioner.versions import Version
from provisioner.words.conflict import (
    NO_STACK,
    NO_WAY,
    conflict_lines,
    contradiction_words,
    failure_hints,
    refresh_words,
    unlisted_words,
)
from provisioner.words.notation import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provisioner.grounds.conflict import Conflict, Fix, Member
    from provisioner.grounds.requirement import Group
    from provisioner.request import Request
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack

SourceFor = Callable[[Environment], PackageSource]
"""Opens the package indexes for one environment."""

Chosen = tuple[ProblemInstance, dict[Key, Candidate]]
"""A problem instance and its most wanted valid assignment: a candidate for each key."""

Failed = tuple[ProblemInstance, CompleteSearch]
"""An instance without a valid assignment, and the search that proved it."""

PYTHON = Key("python")
GLIBC_WHEN_UNKNOWN = (2, 28)
"""The glibc that today's manylinux wheels need. It is assumed when that of the base image or the hosts is unknown, and reported
as unverified."""


class NoStackError(RefusedError):
    """Raised when it is proved that no stack satisfies the request.

    `conflict` has the requirements that contradict each other, called its members, and the fixes: edits of the spec after which
    a stack exists.
    """

    code = "no-stack"

    def __init__(self, conflict: Conflict) -> None:
        hints = failure_hints(conflict) or (NO_WAY,)
        super().__init__(contradiction_words(conflict) or NO_STACK, causes=conflict_lines(conflict), hints=hints)
        self.conflict = conflict


class UnlistedReleaseError(UnavailableError):
    """Raised when only releases might satisfy the request that an index has and the matrix does not know yet.

    `conflict` has the requirements that no release of the matrix meets together, and the changes of the spec after which a
    stack exists all the same.
    """

    code = "unlisted-release"

    def __init__(self, conflict: Conflict, unlisted: Mapping[str, tuple[str, ...]]) -> None:
        named = listed([f"{name} {unlisted_words(versions)}" for name, versions in unlisted.items()])
        hints = (*map(refresh_words, unlisted), *failure_hints(conflict))
        super().__init__(
            f"an index has {named}, which the matrix does not know yet", causes=conflict_lines(conflict), hints=hints
        )
        self.conflict = conflict


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt to solve the problem with one Python.

    `problem` is the whole problem with that Python required; `system` is the most wanted choice of its components without any
    packages.
    """

    python: str
    problem: Problem
    system: dict[Key, Candidate]


def solve_system(problem: Problem, *, beside: Mapping[Key, Candidate] | None = None) -> Stack:
    """Return the stack without packages, found without an index; raises `NoStackError` when there is none.

    `beside` are distributions that were chosen before: the matrix's requirements of those distributions on hosts hold, too.
    """
    instance, pins = choose(problem.with_roots(*host_requirements_of(problem, beside)) if beside else problem, None)
    return answer(instance, align_bundled(instance, pins, beside or {}), beside=beside)


def solve_joint(problem: Problem, source_for: SourceFor) -> Stack:
    """Return the stack with its packages, solved as one problem.

    Raises `NoStackError` when there is none, `UnavailableError` when an index that might have the answer is out of reach.
    """
    return answer(*choose(problem, source_for))


def choose(problem: Problem, source_for: SourceFor | None) -> Chosen:
    """Return the most wanted answer; without `source_for` only its system half, which has no packages.

    An environment has one Python, and which files and markers apply depends on it. So the Pythons that the system half allows
    are tried in turn, the one with the best system stack first, the newest of equal ones first; each attempt is the whole
    problem with Python fixed. Raises `NoStackError` when no attempt has an answer, `UnavailableError` when an index that might
    have one is out of reach.
    """
    attempts = list(_attempts(problem)) if source_for is not None else []
    if source_for is None or not attempts:
        instance = ProblemInstance(_system_half(problem))
        found = pins_or_proof(instance)
        if isinstance(found, CompleteSearch):
            if _rests_on_expectations([found]):
                return choose(problem.lenient(), source_for)
            from provisioner.resolver.explain.conflict import explain_conflict  # loaded only when there is no answer

            unlisted = _unlisted(instance, found, source_for) if source_for is not None else {}
            raise _refusal(explain_conflict(instance, found), unlisted)
        return instance, found
    read, budget = cache(source_for), ReadBudget()
    failed: list[Failed] = []
    whole: list[Failed] = []
    try:
        chosen = _first_answer(attempts, read, budget, whole)
        if chosen is not None:
            return chosen
        if _rests_on_expectations([search for _, search in whole]):
            return choose(problem.lenient(), source_for)
        failed, error = whole, _unreached(whole)
        if error is not None:
            # The index out of reach might have the answer, unless the same environments are impossible without its packages.
            names = of_variant_indexes(problem.matrix)
            problem, failed = problem.without(names), []
            attempts = [replace(one, problem=one.problem.without(names)) for one in attempts]
            if _first_answer(attempts, read, budget, failed) is not None or _unreached(failed) is not None:
                raise _with_conflict(error, *whole[_most_telling(whole)])
        unlisted = _unlisted(*failed[_most_telling(failed)], read)
        again = partial(choose_or_none, source_for=read, budget=budget)
        raise _refusal(_conflict(problem, failed, attempts, again), unlisted)
    finally:
        for _, search in (*whole, *failed):
            search.close()


def _rests_on_expectations(searches: Iterable[CompleteSearch]) -> bool:
    """Return whether a proof that there is no answer uses what releases are only expected to need."""
    return any(any(map(_is_expectation, search.groups)) and any(map(_is_expectation, search.minimal())) for search in searches)


def _is_expectation(group: Group) -> bool:
    return isinstance(group, Row) and group.table == EXPECTATION


def _unlisted(instance: ProblemInstance, search: CompleteSearch, source_for: SourceFor) -> dict[str, tuple[str, ...]]:
    """Return, by component, the releases on an index that a requirement of the conflict asks for and the matrix does not list.

    Raises `UnavailableError` when the index that may have such a release cannot be reached.
    """
    from provisioner.resolver.python.unlisted import unlisted_releases

    problem = instance.problem
    wanted = (one for group in search.minimal() for _, one in search.members(group))
    unmet = dict.fromkeys(one for one in wanted if not one.key.is_package and not instance.allowed(one))
    if not unmet:
        return {}
    platform, python = problem.request.platform, problem.domains[PYTHON][0].label
    environment = instance.finder.environment if instance.finder else Environment(platform=platform, python=python)
    found = unlisted_releases(problem.matrix, source_for(environment), unmet)
    return {requirement.key.component: versions for requirement, versions in found}


def _refusal(conflict: Conflict, unlisted: Mapping[str, tuple[str, ...]]) -> NoStackError | UnlistedReleaseError:
    """Return the error of a conflict: that there is no answer, or that it depends on releases that the matrix does not know."""
    if not unlisted:
        return NoStackError(conflict)
    members = tuple(
        replace(one, offer=Unlisted(name=one.offer.name, versions=unlisted[one.offer.name]))
        if isinstance(one.offer, Offered) and one.offer.name in unlisted
        else one
        for one in conflict.members
    )
    return UnlistedReleaseError(replace(conflict, members=members, conclusion=None), unlisted)


def _first_answer(attempts: list[Attempt], read: SourceFor, budget: ReadBudget, failed: list[Failed]) -> Chosen | None:
    """Return the answer of the first attempt that has one; None when no attempt has.

    The failed attempts, each with the search that proved it impossible, are appended to `failed`.
    """
    for attempt in attempts:
        instance, found = _decided(attempt, read, budget)
        if not isinstance(found, CompleteSearch):
            return instance, found
        failed.append((instance, found))
    return None


def _unreached(failed: list[Failed]) -> UnavailableError | None:
    """Return the error of the first index of a framework's builds that was out of reach; None when all were reached."""
    finders = [instance.finder for instance, _ in failed if instance.finder]
    return next((error for finder in finders for error in finder.variant_indexes.unreached.values()), None)


def _most_telling(failed: list[Failed]) -> int:
    """Return the index in `failed` of the attempt to report.

    It is the first whose conflict does not involve the choice of its Python; 0 when every conflict does.
    """
    return next((place for place, (_, search) in enumerate(failed) if PYTHON_ATTEMPT not in search.minimal()), 0)


def choose_or_none(problem: Problem, source_for: SourceFor | None, budget: ReadBudget | None = None) -> Chosen | None:
    """Return the answer that `choose` returns, None when there is none; explains no conflict.

    Raises `UnavailableError` when an index is out of reach or the budget of metadata reads is spent.
    """
    if source_for is None:
        instance = ProblemInstance(_system_half(problem))
        pins = decide(instance)
        return None if pins is None else (instance, pins)
    for attempt in _attempts(problem):
        instance, found = _decided(attempt, source_for, budget or ReadBudget())
        if not isinstance(found, CompleteSearch):
            return instance, found
        found.close()
    return None


def _system_half(problem: Problem) -> Problem:
    """Return the problem without its root requirements on distributions, so that it can be solved without an index."""
    return replace(problem, roots=tuple(root for root in problem.roots if not root.key.is_package))


def _with_conflict(error: UnavailableError, instance: ProblemInstance, search: CompleteSearch) -> UnavailableError:
    """Add the conflict found without an unreachable index to the causes of that index's error, and return the error."""
    from provisioner.resolver.explain.conflict import described

    lines = conflict_lines(described(instance, search, search.minimal()))
    error.add(causes=("without what it has there is no answer:", *(f"  {line}" for line in lines)))
    return error


def _conflict(
    problem: Problem,
    failed: list[Failed],
    attempts: list[Attempt],
    choose_again: Callable[[Problem], Chosen | None],
) -> Conflict:
    """Return the conflict to report of the failed attempts, naming the other Pythons that were tried.

    `choose_again` solves a changed problem: every fix is proved by it, those for the other Pythons included.
    """
    from provisioner.resolver.explain.conflict import explain_conflict
    from provisioner.resolver.explain.fixes import SHOWN, Outcome, fixes, outcome, rejoined

    def solve_again(request: Request) -> Outcome | None:
        found = choose_again(rejoined(problem, request))
        return None if found is None else outcome(*found)

    chosen = _most_telling(failed)
    instance, search = failed[chosen]
    conflict = explain_conflict(instance, search, solve_again=solve_again)
    found: list[Fix] = [*conflict.fixes]
    for place, (other, refuted) in enumerate(failed):
        # A distribution may have files for another Python only. Then every fix for this Python drops a request.
        if place != chosen and all(fix.gives_up for fix in found):
            found.extend(fixes(other, refuted, refuted.minimal(), solve_again=solve_again))
    best: dict[frozenset[tuple[object, ...]], Fix] = {}
    for fix in sorted(found, key=lambda fix: fix.gives_up):
        best.setdefault(fix.identities, fix)
    others = tuple(attempt.python for place, attempt in enumerate(attempts) if place != chosen)
    assumed = GLIBC_WHEN_UNKNOWN if known_glibc(attempts[chosen]) is None else None
    members = tuple(_completed(member, others, assumed, runs=problem.request.runs) for member in conflict.members)
    return replace(conflict, members=members, fixes=tuple(best.values())[:SHOWN])


def _completed(member: Member, others: tuple[str, ...], assumed: tuple[int, int] | None, *, runs: str) -> Member:
    """Return a member of a conflict, completed for its message.

    A member about the choice of Python gets the `others` that failed, too. A member about the glibc of files gets the glibc
    that was `assumed` for the target, if it was.
    """
    clauses = tuple(
        replace(one, others=others, is_reported=True) if isinstance(one, TriesPython) else one for one in member.clauses
    )
    if clauses != member.clauses:
        sources = tuple(one.source for one in clauses if isinstance(one, TriesPython) and one.source is not None)
        return replace(member, clauses=clauses, sources=sources)
    is_about_glibc = any(
        isinstance(one, Statement) and isinstance(one.predicate, NoFile) and one.predicate.component == "glibc"
        for one in clauses
    )
    if assumed is None or not is_about_glibc:
        return member
    return replace(member, assumed_glibc=assumed, is_assumed_of_image=runs != "host")


def _attempts(problem: Problem) -> Iterator[Attempt]:
    """Return an iterator of attempts, one for each Python that the system half allows, most wanted first."""
    found = []
    for candidate in problem.domains[PYTHON]:
        if not all(one.allows(candidate) for one in problem.roots if one.key == PYTHON):
            continue
        narrowed = problem.with_roots(_fix_python(problem, candidate))
        system = decide(ProblemInstance(_system_half(narrowed)))
        if system is not None:
            found.append(Attempt(python=candidate.label, problem=narrowed, system=system))

    def rank(attempt: Attempt) -> int:
        """Return the index of the framework's release among its candidates, which are in the policy's order.

        Without a framework it is the index of the base image that has the CUDA which the spec asks for.
        """
        leads = (*FRAMEWORKS, "image") if realises_toolkit(problem.request) else FRAMEWORKS
        lead = next((one for name in leads if (one := attempt.system.get(Key(name))) is not None), None)
        if lead is None:
            return 0
        return next(i for i, one in enumerate(problem.domains[lead.key]) if one.version == lead.version)

    # A locked Python comes first only where `prefer` and `avoid` of the policy leave it first among Pythons.
    first = problem.domains[PYTHON][0].label
    locked = first if problem.request.preferred.get("python") == first else None
    found.sort(key=rank)
    return iter(sorted(found, key=lambda attempt: attempt.python != locked))


def _fix_python(problem: Problem, candidate: Candidate) -> Requirement:
    """Return the requirement that fixes the Python of an attempt.

    Its ground is the user's own requirement on Python, if there is one, so that a conflict names that line.
    """
    roots = (one.ground for one in problem.roots if one.key == PYTHON)
    requested = next((ground for ground in roots if isinstance(ground, RequiresComponent)), None)
    ground = TriesPython(python=candidate.label) if requested is None else replace(requested, attempt=candidate.label)
    return Requirement(PYTHON, Labelled(frozenset({candidate.label})), ground)


def _decided(
    attempt: Attempt, source_for: SourceFor, budget: ReadBudget
) -> tuple[ProblemInstance, dict[Key, Candidate] | CompleteSearch]:
    """Return the assignment of one attempt, or the search that proved that there is none.

    The attempt starts again whenever metadata refers to a direct URL or a pre-release that was not a candidate before. It also
    starts again when a component cannot be at the version that a chosen distribution bundles: both are then decided together,
    as a pair. And it starts again, once, when chosen wheels need libraries that nothing chosen has: these are then required.
    """
    from provisioner.resolver.python.finder import PackageFinder  # not for a stack without packages

    discoveries, pairs = Discoveries(), frozenset[Pair]()
    problem, environment = attempt.problem, environment_of(attempt)
    build = build_of(attempt.system.get(PYTORCH))
    index = build.index if build is not None else ""
    lacking: Chosen | None = None
    while True:
        discoveries.has_grown = False
        before = lacking[1] if lacking is not None else None
        finder = PackageFinder(problem, source_for(environment), environment, index, discoveries=discoveries, answer=before)
        instance = ProblemInstance(problem, finder, budget, pairs=pairs)
        found = pins_or_proof(instance)
        if isinstance(found, CompleteSearch) and not discoveries.has_grown:
            _discover(instance)
        if discoveries.has_grown:
            if isinstance(found, CompleteSearch):
                found.close()
            continue
        if isinstance(found, CompleteSearch):
            if lacking is None or not may_be_elsewhere(problem, lacking[1]):
                return instance, found
            found.close()  # the answer stands, and says which libraries it lacks
            return lacking
        pins = align_bundled(instance, with_least_change(instance, found))
        if (more := pairs | misaligned(instance, pins)) != pairs:
            pairs = more
        elif lacking is None and is_lacking(instance, pins):
            lacking = instance, pins
        else:
            return instance, pins


def _discover(instance: ProblemInstance) -> None:
    """Read the metadata of the first candidate of every root requirement on a distribution, to discover direct URLs in it.

    The search may have ended before it read them. Errors of an index are ignored.
    """
    for root in instance.roots:
        if root.key.is_package:
            first = next((one for one in instance.candidates(root.key) if root.allows(one)), None)
            with suppress(UnavailableError):
                _ = instance.requirements(first) if first is not None else ()


def environment_of(attempt: Attempt) -> Environment:
    """Return the environment in which the packages must install: that of the oldest host, or of the base image."""
    return Environment(
        platform=attempt.problem.request.platform, python=attempt.python, glibc=_glibc(attempt), macos=_macos(attempt)
    )


def _glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the glibc that wheels must run on, `GLIBC_WHEN_UNKNOWN` when unknown; None on systems other than Linux."""
    return known_glibc(attempt) or GLIBC_WHEN_UNKNOWN if attempt.problem.request.platform.startswith("linux") else None


def known_glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the base image's glibc for a container, otherwise the oldest host's; None when unknown."""
    image = next((one for key, one in attempt.system.items() if key.name == "image"), None)
    if isinstance(image, ImageCandidate) and not image.image.glibc:
        return None
    found = [
        one.version.release for key, one in attempt.system.items() if key.name == "glibc" and isinstance(one.version, Version)
    ]
    if not found:
        stated = [target.host.glibc for target in attempt.problem.request.hosts if target.host.glibc]
        found = [Version.parse(text).release for text in stated]
    oldest = min(found, default=None)
    return None if oldest is None else (oldest[0], oldest[1])


def _macos(attempt: Attempt) -> tuple[int, int] | None:
    """Return the macOS version that wheels must run on, the oldest that a host states; None when no host states one."""
    found = [stated(target.host, "macos") for target in attempt.problem.request.hosts]
    oldest = min((Version.parse(text).release for text in found if text is not None), default=None)
    return None if oldest is None else (oldest[0], (*oldest, 0)[1])
