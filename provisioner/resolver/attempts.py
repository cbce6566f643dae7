"""The attempts to solve a problem with packages: one for each Python, with the environment that its packages must install in.

An environment has one Python, and which files and markers apply depends on it. So each attempt is the whole problem with one
Python.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from provisioner.components import FRAMEWORKS
from provisioner.grounds.requirement import FixesPython
from provisioner.host.facts import stated
from provisioner.index.model import Environment, PackageSource
from provisioner.resolver.requirement import PYTORCH, Candidate, ImageCandidate, Key, Labelled, Requirement, build_of
from provisioner.resolver.rules.images import realises_toolkit
from provisioner.resolver.search.complete import CompleteSearch
from provisioner.resolver.search.components import ComponentSearch, Refuted, SharedComponents
from provisioner.resolver.search.instance import STEPS_OF_INSTANCE, AllowedOf, Pair, ProblemInstance, ReadBudget
from provisioner.resolver.search.resolve import decide
from provisioner.versions import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.discovered import Discoveries
    from provisioner.resolver.python.finder import ReadsAhead

    SourceFor = Callable[[Environment], PackageSource]
    """Opens the package indexes for one environment."""

Chosen = tuple[ProblemInstance, dict[Key, Candidate]]
"""A problem instance and its most preferred valid assignment: a candidate for each key."""

PYTHON = Key("python")
GLIBC_WHEN_UNKNOWN = (2, 28)
"""The glibc version that current manylinux wheels need. It is assumed, and reported as unverified, if the glibc of the base
image or of the hosts is unknown."""


class Indexes(NamedTuple):
    """The package indexes: `open` opens them for one environment, `budget` limits the metadata that is read of them.

    `reads_ahead` tells what is read in the background before it is asked for.
    """

    open: SourceFor
    budget: ReadBudget
    reads_ahead: ReadsAhead = "everything"


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt to solve the problem with one Python, such as `3.12`.

    `problem` is the whole problem with that Python required; `system` is the most preferred answer for the components of
    `problem` alone, which gives the environment its glibc and the index of the framework's build. `rank` is the place of the
    framework's release in it, 0 for the newest, and `named` has the places of the other components that the spec names.
    `allowed` is what tests allow of the components, found once for all attempts, and `shared` the search of these, which all
    share; None for an attempt of its own. `prereleases` are the distributions of which metadata was found to need pre-releases,
    by any attempt: the next one has them from the start and need not start again.
    """

    python: str
    problem: Problem
    system: dict[Key, Candidate]
    rank: int = 0
    named: tuple[int, ...] = ()
    allowed: AllowedOf = field(default_factory=dict)
    shared: SharedComponents | None = None
    prereleases: set[str] = field(default_factory=set)


class Failure(Struct, frozen=True, kw_only=True, dict=True):
    """An attempt without an answer: its instance, the search that proved that there is none, and the groups that it used.

    `lacking` is an answer whose wheels lack libraries, None if there is none: the attempt failed because these are required. Of
    `pairs`, components and distributions were decided together. The groups in `without` did not have to hold.
    """

    attempt: Attempt
    instance: ProblemInstance
    search: CompleteSearch
    core: tuple[Group, ...]
    lacking: Mapping[Key, Candidate] | None = None
    pairs: frozenset[Pair] = frozenset()
    without: frozenset[Group] = frozenset()

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """A minimal set of groups that cannot hold together with the Python of the attempt."""
        return self.search.minimal(without=self.without, among=self.core)

    def involves(self, key: Key) -> bool:
        """Return whether the minimal conflict of the attempt has a requirement on a key."""
        return any(one.key == key for group in self.groups for _, one in self.search.members(group))


def attempts_of(problem: Problem) -> list[Attempt]:
    """Return an attempt for each Python with which the components have an answer, most preferred first.

    One search decides the components for all Pythons: what it learnt with one it knows with the next.
    A locked Python comes first if it is the first candidate. The others are ordered by `rank` and `named`, equal ones as
    Python's candidates.
    """
    allowed, prereleases = AllowedOf(), set[str]()
    instance = ProblemInstance(system_half(problem), allowed=allowed)
    shared = SharedComponents(instance, CompleteSearch(instance), Refuted())
    found = []
    for candidate in problem.domains[PYTHON]:
        if not all(one.allows(candidate) for one in problem.roots if one.key == PYTHON):
            continue
        system = shared.search.best(given=[candidate])
        if system is not None:
            narrowed = with_python(problem, candidate)
            narrow = Attempt(
                python=candidate.label,
                problem=narrowed,
                system=system,
                allowed=allowed,
                shared=shared,
                prereleases=prereleases,
            )
            found.append(narrow)
    locked = locked_python(problem)
    ranked = [replace(one, rank=framework_rank(problem, one.system), named=named_places(problem, one.system)) for one in found]
    return sorted(ranked, key=lambda attempt: (attempt.python != locked, attempt.rank, attempt.named))


def framework_rank(problem: Problem, pins: Mapping[Key, Candidate]) -> int:
    """Return the index of the chosen framework release among the framework's candidates, in the order of preference.

    Without a framework it is the index of the base image, if the spec asks for an image with CUDA, and otherwise 0. A framework
    counts where the components have it, not where packages alone need it.
    """
    leads = (*FRAMEWORKS, "image") if realises_toolkit(problem.request) else FRAMEWORKS
    lead = next((one for name in leads if (one := pins.get(Key(name))) is not None), None)
    if lead is None:
        return 0
    return next(i for i, one in enumerate(problem.domains[lead.key]) if one.version == lead.version)


def named_places(problem: Problem, pins: Mapping[Key, Candidate]) -> tuple[int, ...]:
    """Return the place of the chosen release of each component that the spec names, in the order of the matrix.

    Frameworks are left out, and Python, and what a host provides. A component that is not chosen has the place after the last.
    """
    others = {*FRAMEWORKS, PYTHON.name}
    keys = [Key(name) for name in problem.request.spec.requires if name not in others]
    named = sorted((key for key in keys if key in problem.domains), key=lambda key: problem.order.get(key, 0))
    return tuple(
        next((i for i, one in enumerate(problem.domains[key]) if key in pins and one.version == pins[key].version), last)
        for key in named
        for last in (len(problem.domains[key]),)
    )


def locked_python(problem: Problem) -> str | None:
    """Return the locked Python, if `prefer` and `avoid` of the policy leave it first among Pythons; None if there is none."""
    first = problem.domains[PYTHON][0].label
    return first if problem.request.preferred.get("python") == first else None


def other_attempts(problem: Problem, attempts: list[Attempt]) -> Iterator[tuple[Candidate, Attempt]]:
    """Yield each Python that is none of `attempts`, because a request or the components exclude it, with an attempt for it.

    The attempt shares the environment of the first attempt, apart from the Python.
    """
    known = {attempt.python for attempt in attempts}
    first = attempts[0]
    for candidate in problem.domains[PYTHON]:
        if candidate.label not in known:
            narrowed = with_python(problem, candidate)
            yield (
                candidate,
                Attempt(
                    python=candidate.label, problem=narrowed, system=first.system, allowed=first.allowed, shared=first.shared
                ),
            )


def with_python(problem: Problem, candidate: Candidate) -> Problem:
    """Return the problem with one Python required, by a root requirement that no conflict contains."""
    fixed = Requirement(PYTHON, Labelled(frozenset({candidate.label})), FixesPython(python=candidate.label))
    return replace(problem, roots=(*problem.roots, fixed))


def system_half(problem: Problem) -> Problem:
    """Return the problem without its root requirements on distributions, so that it can be solved without an index."""
    return replace(problem, roots=tuple(root for root in problem.roots if not root.key.is_package))


def in_image_with_libraries(attempt: Attempt) -> Attempt | None:
    """Return an attempt with the base images that have CUDA's libraries; None if the spec or the components exclude these."""
    problem = attempt.problem.in_image_with_libraries()
    system = decide(ProblemInstance(system_half(problem))) if problem is not None else None
    return replace(attempt, problem=problem, system=system) if problem is not None and system is not None else None


def instance_of(
    attempt: Attempt,
    indexes: Indexes,
    discoveries: Discoveries,
    *,
    environment: Environment | None = None,
    answer: Mapping[Key, Candidate] | None = None,
    pairs: frozenset[Pair] = frozenset(),
) -> ProblemInstance:
    """Return the instance of an attempt, by default in its own environment.

    `answer` is an earlier answer, the libraries that it lacks are then required.
    """
    from provisioner.resolver.python.finder import PackageFinder  # not for a stack without packages

    indexes.budget.steps.take(STEPS_OF_INSTANCE)
    environment = environment or environment_of(attempt)
    build = build_of(attempt.system.get(PYTORCH))
    index = build.index if build is not None else ""
    finder = PackageFinder(
        attempt.problem,
        indexes.open(environment),
        environment,
        index,
        discoveries=discoveries,
        answer=answer,
    )
    finder.read_ahead(indexes.reads_ahead)
    return ProblemInstance(attempt.problem, finder, indexes.budget, pairs=pairs, allowed=attempt.allowed)


def components_of(attempt: Attempt, instance: ProblemInstance) -> ComponentSearch:
    """Return the search of the components of an instance of an attempt."""
    return ComponentSearch(instance, attempt.shared, attempt.system)


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
