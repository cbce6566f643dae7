"""The adapter between resolvelib and a problem instance, without access to files or network of its own.

In resolvelib's terms, an identifier is a key (a component or distribution to choose), a pin is the candidate chosen for a key,
and a criterion is the set of requirements on a key with the candidates that meet them all.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import cache
from itertools import filterfalse
from typing import TYPE_CHECKING

from resolvelib import AbstractProvider, BaseReporter
from resolvelib.resolvers import Criterion, RequirementInformation, Resolution, ResolutionImpossible, ResolutionTooDeep
from resolvelib.structs import build_iter_view

from provisioner.components import FRAMEWORKS
from provisioner.errors import UnavailableError
from provisioner.resolver.requirement import TORCH, Candidate, Key, Matching, Requirement
from provisioner.resolver.search.components import ComponentSearch
from provisioner.resolver.search.instance import arbitrary_version
from provisioner.words.ground import say

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from resolvelib.structs import State

    from provisioner.resolver.search.instance import ProblemInstance, StepBudget

LOG = logging.getLogger("provisioner.search")
"""The course of the search: attempts and how they end with `-v`, each choice and each conflict with `-vv`."""

Preference = tuple[bool, int, bool, bool, str]
"""The rank of a key: resolvelib decides the key of the lowest rank next. `Provider._preference` computes it."""

SYSTEM_ROUNDS = 60
PACKAGE_ROUNDS = 1_500
"""The numbers of rounds after which resolvelib gives up, for a system stack and with packages.

A round pins one key or backtracks. A system stack has one more round for each root requirement. The numbers are several times
what the largest solvable problems need. A search that takes longer is hard, not large: the complete search decides such
problems in milliseconds, while resolvelib may take minutes.
"""

PACKAGE_CONFLICTS = 100
"""The number of conflicts after which one search and all its restarts give up, with packages.

Measured: what resolvelib solves has 44 conflicts at most, and what it does not has several hundred before its rounds end.
"""

CACHE_THRESHOLD = 6
"""The number of tests of a requirement, version by version until one fits, at which all versions that it allows are cached."""

CONFLICT_THRESHOLD = 5
"""The number of conflicts after which a distribution that the spec does not name is decided before those named there.

The number applies with `decides_conflicts_first` only. Otherwise the distribution is decided after those, and the engine
backtracks through every version of each key decided in between.
"""

ROUNDS_OF_ALL_STARTS = 10_000
"""The rounds of resolvelib that one search and all its restarts may take together.

A restart, which leaves out the dead versions (see `Provider`), mostly finishes after a dozen rounds.
"""


class Provider(AbstractProvider[Requirement, Candidate, Key]):
    """The source of an instance's candidates for resolvelib, most preferred first, and of the order in which to decide keys.

    A version is dead if it can never be chosen, whatever is chosen for other keys: one of its requirements is met by no
    version, or by dead ones only, or only by versions whose requirements contradict its own.
    """

    def __init__(
        self,
        instance: ProblemInstance,
        components: ComponentSearch | None = None,
        *,
        decides_conflicts_first: bool = False,
    ) -> None:
        self._instance = instance
        self._components = components if components is not None else ComponentSearch(instance)
        self._has_conflict = False
        self._decides_conflicts_first = decides_conflicts_first
        self._order = instance.problem.order
        self._named = instance.named
        self._is_pin: dict[Requirement, bool] = {}
        self._accepted: dict[tuple[Requirement, Candidate], bool] = {}
        self._dead: set[Candidate] = set()
        self._dead_keys: set[Key] = set()
        self._clashed_over: dict[Key, set[Key]] = {}
        """The distributions whose every version clashes with a dead version, by the distribution of that version."""
        self._have_common: dict[tuple[int, int], bool] = {}
        self._count: dict[Requirement, int] = {}
        self._viable: dict[Requirement, Candidate] = {}
        """A candidate that meets a requirement, for each requirement that can be met."""
        self._preferences: dict[Key, tuple[object, tuple[Preference, Preference]]] = {}
        self._conflicts: dict[Key, int] = {}
        self.criteria: Callable[[], Mapping[Key, Criterion[Requirement, Candidate]] | None] = lambda: None
        """Returns resolvelib's criterion of each key; returns None when no resolution is running."""

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
        """Return the most preferred key alone: resolvelib would choose the same one by `get_preference`, in twice the time."""
        del resolutions, candidates
        causes = _keys(backtrack_causes)
        criteria = self.criteria()
        if criteria is None:
            return [min(identifiers, key=lambda key: self._preference(key, information, causes))]
        return [min(identifiers, key=lambda key: self._cached_preferences(key, criteria[key])[key in causes])]

    def _cached_preferences(self, key: Key, criterion: Criterion[Requirement, Candidate]) -> tuple[Preference, Preference]:
        """Return two ranks of a key: one in general, and one for when it is a cause of the last backtracking.

        They are cached until resolvelib replaces the criterion of the key.
        """
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
        """Return the rank of a key, lowest first: facts and names, distributions that the user named, components, all others.

        Distributions that the user named come before components because they pin frameworks, not the other way round. With
        `decides_conflicts_first`, distributions with many conflicts come before those that the user named, as in uv. Of the
        remaining distributions, `causes` of the last backtracking come first, then those that a requirement pins.
        """
        if key in self._named:
            return (False, self._named[key], False, False, "")
        if not key.is_package:
            rank = self._order.get(key, -1)
            return (rank >= 0, rank, False, False, key.scope)
        if self._conflicts.get(key, 0) >= CONFLICT_THRESHOLD:
            return (False, -1, False, False, key.name)
        is_pinned = any(self._pins(info.requirement) for info in information[key])
        return (True, self._order.get(key, len(self._order)), key not in causes, not is_pinned, key.name)

    def note_conflict(self, keys: Iterable[Key]) -> None:
        """Count a conflict of the distributions in `keys`, whose requirements clash; only with `decides_conflicts_first`.

        A distribution with `CONFLICT_THRESHOLD` conflicts is decided early from then on. Distributions that the spec names are
        left out.
        """
        for key in keys if self._decides_conflicts_first else ():
            if key.is_package and key != TORCH and key not in self._named:
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
        """Return a function that yields the allowed candidates of a key, most preferred first.

        The function tests the candidates one by one: resolvelib mostly takes the first, and a project may have a thousand
        versions.
        """
        candidates = self._instance.candidates(identifier)
        wanted = dict.fromkeys(requirements[identifier])
        refused = frozenset(incompatibilities[identifier])

        cached = {one for one in wanted if self._is_cached(one)}

        def matches() -> Iterator[Candidate]:
            found: Iterator[Candidate] = filterfalse(refused.__contains__, candidates)
            is_in_doubt = identifier in self._dead_keys
            if is_in_doubt:
                found = filterfalse(self._dead.__contains__, found)
            for one in cached:  # sets first: fewer versions are then tested one by one
                found = filter(self._instance.allowed(one).__contains__, found)
            if identifier.is_package:
                found = (one for one in found if not one.has_no_file)
            if not self._instance.bounds.is_empty:
                found = filterfalse(self._instance.bounds.excludes, found)
            for one in wanted:
                found = found if one in cached else self._instance.among(one, found)
            # Where one version is dead, the next ones mostly are for the same reason: they are not pinned one by one. What the
            # components are, the matrix knows: a build for another driver is left out without the search for what it needs.
            is_component = not identifier.is_package or identifier == TORCH
            if is_component:
                return filterfalse(self._is_refused, found)
            return filterfalse(self._is_out if is_in_doubt else self._is_known_dead, found) if self._dead_keys else found

        return matches

    def _is_cached(self, requirement: Requirement) -> bool:
        """Return whether to cache the versions that a requirement allows, and count this test of the requirement.

        They are cached when the requirement was tested `CACHE_THRESHOLD` times, or when a table finds them at once (`===`).
        """
        count = self._count[requirement] = self._count.get(requirement, 0) + 1
        if count == 1 and arbitrary_version(requirement):
            count = self._count[requirement] = CACHE_THRESHOLD
        return count >= CACHE_THRESHOLD

    @property
    def consults_components(self) -> bool:
        """Whether a candidate that no choice of components goes with is refused: from the first conflict on."""
        return self._components is not None

    def has_dead(self, key: Key) -> bool:
        """Return whether versions of a key are known to be dead."""
        return key in self._dead_keys

    def without_dead(self, key: Key, criterion: Criterion[Requirement, Candidate]) -> Criterion[Requirement, Candidate]:
        """Return the criterion of a key with its candidates found again: the engine keeps those found before one was dead."""
        matches = self.find_matches(key, {key: criterion.iter_requirement()}, {key: iter(criterion.incompatibilities)})
        return Criterion(build_iter_view(matches), criterion.information, criterion.incompatibilities)

    def consult_components(self) -> bool:
        """Return whether there is a choice of components at all; called at a conflict.

        From the first call on, whatever no choice of components goes with is refused.
        """
        self._has_conflict = True
        return self._components.is_possible

    def is_dead(self, candidate: Candidate | None, requirements: Iterable[Requirement] = ()) -> bool:
        """Return whether a version of a distribution is dead: its own requirements can never be met.

        `requirements` are the requirements of the version to test; if empty, all that are on distributions with dead versions
        are tested. A dead version is remembered. False for None, for a component and for the wheel of PyTorch.
        """
        if candidate is None or not candidate.key.is_package or candidate.key == TORCH:
            return False
        if candidate not in self._dead:
            in_question = requirements or (one for one in self._instance.requirements(candidate) if one.key in self._dead_keys)
            is_refused = self._instance.is_read(candidate) and self._is_refused(candidate)  # it reads nothing more
            if is_refused or any(self._is_hopeless(one) for one in in_question):
                self._dead.add(candidate)
                self._dead_keys.add(candidate.key)
        return candidate in self._dead

    def note_clash(self, candidate: Candidate | None, requirement: Requirement) -> None:
        """Mark a version as dead if every version that meets a requirement of it has one that contradicts its own.

        Otherwise the engine would try other versions of everything that has a requirement on the same distributions.
        """
        if candidate is None or not candidate.key.is_package or candidate.key == TORCH or candidate in self._dead:
            return
        is_of_another = requirement.key.is_package and requirement.key.distribution != candidate.key.distribution
        if is_of_another and self._clashes(candidate, requirement):
            self._clashed_over.setdefault(candidate.key, set()).add(requirement.key)
            self._dead.add(candidate)
            self._dead_keys.add(candidate.key)

    def _clashes(self, candidate: Candidate, requirement: Requirement) -> bool:
        """Return whether every version that meets a requirement of a candidate contradicts the candidate's own requirements.

        Versions of which nothing was read yet count as in no contradiction.
        """
        own: dict[Key, list[Requirement]] = {}
        for one in (*self._known_needs(candidate), *self._instance.roots):
            own.setdefault(one.key, []).append(one)
        usable = [one for one in self._instance.allowed(requirement) if one not in self._dead and not one.has_no_file]
        needs = map(self._known_needs, usable)
        return bool(usable) and all(any(self._contradicts(one, own.get(one.key, ())) for one in some) for some in needs)

    def _known_needs(self, candidate: Candidate) -> list[Requirement]:
        """Return the requirements of a version as far as they were read; with extras also those of the version itself."""
        if not self._instance.is_read(candidate):
            return []
        found = list(self._instance.requirements(candidate))
        own = [one for one in found if one.key.distribution == candidate.key.distribution] if candidate.key.extras else ()
        plain = {one for needed in own for one in self._instance.allowed(needed)}
        if len(plain) == 1:
            found.extend(needed for one in plain for needed in self._known_needs(one))
        return found

    def _contradicts(self, requirement: Requirement, others: Iterable[Requirement]) -> bool:
        return any(not self._has_common(requirement, other) for other in others)

    def _has_common(self, requirement: Requirement, other: Requirement) -> bool:
        """Return whether some version with a file meets two requirements on the same key."""
        first, second = self._instance.allowed(requirement), self._instance.allowed(other)
        question = id(first), id(second)  # the instance keeps both
        if question not in self._have_common:
            self._have_common[question] = any(not one.has_no_file for one in first & second)
        return self._have_common[question]

    def _is_refused(self, candidate: Candidate) -> bool:
        """Return whether no choice of components goes with a candidate.

        Before the first conflict this is asked of the builds of frameworks alone: their needs decide the other components, and
        the matrix knows them, while the metadata of a distribution would have to be read. Where a version of the same
        distribution is dead by a clash, the candidate is asked for the same, too.
        """
        is_framework = candidate.key.name in FRAMEWORKS and not candidate.key.scope and self._instance.finder is not None
        if not (is_framework or self._has_conflict):
            return False
        if not self._components.admits(candidate):
            return True
        keys = self._clashed_over.get(candidate.key, ())
        with suppress(UnavailableError):  # it is told where the version is pinned
            for one in self._instance.requirements(candidate) if keys else ():
                if one.key in keys:
                    self.note_clash(candidate, one)
        return candidate in self._dead

    def _is_out(self, candidate: Candidate) -> bool:
        """Return whether a version of a distribution with dead versions is refused, or dead like them."""
        with suppress(UnavailableError):  # it is told where the version is pinned
            return self._is_refused(candidate) or self.is_dead(candidate)
        return False

    def _is_known_dead(self, candidate: Candidate) -> bool:
        """Return whether what was read of a version tells that it is dead."""
        return self._instance.is_read(candidate) and self.is_dead(candidate)

    def _is_hopeless(self, requirement: Requirement) -> bool:
        """Return whether every version that meets a requirement on a distribution is dead or has no file for the target.

        A requirement on a component or on the wheel of PyTorch is hopeless only if it allows nothing at all, as that of a file
        whose metadata cannot be used.
        """
        if not requirement.key.is_package or requirement.key == TORCH:
            return not self._instance.allowed(requirement)
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
        """Return the requirements of a candidate; resolvelib takes the next one after it found no conflict with the last."""
        return self._instance.iterate_requirements(candidate)


def _keys(causes: Sequence[RequirementInformation[Requirement, Candidate]]) -> frozenset[Key]:
    found = {cause.requirement.key for cause in causes}
    return frozenset(found.union(cause.parent.key for cause in causes if cause.parent))


def _is_pinned(requirement: Requirement) -> bool:
    test = requirement.test
    return isinstance(test, Matching) and any(one.operator in {"==", "==="} for one in test.specifier)


class SearchReporter(BaseReporter[Requirement, Candidate, Key]):
    """A reporter that records whether resolvelib backtracked, and the number of its rounds.

    Without backtracking, the answer has for each key the first candidate that works. With `stops_on_conflict` the search ends
    at the first conflict, because the complete search decides again after any conflict; otherwise it ends after
    `most_conflicts`.
    """

    def __init__(self, *, stops_on_conflict: bool = False, most_conflicts: int = PACKAGE_CONFLICTS) -> None:
        self.stops_on_conflict = stops_on_conflict
        self.has_backtracked = False
        self.rounds = 0
        self._most_conflicts = 0 if stops_on_conflict else most_conflicts
        self._conflicts = 0
        self._pinned: set[Key] = set()
        self.steps: StepBudget | None = None
        """What each round is counted in; set where the search begins."""
        self._is_told = LOG.isEnabledFor(logging.DEBUG)

    def starting_round(self, index: int) -> None:
        del index
        if self.steps is not None:
            self.steps.take()
        self.rounds += 1

    def resolving_conflicts(self, causes: Collection[RequirementInformation[Requirement, Candidate]]) -> None:
        self.has_backtracked = True
        if self._is_told:
            LOG.debug("conflict: %s", "; ".join(dict.fromkeys(say(one.requirement.ground) for one in causes)))
        self._conflicts += 1
        if self._conflicts > self._most_conflicts:
            raise ResolutionTooDeep(0)

    def pinning(self, candidate: Candidate) -> None:
        if self._is_told:
            LOG.debug("%s %s", candidate.key.shown_name, candidate.label)
        self.has_backtracked = self.has_backtracked or candidate.key in self._pinned
        self._pinned.add(candidate.key)


class _DeadPinError(Exception):
    """A pinned version turned out to be dead: `search` starts resolvelib again without it.

    `kept` are the first states of the engine, the root's before all others, to which it would come again.
    """

    def __init__(self, kept: list[State[Requirement, Candidate, Key]]) -> None:
        super().__init__()
        self.kept = kept


class _Resolution(Resolution[Requirement, Candidate, Key]):
    """resolvelib's engine, which can begin with the states of an earlier run, its `kept` ones.

    The engine tests every pin again in every round; whether one meets its criterion is cached.
    `_is_current_pin_satisfying` and `_push_new_state` are not part of resolvelib's public interface. If a release lacks them,
    the cache and the kept states are merely unused, and the states are merely larger.
    """

    def __init__(
        self, provider: Provider, reporter: SearchReporter, kept: Sequence[State[Requirement, Candidate, Key]] = ()
    ) -> None:
        super().__init__(provider, reporter)
        self._adapter, self._reporter_of_search = provider, reporter
        provider.criteria = lambda: self.state.criteria
        self._holds: dict[Key, tuple[Criterion[Requirement, Candidate], Candidate, bool]] = {}
        self._kept = kept
        self._unpatched: int | None = None
        """How many of the first states were made without going back; None for all."""

    def _backjump(self, causes: list[RequirementInformation[Requirement, Candidate]]) -> bool:
        is_possible = super()._backjump(causes)
        last = len(self._states) - 1  # what was learnt by going back is in it
        self._unpatched = last if self._unpatched is None else min(self._unpatched, last)
        return is_possible

    def _extract_causes(
        self, criteron: list[Criterion[Requirement, Candidate]]
    ) -> list[RequirementInformation[Requirement, Candidate]]:
        """Return the requirements that leave a key without a candidate; raises `_DeadPinError` when an earlier pin is dead.

        A version is dead if no version satisfies one of its requirements, or if only dead ones do, or if no choice of
        components goes with it. If the engine backtracked step by step instead, it would first try every other distribution
        with the same requirement.
        """
        if not self._reporter_of_search.stops_on_conflict:
            is_first = not self._adapter.consults_components
            if not self._adapter.consult_components():
                raise ResolutionImpossible(super()._extract_causes(criteron))
            for info in (info for criterion in criteron for info in criterion.information):
                self._adapter.is_dead(info.parent, (info.requirement,))
            # Of each criterion the last requirement was the one too many.
            failing = {[*criterion.information][-1].parent for criterion in criteron}
            self._note_clashes({candidate.key for candidate in failing if candidate is not None})
            dead = self._dead_pins()
            if dead:
                raise _DeadPinError([] if is_first else self._states_before(dead))
        causes = super()._extract_causes(criteron)
        self._adapter.note_conflict({cause.parent.key for cause in causes if cause.parent})
        return causes

    def _dead_pins(self) -> set[Candidate]:
        """Return the pins that are dead; the death of one may be that of another, which requires it."""
        dead: set[Candidate] = set()
        while found := {pin for pin in self.state.mapping.values() if pin not in dead and self._adapter.is_dead(pin)}:
            dead |= found
        return dead

    def _states_before(self, dead: AbstractSet[Candidate]) -> list[State[Requirement, Candidate, Key]]:
        """Return the first states to which the engine would come again, if it started without some of its pins."""
        found = self._states[: self._unpatched]
        first = next(number for number, one in enumerate(self._states) if not dead.isdisjoint(one.mapping.values()))
        del found[first:]
        renewed = cache(self._adapter.without_dead)
        for state in found:
            state.criteria.update(
                (key, renewed(key, one)) for key, one in state.criteria.items() if self._adapter.has_dead(key)
            )
        while found and self._leaves_nothing(found[-1]):
            found.pop()
        return found

    def _leaves_nothing(self, state: State[Requirement, Candidate, Key]) -> bool:
        """Return whether all versions that some key of a state may have are dead."""
        left = (one for key, one in state.criteria.items() if key not in state.mapping and self._adapter.has_dead(key))
        return any(not one.candidates for one in left)

    def _note_clashes(self, keys: Iterable[Key]) -> None:
        """Let the adapter look at what requires the keys of which no version could be pinned, directly or with an extra."""
        criteria = self.state.criteria
        for key in keys:
            found = [info for info in criteria[key].information if info.parent] if key in criteria else []
            extras = {info.parent.key for info in found if info.parent and info.parent.key.distribution == key.distribution}
            found.extend(info for extra in sorted(extras - {key}) if extra in criteria for info in criteria[extra].information)
            for info in found:
                self._adapter.note_clash(info.parent, info.requirement)

    def _push_new_state(self) -> None:
        if self._kept:  # called for the first time, with the root's state alone
            self._states, self._kept = [*self._kept], ()
        # The state of every round is kept for going back. A dict keeps the order of the pins, too, and takes a third of the
        # memory of resolvelib's OrderedDict: 7 MiB less for 400 distributions.
        base = self._states[-1]
        state = base._replace(
            mapping=dict(base.mapping), criteria=dict(base.criteria), backtrack_causes=[*base.backtrack_causes]
        )
        self._states.append(state)

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
    instance: ProblemInstance,
    reporter: SearchReporter | None = None,
    components: ComponentSearch | None = None,
    *,
    decides_conflicts_first: bool = False,
) -> dict[Key, Candidate] | None:
    """Return the assignment that resolvelib finds, not yet verified; None when it finds none or gives up.

    With `decides_conflicts_first`, distributions with many conflicts are decided first: an answer is found sooner, but its
    versions may be less preferred. `reporter` records the backtracking and the rounds.
    """
    rounds = PACKAGE_ROUNDS if instance.finder else SYSTEM_ROUNDS + len(instance.roots)
    provider = Provider(instance, components, decides_conflicts_first=decides_conflicts_first)
    reporter = reporter or SearchReporter()
    reporter.steps = instance.budget.steps
    kept: list[State[Requirement, Candidate, Key]] = []
    while reporter.rounds < ROUNDS_OF_ALL_STARTS:
        try:
            state = _Resolution(provider, reporter, kept).resolve(instance.roots, rounds)
        except _DeadPinError as error:
            reporter.has_backtracked = True
            kept = error.kept if not decides_conflicts_first else []  # there conflicts change the order, from the start
            continue
        except (ResolutionImpossible, ResolutionTooDeep):
            return None
        finally:
            # Breaks the reference cycle that would keep the engine's state of every round until the program's end.
            provider.criteria = lambda: None
        return reachable(instance, state.mapping)
    return None


def reachable(instance: ProblemInstance, pins: Mapping[Key, Candidate]) -> dict[Key, Candidate]:
    """Return the pins that are required by the root requirements, directly or through other pins.

    The engine also returns pins that were required only by a choice that it took back later. resolvelib 1.2.1 removes such pins
    in `Resolver`, but its recursion overflows the stack when two of them require each other.
    """
    needed = [root.key for root in instance.roots]
    found = set(needed)
    while needed:
        pin = pins.get(needed.pop())
        new = {one.key for one in instance.requirements(pin)} - found if pin is not None else set()
        found |= new
        needed.extend(new)
    return {key: pin for key, pin in pins.items() if key in found}
