"""What the searches see: candidates of a key and requirements of a candidate, from the matrix and the index alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from provisioner.grounds.predicate import Bundles
from provisioner.grounds.requirement import Entails, Relation, Subject, Supposes
from provisioner.places import Place
from provisioner.resolver.choices.bounds import Bounds, is_exact
from provisioner.resolver.python.early import is_met_without, names_prerelease
from provisioner.resolver.requirement import (
    PYTORCH,
    Candidate,
    FileCandidate,
    Key,
    Labelled,
    Matching,
    ReleaseCandidate,
    Requirement,
    Test,
    Within,
)
from provisioner.resolver.rules.carriers import carried_version, unlisted
from provisioner.resolver.search.patience import Patience
from provisioner.versions import Range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from provisioner.grounds.requirement import Group
    from provisioner.resolver.problem import Problem
    from provisioner.resolver.python.packages import PackageWorld


Pair = tuple[Key, Key]
"""A component, and the distribution that carries it."""


class Universe:
    """One environment's world. Without `packages` it is the system stack alone and needs no index.

    Of each of some `pairs` the distribution's version is the component's.
    """

    def __init__(
        self,
        problem: Problem,
        packages: PackageWorld | None = None,
        patience: Patience | None = None,
        *,
        pairs: frozenset[Pair] = frozenset(),
    ) -> None:
        self.problem = problem
        self.packages = packages
        self.patience = patience or Patience()
        """How many versions' metadata may still be read."""
        self.roots = (*problem.roots, *(packages.roots if packages else ()))
        """Everything required from the start."""
        self.bounds = Bounds(problem.constraints, problem.request, packages.markers if packages else None, problem.pythons)
        """What constraints and hashes rule out, which searches need not find out by choosing it."""
        self._requirements: dict[Candidate, tuple[Requirement, ...]] = {}
        self._allowed: dict[Requirement, frozenset[Candidate]] = {}
        self._early: dict[Requirement, bool] = {}
        self._allowed_by_test: dict[tuple[Key, Test], frozenset[Candidate]] = {}
        self._spelled: dict[Key, dict[str, list[Candidate]]] = {}
        self._pairs = pairs
        self._carried: dict[Key, tuple[Candidate, ...]] = {}
        self._carrying: dict[Candidate, tuple[Requirement, ...]] = {}

    def relaxed(
        self, *, without: Collection[Group] = (), given: Collection[Candidate] = (), present: Collection[Key] = ()
    ) -> Universe:
        """The same world without what some groups require from the start, but with some candidates and keys required."""
        found = Universe(self.problem, self.packages, self.patience, pairs=self._pairs)
        found._carried, found._carrying = self._carried, self._carrying
        found.bounds = self.bounds.without(without)
        if found.bounds is self.bounds:
            found._requirements = self._requirements
        supposed = Supposes()
        found.roots = (
            *(root for root in self.roots if root.ground.group not in without),
            *(Requirement(one.key, Labelled(frozenset({one.label})), supposed) for one in given),
            *(Requirement(key, Matching(SpecifierSet()) if key.is_package else Within(Range()), supposed) for key in present),
        )
        return found

    def candidates(self, key: Key) -> tuple[Candidate, ...]:
        """Every candidate of a key, most wanted first; raises `UnavailableError` when the index is out of reach."""
        if key.is_package:
            return self.packages.candidates(key) if self.packages else ()
        listed = self.problem.domains.get(key, ())
        return (*listed, *self._unlisted(key, listed)) if self._pairs else listed

    def _unlisted(self, key: Key, listed: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """What the distributions of pairs carry and the matrix does not list, wanted less than what it does."""
        if key not in self._carried:
            carriers = [carrier for of, carrier in sorted(self._pairs) if of == key]
            versions = (one for carrier in carriers for one in self.candidates(carrier) if not one.has_no_file)
            found = (unlisted(key, listed, one) for one in versions)
            self._carried[key] = tuple({one.version.text: one for one in found if one is not None}.values())
        return self._carried[key]

    def beforehand(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """What is known of a candidate without reading its metadata: constraints, hashes, shared files, what it carries."""
        if not candidate.key.is_package:
            return self.bounds.of(candidate)
        shared = self.packages.shared.of(candidate) if self.packages else ()
        return (*self.bounds.of(candidate), *shared, *(self._carries(candidate) if self._pairs else ()))

    def _carries(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """That a distribution's version is the version of the components it is paired with."""
        if candidate not in self._carrying:
            keys = [key for key, carrier in sorted(self._pairs) if carrier == candidate.key and not candidate.has_no_file]
            self._carrying[candidate] = tuple(self._is_version(candidate, key) for key in keys)
        return self._carrying[candidate]

    def _is_version(self, candidate: Candidate, key: Key) -> Requirement:
        name, version, component = candidate.key.name, carried_version(candidate), key.component
        labels = frozenset(one.label for one in self.candidates(key) if one.version == version)
        ground = Entails(
            name=name,
            subject=Subject(name, candidate.label),
            predicate=Bundles(component, str(version)),
            relation=Relation(name, f"{component} as bundled"),
            cited=Place(f"matrices/{component}.yaml"),
        )
        return Requirement(key, Labelled(labels), ground)

    def requirements(self, candidate: Candidate) -> tuple[Requirement, ...]:
        """What choosing a candidate requires; computed once."""
        found = self._requirements.get(candidate)
        if found is None:
            found = self._requirements[candidate] = (*self.beforehand(candidate), *self._compute(candidate))
        return found

    def allowed(self, requirement: Requirement) -> frozenset[Candidate]:
        """The candidates a requirement allows; computed once for each key and test.

        Searches ask it all the time, so a requirement asked about before is known by its identity: hashing a specifier
        takes longer than everything else here.
        """
        found = self._allowed.get(requirement)
        if found is None:
            question = (requirement.key, requirement.test)
            found = self._allowed_by_test.get(question)
            if found is None:
                spelling = spelling_of(requirement)
                offered = self._written(requirement.key, spelling) if spelling else self.candidates(requirement.key)
                found = self._allowed_by_test[question] = frozenset(self.among(requirement, offered))
            self._allowed[requirement] = found
        return found

    def _written(self, key: Key, spelling: str) -> Iterable[Candidate]:
        """The versions of a distribution that are written in one way; `===` compares text, version by version."""
        if key not in self._spelled:
            spelled = self._spelled[key] = {}
            for candidate in self.candidates(key):
                spelled.setdefault(str(candidate.pep440).lower(), []).append(candidate)
        return self._spelled[key].get(spelling, ())

    def among(self, requirement: Requirement, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Those of some candidates that a requirement allows, one by one as they are wanted."""
        chosen = requirement.among(candidates)
        if not requirement.key.is_package:
            return chosen
        return (one for one in chosen if not one.is_withheld or self._may_be_withheld(requirement, one))

    def accepts(self, requirement: Requirement, candidate: Candidate) -> bool:
        """Whether a candidate satisfies a requirement, judged anew each time."""
        is_offered = not candidate.is_withheld or self._may_be_withheld(requirement, candidate)
        return is_offered and requirement.allows(candidate)

    def _may_be_withheld(self, requirement: Requirement, candidate: Candidate) -> bool:
        """A yanked release is for who pins it (PEP 592): this requirement itself, or the spec, and then for everybody.

        A pre-release beside final versions is for a requirement that names one where no final version meets it.
        """
        assert isinstance(candidate, FileCandidate), "only a version that an index has is withheld"
        if candidate.release.is_early:
            return self._takes_early(requirement)
        name = candidate.release.name
        pins = (root for root in self.roots if root.key.distribution == name and is_exact(root.test))
        return is_exact(requirement.test) or any(root.allows(candidate) for root in pins) or self.bounds.pins(candidate)

    def _takes_early(self, requirement: Requirement) -> bool:
        if not isinstance(requirement.test, Matching):
            return True
        found = self._early.get(requirement)
        if found is None:
            specifier = requirement.test.specifier
            is_early = names_prerelease(specifier) and not is_met_without(specifier, self.candidates(requirement.key))
            found = self._early[requirement] = is_early
        return found

    def _compute(self, candidate: Candidate) -> Iterable[Requirement]:
        if candidate.key.is_package:
            assert self.packages is not None
            self.patience.ask(candidate)
            return self.packages.requirements(candidate)
        needs = self.problem.needs.of(candidate)
        is_framework = not candidate.key.scope and candidate.key.name in self.problem.components
        if self.packages is not None and is_framework and isinstance(candidate, ReleaseCandidate):
            is_pytorch = candidate.key == PYTORCH
            its_own = self.packages.its_wheel(candidate) if is_pytorch else self.packages.its_distribution(candidate)
            return (*needs, its_own)
        return needs


def violations(universe: Universe, pins: dict[Key, Candidate]) -> list[Requirement]:
    """Every requirement that does not hold: the short pure check no answer escapes.

    An engine may be wrong in ways of its own, so nothing of its working is reused here.
    """
    wanted = [*universe.roots]
    for candidate in pins.values():
        wanted.extend(universe.requirements(candidate))
    return [requirement for requirement in wanted if not _holds(universe, requirement, pins)]


def _holds(universe: Universe, requirement: Requirement, pins: dict[Key, Candidate]) -> bool:
    pinned = pins.get(requirement.key)
    return pinned is not None and universe.accepts(requirement, pinned)


def spelling_of(requirement: Requirement) -> str:
    """What a requirement such as `===1.0` compares the text of versions with, "" for any other requirement."""
    if not requirement.key.is_package or not isinstance(requirement.test, Matching) or len(requirement.test.specifier) != 1:
        return ""
    (only,) = requirement.test.specifier
    return only.version.lower() if only.operator == "===" else ""
