"""The components of a problem with packages, searched on their own: which versions of distributions no components go with.

A version of a distribution may need a CUDA, a driver or a build of PyTorch that the hosts rule out. resolvelib would find that
out again for every choice of what it decides in between; here one search, over the components and PyTorch's wheels alone,
decides it once for all versions with the same needs.

What components need is the same with every Python, so the searches for all Pythons share one SAT solver (`SharedComponents`),
which knows nothing of packages. What an instance demands besides, such as a wheel of PyTorch for its Python, is asked of the
choices that the solver finds, and becomes a clause for that Python where a choice fails it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from provisioner.errors import UnavailableError
from provisioner.resolver.requirement import PYTORCH, TORCH, WheelCandidate
from provisioner.resolver.search.complete import Blame, CompleteSearch
from provisioner.resolver.search.instance import STEPS_OF_CALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

    Choice = Mapping[Key, Candidate]
    """A candidate for each component, as far as something requires it."""

    Need = tuple[Key, frozenset[Candidate]]
    """A key, and the candidates of which one has to be chosen."""


MAIN_INDEX = "pypi"
"""The name that builds of PyTorch have for the index of all other distributions."""


class Refuted:
    """Needs that no choice of components meets together."""

    def __init__(self) -> None:
        self._alone: set[Candidate] = set()
        self._together: list[Sequence[Need]] = []

    def add(self, needs: Sequence[Need]) -> None:
        """Add needs that no choice meets; () where there is no choice at all."""
        if len(needs) == 1 and len(needs[0][1]) == 1:
            self._alone.update(needs[0][1])
        else:
            self._together.append(needs)

    def include(self, needs: Sequence[Need]) -> bool:
        """Return whether no choice meets some needs, because they are those of a refutation, or stricter."""
        if any(allowed <= self._alone for _, allowed in needs):
            return True
        return any(
            all(any(key == one and allowed <= some for key, allowed in needs) for one, some in refuted)
            for refuted in self._together
        )


class SharedComponents(NamedTuple):
    """The components of a problem, without packages and for all Pythons, and the search of them."""

    instance: ProblemInstance
    search: CompleteSearch
    refuted: Refuted

    def serve(self, instance: ProblemInstance) -> bool:
        """Return whether every choice of components for an instance is one for these: it demands the same, or more."""
        own, other = self.instance.problem, instance.problem
        is_same = other.domains is own.domains and other.needs is own.needs and not instance.pairs
        return is_same and {*instance.roots}.issuperset(self.instance.roots)


class ComponentSearch:
    """A complete search of the components of an instance, asked about the needs of one version at a time.

    The search of `shared` is used if that serves the instance. `known` is a choice of components to begin with: what goes with
    a choice that was found before needs no search.
    """

    def __init__(self, instance: ProblemInstance, shared: SharedComponents | None = None, known: Choice | None = None) -> None:
        self._instance = instance
        self._shared = shared if shared is not None and shared.serve(instance) else None
        self._given = known
        self._choices: list[Choice] = []
        """The choices of components that are known to go with the instance, the latest first."""
        self._verdicts: dict[Candidate, bool] = {}

    @cached_property
    def is_possible(self) -> bool:
        """Whether there is a choice of components at all; True when that is unknown, because an index cannot be reached."""
        try:
            return self._has_choice(())
        except UnavailableError:
            return True

    def admits(self, candidate: Candidate) -> bool:
        """Return whether some choice of components goes with a candidate.

        That of a component is part of the choice; the requirements of a version of a distribution are met by it. These are
        read from its metadata only if what is known without it can be met. True when that is unknown, because an index cannot
        be reached.
        """
        found = self._verdicts.get(candidate)
        if found is None:
            try:
                found = self._verdicts[candidate] = self._is_admitted(candidate)
            except UnavailableError:  # it may be read later: a budget is for one fix
                return True
        return found

    def _is_admitted(self, candidate: Candidate) -> bool:
        if isinstance(candidate, WheelCandidate):
            candidate = candidate.build  # which alone requires its wheel
        if not candidate.key.is_package:
            return self._has_choice([(candidate.key, frozenset({candidate}))])
        known = self._instance.known_requirements(candidate)
        return self._meets(known) and self._meets(self._instance.requirements(candidate))

    def _meets(self, requirements: Iterable[Requirement]) -> bool:
        needed = {(one.key, self._instance.allowed(one)): None for one in requirements if not one.key.is_package}
        return not needed or self._has_choice([*needed])

    def _has_choice(self, needs: Sequence[Need]) -> bool:
        """Return whether some choice of components meets some needs."""
        if self._meets_by_known_choice(needs):
            return True
        if any(some.include(needs) for some in self._refuted):
            return False
        among = [[one for one in self._instance.candidates(key) if one in allowed] for key, allowed in needs]
        while True:
            self._instance.budget.steps.take(STEPS_OF_CALL)
            choice = self._find(among)
            if isinstance(choice, Blame):
                proven = self._refuted[-1 if choice.is_of_condition else 0]
                proven.add([needs[position] for position in choice.among])
                return False
            unmet = [*self._unmet(choice)]
            if not unmet:
                self._choices.insert(0, choice)
                return True
            for parent, one in unmet:
                self._search.require_under(self._condition, parent, key=one.key, allowed=self._instance.allowed(one))

    def _find(self, among: list[list[Candidate]]) -> dict[Key, Candidate] | Blame:
        """Return a choice that has one of each of `among`, or why there is none.

        If it can be, PyTorch's build is one of the main index: then no other index is asked whether it has the wheel.
        """
        found = self._search.find_under(self._condition, among)
        if isinstance(found, Blame) or PYTORCH not in found or found[PYTORCH] in self._usual_builds:
            return found
        usual = self._search.find_under(self._condition, [*among, self._usual_builds])
        return found if isinstance(usual, Blame) else usual

    @cached_property
    def _usual_builds(self) -> list[Candidate]:
        """The builds of PyTorch that the main index has, if it has any."""
        return [build for build, wheel in self._wheels.items() if _index(wheel) == MAIN_INDEX]

    @cached_property
    def _refuted(self) -> tuple[Refuted, ...]:
        """What is known to be refuted: first with every instance that the search serves, then with this one."""
        return (self._shared.refuted if self._shared is not None else Refuted(), Refuted())

    @cached_property
    def _search(self) -> CompleteSearch:
        """The search of `shared` if that serves the instance, otherwise one of its own."""
        if self._shared is not None:
            return self._shared.search
        return CompleteSearch(self._instance, includes=_is_component)

    @cached_property
    def _condition(self) -> int:
        """The literal of what the instance demands besides, in a search that other instances may use, too."""
        return self._search.condition()

    def _meets_by_known_choice(self, needs: Sequence[Need]) -> bool:
        """Return whether a choice meets some needs that is known to go with the instance, or that was given and does."""

        def is_met(choice: Choice) -> bool:
            return all(choice.get(key) in allowed for key, allowed in needs)

        if any(map(is_met, self._choices)):
            return True
        given = self._given
        if given is None or not is_met(given):
            return False
        self._given = None  # it is looked at where it would do, for an index may have to be asked for its wheel
        if any(self._unmet(given)):
            return False
        self._choices.append(given)
        return True

    def _unmet(self, choice: Choice) -> Iterator[tuple[Candidate | None, Requirement]]:
        """Yield the requirements on components that a choice does not meet, each with the candidate that has it.

        A root requirement has None. For PyTorch also those of its wheel are yielded, as far as they are known without metadata.
        """
        required: list[tuple[Candidate | None, Requirement]] = [(None, root) for root in self._instance.roots]
        for pin in choice.values():
            required.extend((pin, one) for one in self._instance.requirements(pin))
            if pin.key == PYTORCH and pin in self._wheels:
                required.extend(self._of_wheels(pin))
        for parent, one in required:
            if not one.key.is_package and choice.get(one.key) not in self._instance.allowed(one):
                yield parent, one

    def _of_wheels(self, build: Candidate) -> Iterator[tuple[Candidate, Requirement]]:
        """Yield the requirements of the wheel of a build that are known without metadata, each with the build.

        Where there is no such wheel, those of all others that the same index lacks are yielded, too.
        """
        wheel = self._wheels[build]
        if not self._instance.lacks_file(wheel):
            yield from ((build, one) for one in self._instance.known_requirements(wheel))
            return
        alike = (one for one in self._wheels.values() if _index(one) == _index(wheel) and self._instance.lacks_file(one))
        yield from ((other.build, one) for other in alike for one in self._instance.requirements(other))

    @cached_property
    def _wheels(self) -> Mapping[Candidate, WheelCandidate]:
        """The wheel of each build of PyTorch."""
        return {one.build: one for one in self._instance.candidates(TORCH) if isinstance(one, WheelCandidate)}


def _index(wheel: WheelCandidate) -> str:
    """Return the name of the index that has the wheel of a build."""
    build = wheel.build.build
    return build.index if build is not None else ""


def _is_component(key: Key) -> bool:
    return not key.is_package
