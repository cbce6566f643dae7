"""The adapter between resolvelib and a universe: it answers the engine's questions and knows no files and no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers import RequirementInformation, ResolutionImpossible, ResolutionTooDeep, Resolver

from provisioner.solve.requirement import TORCH, Candidate, Key, Matching, Requirement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from provisioner.solve.universe import Universe

SYSTEM_ROUNDS = 60
PACKAGE_ROUNDS = 1_500
"""Several times what the largest solvable problems need (a round pins one key or steps back from one). A search longer than
this is hard, not large: the complete search decides those in milliseconds, while resolvelib may wander for minutes."""


class UniverseProvider(AbstractProvider[Requirement, Candidate, Key]):
    """Candidates in the universe's order of preference; keys in the declared order."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._order = universe.problem.order
        self._direct = universe.packages.order if universe.packages else {}
        self._offered: dict[Key, tuple[Candidate, ...]] = {}
        self._is_pin: dict[Requirement, bool] = {}

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> Key:
        return requirement_or_candidate.key

    def get_preference(
        self,
        identifier: Key,
        resolutions: Mapping[Key, Candidate],
        candidates: Mapping[Key, Iterator[Candidate]],
        information: Mapping[Key, Iterator[RequirementInformation[Requirement, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Requirement, Candidate]],
    ) -> tuple[bool, int, bool, bool, str]:
        del resolutions, candidates
        return self._preference(identifier, information, _keys(backtrack_causes))

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[Key],
        resolutions: Mapping[Key, Candidate],
        candidates: Mapping[Key, Iterator[Candidate]],
        information: Mapping[Key, Iterator[RequirementInformation[Requirement, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Requirement, Candidate]],
    ) -> Iterable[Key]:
        """The most preferred key alone: what the engine would choose by `get_preference`, in half the time."""
        del resolutions, candidates
        causes = _keys(backtrack_causes)
        return [min(identifiers, key=lambda key: self._preference(key, information, causes))]

    def _preference(
        self,
        key: Key,
        information: Mapping[Key, Iterator[RequirementInformation[Requirement, Candidate]]],
        causes: Collection[Key],
    ) -> tuple[bool, int, bool, bool, str]:
        """Facts and names first, then what the user asked for, then components, then everything else.

        Distributions the user named come before components because they pin frameworks, not the other way round.
        """
        if key in self._direct:
            return (False, self._direct[key], False, False, "")
        if not key.is_package:
            rank = self._order.get(key, -1)
            return (rank >= 0, rank, False, False, key.world)
        is_pinned = any(self._pins(info.requirement) for info in information[key])
        return (True, len(self._order), key not in causes, not is_pinned, key.name)

    def _pins(self, requirement: Requirement) -> bool:
        found = self._is_pin.get(requirement)
        if found is None:
            found = self._is_pin[requirement] = _is_pinned(requirement)
        return found

    def find_matches(
        self,
        identifier: Key,
        requirements: Mapping[Key, Iterator[Requirement]],
        incompatibilities: Mapping[Key, Iterator[Candidate]],
    ) -> Sequence[Candidate]:
        offered = self._offered.get(identifier)
        if offered is None:
            candidates = self._universe.candidates(identifier)
            offered = self._offered[identifier] = tuple(one for one in candidates if not _is_blocked(one))
        sets = [self._universe.allowed(one) for one in requirements[identifier]]
        allowed = frozenset.intersection(*sets) if sets else frozenset(offered)
        left = allowed.difference(incompatibilities[identifier])
        return [one for one in offered if one in left]

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        return candidate in self._universe.allowed(requirement)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        return self._universe.requirements(candidate)


def _keys(causes: Sequence[RequirementInformation[Requirement, Candidate]]) -> frozenset[Key]:
    found = {cause.requirement.key for cause in causes}
    return frozenset(found.union(cause.parent.key for cause in causes if cause.parent))


def _is_pinned(requirement: Requirement) -> bool:
    test = requirement.test
    return isinstance(test, Matching) and any(one.operator in {"==", "==="} for one in test.specifier)


def _is_blocked(candidate: Candidate) -> bool:
    """Whether a version has no file for the environment."""
    return candidate.key.is_package and candidate.key != TORCH and candidate.subject.file is None


class Course(BaseReporter[Requirement, Candidate, Key]):
    """What happened on the way to an answer: a search that never went back took the first choice of every key that works.

    With `never_goes_back` the search is given up where it would: what it then found would have to be decided again anyway.
    """

    def __init__(self, *, never_goes_back: bool = False) -> None:
        self._never_goes_back = never_goes_back
        self.has_gone_back = False
        self._pinned: set[Key] = set()

    def resolving_conflicts(self, causes: Collection[RequirementInformation[Requirement, Candidate]]) -> None:
        del causes
        self.has_gone_back = True
        if self._never_goes_back:
            raise ResolutionTooDeep(0)

    def pinning(self, candidate: Candidate) -> None:
        self.has_gone_back = self.has_gone_back or candidate.key in self._pinned
        self._pinned.add(candidate.key)


def search(universe: Universe, course: Course | None = None) -> dict[Key, Candidate] | None:
    """Run resolvelib; None when it says impossible or gives up. The answer is the engine's word, not yet verified."""
    rounds = PACKAGE_ROUNDS if universe.packages else SYSTEM_ROUNDS + len(universe.roots)
    resolver: Resolver[Requirement, Candidate, Key] = Resolver(UniverseProvider(universe), course or Course())
    try:
        return dict(resolver.resolve(universe.roots, max_rounds=rounds).mapping)
    except (ResolutionImpossible, ResolutionTooDeep):
        return None
    except RecursionError:
        # resolvelib 1.2.1 looks for the way from each key back to the roots without noticing that it walks in a circle, when
        # a cycle was left behind that nothing needs any longer (two distributions that require each other, then dropped).
        return None
