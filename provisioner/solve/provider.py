"""The adapter between resolvelib and a universe: it answers the engine's questions and knows no files and no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers import RequirementInformation, ResolutionImpossible, ResolutionTooDeep, Resolver

from provisioner.solve.requirement import TORCH, Candidate, Key, Matching, Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.solve.universe import Universe

SYSTEM_ROUNDS = 300
PACKAGE_ROUNDS = 1_500
"""Several times what the largest solvable problems need (a round pins one key or steps back from one). A search longer than
this is hard, not large: the complete search decides those in milliseconds, while resolvelib may wander for minutes."""


class UniverseProvider(AbstractProvider[Requirement, Candidate, Key]):
    """Candidates in the universe's order of preference; keys in the declared order."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._order = universe.problem.order
        self._direct = universe.packages.order if universe.packages else {}

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
        """Facts and names first, then what the user asked for, then components, then everything else.

        Distributions the user named come before components because they pin frameworks, not the other way round.
        """
        del resolutions, candidates
        if identifier in self._direct:
            return (False, self._direct[identifier], False, False, "")
        if not identifier.is_package:
            rank = self._order.get(identifier, -1)
            return (rank >= 0, rank, False, False, identifier.world)
        is_cause = any(identifier in _keys(cause) for cause in backtrack_causes)
        is_pinned = any(_is_pinned(info.requirement) for info in information[identifier])
        return (True, len(self._order), not is_cause, not is_pinned, identifier.name)

    def find_matches(
        self,
        identifier: Key,
        requirements: Mapping[Key, Iterator[Requirement]],
        incompatibilities: Mapping[Key, Iterator[Candidate]],
    ) -> Sequence[Candidate]:
        wanted = list(requirements[identifier])
        candidates = self._universe.candidates(identifier)
        allowed = frozenset(candidates).intersection(*(self._universe.allowed(one) for one in wanted))
        left = allowed.difference(incompatibilities[identifier])
        is_pinned = any(_is_pinned(one) for one in wanted)
        return [one for one in candidates if one in left and not _is_blocked(one, is_pinned=is_pinned)]

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        return candidate in self._universe.allowed(requirement)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        return self._universe.requirements(candidate)


def _keys(cause: RequirementInformation[Requirement, Candidate]) -> tuple[Key, ...]:
    return (cause.requirement.key, cause.parent.key) if cause.parent else (cause.requirement.key,)


def _is_pinned(requirement: Requirement) -> bool:
    test = requirement.test
    return isinstance(test, Matching) and any(one.operator in {"==", "==="} for one in test.specifier)


def _is_blocked(candidate: Candidate, *, is_pinned: bool) -> bool:
    """Whether a version has no file for the environment, or a yanked one that nobody pins (PEP 592)."""
    if not candidate.key.is_package or candidate.key == TORCH:
        return False
    return candidate.subject.file is None or not (is_pinned or candidate.subject.is_usable)


def search(universe: Universe) -> dict[Key, Candidate] | None:
    """Run resolvelib; None when it says impossible or gives up. The answer is the engine's word, not yet verified."""
    rounds = PACKAGE_ROUNDS if universe.packages else SYSTEM_ROUNDS
    resolver: Resolver[Requirement, Candidate, Key] = Resolver(UniverseProvider(universe), BaseReporter())
    try:
        return dict(resolver.resolve(universe.roots, max_rounds=rounds).mapping)
    except (ResolutionImpossible, ResolutionTooDeep):
        return None
