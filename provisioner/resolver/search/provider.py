"""The adapter between resolvelib and a universe: it answers the engine's questions and knows no files and no network."""

from __future__ import annotations

from itertools import filterfalse
from typing import TYPE_CHECKING

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers import RequirementInformation, Resolution, ResolutionImpossible, ResolutionTooDeep

from provisioner.resolver.requirement import TORCH, Candidate, Key, Matching, Requirement
from provisioner.resolver.search.universe import spelling_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from resolvelib.resolvers import Criterion

    from provisioner.resolver.search.universe import Universe

Preference = tuple[bool, int, bool, bool, str]
"""What is decided first is least: facts and names, then components, then causes of the last step back, then what is pinned."""

SYSTEM_ROUNDS = 60
PACKAGE_ROUNDS = 1_500
"""Several times what the largest solvable problems need (a round pins one key or steps back from one). A search longer than
this is hard, not large: the complete search decides those in milliseconds, while resolvelib may wander for minutes."""

OFTEN = 6
"""How often a requirement is asked of versions one by one, until one fits, before it is asked of all of its project's."""

IN_THE_WAY = 5
"""In how many conflicts a distribution nobody named is, before a search that is told so decides it ahead of those the user
named. Going back, the engine else tries every version of what was decided between it and what it cannot go with."""

ROUNDS_OF_ALL_STARTS = 10_000
"""How long the engine goes on starting again without versions that turned out to be dead: mostly after a dozen rounds."""


class UniverseProvider(AbstractProvider[Requirement, Candidate, Key]):
    """Candidates in the universe's order of preference; keys in the declared order."""

    def __init__(self, universe: Universe, *, is_in_the_way_first: bool = False) -> None:
        self._universe = universe
        self._is_in_the_way_first = is_in_the_way_first
        self._order = universe.problem.order
        self._direct = universe.packages.order if universe.packages else {}
        self._is_pin: dict[Requirement, bool] = {}
        self._accepted: dict[tuple[Requirement, Candidate], bool] = {}
        self._dead: set[Candidate] = set()
        self._dead_keys: set[Key] = set()
        self._count: dict[Requirement, int] = {}
        self._witnesses: dict[Requirement, Candidate] = {}
        """Of requirements that are not hopeless one candidate that shows it."""
        self._standings: dict[Key, tuple[object, tuple[Preference, Preference]]] = {}
        self._conflicts: dict[Key, int] = {}
        self.criteria: Callable[[], Mapping[Key, Criterion[Requirement, Candidate]] | None] = lambda: None
        """What the engine knows of each key, where it tells."""

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> Key:
        return requirement_or_candidate.key

    def get_preference(
        self,
        identifier: Key,
        resolutions: Mapping[Key, Candidate],
        candidates: Mapping[Key, Iterator[Candidate]],
        information: Mapping[Key, Iterator[RequirementInformation[Requirement, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Requirement, Candidate]],
    ) -> Preference:
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
        criteria = self.criteria()
        if criteria is None:
            return [min(identifiers, key=lambda key: self._preference(key, information, causes))]
        return [min(identifiers, key=lambda key: self._standing(key, criteria[key])[key in causes])]

    def _standing(self, key: Key, criterion: Criterion[Requirement, Candidate]) -> tuple[Preference, Preference]:
        """How much a key is preferred, plainly and as a cause of the last step back; known until more is asked of it."""
        known = self._standings.get(key)
        if known is None or known[0] is not criterion:
            information = {key: iter(criterion.information)}
            plain = self._preference(key, information, ())
            known = self._standings[key] = (criterion, (plain, plain if plain[2] is False else (*plain[:2], False, *plain[3:])))
        return known[1]

    def _preference(
        self,
        key: Key,
        information: Mapping[Key, Iterator[RequirementInformation[Requirement, Candidate]]],
        causes: Collection[Key],
    ) -> Preference:
        """Facts and names first, then what the user asked for, then components, then everything else.

        Distributions the user named come before components because they pin frameworks, not the other way round. What is in
        conflict again and again comes before them where the search is told so, as in uv.
        """
        if key in self._direct:
            return (False, self._direct[key], False, False, "")
        if not key.is_package:
            rank = self._order.get(key, -1)
            return (rank >= 0, rank, False, False, key.scope)
        if self._conflicts.get(key, 0) >= IN_THE_WAY:
            return (False, -1, False, False, key.name)
        is_pinned = any(self._pins(info.requirement) for info in information[key])
        return (True, self._order.get(key, len(self._order)), key not in causes, not is_pinned, key.name)

    def note_conflict(self, keys: Iterable[Key]) -> None:
        """Count a conflict for those whose requirements clash in it; what is in many is from then on decided early."""
        for key in keys if self._is_in_the_way_first else ():
            if key.is_package and key != TORCH and key not in self._direct:
                self._conflicts[key] = self._conflicts.get(key, 0) + 1
                if self._conflicts[key] == IN_THE_WAY:
                    self._standings.pop(key, None)

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
    ) -> Callable[[], Iterator[Candidate]]:
        """The allowed candidates as the engine walks them: it mostly wants the first, and a project has a thousand."""
        candidates = self._universe.candidates(identifier)
        wanted = dict.fromkeys(requirements[identifier])
        refused = frozenset(incompatibilities[identifier])

        known = {one for one in wanted if self._is_known(one)}

        def matches() -> Iterator[Candidate]:
            found: Iterator[Candidate] = filterfalse(refused.__contains__, candidates)
            if identifier in self._dead_keys:
                found = filterfalse(self._dead.__contains__, found)
            for one in known:  # what these sets leave is asked about the rest
                found = filter(self._universe.allowed(one).__contains__, found)
            if identifier.is_package:
                found = filterfalse(_is_blocked, found)
            if not self._universe.bounds.is_empty:
                found = filterfalse(self._universe.bounds.excludes, found)
            for one in wanted:
                found = found if one in known else self._universe.among(one, found)
            return found

        return matches

    def _is_known(self, requirement: Requirement) -> bool:
        """Whether everything that a requirement allows is worth to be known, because it is asked often, or known at once."""
        count = self._count[requirement] = self._count.get(requirement, 0) + 1
        if count == 1 and spelling_of(requirement):
            count = self._count[requirement] = OFTEN
        return count >= OFTEN

    def judge(self, candidate: Candidate | None, requirements: Iterable[Requirement] = ()) -> bool:
        """Whether a distribution's version can never be chosen, because of what it requires or of some of that; remembered."""
        if candidate is None or not candidate.key.is_package or candidate.key == TORCH:
            return False
        if candidate not in self._dead:
            asked = requirements or (one for one in self._universe.requirements(candidate) if one.key in self._dead_keys)
            if any(self._is_hopeless(one) for one in asked):
                self._dead.add(candidate)
                self._dead_keys.add(candidate.key)
        return candidate in self._dead

    def _is_hopeless(self, requirement: Requirement) -> bool:
        """Whether no candidate of its key that could ever be chosen meets a requirement."""
        if not requirement.key.is_package or requirement.key == TORCH:
            return False
        witness = self._witnesses.get(requirement)
        if witness is not None and witness not in self._dead:
            return False
        if witness is not None or spelling_of(requirement):
            offered: Iterable[Candidate] = self._universe.allowed(requirement)
        else:
            offered = self._universe.among(requirement, self._universe.candidates(requirement.key))
        witness = next((one for one in offered if one not in self._dead and not _is_blocked(one)), None)
        if witness is not None:
            self._witnesses[requirement] = witness
        return witness is None

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        question = (requirement, candidate)
        found = self._accepted.get(question)
        if found is None:
            found = self._accepted[question] = self._universe.accepts(requirement, candidate)
        return found

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
    return candidate.has_no_file


class Course(BaseReporter[Requirement, Candidate, Key]):
    """What happened on the way to an answer: a search that never went back took the first choice of every key that works.

    With `never_goes_back` the search is given up where it would: what it then found would have to be decided again anyway.
    """

    def __init__(self, *, never_goes_back: bool = False) -> None:
        self.never_goes_back = never_goes_back
        self.has_gone_back = False
        self.rounds = 0
        self._pinned: set[Key] = set()

    def starting_round(self, index: int) -> None:
        del index
        self.rounds += 1

    def resolving_conflicts(self, causes: Collection[RequirementInformation[Requirement, Candidate]]) -> None:
        del causes
        self.has_gone_back = True
        if self.never_goes_back:
            raise ResolutionTooDeep(0)

    def pinning(self, candidate: Candidate) -> None:
        self.has_gone_back = self.has_gone_back or candidate.key in self._pinned
        self._pinned.add(candidate.key)


class _DeadPinError(Exception):
    """What was pinned can never be chosen: the engine starts again without it."""


class _Resolution(Resolution[Requirement, Candidate, Key]):
    """The engine, which asks in every round about every key whether its pin still holds: most of what it asked before.

    The method is not part of resolvelib's interface. Should another release drop it, this is unused and nothing is wrong.
    """

    def __init__(self, provider: UniverseProvider, reporter: Course) -> None:
        super().__init__(provider, reporter)
        self._adapter, self._course = provider, reporter
        provider.criteria = lambda: self.state.criteria
        self._holds: dict[Key, tuple[Criterion[Requirement, Candidate], Candidate, bool]] = {}

    def _extract_causes(
        self, criteron: list[Criterion[Requirement, Candidate]]
    ) -> list[RequirementInformation[Requirement, Candidate]]:
        """Why a key has no candidate left; raises `_DeadPinError` when something that was pinned earlier can never work.

        A version that asks for what no version at all satisfies is dead wherever it is met, and so is one that needs a dead
        one. Going back step by step, the engine would try everybody else who asks for the same thing first.
        """
        if not self._course.never_goes_back:
            for info in (info for criterion in criteron for info in criterion.information):
                self._adapter.judge(info.parent, (info.requirement,))
            pins = [pin for pin in self.state.mapping.values() if self._adapter.judge(pin)]
            if pins:
                raise _DeadPinError
        causes = super()._extract_causes(criteron)
        self._adapter.note_conflict({cause.parent.key for cause in causes if cause.parent})
        return causes

    def _is_current_pin_satisfying(self, name: Key, criterion: Criterion[Requirement, Candidate]) -> bool:
        pin = self._states[-1].mapping.get(name)
        if pin is None:
            return False
        known = self._holds.get(name)
        if known is not None and known[0] is criterion and known[1] is pin:
            return known[2]
        holds = super()._is_current_pin_satisfying(name, criterion)
        self._holds[name] = (criterion, pin, holds)
        return holds


def search(
    universe: Universe, course: Course | None = None, *, is_in_the_way_first: bool = False
) -> dict[Key, Candidate] | None:
    """Run resolvelib; None when it says impossible or gives up. The answer is the engine's word, not yet verified.

    With `is_in_the_way_first` what is in many conflicts is decided first, which finds an answer sooner, and a less wanted one.
    """
    rounds = PACKAGE_ROUNDS if universe.packages else SYSTEM_ROUNDS + len(universe.roots)
    provider, reporter = UniverseProvider(universe, is_in_the_way_first=is_in_the_way_first), course or Course()
    while reporter.rounds < ROUNDS_OF_ALL_STARTS:
        try:
            state = _Resolution(provider, reporter).resolve(universe.roots, rounds)
        except _DeadPinError:
            reporter.has_gone_back = True
            continue
        except (ResolutionImpossible, ResolutionTooDeep):
            return None
        finally:
            # Or the two would hold each other, and with them what the engine kept of every round, until the program's end.
            provider.criteria = lambda: None
        return connected(universe, state.mapping)
    return None


def connected(universe: Universe, pins: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    """The pins that something needs; the engine keeps those that only a choice it took back needed.

    Its own way to tell them (`Resolver` of resolvelib 1.2.1) follows a circle of two such pins until the stack is full.
    """
    needed = [root.key for root in universe.roots]
    found = set(needed)
    while needed:
        pin = pins.get(needed.pop())
        new = {one.key for one in universe.requirements(pin)} - found if pin is not None else set()
        found |= new
        needed.extend(new)
    return {key: pin for key, pin in pins.items() if key in found}
