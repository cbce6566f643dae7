"""What an attempt may have at best: how its answer would rank, told from pages and as little metadata as possible."""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING, NamedTuple

from provisioner.errors import UnavailableError
from provisioner.resolver.attempts import components_of, in_image_with_libraries, instance_of
from provisioner.resolver.python.discovered import Discoveries
from provisioner.resolver.requirement import PYTORCH, TORCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provisioner.resolver.attempts import Attempt, Indexes
    from provisioner.resolver.python.finder import ReadsAhead
    from provisioner.resolver.requirement import Candidate, Key, Requirement
    from provisioner.resolver.search.instance import ProblemInstance

ASKED_FOR_FILES = 4
"""The most versions of a named distribution, for one Python, of which it is asked whether what they require has files.

One that has not ranks a Python behind those that have. Where nothing has, no Python is preferred to another by it.
"""


class Standing(NamedTuple):
    """How an answer ranks among those of all attempts, lowest first, or how it ranks at best.

    Whether no components are left, the place of the framework's release, that of each other named component's, the place of
    each named distribution's version, and that of the Python.
    """

    has_no_components: bool
    framework: int
    components: tuple[int, ...]
    distributions: list[int]
    python: int


class Prospect:
    """What an attempt may have at best: `bound` ranks it among the attempts, lowest first, and rises with what is read."""

    def __init__(
        self,
        number: int,
        attempt: Attempt,
        indexes: Indexes,
        is_first: Callable[[], bool],
        *,
        reads_ahead: ReadsAhead = "nothing",
    ) -> None:
        """Look at an attempt, the `number`-th; only the first reads something ahead (`reads_ahead`).

        `is_first` tells whether nothing was solved yet. After that what was solved tells of the others, for less.
        """
        self.attempt, self._number, self._indexes, self._is_first = attempt, number, indexes, is_first
        self.discoveries = Discoveries()
        self.instance = instance_of(attempt, indexes._replace(reads_ahead=reads_ahead), self.discoveries)
        self._components = components_of(attempt, self.instance)
        self._is_possible = True
        self._rank = attempt.rank
        self._places = [first_place(self.instance, key) for key in self.instance.named]
        self._choices: dict[Requirement, tuple[Candidate, ...]] = {}
        """The first two versions with a file that meet a requirement on a distribution."""
        self._steps = self._looking()
        self.is_looked_at = False

    def instances_like(self, other: ProblemInstance) -> Iterator[ProblemInstance]:
        """Yield the instance of the attempt, and that in an image with libraries, if such an image may be taken.

        What libraries and bundles another instance requires is required, too.
        """
        answer = other.finder.answer if other.finder is not None else None
        quiet = self._indexes._replace(reads_ahead="nothing")
        for attempt in filter(None, (self.attempt, in_image_with_libraries(self.attempt))):
            is_own = attempt is self.attempt and answer is None and not other.pairs
            yield self.instance if is_own else instance_of(attempt, quiet, self.discoveries, answer=answer, pairs=other.pairs)

    @property
    def bound(self) -> Standing:
        """How an answer of the attempt ranks at best."""
        is_first = self._rank == self.attempt.rank  # with an older framework the components may be any
        named = self.attempt.named if is_first else (0,) * len(self.attempt.named)
        return Standing(
            has_no_components=not self._is_possible,
            framework=self._rank,
            components=named,
            distributions=list(self._places),
            python=self._number,
        )

    def look_up_to(self, other: Standing | None) -> None:
        """Read versions until all are looked at that `bound` is about, or `bound` exceeds `other`, if that is given."""
        while not self.is_looked_at and (other is None or self.bound <= other):
            self.is_looked_at = next(self._steps, True)

    def _looking(self) -> Iterator[bool]:
        """Raise the bound step by step: yields False after each."""
        if PYTORCH in self.attempt.system:  # the wheels of a build may be missing; the rest of the components is decided
            self._is_possible = self._components.is_possible
            yield False
            for rank in self._ranks_of_pytorch():
                self._rank = rank
                yield False
        for position, key in enumerate(self.instance.named):
            allowed = allowed_by_spec(self.instance, key)
            asked = count(1)
            for place in range(self._places[position], len(allowed)):
                self._places[position] = place
                yield False
                if allowed[place].has_no_file or not self._may_be_chosen(allowed[place]):
                    continue
                if next(asked) > ASKED_FOR_FILES or self._has_what_it_needs(allowed[place]):
                    break
            else:
                self._places[position] = len(allowed)
                yield False

    def _ranks_of_pytorch(self) -> Iterator[int]:
        """Yield the ranks from that of the attempt to that of the newest release with a build that some choice goes with."""
        listed = self.attempt.problem.domains[PYTORCH]
        version = self.attempt.system[PYTORCH].version
        if not self._is_possible or listed[self._rank].version != version:
            return  # another framework counts before PyTorch
        for rank, build in enumerate(listed[self._rank :], self._rank):
            if build.version != version:
                version = build.version
                yield rank
            if self._components.admits(build):
                return

    def _may_be_chosen(self, candidate: Candidate) -> bool:
        """Return whether some choice of components goes with a version; of a source distribution nothing is read."""
        return not self._is_possible or candidate.is_source or self._components.admits(candidate)

    def _has_what_it_needs(self, candidate: Candidate) -> bool:
        """Return whether each distribution that a version requires has a file that the requirement allows.

        Where it allows one version with a file, this is asked of that version, too. Of all others pages alone are read. True
        when it is unknown, because an index cannot be reached, where metadata names files or pre-releases that were not
        looked for, and after an attempt was solved.
        """
        if not (self._is_possible and self._is_first()):
            return True
        waiting, seen = [candidate], {candidate}
        try:
            while waiting:
                for choices in self._with_files(waiting.pop()):
                    if not choices:
                        return self.discoveries.has_grown
                    if len(choices) == 1 and choices[0] not in seen:
                        waiting.append(choices[0])
                        seen.add(choices[0])
        except UnavailableError:
            return True
        return True

    def _with_files(self, candidate: Candidate) -> Iterator[Sequence[Candidate]]:
        """Yield, for each distribution that a version requires, the first two versions with a file that will do."""
        finder = self.instance.finder
        assert finder is not None, "a version of a distribution is from an index"
        if candidate.is_source:
            return
        needed = [one for one in self.instance.requirements(candidate) if _is_of_pages(one.key)]
        finder.look_ahead([one.key for one in needed])
        for need in needed:
            known = self._choices.get(need)
            if known is None:
                some = (one for one in self.instance.among(need, self.instance.candidates(need.key)) if not one.has_no_file)
                known = self._choices[need] = tuple(islice(some, 2))
            yield known


def _is_of_pages(key: Key) -> bool:
    """Return whether the candidates of a key are the versions on the page of a project."""
    return key.is_package and not key.is_mutex and key != TORCH


def wants_another_python(instance: ProblemInstance, key: Key) -> bool:
    """Return whether a version that the spec allows is preferred to each that has files, and has files for another Python."""
    preferred = allowed_by_spec(instance, key)[: first_place(instance, key)]
    return any(one.is_for_another_python for one in preferred)


def first_place(instance: ProblemInstance, key: Key) -> int:
    """Return the place of the first version with a file among those that the spec allows; their number if none has one."""
    allowed = allowed_by_spec(instance, key)
    return next((place for place, one in enumerate(allowed) if not one.has_no_file), len(allowed))


def allowed_by_spec(instance: ProblemInstance, key: Key) -> list[Candidate]:
    roots = [root for root in instance.roots if root.key == key]
    return [one for one in instance.candidates(key) if not one.is_withheld and all(root.allows(one) for root in roots)]
