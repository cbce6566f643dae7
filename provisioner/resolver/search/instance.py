"""One problem in one environment: the candidates of each key and the requirements of each candidate.

A key is one thing to choose: a component (of one host, if hosts provide it) or a Python distribution. A candidate is a version
that can be chosen for a key. Candidates and requirements come from the matrix and from package indexes alike. The searches read
a problem through `ProblemInstance`; `violations` verifies an assignment (a candidate for each key) against it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from provisioner.errors import UnavailableError
from provisioner.grounds.predicate import Bundles
from provisioner.grounds.requirement import Relation, Supposes
from provisioner.places import Place
from provisioner.resolver.choices.constraints import Bounds, is_exact
from provisioner.resolver.python.discovered import is_met_without_prereleases, names_prerelease
from provisioner.resolver.requirement import (
    PYTORCH,
    Candidate,
    FileCandidate,
    Key,
    Labelled,
    Matching,
    ReleaseCandidate,
    Requirement,
    SameAs,
    Test,
    WheelCandidate,
    Within,
    comparable,
)
from provisioner.resolver.rules.bundled import bundled_version, unlisted_release
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.finder import PackageFinder
    from provisioner.versions import Version

Pair = tuple[Key, Key]
"""The key of a component and the key of a distribution that bundles it, such as cuDNN and nvidia-cudnn-cu12."""


AllowedOf = dict[tuple["Candidate", ...], dict["Test", frozenset["Candidate"]]]
"""What tests allow of the candidates of components, which are compared by identity."""


STEPS_OF_CALL, STEPS_OF_READ, STEPS_OF_INSTANCE = 5, 100, 200
"""The numbers of steps that a call of the SAT solver, reading a version's metadata, and a new instance of a problem count as.

A round of resolvelib, which is one step, was measured to take 0.2 ms where it goes back, and an instance 40 ms. Metadata that
no cache has takes 20 ms or more.
"""


class OutOfStepsError(UnavailableError):
    """Raised when the steps that searches may take are used up, so that it is unknown what they would have found."""


class StepBudget:
    """Budget of the steps of searches: unlimited for an answer and its proof, limited for all that is told beside the proof.

    A step is a round of resolvelib; what else is done counts as several steps. All searches of a problem share one budget.
    Steps are counted and no seconds, so that the same conflict has the same fixes on every machine.
    """

    def __init__(self) -> None:
        self.taken = 0
        """How many steps were taken so far."""
        self.was_short = False
        """Whether something was not looked for because too few steps or reads were left."""
        self._last: int | None = None
        self._read: set[tuple[Key, str]] = set()

    def limit(self, count: int) -> None:
        """Allow `count` more steps in all; a second call does not raise the limit."""
        self._last = self.taken + count if self._last is None else self._last

    @contextmanager
    def share(self, part: float) -> Iterator[None]:
        """Allow a part of the steps that are left, for the length of a `with` block."""
        last = self._last
        if last is not None:
            self._last = self.taken + int(max(last - self.taken, 0) * part)
        try:
            yield
        finally:
            self._last = last

    @contextmanager
    def at_most(self, count: int) -> Iterator[None]:
        """Allow at most `count` more steps for the length of a `with` block; that they end in it is not remembered."""
        last, was_short = self._last, self.was_short
        self._last = self.taken + count if last is None else min(last, self.taken + count)
        try:
            yield
        finally:
            self._last, self.was_short = last, was_short

    def has_more(self) -> bool:
        """Return whether a step is left; that none was is remembered."""
        has_more = self._last is None or self.taken < self._last
        self.was_short = self.was_short or not has_more
        return has_more

    def take(self, count: int = 1) -> None:
        """Count steps that are about to be taken; raises `OutOfStepsError` when none is left."""
        if not self.has_more():
            raise OutOfStepsError("not looked for: the searches for fixes took all steps that they may take")
        self.taken += count

    def take_read(self, version: tuple[Key, str]) -> None:
        """Count a version whose metadata is about to be read, once in all searches; raises as `take` does."""
        if version not in self._read:
            self.take(STEPS_OF_READ)
            self._read.add(version)


class ReadBudget:
    """Budget of metadata reads: unlimited for an answer and its proof, limited for the fixes of a conflict.

    Each version counts once, whether or not a cache has its metadata. So the same conflict has the same fixes on every
    machine; a limit in seconds would make them differ.
    """

    def __init__(self, steps: StepBudget | None = None) -> None:
        self.steps = steps or StepBudget()
        self._read: set[tuple[Key, str]] = set()
        self._left: int | None = None
        self._share = 0
        self._reads_sources = True

    def limit(self, count: int, *, reads_sources: bool = False) -> None:
        """Allow the metadata of `count` more versions to be read in all, besides those read before.

        `reads_sources`: that of source distributions, too, because none may be built for it.

        None of them may be read until `allot` gives a fix its share. A second call resets the share but does not raise the
        limit, because the fixes of a conflict are searched for in several environments on one budget.
        """
        self._left = count if self._left is None else self._left
        self._share = 0
        self._reads_sources = reads_sources

    def allot(self, count: int) -> None:
        """Let the next fix read the metadata of at most `count` versions, so that one fix does not use up the budget of all."""
        self._share = count

    def spend(self, candidate: Candidate) -> None:
        """Count a version whose metadata is about to be read; raises `UnavailableError` when the budget is exhausted.

        Not counted: versions counted before, versions without a file for the target, and wheels of a PyTorch build. For a fix
        no source distribution is read that may have to be built.
        """
        version = (candidate.key, candidate.label)
        if isinstance(candidate, WheelCandidate) or candidate.has_no_file or version in self._read:
            return
        if self._left is not None:
            if candidate.is_source and not self._reads_sources:
                self.steps.was_short = True
                raise UnavailableError(f"{candidate} was not looked at: it is a source distribution")
            if not min(self._left, self._share):
                self.steps.was_short = True
                raise UnavailableError(f"{candidate} was not looked at: too much was read before")
            self._left -= 1
            self._share -= 1
        self.steps.take_read(version)
        self._read.add(version)


class ProblemInstance:
    """One problem in one environment.

    `finder` finds the distributions; without it the instance is a system stack, which has no distributions and needs no package
    index. For each of the `pairs` (a component and a distribution that bundles it), the chosen version of the component must be
    the one that the chosen distribution bundles. `allowed` is shared by instances that have components with the very same
    candidates (`Problem.sharing`): what a test allows of these is found once.
    """

    def __init__(
        self,
        problem: Problem,
        finder: PackageFinder | None = None,
        budget: ReadBudget | None = None,
        *,
        pairs: frozenset[Pair] = frozenset(),
        allowed: AllowedOf | None = None,
    ) -> None:
        self.problem = problem
        self.finder = finder
        self.budget = budget or ReadBudget()
        self.roots = (*problem.roots, *(finder.roots if finder else ()))
        """The root requirements."""
        self.named: Mapping[Key, int] = finder.order if finder else {}
        """The rank of each distribution that the spec names, in the spec's order; empty without a finder."""
        self.bounds = Bounds(problem.constraints, problem.request, finder.markers if finder else None, problem.pythons)
        """The constraints and hashes, which rule candidates out before any search chooses them."""
        self._known: dict[Candidate, tuple[Requirement, ...]] = {}
        self._requirements: dict[Candidate, tuple[Requirement, ...]] = {}
        self._allowed: dict[Requirement, frozenset[Candidate]] = {}
        self._allowed_by_test: dict[Key, dict[Test, frozenset[Candidate]]] = {}
        self._allowed_of: AllowedOf = {} if allowed is None else allowed
        self._admits_prereleases: dict[Requirement, bool] = {}
        self._by_spelling: dict[Key, dict[str, list[Candidate]]] = {}
        self._by_version: dict[Key, dict[Version | str, list[Candidate]]] = {}
        self.pairs = pairs
        self._bundled_releases: dict[Key, tuple[Candidate, ...]] = {}
        self._pair_requirements: dict[Candidate, tuple[Requirement, ...]] = {}

    def relaxed(
        self, *, without: Collection[Group] = (), given: Collection[Candidate] = (), present: Collection[Key] = ()
    ) -> ProblemInstance:
        """Return a copy of the instance with requirements dropped and added.

        Dropped: the root requirements, constraints and hashes of the groups in `without`. Added: every candidate in `given` and
        any candidate of every key in `present` must be chosen.
        """
        found = ProblemInstance(self.problem, self.finder, self.budget, pairs=self.pairs, allowed=self._allowed_of)
        found._bundled_releases, found._pair_requirements = self._bundled_releases, self._pair_requirements
        found.bounds = self.bounds.without(without)
        if found.bounds is self.bounds:
            found._known, found._requirements = self._known, self._requirements
        supposed = Supposes()
        found.roots = (
            *(root for root in self.roots if root.ground.group not in without),
            *(Requirement(one.key, Labelled(frozenset({one.label})), supposed) for one in given),
            *(Requirement(key, Matching(SpecifierSet()) if key.is_package else Within(Range()), supposed) for key in present),
        )
        return found

    def decision_rank(self, key: Key) -> tuple[bool, int, bool, int, Key]:
        """Return the rank of a key in the order in which keys are decided, lowest first.

        Distributions that the spec names come first, then components, then all other distributions.
        """
        return key not in self.named, self.named.get(key, 0), key.is_package, self.problem.order.get(key, 0), key

    def candidates(self, key: Key) -> tuple[Candidate, ...]:
        """Return every candidate of a key, most preferred first; raises `UnavailableError` when an index cannot be reached.

        The result is empty for a distribution when the instance has no `finder`, and for a component that the problem does not
        have.
        """
        if key.is_package:
            return self.finder.candidates(key) if self.finder else ()
        listed = self.problem.domains.get(key, ())
        return (*listed, *self._releases_bundled_only(key, listed)) if self.pairs else listed

    def _releases_bundled_only(self, key: Key, listed: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """Return the releases of a component, as candidates, that distributions in `pairs` bundle and that are not in `listed`.

        `listed` are the candidates from the matrix, which are all preferred to the result.
        """
        if key not in self._bundled_releases:
            distributions = [distribution for component, distribution in sorted(self.pairs) if component == key]
            versions = (one for distribution in distributions for one in self.candidates(distribution) if not one.has_no_file)
            found = (unlisted_release(key, listed, one) for one in versions)
            self._bundled_releases[key] = tuple({one.version.text: one for one in found if one is not None}.values())
        return self._bundled_releases[key]

    def lacks_file(self, candidate: Candidate) -> bool:
        """Return whether no file of a distribution's version can be installed; for PyTorch's wheel, whether it is published.

        No metadata is read. False for a component, and when the index of PyTorch's build cannot be reached and must be.
        """
        if self.finder is None or not isinstance(candidate, WheelCandidate):
            return candidate.has_no_file
        try:
            release = self.finder.framework_release(candidate.build)
        except UnavailableError:
            return False
        return release is None or not release.has_file

    def known_requirements(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements of a candidate that are known before its metadata is read, cached.

        They come from constraints and hashes in the spec. Those of a distribution also come from the matrix's rows on it, from
        files that several distributions install, from components that the distribution bundles, and from libraries that its
        wheel needs.
        """
        found = self._known.get(candidate)
        if found is None:
            found = self._known[candidate] = (*self.bounds.of(candidate), *self._known_of_distribution(candidate))
        return found

    def _known_of_distribution(self, candidate: Candidate) -> Iterator[Requirement]:
        if not candidate.key.is_package or self.finder is None:
            return
        yield from self.finder.shared.of(candidate)
        if self.finder.required_libraries is not None:
            yield from self.finder.required_libraries.of(candidate)
        if self.pairs:
            yield from self._of_pairs(candidate)
        yield from self.finder.of_matrix(candidate)

    def _of_pairs(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return the requirements of a version of a distribution on the components paired with it.

        Each component must be at the version that the distribution bundles.
        """
        if candidate not in self._pair_requirements:
            keys = [key for key, other in sorted(self.pairs) if other == candidate.key and not candidate.has_no_file]
            self._pair_requirements[candidate] = tuple(self._of_pair(candidate, key) for key in keys)
        return self._pair_requirements[candidate]

    def _of_pair(self, candidate: Candidate, key: Key) -> Requirement:
        name, version, component = candidate.key.name, bundled_version(candidate), key.component
        labels = frozenset(one.label for one in self.candidates(key) if one.version == version)
        place = Place(f"matrices/{component}.yaml")
        ground = candidate.entails(Bundles(component, str(version)), Relation(name, f"{component} as bundled"), place)
        return Requirement(key, Labelled(labels), ground)

    def requirements(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """Return all requirements of a candidate, cached; raises `UnavailableError` when its metadata cannot be read."""
        found = self._requirements.get(candidate)
        if found is None:
            found = self._requirements[candidate] = (*self.known_requirements(candidate), *self._read(candidate))
        return found

    def iterate_requirements(self, candidate: Candidate) -> Iterator[Requirement]:
        """Yield all requirements of a candidate; its metadata is read after those that are known without it were taken.

        A caller that stops at one of those reads nothing. Raises `UnavailableError` when the metadata cannot be read.
        """
        known = self.known_requirements(candidate)
        yield from known
        yield from self.requirements(candidate)[len(known) :]

    def is_read(self, candidate: Candidate) -> bool:
        """Return whether all requirements of a candidate were asked for before, so that nothing more is read for them."""
        return candidate in self._requirements

    def is_known_unusable(self, candidate: Candidate) -> bool:
        """Return whether the metadata of a distribution was read and found to be unusable: a requirement allows nothing."""
        read = self._requirements.get(candidate, ()) if candidate.key.is_package else ()
        return any(not one.key.is_package and not self.allowed(one) for one in read)

    def requirements_on(self, pins: Mapping[Key, Candidate]) -> Iterator[Requirement]:
        """Yield the requirements that an assignment must meet: the root requirements, then those of its candidates."""
        yield from self.roots
        for candidate in pins.values():
            yield from self.requirements(candidate)

    def _read(self, candidate: Candidate) -> Iterable[Requirement]:
        """Return the requirements of a candidate from its metadata if it is a distribution, otherwise from the matrix."""
        if candidate.key.is_package:
            assert self.finder is not None, "a system stack has no distributions"
            self.budget.spend(candidate)
            return self.finder.requirements(candidate)
        needs = self.problem.needs.of(candidate)
        is_framework = not candidate.key.scope and candidate.key.name in self.problem.components
        if self.finder is not None and is_framework and isinstance(candidate, ReleaseCandidate):
            is_pytorch = candidate.key == PYTORCH
            of_file = self.finder.wheel_requirement if is_pytorch else self.finder.distribution_requirement
            return (*needs, of_file(candidate))
        return needs

    def allowed(self, requirement: Requirement) -> frozenset[Candidate]:
        """Return the candidates that a requirement allows, cached for each key and test.

        Requirements are looked up by identity first: the searches call this method more than any other, and hashing a specifier
        takes longer than all the rest of the method.
        """
        found = self._allowed.get(requirement)
        if found is None:
            by_test = self._allowed_by_test.get(requirement.key)
            if by_test is None:
                by_test = self._allowed_by_test[requirement.key] = self._by_test(requirement.key)
            found = by_test.get(requirement.test)
            if found is None:
                text = arbitrary_version(requirement)
                candidates = self._spelled(requirement.key, text) if text else self.candidates(requirement.key)
                if isinstance(requirement.test, SameAs):
                    candidates = self._same(requirement.key).get(comparable(requirement.test.label), ())
                found = by_test[requirement.test] = frozenset(self.among(requirement, candidates))
            self._allowed[requirement] = found
        return found

    def _by_test(self, key: Key) -> dict[Test, frozenset[Candidate]]:
        """Return what tests allow of a key's candidates; of versions of a distribution this depends on the instance, too."""
        return {} if key.is_package else self._allowed_of.setdefault(self.candidates(key), {})

    def _same(self, key: Key) -> Mapping[Version | str, list[Candidate]]:
        """Return the candidates of a key by what their labels are compared by; each of many drivers asks for one of them."""
        if key not in self._by_version:
            by_version = self._by_version[key] = {}
            for candidate in self.candidates(key):
                by_version.setdefault(comparable(candidate.label), []).append(candidate)
        return self._by_version[key]

    def _spelled(self, key: Key, text: str) -> Iterable[Candidate]:
        """Return the versions of a distribution that are written as `text`, from a cached table of its versions by their text.

        Without the table, the `===` operator would be evaluated for every version.
        """
        if key not in self._by_spelling:
            by_spelling = self._by_spelling[key] = {}
            for candidate in self.candidates(key):
                by_spelling.setdefault(str(candidate.pep440).lower(), []).append(candidate)
        return self._by_spelling[key].get(text, ())

    def among(self, requirement: Requirement, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield the candidates that a requirement allows, in the order given; tests each one when it is reached."""
        chosen = requirement.among(candidates)
        if not requirement.key.is_package:
            return chosen
        return (one for one in chosen if not one.is_withheld or self._admits_withheld(requirement, one))

    def accepts(self, requirement: Requirement, candidate: Candidate) -> bool:
        """Return whether a candidate satisfies a requirement, without the cache of `allowed`."""
        is_admitted = not candidate.is_withheld or self._admits_withheld(requirement, candidate)
        return is_admitted and requirement.allows(candidate)

    def _admits_withheld(self, requirement: Requirement, candidate: Candidate) -> bool:
        """Return whether a requirement admits a withheld version: a yanked release or a pre-release beside final versions.

        A yanked release is admitted if the requirement pins its version exactly (PEP 592), or if the spec does so. A
        pre-release is admitted if the requirement names a pre-release and no final version meets the requirement.
        """
        assert isinstance(candidate, FileCandidate), "only a version that an index has is withheld"
        if candidate.release.is_explicit_only:
            return self._admits_prerelease(requirement)
        name = candidate.release.name
        pins = (root for root in self.roots if root.key.distribution == name and is_exact(root.test))
        return is_exact(requirement.test) or any(root.allows(candidate) for root in pins) or self.bounds.pins(candidate)

    def _admits_prerelease(self, requirement: Requirement) -> bool:
        if not isinstance(requirement.test, Matching):
            return True
        found = self._admits_prereleases.get(requirement)
        if found is None:
            specifier = requirement.test.specifier
            found = names_prerelease(specifier) and not is_met_without_prereleases(specifier, self.candidates(requirement.key))
            self._admits_prereleases[requirement] = found
        return found


def violations(instance: ProblemInstance, pins: dict[Key, Candidate]) -> list[Requirement]:
    """Return every requirement that an assignment does not meet; [] for a valid assignment.

    Every answer is verified with this function. A search may be wrong, so no result that a search has cached is used here.
    """

    def is_met(requirement: Requirement) -> bool:
        pinned = pins.get(requirement.key)
        return pinned is not None and instance.accepts(requirement, pinned)

    return [requirement for requirement in instance.requirements_on(pins) if not is_met(requirement)]


def arbitrary_version(requirement: Requirement) -> str:
    """Return the text of an arbitrary-equality requirement such as `===1.0` (PEP 440); "" for any other requirement."""
    if not requirement.key.is_package or not isinstance(requirement.test, Matching) or len(requirement.test.specifier) != 1:
        return ""
    (only,) = requirement.test.specifier
    return only.version.lower() if only.operator == "===" else ""
