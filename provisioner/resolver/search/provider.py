"""The adapter between resolvelib and a problem instance; it knows neither files nor network."""

from __future__ import annotations

from itertools import filterfalse
from typing import TYPE_CHECKING

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers import RequirementInformation, Resolution, ResolutionImpossible, ResolutionTooDeep

from provisioner.resolver.requirement import TORCH, Candidate, Key, Matching, Requirement
from provisioner.resolver.search.instance import arbitrary_version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from resolvelib.resolvers import Criterion

    from provisioner.resolver.search.instance import ProblemInstance

Preference = tuple[bool, int, bool, bool, str]
"""The rank of a key, decided in ascending order: facts and names, components, causes of the last backtracking, pinned keys."""

SYSTEM_ROUNDS = 60
PACKAGE_ROUNDS = 1_500
"""Several times what the largest solvable problems need (a round pins one key or backtracks from one). A search longer than
this is hard, not large: the complete search decides those in milliseconds, while resolvelib may take minutes."""

CACHE_THRESHOLD = 6
"""How often a requirement is tested version by version, until one fits, before the versions it allows are cached as a set."""

CONFLICT_THRESHOLD = 5
"""After how many conflicts a distribution that the user did not name is decided ahead of those the user named (where
`decides_conflicts_first`). Otherwise the engine backtracks through every version of whatever was decided in between."""

ROUNDS_OF_ALL_STARTS = 10_000
"""How many rounds all restarts together may take; a restart without the dead versions mostly comes after a dozen rounds."""


class Provider(AbstractProvider[Requirement, Candidate, Key]):
    """Offers candidates in the instance's order of preference, and keys in the declared order."""

    def __init__(self, instance: ProblemInstance, *, decides_conflicts_first: bool = False) -> None:
        self._instance = instance
        self._is_in_the_way_first = decides_conflicts_first
        self._order = instance.problem.order
        self._direct = instance.finder.order if instance.finder else {}
        self._is_pin: dict[Requirement, bool] = {}
        self._accepted: dict[tuple[Requirement, Candidate], bool] = {}
        self._dead: set[Candidate] = set()
        self._dead_keys: set[Key] = set()
        self._count: dict[Requirement, int] = {}
        self._viable: dict[Requirement, Candidate] = {}
        """Of requirements that can be met one candidate that meets them."""
        self._preferences: dict[Key, tuple[object, tuple[Preference, Preference]]] = {}
        self._conflicts: dict[Key, int] = {}
        self.criteria: Callable[[], Mapping[Key, Criterion[Requirement, Candidate]] | None] = lambda: None
        """Returns the engine's criterion of each key; None outside of a resolution."""

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
        """Return the most preferred key alone: the engine would choose it by `get_preference`, in twice the time."""
        del resolutions, candidates
        causes = _keys(backtrack_causes)
        criteria = self.criteria()
        if criteria is None:
            return [min(identifiers, key=lambda key: self._preference(key, information, causes))]
        return [min(identifiers, key=lambda key: self._cached_preferences(key, criteria[key])[key in causes])]

    def _cached_preferences(self, key: Key, criterion: Criterion[Requirement, Candidate]) -> tuple[Preference, Preference]:
        """Return the preferences of a key, plain and as a cause of the last backtracking; cached for its criterion."""
        known = self._preferences.get(key)
        if known is None or known[0] is not criterion:
            information = {key: iter(criterion.information)}
            plain = self._preference(key, information, ())
            known = self._preferences[key] = (
                criterion,
                (plain, plain if plain[2] is False else (*plain[:2], False, *plain[3:])),
            )
        return known[1]

    def _preference(
        self,
        key: Key,
        information: Mapping[Key, Iterator[RequirementInformation[Requirement, Candidate]]],
        causes: Collection[Key],
    ) -> Preference:
        """Rank a key: facts and names first, then what the user requires, then components, then everything else.

        Distributions that the user named come before components because they pin frameworks, not the other way round. Keys
        in many conflicts come before them where `decides_conflicts_first`, as in uv.
        """
        if key in self._direct:
            return (False, self._direct[key], False, False, "")
        if not key.is_package:
            rank = self._order.get(key, -1)
            return (rank >= 0, rank, False, False, key.scope)
        if self._conflicts.get(key, 0) >= CONFLICT_THRESHOLD:
            return (False, -1, False, False, key.name)
        is_pinned = any(self._pins(info.requirement) for info in information[key])
        return (True, self._order.get(key, len(self._order)), key not in causes, not is_pinned, key.name)

    def note_conflict(self, keys: Iterable[Key]) -> None:
        """Count a conflict for the keys whose requirements clash in it; keys in many conflicts are then decided early."""
        for key in keys if self._is_in_the_way_first else ():
            if key.is_package and key != TORCH and key not in self._direct:
                self._conflicts[key] = self._conflicts.get(key, 0) + 1
                if self._conflicts[key] == CONFLICT_THRESHOLD:
                    self._preferences.pop(key, None)

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
        """Return the allowed candidates lazily: the engine mostly takes the first, and a project has a thousand."""
        candidates = self._instance.candidates(identifier)
        wanted = dict.fromkeys(requirements[identifier])
        refused = frozenset(incompatibilities[identifier])

        cached = {one for one in wanted if self._is_cached(one)}

        def matches() -> Iterator[Candidate]:
            found: Iterator[Candidate] = filterfalse(refused.__contains__, candidates)
            if identifier in self._dead_keys:
                found = filterfalse(self._dead.__contains__, found)
            for one in cached:  # sets first: fewer versions are then tested one by one
                found = filter(self._instance.allowed(one).__contains__, found)
            if identifier.is_package:
                found = (one for one in found if not one.has_no_file)
            if not self._instance.bounds.is_empty:
                found = filterfalse(self._instance.bounds.excludes, found)
            for one in wanted:
                found = found if one in cached else self._instance.among(one, found)
            return found

        return matches

    def _is_cached(self, requirement: Requirement) -> bool:
        """Whether the set of versions that a requirement allows pays: it is tested often, or found at once (`===`)."""
        count = self._count[requirement] = self._count.get(requirement, 0) + 1
        if count == 1 and arbitrary_version(requirement):
            count = self._count[requirement] = CACHE_THRESHOLD
        return count >= CACHE_THRESHOLD

    def is_dead(self, candidate: Candidate | None, requirements: Iterable[Requirement] = ()) -> bool:
        """Whether a distribution's version can never be chosen because of its requirements, or of some of them; remembered."""
        if candidate is None or not candidate.key.is_package or candidate.key == TORCH:
            return False
        if candidate not in self._dead:
            in_question = requirements or (one for one in self._instance.requirements(candidate) if one.key in self._dead_keys)
            if any(self._is_hopeless(one) for one in in_question):
                self._dead.add(candidate)
                self._dead_keys.add(candidate.key)
        return candidate in self._dead

    def _is_hopeless(self, requirement: Requirement) -> bool:
        """Whether every candidate that meets a requirement is dead or has no file."""
        if not requirement.key.is_package or requirement.key == TORCH:
            return False
        viable = self._viable.get(requirement)
        if viable is not None and viable not in self._dead:
            return False
        if viable is not None or arbitrary_version(requirement):
            allowed: Iterable[Candidate] = self._instance.allowed(requirement)
        else:
            allowed = self._instance.among(requirement, self._instance.candidates(requirement.key))
        viable = next((one for one in allowed if one not in self._dead and not one.has_no_file), None)
        if viable is not None:
            self._viable[requirement] = viable
        return viable is None

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        question = (requirement, candidate)
        found = self._accepted.get(question)
        if found is None:
            found = self._accepted[question] = self._instance.accepts(requirement, candidate)
        return found

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        return self._instance.requirements(candidate)


def _keys(causes: Sequence[RequirementInformation[Requirement, Candidate]]) -> frozenset[Key]:
    found = {cause.requirement.key for cause in causes}
    return frozenset(found.union(cause.parent.key for cause in causes if cause.parent))


def _is_pinned(requirement: Requirement) -> bool:
    test = requirement.test
    return isinstance(test, Matching) and any(one.operator in {"==", "==="} for one in test.specifier)


class SearchReporter(BaseReporter[Requirement, Candidate, Key]):
    """Records whether resolvelib backtracked, and its rounds; without backtracking each key has the first choice that works.

    With `stops_on_conflict` the search is given up at the first conflict: its answer would have to be decided again anyway.
    """

    def __init__(self, *, stops_on_conflict: bool = False) -> None:
        self.stops_on_conflict = stops_on_conflict
        self.has_backtracked = False
        self.rounds = 0
        self._pinned: set[Key] = set()

    def starting_round(self, index: int) -> None:
        del index
        self.rounds += 1

    def resolving_conflicts(self, causes: Collection[RequirementInformation[Requirement, Candidate]]) -> None:
        del causes
        self.has_backtracked = True
        if self.stops_on_conflict:
            raise ResolutionTooDeep(0)

    def pinning(self, candidate: Candidate) -> None:
        self.has_backtracked = self.has_backtracked or candidate.key in self._pinned
        self._pinned.add(candidate.key)


class _DeadPinError(Exception):
    """A pinned version can never be chosen: the engine starts again without it."""


class _Resolution(Resolution[Requirement, Candidate, Key]):
    """resolvelib's engine with a cache: in every round it tests the pin of every key again, mostly with the same result.

    `_is_current_pin_satisfying` is not part of resolvelib's interface. In a release without it the cache is merely unused.
    """

    def __init__(self, provider: Provider, reporter: SearchReporter) -> None:
        super().__init__(provider, reporter)
        self._adapter, self._reporter_of_search = provider, reporter
        provider.criteria = lambda: self.state.criteria
        self._holds: dict[Key, tuple[Criterion[Requirement, Candidate], Candidate, bool]] = {}

    def _extract_causes(
        self, criteron: list[Criterion[Requirement, Candidate]]
    ) -> list[RequirementInformation[Requirement, Candidate]]:
        """Return why a key has no candidate left; raises `_DeadPinError` when an earlier pin can never work.

        A version with a requirement that no version satisfies is dead, and so is a version that needs a dead one.
        Backtracking step by step, the engine would first try every other distribution with the same requirement.
        """
        if not self._reporter_of_search.stops_on_conflict:
            for info in (info for criterion in criteron for info in criterion.information):
                self._adapter.is_dead(info.parent, (info.requirement,))
            pins = [pin for pin in self.state.mapping.values() if self._adapter.is_dead(pin)]
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
    instance: ProblemInstance, reporter: SearchReporter | None = None, *, decides_conflicts_first: bool = False
) -> dict[Key, Candidate] | None:
    """Return resolvelib's answer, not yet verified; None when it says impossible or gives up.

    With `decides_conflicts_first` keys in many conflicts are decided first: an answer is found sooner, and is less wanted.
    """
    rounds = PACKAGE_ROUNDS if instance.finder else SYSTEM_ROUNDS + len(instance.roots)
    provider, reporter = Provider(instance, decides_conflicts_first=decides_conflicts_first), reporter or SearchReporter()
    while reporter.rounds < ROUNDS_OF_ALL_STARTS:
        try:
            state = _Resolution(provider, reporter).resolve(instance.roots, rounds)
        except _DeadPinError:
            reporter.has_backtracked = True
            continue
        except (ResolutionImpossible, ResolutionTooDeep):
            return None
        finally:
            # Breaks the reference cycle that would keep the engine's state of every round until the program's end.
            provider.criteria = lambda: None
        return reachable(instance, state.mapping)
    return None


def reachable(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    """Return the pins that the roots need; the engine also keeps pins that only a choice it took back needed.

    resolvelib 1.2.1 removes such pins in `Resolver`, but overflows the stack where two of them need each other.
    """
    needed = [root.key for root in instance.roots]
    found = set(needed)
    while needed:
        pin = pins.get(needed.pop())
        new = {one.key for one in instance.requirements(pin)} - found if pin is not None else set()
        found |= new
        needed.extend(new)
    return {key: pin for key, pin in pins.items() if key in found}
