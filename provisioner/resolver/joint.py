"""The entry: one problem, system and packages, decided for one platform."""

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
from provisioner.resolver.python.beside import needs_beside
from provisioner.resolver.python.distributions import of_variant_indexes
from provisioner.resolver.python.named_files import MetFiles
from provisioner.resolver.python.packages import PackageWorld
from provisioner.resolver.requirement import PYTORCH, Candidate, ImageCandidate, Key, Labelled, Requirement, build_of
from provisioner.resolver.search.carried import apart, as_carried
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.least import least_moved
from provisioner.resolver.search.patience import Patience
from provisioner.resolver.search.resolve import decide, pins_or_refutation
from provisioner.resolver.search.universe import Pair, Universe
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

Chosen = tuple[Universe, dict[Key, Candidate]]
"""A universe, and the most wanted valid assignment in it."""

Failed = tuple[Universe, CompleteSearch]
"""A universe with no valid assignment, and the search that proved it."""

PYTHON = Key("python")
GLIBC_WHEN_UNKNOWN = (2, 28)
"""What manylinux wheels of the day need; a base image nobody knows is assumed to have that much, and said to be unverified."""


class NoStackError(RefusedError):
    """Nothing fits, which is proved; `conflict` has what cannot hold together and the fixes."""

    code = "no-stack"

    def __init__(self, conflict: Conflict) -> None:
        hints = failure_hints(conflict) or (NO_WAY,)
        super().__init__(contradiction_words(conflict) or NO_STACK, causes=conflict_lines(conflict), hints=hints)
        self.conflict = conflict


class Attempt(Struct, frozen=True, kw_only=True):
    """One Python to try: the universe with it fixed, and the best system stack there, None when there is none."""

    python: str
    problem: Problem
    system: dict[Key, Candidate]


def solve_system(problem: Problem, *, beside: Mapping[Key, Candidate] = MappingProxyType({})) -> Stack:
    """Solve the system stack alone, with no index; raises `NoStackError`.

    `beside` are distributions that are chosen already: what the matrix says they need of hosts is required.
    """
    universe, pins = choose(problem.with_roots(*needs_beside(problem, beside)) if beside else problem, None)
    return answer(universe, as_carried(universe, pins, beside), beside=beside)


def solve_joint(problem: Problem, source_for: SourceFor) -> Stack:
    """Solve system and packages as one problem; raises `NoStackError` or `UnavailableError`."""
    return answer(*choose(problem, source_for))


def choose(problem: Problem, source_for: SourceFor | None) -> Chosen:
    """Decide a problem, without an index its system half alone; raises `NoStackError` or `UnavailableError`.

    An environment has one Python, and which files and markers apply depends on it. So the Pythons that the system half
    allows are tried in turn, best system stack first and then newest; each try is the whole problem with Python fixed.
    """
    attempts = list(_attempts(problem)) if source_for is not None else []
    if source_for is None or not attempts:
        universe = Universe(_system_half(problem))
        found = pins_or_refutation(universe)
        if isinstance(found, CompleteSearch):
            from provisioner.resolver.explain.conflict import explain_conflict  # what explains is loaded by who has to

            raise NoStackError(explain_conflict(universe, found))
        return universe, found
    read, patience = cache(source_for), Patience()
    failed: list[Failed] = []
    whole: list[Failed] = []
    try:
        chosen = _first(attempts, read, patience, whole)
        if chosen is not None:
            return chosen
        failed, error = whole, _unreached(whole)
        if error is not None:
            # What that index has might have been the answer, unless there is none whatever it has, in the same environments.
            names = of_variant_indexes(problem.matrix)
            problem, failed = problem.without(names), []
            attempts = [replace(one, problem=one.problem.without(names)) for one in attempts]
            if _first(attempts, read, patience, failed) is not None or _unreached(failed) is not None:
                raise _unanswered(error, *whole[_telling(whole)])
        raise NoStackError(_explained(problem, failed, attempts, partial(settled, source_for=read, patience=patience)))
    finally:
        for _, search in (*whole, *failed):
            search.close()


def _first(attempts: list[Attempt], read: SourceFor, patience: Patience, failed: list[Failed]) -> Chosen | None:
    """What the first attempt that succeeds chooses, None where none does; the others are added to `failed`."""
    for attempt in attempts:
        universe, found = _decided(attempt, read, patience)
        if not isinstance(found, CompleteSearch):
            return universe, found
        failed.append((universe, found))
    return None


def _unreached(failed: list[Failed]) -> UnavailableError | None:
    """The error of an index of builds that was left out of a search, None where all answered."""
    worlds = [universe.packages for universe, _ in failed if universe.packages]
    return next((error for world in worlds for error in world.variants.unreached.values()), None)


def _telling(failed: list[Failed]) -> int:
    """Of the attempts the first whose conflict does not merely say that its Python was the wrong one to try."""
    return next((place for place, (_, search) in enumerate(failed) if PYTHON_ATTEMPT not in search.minimal()), 0)


def settled(problem: Problem, source_for: SourceFor | None, patience: Patience | None = None) -> Chosen | None:
    """What `choose` would choose, without a word where there is nothing; raises `UnavailableError` when patience ends."""
    if source_for is None:
        universe = Universe(_system_half(problem))
        pins = decide(universe)
        return None if pins is None else (universe, pins)
    for attempt in _attempts(problem):
        universe, found = _decided(attempt, source_for, patience or Patience())
        if not isinstance(found, CompleteSearch):
            return universe, found
        found.close()
    return None


def _system_half(problem: Problem) -> Problem:
    """The problem without what is asked of distributions, which nobody can judge without an index."""
    return replace(problem, roots=tuple(root for root in problem.roots if not root.key.is_package))


def _unanswered(error: UnavailableError, universe: Universe, search: CompleteSearch) -> UnavailableError:
    """Return the error of an index that was left out of a search with the conflict that was found without it."""
    from provisioner.resolver.explain.conflict import described

    lines = conflict_lines(described(universe, search, search.minimal()))
    error.causes = (*error.causes, "without what it has there is no answer:", *(f"  {line}" for line in lines))
    return error


def _explained(
    problem: Problem,
    failed: list[Failed],
    attempts: list[Attempt],
    settled_anew: Callable[[Problem], Chosen | None],
) -> Conflict:
    """Return the conflict of the attempt that tells most, with the Pythons that were tried beside it."""
    from provisioner.resolver.explain.conflict import explain_conflict
    from provisioner.resolver.explain.fixes import SHOWN, fixes, gives, rejoined

    def settle(request: Request) -> Mapping[str, str] | None:
        found = settled_anew(rejoined(problem, request))
        return None if found is None else gives(*found)

    chosen = _telling(failed)
    universe, search = failed[chosen]
    conflict = explain_conflict(universe, search, settle=settle)
    ways: list[Fix] = [*conflict.fixes]
    for place, (other, refuted) in enumerate(failed):
        # What only another Python has files for is no way out within this one.
        if place != chosen and all(fix.gives_up for fix in ways):
            ways.extend(fixes(other, refuted, refuted.minimal(), settle=settle))
    best: dict[frozenset[tuple[object, ...]], Fix] = {}
    for fix in sorted(ways, key=lambda fix: fix.gives_up):
        best.setdefault(fix.identities, fix)
    others = tuple(attempt.python for place, attempt in enumerate(attempts) if place != chosen)
    assumed = GLIBC_WHEN_UNKNOWN if known_glibc(attempts[chosen]) is None else None
    members = tuple(_told(member, others, assumed, runs=problem.request.runs) for member in conflict.members)
    return replace(conflict, members=members, fixes=tuple(best.values())[:SHOWN])


def _told(member: Member, others: tuple[str, ...], assumed: tuple[int, int] | None, *, runs: str) -> Member:
    """Return a member with the Pythons that were tried in vain beside its own, and with the glibc that it takes for granted."""
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
    """The Pythons the system half allows, most wanted first."""
    found = []
    for candidate in problem.domains[PYTHON]:
        if not all(one.allows(candidate) for one in problem.roots if one.key == PYTHON):
            continue
        narrowed = problem.with_roots(_fix_python(problem, candidate))
        system = decide(Universe(_system_half(narrowed)))
        if system is not None:
            found.append(Attempt(python=candidate.label, problem=narrowed, system=system))

    def rank(attempt: Attempt) -> int:
        """The place of the framework's release among its candidates, whose order is the policy's."""
        framework = next((one for name in FRAMEWORKS if (one := attempt.system.get(Key(name))) is not None), None)
        if framework is None:
            return 0
        return next(i for i, one in enumerate(problem.domains[framework.key]) if one.version == framework.version)

    # A locked Python comes first where the policy leaves it first among Pythons: `prefer` and `avoid` may not.
    first = problem.domains[PYTHON][0].label
    locked = first if problem.request.preferred.get("python") == first else None
    found.sort(key=rank)
    return iter(sorted(found, key=lambda attempt: attempt.python != locked))


def _fix_python(problem: Problem, candidate: Candidate) -> Requirement:
    """Fix the Python; when the user asked for one, a conflict with it is a conflict with what they asked."""
    roots = (one.ground for one in problem.roots if one.key == PYTHON)
    asked = next((ground for ground in roots if isinstance(ground, RequiresComponent)), None)
    ground = TriesPython(python=candidate.label) if asked is None else replace(asked, attempt=candidate.label)
    return Requirement(PYTHON, Labelled(frozenset({candidate.label})), ground)


def _decided(
    attempt: Attempt, source_for: SourceFor, patience: Patience
) -> tuple[Universe, dict[Key, Candidate] | CompleteSearch]:
    """Decide one attempt; again from the start while it meets files that metadata names, for they are candidates too.

    And again where a component cannot be at the version of the distribution that carries it: as a pair, decided together.
    """
    met, pairs = MetFiles(), frozenset[Pair]()
    while True:
        met.has_grown = False
        universe = _universe(attempt, source_for, met=met, patience=patience, pairs=pairs)
        found = pins_or_refutation(universe)
        if isinstance(found, CompleteSearch) and not met.has_grown:
            _look_around(universe)
        if met.has_grown:
            if isinstance(found, CompleteSearch):
                found.close()
            continue
        if isinstance(found, CompleteSearch):
            return universe, found
        pins = as_carried(universe, least_moved(universe, found))
        if (more := pairs | apart(universe, pins)) == pairs:
            return universe, pins
        pairs = more


def _look_around(universe: Universe) -> None:
    """Read what the first choice for each request needs: a search may have ended before it saw that one names a file."""
    for root in universe.roots:
        if root.key.is_package:
            first = next((one for one in universe.candidates(root.key) if root.allows(one)), None)
            with suppress(UnavailableError):
                _ = universe.requirements(first) if first is not None else ()


def _universe(
    attempt: Attempt, source_for: SourceFor, *, met: MetFiles, patience: Patience, pairs: frozenset[Pair]
) -> Universe:
    environment = environment_of(attempt)
    build = build_of(attempt.system.get(PYTORCH))
    variant = build.index if build is not None else ""
    world = PackageWorld(attempt.problem, source_for(environment), environment, variant, met=met)
    return Universe(attempt.problem, world, patience, pairs=pairs)


def environment_of(attempt: Attempt) -> Environment:
    """Where the packages of an attempt must install: the oldest host's libraries, or those of the image."""
    return Environment(
        platform=attempt.problem.request.platform, python=attempt.python, glibc=_glibc(attempt), macos=_macos(attempt)
    )


def _glibc(attempt: Attempt) -> tuple[int, int] | None:
    """The glibc wheels must run on, a cautious one where it is not known; None where there is none."""
    return known_glibc(attempt) or GLIBC_WHEN_UNKNOWN if attempt.problem.request.platform.startswith("linux") else None


def known_glibc(attempt: Attempt) -> tuple[int, int] | None:
    """The base image's glibc in a container, the oldest host's otherwise; None where that is not known."""
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
    """The macOS wheels must run on: the oldest any host states, None where none does."""
    found = [stated(target.host, "macos") for target in attempt.problem.request.hosts]
    oldest = min((Version.parse(text).release for text in found if text is not None), default=None)
    return None if oldest is None else (oldest[0], (*oldest, 0)[1])
