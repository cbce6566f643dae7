"""Solve one problem, components and packages together, for one platform: the entry point of the resolver.

A component is an entry of the matrix, such as PyTorch, CUDA or a driver; the choice of all components is the system half of a
problem and needs no index. The packages are the Python distributions that the spec names and their dependencies. A key is one
thing to choose: a component (of one host, if hosts provide it) or a distribution. An answer is a valid assignment: a candidate,
such as a release or version, for each key.
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
"""A problem instance and its most preferred valid assignment: a candidate for each key."""

Failed = tuple[ProblemInstance, CompleteSearch]
"""An instance without a valid assignment, and the search that proved that there is none."""

PYTHON = Key("python")
GLIBC_WHEN_UNKNOWN = (2, 28)
"""The glibc version that current manylinux wheels need. It is assumed, and reported as unverified, if the glibc of the base
image or of the hosts is unknown."""


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
    """Raised when no releases of the matrix satisfy the request, but releases that only an index lists might.

    `conflict` has the requirements that no releases of the matrix meet together, and the edits of the spec after which a stack
    exists. `unlisted` maps a component to the releases on an index that the matrix lacks.
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
    """An attempt to solve the problem with one Python, such as `3.12`.

    `problem` is the whole problem with that Python required; `system` is the most preferred answer for the components of
    `problem` alone.
    """

    python: str
    problem: Problem
    system: dict[Key, Candidate]


def solve_system(problem: Problem, *, beside: Mapping[Key, Candidate] | None = None) -> Stack:
    """Return the stack without packages, found without an index; raises `NoStackError` when there is none.

    `beside` are distributions chosen before, by key: hosts must also meet the requirements that the matrix has for these
    distributions.
    """
    instance, pins = choose(problem.with_roots(*host_requirements_of(problem, beside)) if beside else problem, None)
    return answer(instance, align_bundled(instance, pins, beside or {}), beside=beside)


def solve_joint(problem: Problem, source_for: SourceFor) -> Stack:
    """Return the stack with its packages, solved as one problem.

    `source_for` opens the indexes. Raises `NoStackError` when there is no stack, `UnavailableError` when an index that cannot
    be reached might have packages for a stack.
    """
    return answer(*choose(problem, source_for))


def choose(problem: Problem, source_for: SourceFor | None) -> Chosen:
    """Return a problem instance and its most preferred answer; without `source_for`, those for the components alone.

    An environment has one Python, and which files and markers apply depends on it. So the whole problem is solved with each
    Python that the system half allows, one after another in the order of `_attempts`, until one has an answer. Raises
    `NoStackError` when no Python has an answer, `UnlistedReleaseError` when there might be an answer with releases that the
    matrix lacks, and `UnavailableError` when there might be one with an index that cannot be reached.
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
    """Return whether one of the proofs that there is no answer uses a requirement that releases are only expected to have."""
    return any(any(map(_is_expectation, search.groups)) and any(map(_is_expectation, search.minimal())) for search in searches)


def _is_expectation(group: Group) -> bool:
    return isinstance(group, Row) and group.table == EXPECTATION


def _unlisted(instance: ProblemInstance, search: CompleteSearch, source_for: SourceFor) -> dict[str, tuple[str, ...]]:
    """Return, by component, the releases that an index has, the matrix lacks and a requirement of the conflict asks for.

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
    """Return the error to raise for a conflict: `UnlistedReleaseError` if there are `unlisted` releases, else `NoStackError`.

    `unlisted` maps a component to the releases that an index has, the matrix lacks and the conflict asks for.
    """
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
    """Return the error of the first index of framework builds that an attempt in `failed` could not reach; None if none."""
    finders = [instance.finder for instance, _ in failed if instance.finder]
    return next((error for finder in finders for error in finder.variant_indexes.unreached.values()), None)


def _most_telling(failed: list[Failed]) -> int:
    """Return the index in `failed` of the attempt to report.

    It is the first whose conflict does not involve the choice of its Python; 0 when every conflict does.
    """
    return next((place for place, (_, search) in enumerate(failed) if PYTHON_ATTEMPT not in search.minimal()), 0)


def choose_or_none(problem: Problem, source_for: SourceFor | None, budget: ReadBudget | None = None) -> Chosen | None:
    """Return what `choose` returns, or None when there is no answer; no conflict is explained.

    Raises `UnavailableError` when an index cannot be reached or the budget of metadata reads is exhausted.
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
    """Add the conflict found without an unreachable index to the causes of the `error` of that index, and return the error.

    `search` proved that `instance`, without that index, has no answer.
    """
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
    """Return the conflict to report when every attempt failed: that of the most telling one, naming the other Pythons tried.

    `failed` are the instances of `attempts`, in the same order, each with the search that proved it impossible. `choose_again`
    solves a changed problem; every fix is verified with it, including fixes found for other Pythons.
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

    A member about the Python of the attempt gets `others`, the other Pythons that failed. A member about the glibc that files
    need gets `assumed`, the glibc assumed for the target; None when the target's glibc is known. `runs` is `host` or
    `container`.
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
    """Return an iterator of attempts, one for each Python with which the components have an answer, most preferred first.

    A locked Python comes first if it is the first candidate. The others are ordered by `rank`, Pythons of equal rank as
    Python's candidates.
    """
    found = []
    for candidate in problem.domains[PYTHON]:
        if not all(one.allows(candidate) for one in problem.roots if one.key == PYTHON):
            continue
        narrowed = problem.with_roots(_fix_python(problem, candidate))
        system = decide(ProblemInstance(_system_half(narrowed)))
        if system is not None:
            found.append(Attempt(python=candidate.label, problem=narrowed, system=system))

    def rank(attempt: Attempt) -> int:
        """Return the index of the chosen framework release among the framework's candidates, in the order of preference.

        Without a framework it is the index of the base image, if the spec asks for an image with CUDA, and otherwise 0.
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

    Its ground is that of the user's own requirement on Python, if there is one, so that a conflict names that line of the spec.
    """
    roots = (one.ground for one in problem.roots if one.key == PYTHON)
    requested = next((ground for ground in roots if isinstance(ground, RequiresComponent)), None)
    ground = TriesPython(python=candidate.label) if requested is None else replace(requested, attempt=candidate.label)
    return Requirement(PYTHON, Labelled(frozenset({candidate.label})), ground)


def _decided(
    attempt: Attempt, source_for: SourceFor, budget: ReadBudget
) -> tuple[ProblemInstance, dict[Key, Candidate] | CompleteSearch]:
    """Return the instance of one attempt with its answer, or with the search that proved that there is none.

    The attempt starts again whenever metadata refers to a direct URL or a pre-release that was not a candidate before. It also
    starts again when a component cannot be at the version that a chosen distribution bundles: both are then decided together,
    as a pair. And it starts again, once, when chosen wheels need libraries that nothing chosen has: these are then required. If
    no answer has them all, but a host or an image of unknown content may have the rest, the answer that lacks them is returned.
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
            found.close()  # the earlier answer is valid; it reports the libraries that it lacks
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
    """Return the environment in which the packages must install.

    Its macOS is the oldest of the hosts; its glibc is that of the base image, or the oldest of the hosts if there is no image.
    """
    return Environment(
        platform=attempt.problem.request.platform, python=attempt.python, glibc=_glibc(attempt), macos=_macos(attempt)
    )


def _glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the newest glibc that wheels may need, `GLIBC_WHEN_UNKNOWN` when unknown; None on systems other than Linux."""
    return known_glibc(attempt) or GLIBC_WHEN_UNKNOWN if attempt.problem.request.platform.startswith("linux") else None


def known_glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the glibc version of a container's base image, otherwise the oldest of the hosts; None when unknown."""
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
    """Return the newest macOS version that wheels may need: the oldest that a host states; None when no host states one."""
    found = [stated(target.host, "macos") for target in attempt.problem.request.hosts]
    oldest = min((Version.parse(text).release for text in found if text is not None), default=None)
    return None if oldest is None else (oldest[0], (*oldest, 0)[1])
