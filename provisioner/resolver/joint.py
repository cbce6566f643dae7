"""Solve one problem, system and packages together, for one platform: the entry of the resolver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from provisioner.components import FRAMEWORKS
from provisioner.errors import RefusedError, UnavailableError
from provisioner.grounds.conflict import Statement
from provisioner.grounds.predicate import NoFile
from provisioner.grounds.requirement import PYTHON_ATTEMPT, RequiresComponent, TriesPython
from provisioner.host.facts import stated
from provisioner.index.model import Environment, PackageSource
from provisioner.resolver.outcome.answer import answer
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.python.distributions import host_requirements_of, of_variant_indexes
from provisioner.resolver.python.finder import PackageFinder
from provisioner.resolver.requirement import PYTORCH, Candidate, ImageCandidate, Key, Labelled, Requirement, build_of
from provisioner.resolver.search.bundled import align_bundled, misaligned
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.instance import Pair, ProblemInstance, ReadBudget
from provisioner.resolver.search.least_change import with_least_change
from provisioner.resolver.search.resolve import decide, pins_or_proof
from provisioner.versions import Version
from provisioner.words.conflict import NO_STACK, NO_WAY, conflict_lines, contradiction_words, failure_hints

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provisioner.grounds.conflict import Conflict, Fix, Member
    from provisioner.request import Request
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.stack import Stack

SourceFor = Callable[[Environment], PackageSource]
"""Opens the package indexes for one environment."""

Chosen = tuple[ProblemInstance, dict[Key, Candidate]]
"""An instance, and its most wanted valid assignment."""

Failed = tuple[ProblemInstance, CompleteSearch]
"""An instance without a valid assignment, and the search that proved it."""

PYTHON = Key("python")
GLIBC_WHEN_UNKNOWN = (2, 28)
"""The glibc that today's manylinux wheels need; assumed, and reported as unverified, of a base image that is not known."""


class NoStackError(RefusedError):
    """No stack satisfies the request, which is proved; `conflict` has the members that cannot hold together and the fixes."""

    code = "no-stack"

    def __init__(self, conflict: Conflict) -> None:
        hints = failure_hints(conflict) or (NO_WAY,)
        super().__init__(contradiction_words(conflict) or NO_STACK, causes=conflict_lines(conflict), hints=hints)
        self.conflict = conflict


class Attempt(Struct, frozen=True, kw_only=True):
    """A Python version to try: the problem with it fixed, and the most wanted system stack of that problem."""

    python: str
    problem: Problem
    system: dict[Key, Candidate]


def solve_system(problem: Problem, *, beside: Mapping[Key, Candidate] = MappingProxyType({})) -> Stack:
    """Solve the system stack alone, without an index; raises `NoStackError`.

    `beside` are distributions that are chosen already: their needs of hosts that the matrix has are required.
    """
    instance, pins = choose(problem.with_roots(*host_requirements_of(problem, beside)) if beside else problem, None)
    return answer(instance, align_bundled(instance, pins, beside), beside=beside)


def solve_joint(problem: Problem, source_for: SourceFor) -> Stack:
    """Solve system and packages as one problem; raises `NoStackError` or `UnavailableError`."""
    return answer(*choose(problem, source_for))


def choose(problem: Problem, source_for: SourceFor | None) -> Chosen:
    """Return the most wanted answer; without an index that of the system half. Raises `NoStackError` or `UnavailableError`.

    An environment has one Python, and which files and markers apply depends on it. So the Pythons that the system half
    allows are tried in turn, best system stack first and then newest; each attempt is the whole problem with Python fixed.
    """
    attempts = list(_attempts(problem)) if source_for is not None else []
    if source_for is None or not attempts:
        instance = ProblemInstance(_system_half(problem))
        found = pins_or_proof(instance)
        if isinstance(found, CompleteSearch):
            from provisioner.resolver.explain.conflict import explain_conflict  # not loaded where there is an answer

            raise NoStackError(explain_conflict(instance, found))
        return instance, found
    read, budget = cache(source_for), ReadBudget()
    failed: list[Failed] = []
    whole: list[Failed] = []
    try:
        chosen = _first_answer(attempts, read, budget, whole)
        if chosen is not None:
            return chosen
        failed, error = whole, _unreached(whole)
        if error is not None:
            # The index out of reach might have the answer, unless the same environments are impossible without its packages.
            names = of_variant_indexes(problem.matrix)
            problem, failed = problem.without(names), []
            attempts = [replace(one, problem=one.problem.without(names)) for one in attempts]
            if _first_answer(attempts, read, budget, failed) is not None or _unreached(failed) is not None:
                raise _with_conflict(error, *whole[_most_telling(whole)])
        raise NoStackError(_conflict(problem, failed, attempts, partial(choose_or_none, source_for=read, budget=budget)))
    finally:
        for _, search in (*whole, *failed):
            search.close()


def _first_answer(attempts: list[Attempt], read: SourceFor, budget: ReadBudget, failed: list[Failed]) -> Chosen | None:
    """Return the answer of the first attempt that has one, None where none has; adds the others to `failed`."""
    for attempt in attempts:
        instance, found = _decided(attempt, read, budget)
        if not isinstance(found, CompleteSearch):
            return instance, found
        failed.append((instance, found))
    return None


def _unreached(failed: list[Failed]) -> UnavailableError | None:
    """Return the error of a build index that was out of reach; None where all answered."""
    finders = [instance.finder for instance, _ in failed if instance.finder]
    return next((error for finder in finders for error in finder.variant_indexes.unreached.values()), None)


def _most_telling(failed: list[Failed]) -> int:
    """Return the position of the first attempt whose conflict does not involve the choice of its Python; 0 without one."""
    return next((place for place, (_, search) in enumerate(failed) if PYTHON_ATTEMPT not in search.minimal()), 0)


def choose_or_none(problem: Problem, source_for: SourceFor | None, budget: ReadBudget | None = None) -> Chosen | None:
    """Return the answer that `choose` returns, None where there is none; raises `UnavailableError` when the budget ends."""
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
    """Return the problem without requirements on distributions, which need an index."""
    return replace(problem, roots=tuple(root for root in problem.roots if not root.key.is_package))


def _with_conflict(error: UnavailableError, instance: ProblemInstance, search: CompleteSearch) -> UnavailableError:
    """Return the error of an index out of reach with the conflict that was found without it among its causes."""
    from provisioner.resolver.explain.conflict import described

    lines = conflict_lines(described(instance, search, search.minimal()))
    error.causes = (*error.causes, "without what it has there is no answer:", *(f"  {line}" for line in lines))
    return error


def _conflict(
    problem: Problem,
    failed: list[Failed],
    attempts: list[Attempt],
    choose_again: Callable[[Problem], Chosen | None],
) -> Conflict:
    """Return the conflict of the most telling attempt, with the other Pythons that were tried."""
    from provisioner.resolver.explain.conflict import explain_conflict
    from provisioner.resolver.explain.fixes import SHOWN, fixes, gives, rejoined

    def solve_again(request: Request) -> Mapping[str, str] | None:
        found = choose_again(rejoined(problem, request))
        return None if found is None else gives(*found)

    chosen = _most_telling(failed)
    instance, search = failed[chosen]
    conflict = explain_conflict(instance, search, solve_again=solve_again)
    found: list[Fix] = [*conflict.fixes]
    for place, (other, refuted) in enumerate(failed):
        # A distribution may have files for another Python only: then this environment has no fix without giving it up.
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
    """Return a member with the other Pythons that failed, where it is about the Python, and with the glibc that it assumes."""
    clauses = tuple(
        replace(one, others=others, is_told=True) if isinstance(one, TriesPython) else one for one in member.clauses
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
    """Yield an attempt for each Python that the system half allows, most wanted first."""
    found = []
    for candidate in problem.domains[PYTHON]:
        if not all(one.allows(candidate) for one in problem.roots if one.key == PYTHON):
            continue
        narrowed = problem.with_roots(_fix_python(problem, candidate))
        system = decide(ProblemInstance(_system_half(narrowed)))
        if system is not None:
            found.append(Attempt(python=candidate.label, problem=narrowed, system=system))

    def rank(attempt: Attempt) -> int:
        """Return the position of the framework's release among its candidates, whose order is the policy's."""
        framework = next((one for name in FRAMEWORKS if (one := attempt.system.get(Key(name))) is not None), None)
        if framework is None:
            return 0
        return next(i for i, one in enumerate(problem.domains[framework.key]) if one.version == framework.version)

    # A locked Python comes first only where `prefer` and `avoid` of the policy leave it first among Pythons.
    first = problem.domains[PYTHON][0].label
    locked = first if problem.request.preferred.get("python") == first else None
    found.sort(key=rank)
    return iter(sorted(found, key=lambda attempt: attempt.python != locked))


def _fix_python(problem: Problem, candidate: Candidate) -> Requirement:
    """Return the requirement of one Python; its ground is the user's requirement of Python where there is one."""
    roots = (one.ground for one in problem.roots if one.key == PYTHON)
    requested = next((ground for ground in roots if isinstance(ground, RequiresComponent)), None)
    ground = TriesPython(python=candidate.label) if requested is None else replace(requested, attempt=candidate.label)
    return Requirement(PYTHON, Labelled(frozenset({candidate.label})), ground)


def _decided(
    attempt: Attempt, source_for: SourceFor, budget: ReadBudget
) -> tuple[ProblemInstance, dict[Key, Candidate] | CompleteSearch]:
    """Return the assignment of one attempt, or the search that proved that there is none.

    The attempt restarts whenever metadata refers to a direct URL or a pre-release, which is a new candidate, and where a
    component cannot be at the version that a distribution bundles: then both are decided together, as a pair.
    """
    discoveries, pairs = Discoveries(), frozenset[Pair]()
    problem, environment = attempt.problem, environment_of(attempt)
    build = build_of(attempt.system.get(PYTORCH))
    index = build.index if build is not None else ""
    while True:
        discoveries.has_grown = False
        finder = PackageFinder(problem, source_for(environment), environment, index, discoveries=discoveries)
        instance = ProblemInstance(problem, finder, budget, pairs=pairs)
        found = pins_or_proof(instance)
        if isinstance(found, CompleteSearch) and not discoveries.has_grown:
            _discover(instance)
        if discoveries.has_grown:
            if isinstance(found, CompleteSearch):
                found.close()
            continue
        if isinstance(found, CompleteSearch):
            return instance, found
        pins = align_bundled(instance, with_least_change(instance, found))
        if (more := pairs | misaligned(instance, pins)) == pairs:
            return instance, pins
        pairs = more


def _discover(instance: ProblemInstance) -> None:
    """Read the metadata of the first candidate of each root: the search may have ended before it read a direct URL there."""
    for root in instance.roots:
        if root.key.is_package:
            first = next((one for one in instance.candidates(root.key) if root.allows(one)), None)
            with suppress(UnavailableError):
                _ = instance.requirements(first) if first is not None else ()


def environment_of(attempt: Attempt) -> Environment:
    """Return the environment that the packages of an attempt must install in: the oldest host's, or the image's."""
    return Environment(
        platform=attempt.problem.request.platform, python=attempt.python, glibc=_glibc(attempt), macos=_macos(attempt)
    )


def _glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the glibc that wheels must run on, `GLIBC_WHEN_UNKNOWN` where it is not known; None on other systems."""
    return known_glibc(attempt) or GLIBC_WHEN_UNKNOWN if attempt.problem.request.platform.startswith("linux") else None


def known_glibc(attempt: Attempt) -> tuple[int, int] | None:
    """Return the base image's glibc in a container, the oldest host's otherwise; None where it is not known."""
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
    """Return the macOS that wheels must run on: the oldest that a host states; None where none does."""
    found = [stated(target.host, "macos") for target in attempt.problem.request.hosts]
    oldest = min((Version.parse(text).release for text in found if text is not None), default=None)
    return None if oldest is None else (oldest[0], (*oldest, 0)[1])
